"""Workers that are processes of this machine."""

import os
import pickle
import signal
import threading
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING

from skillpager.bulk.worker import Built, Greeting, SkillWorker, Task

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from skillpager.pager import SkillPager

# a process that was told to end and has not after so long is killed
END_SECONDS = 5.0

# the worker of this process, if it is the process of a worker
_worker: SkillWorker | None = None


class Processes:
    """Starts workers in processes that share nothing with this one; each has one thread that computes."""

    deaths: tuple[type[BaseException], ...] = (BrokenExecutor,)
    patience = 0.0

    def __init__(self, pager: "SkillPager") -> None:
        self._pager = pickle.dumps(pager)
        self._dismissed: list[BaseProcess] = []

    def hire(self) -> "ProcessWorker":
        """Start a worker; return it before it is ready."""
        return ProcessWorker(self._pager, self._dismissed)

    def check(self, greeting: Greeting) -> None:
        """Find nothing wrong: it is the same installation."""

    def no_workers(self) -> str:
        """Return in words why no worker may have started, and what to do."""
        return (
            "The processes that build indexes end as they start, perhaps for want of memory: "
            "`--jobs 1` works without them."
        )

    def close(self) -> None:
        """Wait for the processes to end."""
        for process in self._dismissed:
            process.join(END_SECONDS)
            if process.exitcode is None:
                process.kill()


class ProcessWorker:
    """A worker in a process of its own: an executor of one process, which fails when that dies."""

    def __init__(self, pager: bytes, dismissed: "list[BaseProcess]") -> None:
        self._dismissed = dismissed
        # a fork of a process with threads may hang
        self._executor = ProcessPoolExecutor(1, get_context("spawn"), _start, (pager,))

    def greet(self) -> Future[Greeting]:
        """Return the future of its greeting."""
        return self._executor.submit(_greet)

    def build(self, task: Task) -> Future[Built]:
        """Return the future of what comes of a task."""
        return self._executor.submit(_build, task)

    def dismiss(self) -> None:
        """End it, in the midst of a task if need be."""
        # taken before: the executor forgets its processes; Python 3.14 has a method for it
        processes = list((self._executor._processes or {}).values())
        self._executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        self._dismissed += processes


def _start(pager: bytes) -> None:
    global _worker
    # read when numpy and the encoder are imported, which unpickling does
    os.environ["OMP_NUM_THREADS"] = "1"
    # a Ctrl-C is for the process that was started by the user, which ends this one
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker = SkillWorker(pickle.loads(pager))  # noqa: S301 - this process's own


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, even if it was killed."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _greet() -> Greeting:
    assert _worker is not None
    return _worker.greet()


def _build(task: Task) -> Built:
    assert _worker is not None
    return _worker.build(task)
