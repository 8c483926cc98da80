"""Whether a process is ready: the store can be reached, the models are loaded, the library is searched."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from skillpager.errors import SkillPagerError
from skillpager.library import Library
from skillpager.pager import SkillPager
from skillpager.parsing.skill import skill_from_text
from skillpager.settings import Settings
from skillpager.strategies.registry import FAMILIES

logger = logging.getLogger(__name__)

State = Literal["ok", "waiting", "failed"]
# the store is asked at most so often, and counts as away if it takes longer
STORE_SECONDS = 2.0
# a key that no index has, and the document that is paged to load the models
_NO_KEY = "readyz"
_DOCUMENT = "# Ready\n\n1. Run the first command.\n2. Look at its output.\n"
_QUERY = "run a command"


class Readiness:
    """Prepares a process for its first request, and says whether it is ready.

    Args:
        library: Its skills.
        uploads: A pager that stores nothing.
    """

    def __init__(self, library: Library, uploads: SkillPager) -> None:
        self._library = library
        self._uploads = uploads
        self._states: dict[str, State] = {"library": "waiting", "models": "waiting"}
        self._thread: threading.Thread | None = None
        self._stores = ThreadPoolExecutor(1, thread_name_prefix="skillpager-ready")
        self._store: asyncio.Future[State] | None = None
        self._asked = 0.0

    def start(self) -> None:
        """Begin to search the library and to load the models, unless that is done or under way."""
        if self.preparing or all(state == "ok" for state in self._states.values()):
            return
        self._thread = threading.Thread(target=self._prepare, name="skillpager-prepare", daemon=True)
        self._thread.start()

    @property
    def preparing(self) -> bool:
        """Whether the library is being searched or the models loaded."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def busy(self) -> bool:
        """Whether a thread is at work that would delay an ordinary exit."""
        return self.preparing or (self._store is not None and not self._store.done())

    async def states(self) -> Mapping[str, State]:
        """Return the state of each part; what failed is tried again."""
        self.start()
        return {"store": await self._ask_store(), **self._states}

    def close(self) -> None:
        """End the thread that asks the store."""
        self._stores.shutdown(wait=False, cancel_futures=True)

    def _prepare(self) -> None:
        for name, work in (("library", self._library.prepare), ("models", self._load_models)):
            self._states[name] = _state(name, work)

    def _load_models(self) -> None:
        """Page a document with the models of this process; those of an endpoint would cost money."""
        if not _calls_endpoint(self._library.pager.settings):
            self._uploads.page(_DOCUMENT, _QUERY)

    async def _ask_store(self) -> State:
        """Return whether the store answers, as the last look within `STORE_SECONDS` says."""
        now = time.monotonic()
        if self._store is None or (self._store.done() and now - self._asked >= STORE_SECONDS):
            self._asked = now
            self._store = asyncio.wrap_future(self._stores.submit(_state, "store", self._reach_store))
        done, _ = await asyncio.wait([self._store], timeout=STORE_SECONDS)
        return self._store.result() if done else "failed"

    def _reach_store(self) -> None:
        self._library.pager.store.load(_NO_KEY, skill_from_text(_DOCUMENT))


def _state(name: str, work: Callable[[], object]) -> State:
    try:
        work()
    except SkillPagerError as error:
        logger.warning("Not ready (%s): %s", name, error)
        return "failed"
    except Exception as error:
        logger.error("Not ready (%s), a fault: %s: %s", name, type(error).__name__, error)
        return "failed"
    return "ok"


def _calls_endpoint(settings: Settings) -> bool:
    strategy = FAMILIES.get((settings.strategy or "").partition(":")[0])
    remote_strategy = strategy is not None and not strategy.local
    return settings.encoder.startswith("openai:") or settings.classifier == "llm" or remote_strategy
