"""Who may ask: Host and Origin (against DNS rebinding and foreign web pages), the token, the body's form."""

import hmac
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from skillpager.http.explorer.assets import assets
from skillpager.http.limits import read_body, replay, too_large
from skillpager.http.options import ServerOptions, as_address
from skillpager.http.problems import RefusedError, error_problem

# what anyone may ask for without the token: it holds no data
PUBLIC_PATHS = frozenset({"/healthz", *assets()})
JSON = "application/json"


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
            check_host(headers, self._hosts)
            check_origin(headers)
            if self._options.token is not None and scope["path"] not in PUBLIC_PATHS:
                check_token(headers, self._options.token)
            body = await self._body(scope, headers, receive)
        except RefusedError as refusal:
            await error_problem(refusal)(scope, receive, send)
        except ClientDisconnect:
            return
        else:
            await self._app(scope, replay(body, receive), send)

    async def _body(self, scope: Scope, headers: Headers, receive: Receive) -> bytes:
        most = self._options.request_bytes
        announced = headers.get("content-length", "0")
        if announced.isdecimal() and int(announced) > most:
            raise too_large(most)
        body = await read_body(receive, max_bytes=most)
        if body and scope["method"] == "POST":
            check_content_type(headers)
        return body


def check_host(headers: Headers, known: frozenset[str]) -> None:
    """Refuse a request that calls the service by a name that is not its own.

    An IP address is always right: only a name can be rebound to another address.

    Raises:
        RefusedError: The name is not known.
    """
    host = headers.get("host", "")
    name = _plain(_without_port(host))
    if name not in known and as_address(name) is None:
        raise RefusedError(
            HTTPStatus.MISDIRECTED_REQUEST,
            f"The service is not known as {host!r}: call it by its address, or have it started with "
            "--allowed-host and this name.",
        )


def check_origin(headers: Headers) -> None:
    """Refuse a request that a web page of another origin makes.

    Raises:
        RefusedError: The origin is not the service's own.
    """
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower():
        raise RefusedError(
            HTTPStatus.FORBIDDEN, f"Web pages of {origin!r} may not use the service: only its own may."
        )


def check_token(headers: Headers, token: str) -> None:
    """Refuse a request that does not bring the token.

    Raises:
        RefusedError: It brings none, or another.
    """
    scheme, _, given = headers.get("authorization", "").partition(" ")
    # the time that this takes tells nothing of the token but its length
    same = hmac.compare_digest(given.strip().encode(), token.encode())
    if scheme.lower() != "bearer" or not same:
        raise RefusedError(
            HTTPStatus.UNAUTHORIZED,
            "The service wants its token: send the header `Authorization: Bearer TOKEN`.",
            headers={"WWW-Authenticate": 'Bearer realm="skillpager"'},
        )


def check_content_type(headers: Headers) -> None:
    """Refuse a body that does not say that it is JSON.

    Raises:
        RefusedError: It says something else, or nothing.
    """
    given = headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() != JSON:
        raise RefusedError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"The body is {given!r}: send JSON with the header `Content-Type: {JSON}`.",
            headers={"Accept-Post": JSON},
        )


def _without_port(host: str) -> str:
    name, _, port = host.rpartition(":")
    return name if name and (port.isdecimal() or not port) else host


def _plain(host: str) -> str:
    return host.lower().rstrip(".")
