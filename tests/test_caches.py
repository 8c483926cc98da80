"""The cache: bounded by sizes, least recently used out first, one thread makes what others wait for."""

import copy
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from skillpager.caches import LRUCache


def test_the_least_recently_used_entry_goes_first() -> None:
    cache = LRUCache[str, int](2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)
    assert len(cache) == 2


def test_sizes_are_bounded_and_the_newest_entry_always_stays() -> None:
    cache = LRUCache[str, str](5, len)
    cache.put("a", "xx")
    cache.put("b", "xxx")
    cache.put("a", "x")  # smaller than before
    cache.put("c", "x")
    assert len(cache) == 3
    cache.put("d", "x" * 9)
    assert (len(cache), cache.get("d")) == (1, "x" * 9)
    cache.put("e", "x")
    assert (len(cache), cache.get("e")) == (1, "x")


def test_the_first_thread_makes_a_value_and_the_others_wait() -> None:
    cache = LRUCache[str, object](4)
    made: list[object] = []
    barrier = threading.Barrier(8)

    def make() -> object:
        time.sleep(0.02)  # long enough for threads to meet
        made.append(object())
        return made[-1]

    def ask(number: int) -> object:
        barrier.wait()
        return cache.get_or_make("ab"[number % 2], make)

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(ask, range(8)))
    assert found == set(made)
    assert len(made) == 2


def test_what_cannot_be_made_is_asked_for_again() -> None:
    cache = LRUCache[str, float](4)
    with pytest.raises(ZeroDivisionError):
        cache.get_or_make("a", lambda: 1 / 0)
    assert cache.get_or_make("a", lambda: 2.0) == 2.0


def test_copies_begin_empty_with_the_same_bound() -> None:
    cache = LRUCache[str, str](3, len)
    cache.put("a", "xx")
    for other in (copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        assert (len(other), other.max_size) == (0, 3)
        other.put("a", "xx")
        other.put("b", "xx")
        assert len(other) == 1
    assert len(cache) == 1
