"""ASGI middleware that checks every request: Host, Origin, token, and the body's size and type.

Host and Origin are checked against DNS rebinding and web pages of other origins.
"""

import hmac
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillpager.http.explorer.routes import assets
from skillpager.http.limits import read_body
from skillpager.http.options import ServerOptions, as_address
from skillpager.http.problems import RefusedError, error_problem
from skillpager.http.service import JSON

# what anyone may ask for without the token: it holds no data
PUBLIC_PATHS = frozenset({"/healthz", *assets()})


class Gate:
    """Lets a request through, or answers it with a problem."""

    def __init__(self, app: ASGIApp, *, options: ServerOptions) -> None:
        self._app = app
        self._options = options
        self._hosts = frozenset(map(_plain, ("localhost", options.host, *options.allowed_hosts)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            self._check_sender(scope, headers)
            announced = headers.get("content-length", "0")
            body = await read_body(receive, announced=announced, max_bytes=self._options.request_bytes)
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
        """Refuse a request for another host, from a web page of another origin, or without the token.

        Raises:
            RefusedError: It is one of those.
        """
        host = headers.get("host", "")
        name, _, port = host.rpartition(":")
        name = _plain(name if name and (port.isdecimal() or not port) else host)
        # an IP address is always right: only a name can be rebound to another address
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
        if self._options.token is None or scope["path"] in PUBLIC_PATHS:
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # the time that this takes reveals nothing of the token but its length
        same = hmac.compare_digest(given.strip().encode(), self._options.token.encode())
        if scheme.lower() != "bearer" or not same:
            raise RefusedError(
                HTTPStatus.UNAUTHORIZED,
                "The service wants its token: send the header `Authorization: Bearer TOKEN`.",
                headers={"WWW-Authenticate": 'Bearer realm="skillpager"'},
            )


def _plain(host: str) -> str:
    return host.lower().rstrip(".")
