"""Bounded connections, and the refusal of foreign web pages: for the servers at a port, `http` and `mcp`."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvicorn
from starlette.datastructures import Headers
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp

# a client that makes the server wait is looked at this often, and cut off if nothing changed between two
# looks; longer than `http.middleware.BODY_SECONDS`, so that a slow body is answered first
CLIENT_SECONDS = 15.0
# open connections; requests on further ones get 503
MAX_CONNECTIONS = 512


class BoundedConnection(H11Protocol):
    """A connection that ends when its client neither sends a whole request nor reads the answer.

    uvicorn itself only ends connections that are silent after an answer.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch the client."""
        super().connection_made(transport)
        self._seen: tuple[object, bool, int] | None = None
        self._next_look = self.loop.call_later(CLIENT_SECONDS, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching."""
        self._next_look.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Cut the client off if the next step was its own at the last look too, and it has not moved."""
        unread = self.transport.get_write_buffer_size()
        answered = self.cycle is not None and self.cycle.response_complete
        asked = self.cycle is not None and not self.cycle.more_body
        before, now = self._seen, (self.cycle, answered, unread)
        waits = not asked or answered or unread > 0
        if waits and before and before[:2] == now[:2] and before[2] <= unread:
            self.transport.abort()
            return
        self._seen = now if waits else None
        self._next_look = self.loop.call_later(CLIENT_SECONDS, self._look)


def uvicorn_config(
    app: "ASGIApp | Callable[[], ASGIApp]", *, stop_seconds: int, head_bytes: int | None = None
) -> uvicorn.Config:
    """Return uvicorn's configuration for an application.

    Args:
        app: The application, or what makes it.
        stop_seconds: Requests that are unanswered this long after a signal are dropped.
        head_bytes: Longest request line and headers; None for h11's 16 KiB.
    """
    return uvicorn.Config(
        app,
        access_log=False,  # it has the queries
        h11_max_incomplete_event_size=head_bytes,
        http=BoundedConnection,
        lifespan="on",
        limit_concurrency=MAX_CONNECTIONS,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=stop_seconds,
        ws="none",
    )


def is_foreign(headers: Headers) -> bool:
    """Return whether a web page of another site or port made a browser send the request.

    Browsers say so in `Sec-Fetch-Site`, also where they send no `Origin`; other clients do not send it.
    """
    return headers.get("sec-fetch-site", "none").lower() not in ("none", "same-origin")
