"""ASGI middleware: `AuthMiddleware` checks requests, `AnswerMiddleware` completes their answers.

The checks of Host and Origin are against DNS rebinding and web pages of other origins. A link on such a page
may open the explorer. Its requests are refused even where it could not read the answer, because they make the
service work and fill the cache.
"""

import asyncio
import hmac
import json
import logging
import time
from datetime import UTC, datetime
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillpager.http.explorer.routes import ASSETS
from skillpager.http.options import PROBES, ServerOptions, as_address
from skillpager.http.problems import JSON, EndingError, RefusedError, error_problem, fault_problem
from skillpager.serving import is_foreign

# one JSON line per request; the command that starts the service adds the handler
access_log = logging.getLogger("skillpager.http.access")

# served without the token: they hold no data
PUBLIC_PATHS = PROBES | ASSETS
# a client that sends more slowly would delay a shutdown
BODY_SECONDS = 10.0

# web pages load files of the service only; other sites may not frame or read them
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class AuthMiddleware:
    """Passes a request on if Host, Origin, token and body are allowed; otherwise answers with a problem."""

    def __init__(self, app: ASGIApp, *, options: ServerOptions) -> None:
        self._app = app
        self._options = options
        self._hosts = frozenset(map(_plain, ("localhost", options.host, *(options.allowed_hosts or ()))))

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
        """Raise `RefusedError` for a request without the token that it needs."""
        if self._options.token is None or scope["path"] in PUBLIC_PATHS:
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode(), self._options.token.encode())
        if not same or scheme.lower() != "bearer":
            raise RefusedError(
                HTTPStatus.UNAUTHORIZED,
                "The service needs its token: send the header `Authorization: Bearer TOKEN`.",
                headers={"WWW-Authenticate": 'Bearer realm="skillpager"'},
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


class AnswerMiddleware:
    """The outermost middleware: security headers, answers to HEAD and to faults, access log."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = size = 0
        started = time.perf_counter()
        method = scope["method"]
        if method == "HEAD":
            scope["method"] = "GET"

        async def completed(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.update(SECURITY_HEADERS)
                headers.setdefault("Cache-Control", "no-cache")
            elif method == "HEAD":
                message["body"] = b""
            size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, completed)
        except asyncio.CancelledError:
            # the service is stopping and the grace period for the worker is over
            if not status:
                await error_problem(EndingError())(scope, receive, completed)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as fault:  # a panic of a Rust extension is no Exception
            if not status:
                await fault_problem(fault)(scope, receive, completed)
        # no status: the client disconnected before it was answered
        if status and access_log.isEnabledFor(logging.INFO):
            line = {
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "client": (scope.get("client") or [None])[0],
                "method": method,
                "path": scope["path"],  # without the query string, which may hold an agent's query
                "status": status,
                "bytes": size,
                "ms": round((time.perf_counter() - started) * 1000, 2),
            }
            access_log.info("%s", json.dumps(line))


def _opens_explorer(scope: Scope, headers: Headers) -> bool:
    """Return whether a browser follows a link to the explorer's page, in a window of its own."""
    shown = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    return scope["path"] == "/" and scope["method"] in ("GET", "HEAD") and shown == ("navigate", "document")


def _plain(host: str) -> str:
    return host.lower().rstrip(".")
