"""Bounded connections, and the refusal of foreign web pages: for the servers at a port, `http` and `mcp`."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import uvicorn
from starlette.datastructures import Headers
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp

# a client that makes the server wait is looked at this often, and cut off if nothing changed between two
# looks; longer than `http.gate.BODY_SECONDS`, so that the gate answers a slow body first
CLIENT_SECONDS = 15.0
# open connections; a further one takes the place of another
MAX_CONNECTIONS = 512


class BoundedConnection(H11Protocol):
    """A connection that ends when its client neither sends a whole request nor reads the answer.

    uvicorn itself only ends connections that are silent after an answer.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch the client, and close another connection if there are too many."""
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._seen: tuple[object, bool, int] | None = None
        self._next_look = self.loop.call_later(CLIENT_SECONDS, self._look)
        open_ones = cast(set[BoundedConnection], self.connections)
        if len(open_ones) > most_connections():
            # all but those whose answer is being made, the longest idle first
            others = [(not each._waits, each._idle_since, id(each), each) for each in open_ones - {self}]
            min(others)[-1]._cut_off()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching."""
        self._next_look.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Note when the client may send its next request."""
        self._idle_since = self.loop.time()
        super().on_response_complete()

    @property
    def _answered(self) -> bool:
        return self.cycle is not None and self.cycle.response_complete

    @property
    def _waits(self) -> bool:
        """Whether the next step is the client's: to send, or to read."""
        asked = self.cycle is not None and not self.cycle.more_body
        return not asked or self._answered or self.transport.get_write_buffer_size() > 0

    def _look(self) -> None:
        """Cut the client off if it has not moved since the last look."""
        before, now = self._seen, (self.cycle, self._answered, self.transport.get_write_buffer_size())
        if self._waits and before and before[:2] == now[:2] and before[2] <= now[2]:
            self._cut_off()
            return
        self._seen = now if self._waits else None
        self._next_look = self.loop.call_later(CLIENT_SECONDS, self._look)

    def _cut_off(self) -> None:
        self.connections.discard(self)  # the next of many new connections must count without it
        self.transport.abort()


def most_connections() -> int:
    """Return how many connections may be open: at most half of the files that the process may open."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return MAX_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if files == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, files // 2)


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
        # asyncio accepts twice as many before it reports the first: with those open less than all files
        backlog=most_connections() // 4,
        h11_max_incomplete_event_size=head_bytes,
        http=BoundedConnection,
        lifespan="on",
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
