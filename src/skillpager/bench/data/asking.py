"""Many questions side by side: bounded, stopped when there is no sense in going on."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from skillpager.bench.data.spending import SpendLimitError

Item = TypeVar("Item")

# an endpoint that is down, or a model that cannot keep to the form, fails every question, each after its
# own repetitions; one bad stretch must not end a long run
MAX_FAILURES_IN_A_ROW = 10


class Blame(StrEnum):
    """What a question without an answer tells about the others."""

    QUESTION = "question"
    """Nothing: the model refused this one, or the endpoint complained of it."""
    ENDPOINT = "endpoint"
    """Others may fail the same way: no answer, or none that could be read."""
    ACCESS = "access"
    """All others will fail: key, model, quota or address."""


class NoAnswerError(Exception):
    """A question that got no usable answer, as a clause without full stop.

    Attributes:
        blame: What that tells about the others.
    """

    def __init__(self, message: str, *, blame: Blame) -> None:
        super().__init__(message)
        self.blame = blame


@dataclass(slots=True)
class Asked(Generic[Item]):
    """What became of many questions.

    Attributes:
        done: How many were answered.
        failures: What was not answered, each with the reason.
        stopped: Why the rest was not asked; empty when all were.
    """

    done: int = 0
    failures: list[tuple[Item, str]] = field(default_factory=list)
    stopped: str = ""


def ask_all(
    items: Sequence[Item],
    ask: Callable[[Item], object],
    *,
    jobs: int,
    halt: threading.Event,
    progress: Callable[[int, int], None] | None = None,
) -> Asked[Item]:
    """Return what became of the items, after `ask` was called with each in up to `jobs` threads.

    What is under way when a run stops is awaited, so that no paid answer is lost; `ask` keeps its
    answer itself.

    Args:
        items: What to ask about; asked in this order.
        ask: Asks about one item. Raises `NoAnswerError` or `SpendLimitError`; anything else ends the run.
        jobs: Most calls of `ask` at a time.
        halt: Set when the run stops, so that no failed request is repeated any more.
        progress: Called in the calling thread with finished and all items.
    """
    asked: Asked[Item] = Asked()
    watch = _Watch()
    with ThreadPoolExecutor(max(1, min(jobs, len(items))), "skillpager-bench") as pool:
        try:
            pending = {pool.submit(_unless, halt, ask, item): item for item in items}
            for future in as_completed(pending):
                _collect(future, pending[future], asked, watch, halt)
                if watch.verdict and not asked.stopped:
                    asked.stopped = watch.verdict
                    halt.set()
                if progress:
                    progress(asked.done + len(asked.failures), len(items))
        except BaseException:
            halt.set()
            raise
    return asked


@dataclass(slots=True)
class _Watch:
    """Looks for a reason to stop.

    Attributes:
        verdict: The reason, empty while there is none.
    """

    verdict: str = ""
    in_a_row: int = 0

    def see_failure(self, failure: NoAnswerError) -> None:
        if failure.blame is Blame.ACCESS:
            self.verdict = str(failure)
        elif failure.blame is Blame.ENDPOINT:
            self.in_a_row += 1
            if self.in_a_row == MAX_FAILURES_IN_A_ROW:
                self.verdict = f"{self.in_a_row} failures in a row, the last: {failure}"


def _unless(halt: threading.Event, ask: Callable[[Item], object], item: Item) -> bool:
    """Ask unless the run has stopped; tell whether it was asked."""
    if halt.is_set():
        return False
    try:
        ask(item)
    except NoAnswerError as failure:
        if failure.blame is Blame.ACCESS:
            halt.set()  # here, because the thread that collects may be late
        raise
    return True


def _collect(
    future: Future[bool], item: Item, asked: Asked[Item], watch: _Watch, halt: threading.Event
) -> None:
    try:
        answered = future.result()
    except SpendLimitError as reached:
        watch.verdict = watch.verdict or str(reached)
        return
    except NoAnswerError as failure:
        # once the run has stopped, failures are cut short and tell nothing of their questions
        if failure.blame is Blame.ACCESS or not halt.is_set():
            watch.see_failure(failure)
            if failure.blame is not Blame.ACCESS:
                asked.failures.append((item, str(failure)))
        return
    if answered:
        asked.done += 1
        watch.in_a_row = 0
