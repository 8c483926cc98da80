"""A bounded, thread-safe in-memory cache."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def _count_one(_value: object) -> int:
    return 1


class LRUCache(Generic[Key, Value]):
    """A cache that drops the least recently used entries once their sizes add up to more than a bound.

    The newest entry always stays, however large. Safe for many threads; a copy begins empty. `size_of`
    returns the size of a value, which must not change; by default each has size 1.
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
