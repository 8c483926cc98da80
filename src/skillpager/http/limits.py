"""What keeps the service alive: bounded work at a time, and bodies of bounded size."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import ParamSpec, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from skillpager.http.problems import BusyError, EndingError, RefusedError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# a client that sends slower than this holds up a shutdown
BODY_SECONDS = 10.0


class WorkerPool:
    """Threads that do what takes time, so that the event loop never waits; so many requests and no more.

    Args:
        workers: Threads.
        waiting: Requests that may wait for one.
    """

    def __init__(self, workers: int, waiting: int) -> None:
        self.workers = workers
        self._waiting = waiting
        self._places = threading.BoundedSemaphore(workers + waiting)
        self._lock = threading.Lock()
        self._taken = 0
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="skillpager")

    async def run(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Return what `work` returns, done by a worker.

        Raises:
            BusyError: No worker is free and enough requests wait.
            EndingError: The pool is closed.
        """
        if not self._places.acquire(blocking=False):
            raise BusyError(self._waiting)
        self._count(1)
        try:
            future = self._threads.submit(partial(work, *args, **kwargs))
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

    def _count(self, change: int) -> None:
        with self._lock:
            self._taken += change

    def _leave(self, _: Future[Result] | None = None) -> None:
        self._count(-1)
        self._places.release()


async def read_body(receive: Receive, *, max_bytes: int, seconds: float = BODY_SECONDS) -> bytes:
    """Return the body of a request.

    Raises:
        RefusedError: It is too large, or takes too long to arrive.
        ClientDisconnect: The client has gone.
    """
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > max_bytes:
                    raise too_large(max_bytes)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError as error:
        detail = f"The body did not arrive within {seconds:g} seconds: send it again."
        raise RefusedError(HTTPStatus.REQUEST_TIMEOUT, detail, headers={"Connection": "close"}) from error


def too_large(max_bytes: int) -> RefusedError:
    """Return the refusal of a body over the limit."""
    return RefusedError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"The body is over the limit of {max_bytes:,} bytes: send less, or have the service started with a "
        "larger --max-request-bytes.",
        headers={"Connection": "close"},
    )


def replay(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read, and then what `receive` gives."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def give() -> Message:
        return waiting.pop() if waiting else await receive()

    return give
