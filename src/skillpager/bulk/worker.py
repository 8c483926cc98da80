"""The work of one worker: build the index of a skill and store it."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillpager.errors import SkillPagerError

if TYPE_CHECKING:
    from skillpager.pager import SkillPager
    from skillpager.types import Recipe, Skill


@dataclass(frozen=True, slots=True)
class Task:
    """A skill that is to be indexed.

    Attributes:
        key: Its cache key.
        place: Where it was read, for people.
        skill: The skill: a worker on another machine cannot read it itself.
        number: Its number among the skills of the run, from 1.
        known: Number of skills that the run knows of so far.
    """

    key: str
    place: str
    skill: "Skill"
    number: int = 0
    known: int = 0


@dataclass(frozen=True, slots=True)
class Built:
    """What a worker says of a task.

    Attributes:
        nodes: Number of nodes.
        seconds: How long it took.
        error: Why there is no index; None if it is in the store. It is a value, because schedulers wrap
            exceptions in their own.
        notes: Warnings that were logged meanwhile in another process.
    """

    nodes: int = 0
    seconds: float = 0.0
    error: SkillPagerError | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a worker says when it is ready.

    Attributes:
        process: Its process id.
        recipe: Everything except the skill's files on which its indexes depend.
        error: Why it cannot work; None if it can.
        address: Its machine, for those that are not this one.
    """

    process: int
    recipe: "Recipe | None" = None
    error: SkillPagerError | None = None
    address: str = ""


def build_task(pager: "SkillPager", task: Task) -> Built:
    """Return what came of a task; the index is then in the store.

    A fault that is no `SkillPagerError` is one of the skill, and reported as such.
    """
    from skillpager.library import skill_faults

    started = time.perf_counter()
    try:
        with skill_faults(task.place):
            index = pager.store_index(task.skill)
    except SkillPagerError as error:
        return Built(seconds=time.perf_counter() - started, error=error)
    return Built(len(index.nodes), time.perf_counter() - started)


class SkillWorker:
    """A worker in a process of its own, which it shares with no other.

    It holds encoder and classifier. How many threads they take is said by `OMP_NUM_THREADS`.
    """

    def __init__(self, pager: "SkillPager") -> None:
        self._pager = pager

    def greet(self) -> Greeting:
        """Return which indexes this worker makes, after loading what it needs to make them."""
        import os

        from skillpager.parsing.skill import skill_from_text

        try:
            builder = self._pager.builder
            builder.build(skill_from_text("# Title\n\nThe first text loads the models.\n"), "")
            return Greeting(os.getpid(), builder.recipe)
        except SkillPagerError as error:
            return Greeting(os.getpid(), error=error)

    def build(self, task: Task) -> Built:
        """Return what came of a task, with the warnings that were logged meanwhile."""
        with _logged() as notes:
            built = build_task(self._pager, task)
        return Built(built.nodes, built.seconds, built.error, tuple(notes))


@contextmanager
def _logged() -> Iterator[list[str]]:
    """Yield a list that the warnings of this package are put into, instead of standard error."""
    notes: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: notes.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("skillpager")
    logger.addHandler(handler)
    try:
        yield notes
    finally:
        logger.removeHandler(handler)
