"""Where indexes are built: in this process, in processes of this machine, on a Ray cluster.

A `Workplace` takes tasks and returns what came of them. Processes and Ray have workers that may die: `Crew`
gives each worker one task at a time, so that a death concerns one skill, and replaces the dead.
"""

import logging
import queue
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, suppress
from pickle import PicklingError
from typing import TYPE_CHECKING, Protocol

from skillpager.bulk.worker import Built, Greeting, Task, build_task
from skillpager.errors import SettingsError, SkillPagerError

if TYPE_CHECKING:
    from skillpager.pager import SkillPager

logger = logging.getLogger(__name__)

# the encoder itself uses every processor; a second skill fills the time in which the first is split
THREADS = 2
# a process takes about 200 MB
MAX_PROCESSES = 8
# a process takes a second to start: as long as a dozen skills take
PROCESSES_PAY_FROM = 40
# workers that die one after the other before any is ready
MAX_DEAD_ON_ARRIVAL = 5
# as often another is started in the time for which an agency is patient
HIRES_IN_PATIENCE = 20
# seconds without any worker after which a place says that it has none
STALL_SECONDS = 300.0


class Workplace(Protocol):
    """Where indexes are built. Used by one thread, which has no more than `workers` tasks there at a time."""

    workers: int

    def submit(self, task: Task) -> None:
        """Take a task."""

    def finished(self) -> tuple[Task, Built | None]:
        """Wait for a task to end; return it, and what came of it: None if its worker died.

        Raises:
            SkillPagerError: There are no workers, and will be none.
        """

    def close(self) -> None:
        """Give up the tasks that were not waited for, and end the workers."""


# makes the place for a number of tasks, which may be the first of more
OpenPlace = Callable[[int], AbstractContextManager[Workplace]]


