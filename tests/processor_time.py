"""Processor time: limits that hold on any processor under any load, and the end of what computes for too long."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from statistics import median
from types import FrameType

import numpy as np

# `_unit` on the processor of docs/security.md while nothing else runs; a unit is too short to be measured once
UNIT_SECONDS, UNITS = 0.0051, 9
TRIES = 4
ROWS = np.linspace(-1, 1, 300 * 64, dtype=np.float32).reshape(300, 64)


def processor_seconds(work: Callable[[], object]) -> float:
    """Return the processor time of a call; while `cpu_limit` runs, the clock of the process counts whole ticks."""
    start = time.thread_time()
    work()
    return time.thread_time() - start


def slowness() -> float:
    """Return how many times as long as on the processor of docs/security.md a fixed work load takes now."""
    return median(processor_seconds(_unit) for _ in range(UNITS)) / UNIT_SECONDS


def _unit() -> None:
    words: dict[str, int] = {}
    for number in range(20_000):
        word = f"word {number % 500}"
        words[word] = words.get(word, 0) + len(word.split())
    np.sort(ROWS @ ROWS.T, axis=1)


def standard_seconds(work: Callable[[], object]) -> float:
    """Return the processor time of a call on the processor of docs/security.md: the least of several tries."""
    times = []
    for _ in range(TRIES):
        before, seconds, after = slowness(), processor_seconds(work), slowness()
        times.append(2 * seconds / (before + after))
    return min(times)


def assert_within(seconds: float, work: Callable[[], object]) -> None:
    """Check the processor time of a call on the processor of docs/security.md."""
    assert processor_seconds(work) <= seconds or standard_seconds(work) <= seconds


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` once the process has computed for so long; a busy or slow machine does not count."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"over {seconds} s of CPU time")

    previous = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds * _first_slowness())
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


@cache
def _first_slowness() -> float:
    return max(1.0, slowness())
