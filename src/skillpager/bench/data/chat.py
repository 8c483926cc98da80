"""Many questions to a chat model in parallel, and its answers."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from skillpager.bench.data.records import first_fault
from skillpager.library.discovery import Progress
from skillpager.remote.endpoint import EndpointError

Item = TypeVar("Item")
Shape = TypeVar("Shape", bound=BaseModel)

# an endpoint that is down, or a model that cannot keep to the form, fails every question, each after its
# own repetitions; one bad stretch must not end a long run
MAX_FAILURES_IN_A_ROW = 10
TAG_DIGITS = 10


@dataclass(slots=True)
class Asked(Generic[Item]):
    """The outcome of many questions."""

    done: int = 0
    # items without an answer, each with the reason
    failures: list[tuple[Item, str]] = field(default_factory=list)
    stopped: str = ""  # why the rest was not asked; empty when all were


def ask_all(
    items: Sequence[Item], ask_about: Callable[[Item], object], *, jobs: int, progress: Progress
) -> Asked[Item]:
    """Call `ask_about` with each item in up to `jobs` threads; stop when going on is pointless.

    `ask_about` asks about an item and stores the answer, or raises `EndpointError`. Calls under way when a
    run stops are awaited, so that no paid answer is lost. `progress` is called in the calling thread.
    """
    asked: Asked[Item] = Asked()

    def ask_one(item: Item) -> EndpointError | Literal["done"] | None:
        """Return the failure, or None if a stop came first."""
        if asked.stopped:
            return None
        try:
            ask_about(item)
        except EndpointError as error:
            if error.retryable or error.complaint:
                return error
            # key, quota or address: all others would fail, too
            asked.stopped = str(error)
            return None
        return "done"

    in_a_row = 0
    with ThreadPoolExecutor(jobs, "skillpager-bench") as pool:
        try:
            for number, (item, outcome) in enumerate(zip(items, pool.map(ask_one, items), strict=True), 1):
                if outcome == "done":
                    asked.done += 1
                    in_a_row = 0
                elif outcome is not None:
                    asked.failures.append((item, str(outcome)))
                    # a refusal says nothing about the next question
                    in_a_row += not outcome.complaint
                    if in_a_row == MAX_FAILURES_IN_A_ROW and not asked.stopped:
                        asked.stopped = f"{in_a_row} failures in a row, the last: {outcome}"
                progress(number, len(items))
        except BaseException:
            asked.stopped = "it was interrupted"
            raise
    return asked


def quote_as_data(texts: Mapping[str, str]) -> str:
    """Return untrusted texts for a prompt, each between tags that it cannot close.

    The tags contain a digest of all texts, which no text can contain: `<query-3f0c9a12be>`.
    """
    mark = hashlib.sha256(json.dumps(dict(texts)).encode()).hexdigest()[:TAG_DIGITS]
    return "\n\n".join(f"<{name}-{mark}>\n{text}\n</{name}-{mark}>" for name, text in texts.items())


def read_as(shape: type[Shape], data: object) -> Shape:
    """Return decoded JSON as a `shape`, validated without type conversion."""
    try:
        # from JSON again, in which strictness knows no tuples or dates
        return shape.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise ValueError(first_fault(error)) from None
