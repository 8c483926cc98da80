"""The running service: bounded work in threads and readiness, which all routes share."""

import asyncio
import json
import logging
import traceback
from collections.abc import Callable, Mapping
from functools import cached_property
from http import HTTPStatus

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from pydantic_core import PydanticSerializationError, to_json
from starlette.responses import Response

from skillpager.display_text import encodable
from skillpager.errors import SkillPagerError
from skillpager.http.options import ServerOptions
from skillpager.http.problems import FaultError, RefusedError
from skillpager.http.telemetry import PageMetrics
from skillpager.library import Library
from skillpager.parsing.skill import skill_from_text

logger = logging.getLogger(__name__)

# requests that may wait for a thread; at 300 pages a second the last of them waits a fifth of a second
MAX_WAITING = 64
# the store counts as away if it takes longer
READY_SECONDS = 2.0
# a key that no index has, and the document that is paged to load the models
_NO_KEY = "readyz"
_DOCUMENT = skill_from_text("# Ready\n\n1. Run the first command.\n2. Look at its output.\n")
_QUERY = "run a command"


class Service:
    """A running service; `taken` is the number of requests in work or waiting for a thread."""

    def __init__(self, library: Library, options: ServerOptions) -> None:
        self.library, self.options, self.metrics = library, options, PageMetrics()
        self.taken = 0
        self._prepared = False
        self._look: asyncio.Task[bool] | None = None

    @cached_property
    def _threads(self) -> CapacityLimiter:
        return CapacityLimiter(self.options.threads)

    async def respond(self, make: Callable[[], Mapping[str, object]]) -> Response:
        """Return what `make` returns in a thread, as JSON; a full queue is a `RefusedError`.

        What `make` raises passes if it is a `SkillPagerError`; anything else is logged, and a `FaultError`.
        """
        if self.taken >= self.options.threads + MAX_WAITING:
            raise RefusedError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"Every thread is busy and {MAX_WAITING} requests wait already: ask again in a moment.",
                headers={"Retry-After": "1"},
            )
        self.taken += 1
        try:
            # a request whose client has gone keeps its place: its thread is still busy
            body = await run_sync(lambda: encode(make()), limiter=self._threads)
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
        finally:
            self.taken -= 1
        # only the client that asked may store it
        return Response(body, headers={"Cache-Control": "private, no-cache"}, media_type="application/json")

    def look(self) -> "asyncio.Task[bool]":
        """Return the look at readiness that is under way; otherwise begin another."""
        if self._look is None or self._look.done():
            self._look = asyncio.create_task(run_sync(self._is_ready))
        return self._look

    async def ready(self) -> bool:
        """Return whether library and models are prepared and the store answers within `READY_SECONDS`."""
        look = self.look()
        await asyncio.wait([look], timeout=READY_SECONDS)
        return look.done() and look.result()

    def _is_ready(self) -> bool:
        pager = self.library.pager
        settings = pager.settings
        try:
            if not self._prepared:
                self.library.prepare()
                # a page of models of an endpoint would cost money
                remote = settings.encoder.startswith("openai:") or settings.classifier == "llm"
                if not remote:
                    pager.page(pager.builder.build(_DOCUMENT, _NO_KEY), _QUERY)  # loads them, stores nothing
                self._prepared = True
            pager.store.load(_NO_KEY, _DOCUMENT)
        except SkillPagerError as error:
            logger.warning("Not ready: %s", error)
            return False
        return True


def encode(value: object) -> bytes:
    """Return a value as compact JSON; lone surrogates, as in some file names, become U+FFFD."""
    try:
        return to_json(value, inf_nan_mode="null")
    except PydanticSerializationError:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return encodable(text).encode()
