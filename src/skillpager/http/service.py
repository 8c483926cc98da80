"""The running service: its thread pool and its readiness, which all routes share."""

import asyncio
import contextvars
import json
import logging
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

from pydantic_core import PydanticSerializationError, to_json
from starlette.responses import Response

from skillpager.display_text import encodable
from skillpager.errors import SkillPagerError
from skillpager.http.options import ServerOptions
from skillpager.http.problems import FaultError, RefusedError
from skillpager.http.telemetry import PageMetrics
from skillpager.library import Library
from skillpager.pager import SkillPager
from skillpager.parsing.skill import skill_from_text
from skillpager.stores.sql import NoStore
from skillpager.strategies.registry import FAMILIES, is_local

logger = logging.getLogger(__name__)

# requests that may wait for a thread; at 300 pages a second the last of them waits a fifth of a second
MAX_WAITING = 64
# the store counts as away if it takes longer
READY_SECONDS = 2.0
# a key that no index has, and the document that is paged to load the models
_NO_KEY = "readyz"
_DOCUMENT = "# Ready\n\n1. Run the first command.\n2. Look at its output.\n"
_QUERY = "run a command"

Result = TypeVar("Result")


class WorkerPool:
    """A bounded thread pool for slow work, so that the event loop never waits."""

    def __init__(self, threads: int) -> None:
        self._most = threads + MAX_WAITING
        self._taken: set[Future[Any]] = set()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="skillpager")

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run `work` in a thread of the pool, with the context of the caller, and return its result.

        Raises:
            RefusedError: Every thread is busy and the queue is full.
            SkillPagerError: That of `work`.
            FaultError: It raised anything else, which is logged.
        """
        if self.taken >= self._most:
            raise RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"Every thread is busy and {MAX_WAITING} requests wait already: ask again in a moment.",
                headers={"Retry-After": "1"},
            )
        future = self._threads.submit(contextvars.copy_context().run, work)
        self._taken.add(future)
        # not when the request ends: if its client has gone, its thread is still busy
        future.add_done_callback(self._taken.discard)
        try:
            return await asyncio.wrap_future(future)
        except (SkillPagerError, asyncio.CancelledError):
            raise
        except BaseException as fault:  # a panic of a Rust extension is not an Exception
            logger.error(
                "A request met a fault of SkillPager (%s: %s): please report it; --verbose says more.",
                type(fault).__name__,
                fault,
            )
            logger.debug("%s", "".join(traceback.format_exception(fault)))
            raise FaultError from fault

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
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._prepared = False
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="skillpager-ready")
        self._look: Future[bool] | None = None

    def start(self) -> Future[bool]:
        """Return the look that is under way; otherwise begin another."""
        if self._look is None or self._look.done():
            self._look = self._threads.submit(self._is_ready)
        return self._look

    async def ready(self) -> bool:
        """Return whether library and models are prepared and the store answers within `READY_SECONDS`."""
        look = self.start()
        await asyncio.wait([asyncio.wrap_future(look)], timeout=READY_SECONDS)
        return look.done() and look.result()

    @property
    def busy(self) -> bool:
        """Whether its thread is at work."""
        return self._look is not None and not self._look.done()

    def close(self) -> None:
        """End its thread."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _is_ready(self) -> bool:
        pager = self._library.pager
        settings = pager.settings
        strategy = (settings.strategy or "").partition(":")[0]
        try:
            if not self._prepared:
                self._library.prepare()
                # a page of models of an endpoint would cost money
                remote = settings.encoder.startswith("openai:") or settings.classifier == "llm"
                if not remote and (strategy not in FAMILIES or is_local(strategy)):
                    _page_unstored(pager)
                self._prepared = True
            pager.store.load(_NO_KEY, skill_from_text(_DOCUMENT))
        except SkillPagerError as error:
            logger.warning("Not ready: %s", error)
            return False
        return True


def _page_unstored(pager: SkillPager) -> None:
    """Load the models of a pager by a page of a short document, which is not stored."""
    SkillPager(
        encoder=pager.encoder,
        classifier=pager.classifier,
        store=NoStore(),
        token_counter=pager.token_counter,
        embedded_text=pager.recipe.embedded_text,
        settings=pager.settings,
    ).page(_DOCUMENT, _QUERY)


@dataclass(frozen=True, slots=True)
class Service:
    """A running service."""

    library: Library
    options: ServerOptions
    pool: WorkerPool
    metrics: PageMetrics
    readiness: Readiness

    @property
    def busy(self) -> bool:
        """Whether a thread is at work that would delay an ordinary exit."""
        return self.pool.taken > 0 or self.readiness.busy

    async def respond(self, make: Callable[[], Mapping[str, object]]) -> Response:
        """Return what `make` returns in a thread of the pool, as JSON; errors as for `WorkerPool.run`."""
        body = await self.pool.run(lambda: encode(make()))
        # only the client that asked may store it
        return Response(body, headers={"Cache-Control": "private, no-cache"}, media_type="application/json")


def encode(value: object) -> bytes:
    """Return a value as compact JSON; lone surrogates, as in some file names, become U+FFFD."""
    try:
        return to_json(value, inf_nan_mode="null")
    except PydanticSerializationError:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return encodable(text).encode()
