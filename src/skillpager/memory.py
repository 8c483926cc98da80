"""Bounded, thread-safe in-memory caches, and file stamps that show when a skill has changed on disk."""

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from skillpager.types import Encoder, FloatArray, Skill, SkillIndex

# nodes of all indexes together, about 3 kB each; with what pages of them keep, 14 kB
MAX_KEPT_NODES = 50_000
MAX_KEPT_PATHS = 10_000
MAX_KEPT_QUERIES = 1_024

# seconds that a store which failed is left alone, and how many times as long as it took to fail
STORE_PAUSE_SECONDS = 30.0
STORE_PAUSE_FACTOR = 10.0

# a file written this recently may change again within the resolution of its time stamp
SETTLED_NS = 2_000_000_000

# cache key and folder: skills of the same text may stand in two folders, or in none
IndexKey = tuple[str, Path | None]

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def _count_one(_value: object) -> int:
    return 1


class LRUCache(Generic[Key, Value]):
    """A cache that drops the least recently used entries once their sizes add up to more than a bound.

    The newest entry always stays, however large. Safe for many threads; a copy begins empty.

    Args:
        max_size: Bound on the sum of the entries' sizes.
        size_of: Returns the size of a value, which must not change; by default each has size 1.
    """

    def __init__(self, max_size: int, size_of: Callable[[Value], int] = _count_one) -> None:
        self.max_size = max_size
        self._size_of = size_of
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()
        # one lock for each value under construction; it goes when the last thread lets go of it
        self._making: WeakValueDictionary[Key, threading.Lock] = WeakValueDictionary()

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Copy and pickle as an empty cache of the same bound."""
        return type(self), (self.max_size, self._size_of)

    def get(self, key: Key) -> Value | None:
        """Return the value of `key`, now the most recently used; None if there is none."""
        # without the lock, for pages ask for thousands of joints: each of these two steps is atomic
        try:
            value = self._entries[key]
            self._entries.move_to_end(key)
        except KeyError:  # never there, or dropped by another thread just now
            return None
        return value

    def put(self, key: Key, value: Value) -> Value:
        """Add or replace the value of `key` and return it."""
        with self._lock:
            if key in self._entries:
                self._size -= self._size_of(self._entries[key])
            self._entries[key] = value
            self._entries.move_to_end(key)
            self._size += self._size_of(value)
            while self._size > self.max_size and len(self._entries) > 1:
                self._size -= self._size_of(self._entries.popitem(last=False)[1])
        return value

    def get_or_make(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of `key`; of the threads that miss it, the first makes it and the others wait."""
        value = self.get(key)
        if value is None:
            with self._lock:
                making = self._making.setdefault(key, threading.Lock())
            with making:
                value = self.get(key)
                if value is None:
                    value = self.put(key, make())
        return value


@dataclass(frozen=True, slots=True)
class FileStamps:
    """The state of files and folders when they were read, by which a later change is noticed.

    The state has a line for each path: its times of modification and of change, size, device and inode; as
    text, which takes a third of the memory of numbers. A program may keep the size and set the first time;
    the second is the system's own. Not noticed are changes through a memory map that a program holds since
    the file was read, and on Windows, which has no time of change, another text of equal size to which a
    program gives the old time of modification.
    """

    paths: tuple[str, ...]
    state: str

    def changed(self) -> bool:
        """Return whether any of them differs now, or is gone."""
        try:
            return _state_of(map(os.stat, self.paths)) != self.state
        except OSError:
            return True


def take_stamps(paths: Iterable[Path]) -> FileStamps | None:
    """Return the stamps of what was just read; None while one of them is too fresh to be trusted."""
    places = tuple(dict.fromkeys(map(os.fspath, paths)))
    try:
        statuses = list(map(os.stat, places))
    except OSError:
        return None
    now = time.time_ns()
    # a time in the future was set by a program, or by a clock that was wrong: no later change repeats it
    fresh = any(
        abs(now - at) <= SETTLED_NS for each in statuses for at in (each.st_mtime_ns, each.st_ctime_ns)
    )
    return None if fresh else FileStamps(places, _state_of(statuses))


def stamp_skill(skill: Skill, path: Path) -> FileStamps | None:
    """Return the stamps of the files and folders of a skill that was just read at `path`.

    The path is one of them: it may be a link, and lead to another skill later.
    """
    if skill.root is None:
        return None
    files = [skill.root / file.path for file in skill.files]
    return take_stamps([path, *files, *(file.parent for file in files)])


class StorePause:
    """The pauses of a store that fails: it is left alone for a while, then tried again. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failing = False
        self._until = 0.0

    def over(self) -> bool:
        """Return whether to try the store now; while it fails, one caller in each interval is told so."""
        if not self._failing:
            return True
        with self._lock:
            if (now := time.monotonic()) < self._until:
                return False
            self._until = now + STORE_PAUSE_SECONDS
            return True

    def begin(self, took: float) -> bool:
        """Begin a pause after a failure that took so many seconds; return whether it is the first of them."""
        with self._lock:
            self._until = time.monotonic() + max(STORE_PAUSE_SECONDS, STORE_PAUSE_FACTOR * took)
            first, self._failing = not self._failing, True
            return first

    def end(self) -> None:
        """Note that the store works."""
        self._failing = False


class ProcessMemory:
    """The indexes and query embeddings that a pager holds between calls. Safe for many threads.

    Attributes:
        indexes: Indexes by cache key and folder.
        store_pause: The pauses of the pager's store.
    """

    def __init__(self) -> None:
        self.store_pause = StorePause()
        self.indexes = LRUCache[IndexKey, SkillIndex](MAX_KEPT_NODES, lambda index: len(index.nodes))
        self._paths = LRUCache[tuple[str, str], tuple[FileStamps, IndexKey]](MAX_KEPT_PATHS)
        self._queries = LRUCache[tuple[str, ...], FloatArray](MAX_KEPT_QUERIES)

    def index_at(self, path: str, scope: str) -> SkillIndex | None:
        """Return the index of a path and scope while none of its files has changed."""
        known = self._paths.get((path, scope))
        return None if known is None or known[0].changed() else self.indexes.get(known[1])

    def remember_path(self, path: str, scope: str, stamps: FileStamps | None, index: SkillIndex) -> None:
        """Remember the index of a path and scope; not without stamps, by which a change is noticed."""
        if stamps is not None:
            self._paths.put((path, scope), (stamps, (index.key, index.skill.root)))

    def embeddings(self, text: str, parts: Sequence[str], encoder: Encoder) -> FloatArray:
        """Return `(1 + len(parts), dim)`: the rows of a query and of its parts, computed on first use.

        An encoder with `encode_query_parts` computes them together.
        """
        together: Callable[[str, Sequence[str]], FloatArray] | None = getattr(
            encoder, "encode_query_parts", None
        )

        def make() -> FloatArray:
            if together is not None and parts:
                return together(text, parts)
            import numpy as np  # not with this module, which discovery needs without arrays

            return np.stack([encoder.encode_query(each) for each in (text, *parts)])

        rows: FloatArray = self._queries.get_or_make((encoder.id, text, *parts), make)
        return rows


def _state_of(statuses: Iterable[os.stat_result]) -> str:
    return "\n".join(
        f"{each.st_mtime_ns} {each.st_ctime_ns} {each.st_size} {each.st_dev} {each.st_ino}"
        for each in statuses
    )
