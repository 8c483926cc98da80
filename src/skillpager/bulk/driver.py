"""Index many skills: those in the store are not built again, and one that fails stops no other.

The driver reads the skills, so that workers need none of the user's files.
"""

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing, nullcontext
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.bulk.sources import Source, sources_of
from skillpager.bulk.workers import PROCESSES_PAY_FROM, Outcome, Task, Workers, local_workers, ray_workers
from skillpager.errors import ClassifierError, EncoderError, SkillError, SkillPagerError, StoreError
from skillpager.library.discovery import Progress, no_progress
from skillpager.tokens import count_tokens

if TYPE_CHECKING:
    from skillpager.pager import SkillPager
    from skillpager.types import Skill

logger = logging.getLogger(__name__)

# an endpoint that is down fails every skill, each after its own retries
MAX_FAILURES_IN_A_ROW = 3

Finished = Callable[["Outcome", "Skill"], None]


def index_skills(
    pager: "SkillPager",
    sources: Sequence[Source | Path | str],
    *,
    jobs: int | None = None,
    ray: str | None = None,
    progress: Progress = no_progress,
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
        known += [source] if callable(source) else sources_of([source], pager.settings)
    run = _Run(pager, known, progress, finished or (lambda *_: None))
    # closed when a run is interrupted, too: the temporary folder of the source at hand goes
    with closing(run.pending()) as tasks:
        if first := list(islice(tasks, PROCESSES_PAY_FROM)):
            local = nullcontext(local_workers(pager, len(first), jobs))
            with local if ray is None else ray_workers(pager, ray, jobs) as workers:
                run.work(chain(first, tasks), workers)
    return run.outcomes()


class _Run:
    """One run: the outcomes so far, by the numbers of the skills in the order of the sources."""

    def __init__(
        self, pager: "SkillPager", sources: Sequence[Source], progress: Progress, finished: Finished
    ) -> None:
        self._pager, self._sources, self._progress, self._report = pager, sources, progress, finished
        self._before = {entry.key: entry.nodes for entry in pager.store.entries()}
        self._found: dict[int, Outcome] = {}
        self._total = len(sources)  # a source that is not opened counts as one skill
        self._failures = 0

    def pending(self) -> Generator[Task, None, None]:
        """Yield a task for each skill that is not stored; the others are finished on the way."""
        from skillpager.indexing import index_key  # numpy

        number = 0
        for source in self._sources:
            self._total -= 1
            for item in source():
                self._total += 1
                number += 1
                if isinstance(item.skill, SkillPagerError):
                    self._end(number, Outcome(item.place, item.place, error=item.skill))
                    continue
                key = index_key(item.skill, self._pager.recipe)
                outcome = Outcome(item.place, item.skill.name, key, warnings=item.skill.warnings)
                if key in self._before:
                    outcome = replace(outcome, nodes=self._before[key], cached=True)
                    self._take(Task(number, item.skill, outcome), outcome)
                else:
                    yield Task(number, item.skill, outcome)

    def work(self, tasks: Iterator[Task], workers: Workers) -> None:
        """Have all tasks done; those in hand when a worker died are tried again, each by itself."""
        while again := self._work_until_death(tasks, workers, workers.count):
            for task in again:
                if self._work_until_death(iter([task]), workers, 1):
                    # it need not be the skill's fault: workers that cannot start end the run as well
                    self._failures += 1
                    why = "cannot be indexed: its worker died, twice. If memory is short, use fewer workers"
                    self._fail(task, f"{why} (`--jobs 1`); else please report it with the skill.")

    def _work_until_death(self, tasks: Iterator[Task], workers: Workers, most: int) -> list[Task]:
        """Do tasks until there are none or a worker dies; return those that were in hand then.

        No more than `most` are on their way, so that memory does not grow with their number.
        """
        running: dict[Future[Outcome], Task] = {}
        again: list[Task] = []
        with workers.open(most) as submit:
            while True:
                while not again and len(running) < most and (task := next(tasks, None)) is not None:
                    if self._failures >= MAX_FAILURES_IN_A_ROW:
                        self._fail(task, "was not tried: see the failures before it.")
                        continue
                    try:
                        running[submit(task)] = task
                    except workers.deaths:
                        again.append(task)
                if not running:
                    return again
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    task = running.pop(future)
                    try:
                        self._take(task, future.result())
                    except workers.deaths as death:
                        logger.debug("%s is tried again: its worker died (%s)", task.outcome.place, death)
                        again.append(task)

    def _take(self, task: Task, outcome: Outcome) -> None:
        """Note the outcome of a task, or that its skill is stored already."""
        if isinstance(outcome.error, (EncoderError, ClassifierError, StoreError)):
            self._failures += 1
        elif outcome.error is None or isinstance(outcome.error, SkillError):
            self._failures = 0
        else:
            raise outcome.error
        if outcome.error is None:
            outcome = replace(outcome, tokens=count_tokens(task.skill, self._pager.token_counter))
            try:
                self._report(outcome, task.skill)
            except (SkillError, EncoderError, ClassifierError) as error:
                outcome = replace(outcome, error=error)
        self._end(task.number, outcome)

    def _fail(self, task: Task, reason: str) -> None:
        error = SkillError(f"{task.outcome.place} {reason}")
        self._end(task.number, replace(task.outcome, error=error))

    def _end(self, number: int, outcome: Outcome) -> None:
        self._found[number] = outcome
        self._progress(len(self._found), self._total)

    def outcomes(self) -> list[Outcome]:
        """Return all outcomes in the order of the sources."""
        after = {entry.key for entry in self._pager.store.entries()}
        found = [self._found[number] for number in sorted(self._found)]
        return [replace(each, stored=each.error is None and each.key in after) for each in found]
