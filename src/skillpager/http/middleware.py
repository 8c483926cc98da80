"""ASGI middleware: checks who sends a request and how much, and adds security headers to the answer.

The checks of Host and Origin are against DNS rebinding and web pages of other origins. A link on such a page
may open the explorer. Its requests are refused even where it could not read the answer, because they make the
service work and fill the cache.
"""

import asyncio
import hmac
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillpager.http.options import PROBES, ServerOptions, as_address
from skillpager.http.problems import RefusedError, error_problem

# enough for a query with its parameters, and for a long document
MAX_REQUEST_BYTES = 1024 * 1024
# a client that sends more slowly would delay a shutdown
BODY_SECONDS = 10.0
# folder of the explorer's files, which hold no data and need no token
FILES = "/explorer/"

# web pages load files of the service only; other sites may not frame or read them
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class RequestGuard:
    """Passes a request on if Host, Origin, token and body are allowed; otherwise answers with a problem."""

    def __init__(self, app: ASGIApp, *, options: ServerOptions) -> None:
        self._app = app
        self._token = options.token
        self._hosts = frozenset(map(_plain, ("localhost", options.host, *(options.allowed_hosts or ()))))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(SECURITY_HEADERS)
                headers.setdefault("Cache-Control", "no-cache")
            await send(message)

        headers = Headers(scope=scope)
        try:
            self._check_sender(scope, headers)
            self._check_token(scope, headers)
            body = await _read_body(headers, receive)
        except RefusedError as refusal:
            await error_problem(refusal)(scope, receive, secured)
            return
        except ClientDisconnect:
            return
        read: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return read.pop() if read else await receive()

        await self._app(scope, replay, secured)

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
        foreign = origin is not None and origin.partition("://")[2].lower() != host.lower()
        # browsers send this one also where they send no Origin
        site = headers.get("sec-fetch-site", "none").lower()
        shown = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
        is_link = scope["path"] == "/" and scope["method"] == "GET" and shown == ("navigate", "document")
        if foreign or (site not in ("none", "same-origin") and not is_link):
            raise RefusedError(
                HTTPStatus.FORBIDDEN, "Web pages of other sites may not use the service: only its own may."
            )

    def _check_token(self, scope: Scope, headers: Headers) -> None:
        """Raise `RefusedError` for a request without the token that it needs."""
        path = scope["path"]
        if self._token is None or path in PROBES or path == "/" or path.startswith(FILES):
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode(), self._token.encode())
        if not same or scheme.lower() != "bearer":
            raise RefusedError(
                HTTPStatus.UNAUTHORIZED,
                "The service needs its token: send the header `Authorization: Bearer TOKEN`.",
                headers={"WWW-Authenticate": 'Bearer realm="skillpager"'},
            )


async def _read_body(headers: Headers, receive: Receive) -> bytes:
    """Return the body; raise `RefusedError` if it is too large or takes longer than `BODY_SECONDS`."""
    too_large = RefusedError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"The body is over the limit of {MAX_REQUEST_BYTES:,} bytes: send less.",
        headers={"Connection": "close"},
    )
    announced = headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > MAX_REQUEST_BYTES:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                body += message.get("body", b"")
                if len(body) > MAX_REQUEST_BYTES:
                    raise too_large
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError as error:
        detail = f"The body did not arrive within {BODY_SECONDS:g} seconds: send it again."
        raise RefusedError(HTTPStatus.REQUEST_TIMEOUT, detail, headers={"Connection": "close"}) from error


def _plain(host: str) -> str:
    return host.lower().rstrip(".")
