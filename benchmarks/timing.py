"""Stopwatches and their statistics: medians, percentiles, interleaved repetitions."""

import gc
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

MILLISECONDS = 1e3


class Stopwatch:
    """Seconds spent in chosen functions, by stage."""

    def __init__(self) -> None:
        """Start at zero."""
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def timed(self, stage: str, function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        """Return `function`, adding its time to `stage`."""

        def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds[stage] += time.perf_counter() - start

        return run

    def on(self, owner: object, name: str, stage: str) -> None:
        """Time the function `name` of a module, class or object from now on."""
        setattr(owner, name, self.timed(stage, getattr(owner, name)))


def seconds_of(function: Callable[[], object]) -> float:
    """Return the wall-clock seconds of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def interleaved(functions: Mapping[str, Callable[[], object]], repetitions: int) -> dict[str, list[float]]:
    """Return seconds per call of each function, called in turn so that disturbances hit all alike."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()
    gc.collect()
    for _ in range(repetitions):
        for name, function in functions.items():
            times[name].append(seconds_of(function))
    return times


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of `values` lie, 0 to 1, nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median(values: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(values)
