"""Index many skills: what is stored is not sent, what fails is tried again within limits, all is told.

The driver reads the skills, so that workers need none of the user's files, and the workers write into the
store, so that what is done stays done whoever dies.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.bulk.places import PROCESSES_PAY_FROM, OpenPlace, Workplace, local_place
from skillpager.bulk.ray_cluster import ray_place
from skillpager.bulk.sources import Item, Source, sources_of
from skillpager.bulk.worker import Built, Task
from skillpager.errors import ClassifierError, EncoderError, SkillError, SkillPagerError, StoreError

if TYPE_CHECKING:
    from skillpager.pager import SkillPager
    from skillpager.types import Skill

logger = logging.getLogger(__name__)

# an endpoint that is down fails every skill, each after its own retries
MAX_FAILURES_IN_A_ROW = 3
# a skill whose worker dies so often is taken for the cause; with a kill at every seventh skill an innocent
# one is that unlucky once in 17,000
MAX_ATTEMPTS = 5

Progress = Callable[[int, int], None]
Finished = Callable[["Outcome", "Skill"], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of indexing a skill.

    Attributes:
        place: Where it was read, for people.
        name: Its name.
        key: Cache key of its index.
        nodes: Number of nodes.
        tokens: Tokens of all of it.
        seconds: How long building took.
        cached: Whether it was in the store before.
        stored: Whether it is there after the run, and nothing that was to be done with it failed.
        warnings: Those of reading it.
        error: What failed; None if nothing did.
    """

    place: str
    name: str = ""
    key: str = ""
    nodes: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cached: bool = False
    stored: bool = False
    warnings: tuple[str, ...] = ()
    error: SkillPagerError | None = None


def index_skills(
    pager: "SkillPager",
    sources: Sequence[Source],
    open_place: OpenPlace,
    *,
    progress: Progress | None = None,
    finished: Finished | None = None,
) -> list[Outcome]:
    """Index the skills of sources; return the outcomes in their order.

    After several failures in a row that are not the skills' own, the rest is not tried.

    Args:
        pager: Reads the settings, and knows the store.
        sources: Where the skills are.
        open_place: Makes the place where indexes are built: `local_place` or `ray_place`.
        progress: Called with the number of finished skills, and of all that are known.
        finished: Called with each outcome that is no failure, and its skill; an error of the skill that it
            raises makes it one.

    Raises:
        SkillPagerError: A fault that would fail every skill, such as a wrong setting.
    """
    run = _Run(pager, sources, progress or (lambda *_: None), finished or (lambda *_: None))
    tasks = run.pending()
    first = list(islice(tasks, PROCESSES_PAY_FROM))
    if first:
        with open_place(len(first)) as place:
            run.work(chain(first, tasks), place)
    return run.outcomes()


def index_places(
    pager: "SkillPager",
    places: Sequence[str | Path],
    *,
    jobs: int | None = None,
    ray: str | None = None,
    finished: Finished | None = None,
) -> list[Outcome]:
    """Index the skills that paths and addresses name; return the outcomes in their order.

    Args:
        pager: Its encoder, classifier and store are used.
        places: Folders, Markdown files, archives, tables and addresses, as for `skillpager index`.
        jobs: Number of workers; default: one for each processor.
        ray: Address of a Ray cluster, `auto` or `local`; None to work on this machine.
        finished: Called with each outcome that is no failure, and its skill; an error of the skill that it
            raises makes it one.

    Raises:
        SkillPagerError: A fault that would fail every skill, such as a wrong setting.
    """
    place = local_place(pager, jobs) if ray is None else ray_place(pager, ray, jobs)
    return index_skills(pager, sources_of(places, pager.settings), place, finished=finished)


