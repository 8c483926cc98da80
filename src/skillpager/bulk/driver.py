"""Index many skills: those in the store are not built again, and one that fails stops no other.

The driver reads the skills, so that workers need none of the user's files.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.bulk.sources import Source, sources_of
from skillpager.bulk.workers import PROCESSES_PAY_FROM, Built, Task, Workers, local_workers, ray_workers
from skillpager.errors import ClassifierError, EncoderError, SkillError, SkillPagerError, StoreError

if TYPE_CHECKING:
    from skillpager.pager import SkillPager
    from skillpager.types import Skill

logger = logging.getLogger(__name__)

# an endpoint that is down fails every skill, each after its own retries
MAX_FAILURES_IN_A_ROW = 3
# a skill over which so many workers die is taken for the cause
MAX_DEATHS = 3

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
        stored: Whether it is in the store after the run, and `finished` did not fail.
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
    sources: Sequence[Source | Path | str],
    *,
    jobs: int | None = None,
    ray: str | None = None,
    progress: Progress | None = None,
    finished: Finished | None = None,
) -> list[Outcome]:
    """Index the skills of sources; return the outcomes in their order.

    After several failures in a row that are not the skills' own, the rest is not tried.

    Args:
        pager: Its encoder, classifier and store are used.
        sources: Folders, Markdown files, archives and addresses, as for `skillpager index`.
        jobs: Number of workers; default: one for each processor.
        ray: Address of a Ray cluster, `auto` or `local`; None to work on this machine.
        progress: Called with the number of finished skills, and of all that are known.
        finished: Called with each outcome that is not a failure, and its skill; an error of the skill that it
            raises makes it one.

    Raises:
        SkillPagerError: A fault that would fail every skill, such as a wrong setting.
    """
    known: list[Source] = []
    for source in sources:
        known += [source] if isinstance(source, Source) else sources_of([source], pager.settings)
    run = _Run(pager, known, progress or (lambda *_: None), finished or (lambda *_: None))
    tasks = run.pending()
    if first := list(islice(tasks, PROCESSES_PAY_FROM)):
        local = nullcontext(local_workers(pager, len(first), jobs))
        with local if ray is None else ray_workers(pager, ray, jobs) as workers:
            run.work(chain(first, tasks), workers)
    return run.outcomes()


class _Run:
    """One run: the tasks that are not finished, and the outcomes of the others."""

    def __init__(
        self, pager: "SkillPager", sources: Sequence[Source], progress: Progress, finished: Finished
    ) -> None:
        self._pager, self._sources, self._progress, self._report = pager, sources, progress, finished
        # nodes by key, of what was stored before the run or by it
        self._stored = {entry.key: entry.nodes for entry in pager.store.entries()}
        self._before = frozenset(self._stored)
        self._found: list[Outcome | None] = []  # None: not finished
        self._unopened = len(sources)
        self._done = 0
        # by key, the numbers in `_found` that wait for it, with place and skill
        self._waiting: dict[str, list[tuple[int, str, Skill]]] = {}
        self._failures = 0

    def pending(self) -> Iterator[Task]:
        """Yield a task for each skill that is not stored; the others are finished on the way."""
        from skillpager.indexing import index_key

        for source in self._sources:
            self._unopened -= 1
            for item in source.items():
                number = len(self._found)
                self._found.append(None)
                if isinstance(item.skill, SkillPagerError):
                    self._end(number, Outcome(item.place, item.place, error=item.skill))
                    continue
                key = index_key(item.skill, self._pager.recipe)
                if key in self._stored:
                    self._finish(number, item.place, item.skill, key)
                elif key in self._waiting:  # the same skill from two places
                    self._waiting[key].append((number, item.place, item.skill))
                else:
                    self._waiting[key] = [(number, item.place, item.skill)]
                    yield Task(key, item.place, item.skill)

    def work(self, tasks: Iterator[Task], workers: Workers) -> None:
        """Have all tasks done.

        Those that were in hand when a worker died are tried again at the end, each by itself: so a death
        concerns one skill.
        """
        again: list[Task] = []
        while broken := self._work_until_broken(tasks, workers, again):
            self._failures += 1
            if self._failures == MAX_FAILURES_IN_A_ROW:
                raise SkillPagerError(
                    "The processes that build indexes end as they start, perhaps for want of memory: "
                    "`--jobs 1` works without them."
                ) from broken
        for task in again:
            if self._failures < MAX_FAILURES_IN_A_ROW:
                self._take(task, self._build_alone(task, workers))
        for _ in tasks:  # what was not tried waits in vain
            pass

    def _work_until_broken(
        self, tasks: Iterator[Task], workers: Workers, again: list[Task]
    ) -> BrokenExecutor | None:
        """Do tasks until there are none, or all workers must be started again; return the reason then.

        No more tasks are on their way than there are workers, so that memory does not grow with their number.
        """
        running: dict[Future[Built], Task] = {}
        broken: BrokenExecutor | None = None
        with workers.open(workers.count) as executor:
            while True:
                while (
                    broken is None
                    and len(running) < workers.count
                    and self._failures < MAX_FAILURES_IN_A_ROW
                    and (task := next(tasks, None)) is not None
                ):
                    try:
                        running[executor.submit(workers.build, task)] = task
                    except BrokenExecutor as death:
                        again.append(task)
                        broken = death
                if not running:
                    return broken
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    task = running.pop(future)
                    try:
                        self._take(task, future.result())
                    except workers.deaths as death:
                        logger.debug("%s is tried again: its worker died (%s)", task.place, death)
                        again.append(task)
                        broken = death if isinstance(death, BrokenExecutor) else broken

    def _build_alone(self, task: Task, workers: Workers) -> Built:
        for _ in range(MAX_DEATHS):
            try:
                with workers.open(1) as executor:
                    return executor.submit(workers.build, task).result()
            except workers.deaths as death:
                logger.debug("%s: its worker died (%s)", task.place, death)
        return Built(
            error=SkillError(
                f"{task.place} cannot be indexed: {MAX_DEATHS} workers died over it. If they lack memory, "
                "use fewer (`--jobs`); else please report it with the skill."
            )
        )

    def _take(self, task: Task, built: Built) -> None:
        """Note the result of a task, for every place from which its skill was read."""
        error = built.error
        if error is None:
            self._failures, self._stored[task.key] = 0, built.nodes
        elif isinstance(error, (SkillError, EncoderError, ClassifierError, StoreError)):
            self._failures = 0 if isinstance(error, SkillError) else self._failures + 1
        else:
            raise error
        for number, place, skill in self._waiting.pop(task.key):
            if error is None:
                self._finish(number, place, skill, task.key, seconds=built.seconds)
            else:
                self._end(number, Outcome(place, skill.name, error=error))

    def _finish(self, number: int, place: str, skill: "Skill", key: str, *, seconds: float = 0.0) -> None:
        """Note a skill that is in the store. Every skill of a run that does not fail passes here, once."""
        from skillpager.indexing import count_tokens

        tokens, is_cached = count_tokens(skill, self._pager.token_counter), key in self._before
        about = (place, skill.name, key, self._stored[key], tokens, seconds, is_cached)
        outcome = Outcome(*about, warnings=skill.warnings)
        try:
            self._report(outcome, skill)
        except (SkillError, EncoderError, ClassifierError) as error:
            outcome = replace(outcome, error=error)
        self._end(number, outcome)

    def _end(self, number: int, outcome: Outcome) -> None:
        self._found[number] = outcome
        self._done += 1
        self._progress(self._done, len(self._found) + self._unopened)

    def outcomes(self) -> list[Outcome]:
        """Return all outcomes in the order of the sources; what was not tried has failed."""
        for number, place, skill in chain.from_iterable(self._waiting.values()):
            error = SkillError(f"{place} was not tried: see the failures before it.")
            self._found[number] = Outcome(place, skill.name, error=error)
        after = {entry.key for entry in self._pager.store.entries()}
        found = [outcome for outcome in self._found if outcome is not None]
        return [replace(each, stored=each.error is None and each.key in after) for each in found]
