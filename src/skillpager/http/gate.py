"""ASGI middleware that checks every request: Host, Origin, token, rate, and the body's size, time and type.

The checks of Host and Origin are against DNS rebinding and web pages of other origins. A link on such a page
may open the explorer. Its requests are refused even where it could not read the answer, because they make the
service work and fill the cache.
"""

import asyncio
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillpager.http.access import ADMIN, READ, Tokens
from skillpager.http.explorer.routes import assets
from skillpager.http.options import PROBES, ServerOptions, as_address
from skillpager.http.problems import RefusedError, error_problem, missing_scope
from skillpager.http.rates import Buckets, OwnBuckets, SharedBuckets
from skillpager.http.service import JSON
from skillpager.http.visits import visit_of
from skillpager.serving import is_foreign

# served without the token: they hold no data
PUBLIC_PATHS = PROBES | assets().keys()
# paths that need the scope `admin`; all others need `read`
ADMIN_PATHS = frozenset({"/metrics"})
# a client that sends more slowly would delay a shutdown
BODY_SECONDS = 10.0


class Gate:
    """Passes a request on, or answers it with a problem."""

    def __init__(self, app: ASGIApp, *, options: ServerOptions, tokens: Tokens) -> None:
        self._app = app
        self._options = options
        self._tokens = tokens
        self._buckets: Buckets = OwnBuckets() if options.shared is None else SharedBuckets(options.shared)
        self._hosts = frozenset(map(_plain, ("localhost", options.host, *options.allowed_hosts)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            self._check_sender(scope, headers)
            self._check_token(scope, headers)
            body = await self._read_body(headers, receive)
            given = headers.get("content-type", "")
            if body and scope["method"] == "POST" and given.partition(";")[0].strip().lower() != JSON:
                raise RefusedError(
                    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                    f"The body is {given!r}: send JSON with the header `Content-Type: {JSON}`.",
                    headers={"Accept-Post": JSON},
                )
        except RefusedError as refusal:
            await error_problem(refusal)(scope, receive, send)
            return
        except ClientDisconnect:
            return
        read: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return read.pop() if read else await receive()

        await self._app(scope, replay, send)

    def _check_sender(self, scope: Scope, headers: Headers) -> None:
        """Raise `RefusedError` for another host, or a web page of another origin."""
        host = headers.get("host", "")
        name, _, port = host.rpartition(":")
        name = _plain(name if name and (port.isdecimal() or not port) else host)
        # IP addresses are always allowed: only a name can be rebound to another address
        if name not in self._hosts and as_address(name) is None:
            raise RefusedError(
                HTTPStatus.MISDIRECTED_REQUEST,
                f"The service is not known as {host!r}: call it by its address, or have it started with "
                "--allowed-host and this name.",
            )
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            raise RefusedError(
                HTTPStatus.FORBIDDEN, f"Web pages of {origin!r} may not use the service: only its own may."
            )
        if is_foreign(headers) and not _opens_explorer(scope, headers):
            raise RefusedError(
                HTTPStatus.FORBIDDEN, "Web pages of other sites may not use the service: only its own may."
            )

    def _check_token(self, scope: Scope, headers: Headers) -> None:
        """Note the request's token; raise `RefusedError` without it, without its scope, or above its rate."""
        if scope["path"] in PUBLIC_PATHS:
            return
        visit, rate = visit_of(scope), self._options.rate
        if self._options.needs_token:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            token = self._tokens.find(given.strip()) if scheme.lower() == "bearer" else None
            if token is None:
                raise RefusedError(
                    HTTPStatus.UNAUTHORIZED,
                    "The service needs its token: send the header `Authorization: Bearer TOKEN`.",
                    headers={"WWW-Authenticate": 'Bearer realm="skillpager"'},
                )
            visit.token, rate = token, token.rate or rate
            needed = ADMIN if scope["path"] in ADMIN_PATHS else READ
            if needed not in token.scopes:
                raise missing_scope(token.name, needed)
        if rate is None:
            return
        decision = self._buckets.take("" if visit.token is None else visit.token.name, rate)
        visit.headers.update(decision.headers())
        if not decision.allowed:
            raise RefusedError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"The limit is {rate.requests:,} requests in {rate.seconds:,} seconds: ask again in "
                f"{decision.wait} seconds.",
            )

    async def _read_body(self, headers: Headers, receive: Receive) -> bytes:
        """Return the body; raise `RefusedError` if it is too large or takes longer than `BODY_SECONDS`."""
        max_bytes = self._options.request_bytes
        too_large = RefusedError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"The body is over the limit of {max_bytes:,} bytes: send less, or have the service started with "
            "a larger --max-request-bytes.",
            headers={"Connection": "close"},
        )
        announced = headers.get("content-length", "0")
        if announced.isdecimal() and int(announced) > max_bytes:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    body += message.get("body", b"")
                    if len(body) > max_bytes:
                        raise too_large
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError as error:
            detail = f"The body did not arrive within {BODY_SECONDS:g} seconds: send it again."
            raise RefusedError(HTTPStatus.REQUEST_TIMEOUT, detail, headers={"Connection": "close"}) from error


def _opens_explorer(scope: Scope, headers: Headers) -> bool:
    """Return whether a browser follows a link to the explorer's page, in a window of its own."""
    shown = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    return scope["path"] == "/" and scope["method"] in ("GET", "HEAD") and shown == ("navigate", "document")


def _plain(host: str) -> str:
    return host.lower().rstrip(".")