class _Run:
    """One run: which tasks are unfinished, and what became of the others."""

    def __init__(
        self, pager: "SkillPager", sources: Sequence[Source], progress: Progress, finished: Finished
    ) -> None:
        self._pager, self._sources, self._progress, self._report = pager, sources, progress, finished
        # nodes by key, of what was stored before the run or by it
        self._stored = {entry.key: entry.nodes for entry in pager.store.entries()}
        self._before = frozenset(self._stored)
        self._found: list[Outcome | None] = []  # None: not finished
        self._unopened = len(sources)
        self._open: Source | None = None  # is being read
        self._done = 0
        # what waits for each unfinished key: its place in `_found`, and the skill
        self._waiting: dict[str, list[tuple[int, Item]]] = {}
        self._failures = 0

    @property
    def _known(self) -> int:
        return len(self._found) + self._unopened

    def pending(self) -> Iterator[Task]:
        """Yield a task for each skill that is not stored; the others are finished on the way."""
        from skillpager.indexing import index_key

        for source in self._sources:
            self._unopened -= 1
            self._open = source
            for item in source.items():
                number = len(self._found)
                self._found.append(None)
                if item.skill is None:
                    self._end(number, Outcome(item.place, item.name, error=item.error))
                    continue
                key = index_key(item.skill, self._pager.recipe)
                if key in self._stored:
                    self._finish(number, item, key)
                elif key in self._waiting:  # the same skill from two places
                    self._waiting[key].append((number, item))
                else:
                    self._waiting[key] = [(number, item)]
                    yield Task(key, item.place, item.skill, number + 1, self._known)
            self._open = None

    def work(self, tasks: Iterator[Task], place: Workplace) -> None:
        """Have all tasks done, with no more of them at the place than it has workers."""
        again: deque[Task] = deque()
        attempts: dict[str, int] = {}
        working = 0
        while True:
            while working < place.workers and (task := again.popleft() if again else next(tasks, None)):
                place.submit(task)
                working += 1
            if not working:
                return
            task, built = place.finished()
            working -= 1
            if built is None or isinstance(built.error, StoreError):
                attempts[task.key] = attempts.get(task.key, 0) + 1
                if attempts[task.key] < MAX_ATTEMPTS:
                    reason = "its worker died" if built is None else built.error
                    logger.debug("%s is tried again: %s", task.place, reason)
                    again.append(task)
                    continue
            self._take(task, built or Built(error=_deadly(task)))
            if self._failures == MAX_FAILURES_IN_A_ROW:
                return

    def _take(self, task: Task, built: Built) -> None:
        """Note what came of a task, for every place from which its skill was read."""
        error = built.error
        if error is not None and not isinstance(
            error, (SkillError, EncoderError, ClassifierError, StoreError)
        ):
            raise error
        self._failures = 0 if error is None or isinstance(error, SkillError) else self._failures + 1
        if error is None:
            self._stored[task.key] = built.nodes
        for number, item in self._waiting.pop(task.key):
            if error is None:
                self._finish(number, item, task.key, seconds=built.seconds)
            else:
                self._end(number, Outcome(item.place, _name(item), error=error))

    def _finish(self, number: int, item: Item, key: str, *, seconds: float = 0.0) -> None:
        """Note a skill that is in the store. Every skill of a run that does not fail passes here, once."""
        from skillpager.indexing import count_tokens

        assert item.skill is not None
        outcome = Outcome(
            item.place,
            item.skill.name,
            key,
            self._stored[key],
            count_tokens(item.skill, self._pager.token_counter),
            seconds,
            cached=key in self._before,
            warnings=item.skill.warnings,
        )
        try:
            self._report(outcome, item.skill)
        except (SkillError, EncoderError, ClassifierError) as error:
            outcome = replace(outcome, error=error)
        self._end(number, outcome)

    def _end(self, number: int, outcome: Outcome) -> None:
        self._found[number] = outcome
        self._done += 1
        self._progress(self._done, self._known)

    def outcomes(self) -> list[Outcome]:
        """Return all outcomes in the order of the sources; what was not tried has failed."""
        for waiting in self._waiting.values():
            for number, item in waiting:
                self._found[number] = _untried(item.place, _name(item))
        found = [outcome for outcome in self._found if outcome is not None]
        unread = [*self._sources[len(self._sources) - self._unopened :]]
        if self._open is not None and not self._open.single:
            unread.insert(0, self._open)
        found += [_untried(source.place, source.name) for source in unread]
        after = {entry.key for entry in self._pager.store.entries()}
        return [replace(each, stored=each.error is None and each.key in after) for each in found]


def _name(item: Item) -> str:
    return item.name if item.skill is None else item.skill.name


def _untried(place: str, name: str) -> Outcome:
    return Outcome(place, name, error=SkillError(f"{place} was not tried: see the failures before it."))


def _deadly(task: Task) -> SkillError:
    return SkillError(
        f"{task.place} cannot be indexed: {MAX_ATTEMPTS} workers died over it. If they lack memory, use "
        "fewer (`--jobs`); else please report it with the skill."
    )
