"""Limits that keep the service alive: a bounded pool of workers, and bodies of bounded size and time."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from http import HTTPStatus
from typing import TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from skillpager.http.problems import BusyError, EndingError, RefusedError

Result = TypeVar("Result")

# a client that sends slower than this holds up a shutdown
BODY_SECONDS = 10.0


class WorkerPool:
    """A bounded thread pool for what takes time, so that the event loop never waits.

    Args:
        workers: Threads.
        waiting: Requests that may wait for one.
    """

    def __init__(self, workers: int, waiting: int) -> None:
        self.workers = workers
        self._waiting = waiting
        self._lock = threading.Lock()
        self._taken = 0
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="skillpager")

    async def run(self, work: Callable[[], Result]) -> Result:
        """Return what `work` returns, done by a worker.

        Raises:
            BusyError: No worker is free and enough requests wait.
            EndingError: The pool is closed.
        """
        with self._lock:
            if self._taken >= self.workers + self._waiting:
                raise BusyError(self._waiting)
            self._taken += 1
        try:
            future = self._threads.submit(work)
        except RuntimeError as error:  # the pool is closed
            self._leave()
            raise EndingError from error
        # not when the request ends: one whose client has gone still holds its worker
        future.add_done_callback(self._leave)
        return await asyncio.wrap_future(future)

    @property
    def taken(self) -> int:
        """Requests that are worked on or wait."""
        return self._taken

    def close(self) -> None:
        """Drop what waits, and end when the workers have."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _leave(self, _: Future[Result] | None = None) -> None:
        with self._lock:
            self._taken -= 1


async def read_body(receive: Receive, *, announced: str, max_bytes: int) -> bytes:
    """Return the body of a request.

    Args:
        receive: Gives the body in parts.
        announced: The header Content-Length.
        max_bytes: The largest body.

    Raises:
        RefusedError: It is too large, or takes longer than `BODY_SECONDS` to arrive.
        ClientDisconnect: The client has gone.
    """
    too_large = RefusedError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"The body is over the limit of {max_bytes:,} bytes: send less, or have the service started with a "
        "larger --max-request-bytes.",
        headers={"Connection": "close"},
    )
    if announced.isdecimal() and int(announced) > max_bytes:
        raise too_large
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > max_bytes:
                    raise too_large
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError as error:
        detail = f"The body did not arrive within {BODY_SECONDS:g} seconds: send it again."
        raise RefusedError(HTTPStatus.REQUEST_TIMEOUT, detail, headers={"Connection": "close"}) from error
