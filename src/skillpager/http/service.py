"""The running service: its thread pool, its readiness, and JSON responses with an ETag."""

import asyncio
import contextvars
import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from pydantic_core import PydanticSerializationError, to_json
from starlette.responses import Response

from skillpager.display_text import encodable
from skillpager.errors import SkillPagerError
from skillpager.http.options import ServerOptions
from skillpager.http.problems import JSON, BusyError
from skillpager.http.telemetry import PageMetrics
from skillpager.library import Library
from skillpager.pager import SkillPager
from skillpager.parsing.skill import skill_from_text
from skillpager.strategies.registry import FAMILIES
from skillpager.types import SkillIndex

logger = logging.getLogger(__name__)

# the store is asked at most this often, and counts as away if it takes longer
READY_SECONDS = 2.0
# a key that no index has, and the document that is paged to load the models
_NO_KEY = "readyz"
_DOCUMENT = "# Ready\n\n1. Run the first command.\n2. Look at its output.\n"
_QUERY = "run a command"

Result = TypeVar("Result")


class WorkerPool:
    """A bounded thread pool for slow work, so that the event loop never waits.

    Args:
        threads: Number of threads.
        waiting: Requests that may wait for a thread.
    """

    def __init__(self, threads: int, waiting: int) -> None:
        self._most = threads + waiting
        self._waiting = waiting
        self._taken: set[Future[Any]] = set()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="skillpager")

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run `work` in a thread of the pool, with the context of the caller, and return its result.

        Raises:
            BusyError: Every thread is busy and the queue is full.
        """
        if self.taken >= self._most:
            raise BusyError(self._waiting)
        future = self._threads.submit(contextvars.copy_context().run, work)
        self._taken.add(future)
        # not when the request ends: if its client has gone, its thread is still busy
        future.add_done_callback(self._taken.discard)
        return await asyncio.wrap_future(future)

    @property
    def taken(self) -> int:
        """Number of requests in work or waiting."""
        return len(self._taken)

    def close(self) -> None:
        """Drop the waiting requests, and end when the threads have."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class Readiness:
    """Prepares a process for its first request, and says whether it can take requests.

    Args:
        library: Its skills.
        uploads: A pager that stores nothing.
    """

    def __init__(self, library: Library, uploads: SkillPager) -> None:
        self._library = library
        self._uploads = uploads
        self._prepared = False
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="skillpager-ready")
        self._looked = 0.0
        self.look: Future[bool] | None = None

    def start(self) -> Future[bool]:
        """Return the last look if it is under way or recent; otherwise begin another."""
        if self.look is None or (self.look.done() and time.monotonic() - self._looked >= READY_SECONDS):
            self._looked = time.monotonic()
            self.look = self._threads.submit(self._is_ready)
        return self.look

    async def ready(self) -> bool:
        """Return whether library and models are prepared and the store answers within `READY_SECONDS`."""
        look = self.start()
        await asyncio.wait([asyncio.wrap_future(look)], timeout=READY_SECONDS)
        return look.done() and look.result()

    def close(self) -> None:
        """End its thread."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _is_ready(self) -> bool:
        pager = self._library.pager
        settings = pager.settings
        strategy = FAMILIES.get((settings.strategy or "").partition(":")[0])
        try:
            if not self._prepared:
                self._library.prepare()
                # a page of models of an endpoint would cost money
                remote = settings.encoder.startswith("openai:") or settings.classifier == "llm"
                if not remote and (strategy is None or strategy.local):
                    self._uploads.page(_DOCUMENT, _QUERY)
                self._prepared = True
            pager.store.load(_NO_KEY, skill_from_text(_DOCUMENT))
        except SkillPagerError as error:
            logger.warning("Not ready: %s", error)
            return False
        return True


@dataclass(frozen=True, slots=True)
class Service:
    """A running service; `uploads` pages Markdown from clients and stores nothing on disk."""

    library: Library
    uploads: SkillPager
    options: ServerOptions
    pool: WorkerPool
    metrics: PageMetrics
    readiness: Readiness
    version: str

    @property
    def busy(self) -> bool:
        """Whether a thread is at work that would delay an ordinary exit."""
        look = self.readiness.look
        return self.pool.taken > 0 or (look is not None and not look.done())


@dataclass(frozen=True, slots=True)
class Responder:
    """Answers one request with JSON that a thread of the service makes.

    Both methods pass on the errors of that work and of `WorkerPool.run`.
    """

    service: Service
    request: Request

    async def send(self, make: Callable[[], Mapping[str, object]]) -> Response:
        """Return the result of `make` as a response; its ETag is a digest of the bytes."""

        def work() -> tuple[bytes, str]:
            body = encode(make())
            return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'

        body, etag = await self.service.pool.run(work)
        # only the client that asked stores it, and sends its ETag the next time
        headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
        seen = self.request.headers.get("if-none-match", "")
        known = {name.strip().removeprefix("W/") for name in seen.split(",")}
        if self.request.method == "GET" and known & {etag, "*"}:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(body, headers=headers, media_type=JSON)

    async def send_index(
        self, name: str, scope: str | None, form: Callable[[SkillIndex], Mapping[str, object]]
    ) -> Response:
        """Return the index of a skill in a form."""
        return await self.send(lambda: form(self.service.library.index(name, scope=scope)))


async def _responder(request: Request) -> Responder:
    return Responder(request.app.state.service, request)


ResponderOf = Annotated[Responder, Depends(_responder)]


def encode(value: object) -> bytes:
    """Return a value as compact JSON; lone surrogates, as in some file names, become U+FFFD."""
    try:
        return to_json(value, inf_nan_mode="null")
    except PydanticSerializationError:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return encodable(text).encode()