class Threads:
    """Threads of this process, which share one encoder and classifier."""

    def __init__(self, pager: "SkillPager", workers: int) -> None:
        self.workers = workers
        self._pager = pager
        self._pool = ThreadPoolExecutor(workers, "skillpager-index")
        self._ended: queue.SimpleQueue[tuple[Task, Future[Built]]] = queue.SimpleQueue()

    def submit(self, task: Task) -> None:
        """Take a task."""
        future = self._pool.submit(build_task, self._pager, task)
        future.add_done_callback(lambda done: self._ended.put((task, done)))

    def finished(self) -> tuple[Task, Built | None]:
        """Wait for a task to end; return it, and what came of it."""
        task, future = self._ended.get()
        return task, future.result()

    def close(self) -> None:
        """Give up the tasks that were not begun; a Ctrl-C must not wait for an endpoint."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class Worker(Protocol):
    """A worker that may die; it does one thing at a time."""

    def greet(self) -> "Future[Greeting]":
        """Return the future of its greeting; it is ready then."""

    def build(self, task: Task) -> "Future[Built]":
        """Return the future of what comes of a task."""

    def dismiss(self) -> None:
        """End it."""


class Agency(Protocol):
    """Starts workers.

    Attributes:
        deaths: The exceptions that say that a worker died.
        patience: Seconds for which workers may die as they start before that counts as hopeless: a cluster
            sends some to a machine of whose end it has not heard yet.
    """

    deaths: tuple[type[BaseException], ...]
    patience: float

    def hire(self) -> Worker:
        """Start a worker; return it before it is ready."""

    def check(self, greeting: Greeting) -> None:
        """Raise a `SkillPagerError` if a worker is of no use."""

    def no_workers(self) -> str:
        """Return in words why no worker may have started, and what to do."""

    def close(self) -> None:
        """Give back what all workers need."""


class Crew:
    """Workers that may die, as a `Workplace`.

    Futures end in other threads, which only put them into a queue; all else happens in the one thread that
    uses the crew.
    """

    def __init__(self, agency: Agency, workers: int) -> None:
        self.workers = workers
        self._agency = agency
        self._staff: set[Worker] = set()
        self._free: deque[Worker] = deque()
        self._busy: dict[Worker, Task] = {}
        self._waiting: deque[Task] = deque()
        self._events: queue.SimpleQueue[tuple[Worker, Future[Greeting] | Future[Built]]] = queue.SimpleQueue()
        self._dead_on_arrival = 0
        self._first_death = 0.0  # of those in a row
        self._vacancies: deque[float] = deque()  # when to hire for them
        for _ in range(workers):
            self._hire()

    def submit(self, task: Task) -> None:
        """Take a task; a worker gets it as soon as one is ready and free."""
        self._waiting.append(task)
        self._assign()

    def finished(self) -> tuple[Task, Built | None]:
        """Wait for a task to end; return it, and what came of it: None if its worker died.

        Raises:
            SkillPagerError: A worker says that it is of no use, several in a row die as they start, or none
                starts for a long time.
        """
        while True:
            while self._vacancies and self._vacancies[0] <= time.monotonic():
                self._vacancies.popleft()
                self._hire()
            pause = self._vacancies[0] - time.monotonic() if self._vacancies else STALL_SECONDS
            try:
                worker, future = self._events.get(timeout=max(0.0, pause))
            except queue.Empty:
                if not self._busy and not self._vacancies:
                    raise SkillPagerError(self._agency.no_workers()) from None
                continue
            if worker in self._busy:
                return self._busy.pop(worker), self._take_result(worker, future)
            self._welcome(worker, future)

    def close(self) -> None:
        """End all workers."""
        for worker in self._staff:
            worker.dismiss()
        self._agency.close()

    def _hire(self) -> None:
        worker = self._agency.hire()
        self._staff.add(worker)
        self._follow(worker, worker.greet())

    def _follow(self, worker: Worker, future: "Future[Greeting] | Future[Built]") -> None:
        future.add_done_callback(lambda done: self._events.put((worker, done)))

    def _welcome(self, worker: Worker, future: "Future[Greeting] | Future[Built]") -> None:
        """Give a worker that is ready its first task; replace one that died before."""
        death = future.exception()
        if death is None:
            greeting = future.result()
            assert isinstance(greeting, Greeting)
            if greeting.error is not None:
                raise greeting.error
            self._agency.check(greeting)
            self._dead_on_arrival = 0
            self._free.append(worker)
            self._assign()
            return
        if not isinstance(death, self._agency.deaths):
            raise death
        now = time.monotonic()
        if not self._dead_on_arrival:
            self._first_death = now
        self._dead_on_arrival += 1
        is_hopeless = now - self._first_death >= self._agency.patience
        if is_hopeless and self._dead_on_arrival >= MAX_DEAD_ON_ARRIVAL:
            reason = str(death).strip().splitlines()[-1:]
            raise SkillPagerError(
                f"{self._dead_on_arrival} workers in a row died as they started"
                f"{f' ({reason[0].strip()})' if reason else ''}. {self._agency.no_workers()}"
            ) from death
        self._dismiss(worker)
        self._vacancies.append(now + self._agency.patience / HIRES_IN_PATIENCE)

    def _take_result(self, worker: Worker, future: "Future[Greeting] | Future[Built]") -> Built | None:
        death = future.exception()
        if death is None:
            built = future.result()
            assert isinstance(built, Built)
            for note in built.notes:
                logger.warning("%s", note)
            self._dead_on_arrival = 0
            self._free.append(worker)
            self._assign()
            return built
        if not isinstance(death, self._agency.deaths):
            raise death
        logger.debug("a worker died: %s", death)
        self._replace(worker)
        return None

    def _replace(self, worker: Worker) -> None:
        self._dismiss(worker)
        self._hire()

    def _dismiss(self, worker: Worker) -> None:
        self._staff.discard(worker)
        worker.dismiss()

    def _assign(self) -> None:
        while self._free and self._waiting:
            worker, task = self._free.popleft(), self._waiting.popleft()
            self._busy[worker] = task
            try:
                future = worker.build(task)
            except self._agency.deaths as death:  # it died while it had nothing to do
                future = Future()
                future.set_exception(death)
            self._follow(worker, future)


def local_place(pager: "SkillPager", jobs: int | None = None) -> OpenPlace:
    """Return what makes a place on this machine: threads for a few skills, processes for many.

    Args:
        pager: Its encoder, classifier and store are the workers'.
        jobs: Number of workers; default: 2 threads, or a process for each processor, up to 8.
    """

    def open_place(tasks: int) -> AbstractContextManager[Workplace]:
        from skillpager.encoders.builtin import usable_processors

        processes = jobs or min(usable_processors(), MAX_PROCESSES)
        # in one process the encoder takes all processors
        if processes > 1 and tasks >= PROCESSES_PAY_FROM and _computes(pager):
            from skillpager.bulk.processes import Processes

            with suppress(PicklingError, TypeError, AttributeError):  # parts that only this process can have
                return closing(Crew(Processes(pager), processes))
        return closing(Threads(pager, jobs or THREADS))

    return open_place


def _computes(pager: "SkillPager") -> bool:
    """Return whether indexes are computed here: an endpoint is only waited for, which threads can."""
    recipe = pager.recipe
    return not recipe.encoder.startswith("openai:") and not recipe.classifier.startswith("llm")


def check_recipe(pager: "SkillPager", greeting: Greeting) -> None:
    """Raise a `SettingsError` if a worker makes other indexes than this process would."""
    if greeting.recipe != pager.recipe:
        raise SettingsError(
            f"The worker at {greeting.address} makes other indexes ({greeting.recipe}) than this process "
            f"({pager.recipe}): install the same version of skillpager on all machines."
        )
