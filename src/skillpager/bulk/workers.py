"""Workers that build indexes: threads of this process, processes of this machine, tasks on a Ray cluster.

A worker writes the index into the store itself, so that finished work stays done, whatever dies.
"""

import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, Any

from skillpager.errors import SettingsError, SkillPagerError, require_extra
from skillpager.settings import hide_secrets

if TYPE_CHECKING:
    from skillpager.pager import SkillPager
    from skillpager.types import Skill

# the encoder itself uses every processor; a second skill fills the time in which the first is split
THREADS = 2
# a process takes about 200 MB
MAX_PROCESSES = 8
# a process takes a second to start, in which a dozen skills are indexed
PROCESSES_PAY_FROM = 40
# how often Ray begins a task again whose worker or machine died
RAY_RETRIES = 4
KNOCK_SECONDS = 10.0
# settings of Ray, unless the user has others: no usage reports, no warnings, workers as urgent as local ones
RAY_ENVIRONMENT = {
    "RAY_worker_niceness": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_USAGE_STATS_PROMPT_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of indexing a skill: where it was read, the cache key of its index, its size, warnings.

    `seconds` is how long building took, `cached` whether it was in the store before, `stored` whether it is
    there after the run and `finished` did not fail, `error` what failed.
    """

    place: str
    name: str
    key: str = ""
    nodes: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cached: bool = False
    stored: bool = False
    warnings: tuple[str, ...] = ()
    error: SkillPagerError | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A skill to index: its number in the run, and its outcome so far."""

    number: int
    skill: "Skill"
    outcome: Outcome


Submit = Callable[[Task], Future[Outcome]]

# of bytes from the process that started this one: its pager, whose models are loaded once
_unpickled = lru_cache(maxsize=1)(pickle.loads)  # noqa: S301


@dataclass(frozen=True, slots=True)
class Workers:
    """Workers of one kind: how many there are, what starts some of them, and the exceptions of dead ones."""

    count: int
    open: Callable[[int], AbstractContextManager[Submit]]
    deaths: tuple[type[BaseException], ...] = (BrokenExecutor,)


def build_task(pager: "SkillPager", task: Task) -> Outcome:
    """Build and store the index of a skill; a fault that is not a `SkillPagerError` is one of the skill.

    An error is part of the outcome, because executors wrap exceptions in their own.
    """
    from skillpager.library import skill_faults

    started = time.perf_counter()
    try:
        with skill_faults(task.outcome.place):
            index = pager.store_index(task.skill)
    except SkillPagerError as error:
        return replace(task.outcome, error=error)
    return replace(task.outcome, nodes=len(index.nodes), seconds=time.perf_counter() - started)


def build_elsewhere(pager: bytes, task: Task) -> Outcome:
    """Do the same in another process, whose skillpager may be another."""
    from skillpager.indexing import index_key

    own: SkillPager = _unpickled(pager)
    if index_key(task.skill, own.recipe) == task.outcome.key:
        return build_task(own, task)
    error = SettingsError(
        f"The worker at {socket.gethostname()} makes other indexes ({own.recipe}) than the machine with "
        "the skills: install the same version of skillpager, with its models, on all machines."
    )
    return replace(task.outcome, error=error)


def local_workers(pager: "SkillPager", tasks: int, jobs: int | None = None) -> Workers:
    """Return workers on this machine: threads for a few skills, processes for many.

    By default these are 2 threads, or a process for each processor, up to 8.
    """
    from skillpager.encoders.builtin import usable_processors

    processes = jobs or min(usable_processors(), MAX_PROCESSES)
    remote = pager.recipe.encoder.startswith("openai:") or pager.recipe.classifier.startswith("llm")
    # an endpoint is only waited for, which threads can; and in one process the encoder takes all processors
    if processes > 1 and tasks >= PROCESSES_PAY_FROM and not remote:
        # parts that only this process can have are not pickled
        with suppress(pickle.PicklingError, TypeError, AttributeError):
            build = partial(build_elsewhere, pickle.dumps(pager))
            return Workers(processes, partial(_pool, open_processes, build))
    return Workers(jobs or THREADS, partial(_pool, ThreadPoolExecutor, partial(build_task, pager)))


@contextmanager
def _pool(start: Callable[[int], Executor], build: Callable[[Task], Outcome], count: int) -> Iterator[Submit]:
    executor, waits = start(count), True
    try:
        yield lambda task: executor.submit(build, task)
    except KeyboardInterrupt:
        waits = False  # a thread may wait for an endpoint, and stored indexes are whole
        raise
    finally:
        executor.shutdown(waits)


def open_processes(count: int) -> Executor:
    """Return that many processes, each with one thread for matrix products."""
    return ProcessPoolExecutor(count, get_context("spawn"), _prepare_process)


def _prepare_process() -> None:
    # read when numpy and the encoder are imported, which unpickling a pager does
    os.environ["OMP_NUM_THREADS"] = "1"
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # end at once and without a traceback
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, even if it was killed."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextmanager
def ray_workers(pager: "SkillPager", address: str, jobs: int | None = None) -> Iterator[Workers]:
    """Connect to a Ray cluster, and yield workers on it: tasks of one processor each.

    The address is `HOST:PORT`, or `auto` for the cluster of `RAY_ADDRESS` or of this machine, or `local` for
    one that is started for the run. `auto` without any is `local`.
    """
    from skillpager.stores.sqlite import SqliteStore

    for name, value in RAY_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    ray: Any = require_extra("ray", extra="ray", purpose="Indexing on a cluster")
    options: dict[str, Any] = {"namespace": "skillpager", "logging_level": "ERROR", "log_to_driver": False}
    if address == "local":
        options |= {"address": address, "include_dashboard": False}
    try:
        if address not in ("local", "auto"):
            # Ray itself tries for minutes
            host, _, port = address.rpartition(":")
            if not host or not port.isdecimal():
                raise ValueError("write HOST:PORT, auto or local")
            socket.create_connection((host, int(port)), KNOCK_SECONDS).close()
            options["address"] = address
        # without an address Ray looks for a cluster, and starts one if there is none
        ray.init(**options)
        machines = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
        others = machines - {ray.util.get_node_ip_address()}
        count = jobs or max(1, int(ray.cluster_resources().get("CPU", 1)))
    except (Exception, SystemExit) as error:  # whatever Ray raises, the run cannot begin
        reason = " ".join(str(error).split())[:200]
        raise SkillPagerError(
            f"Ray cannot be used at {hide_secrets(address)} ({reason}): `ray start --head` starts a cluster, "
            "`ray status` shows it; `--ray local` needs none, and without `--ray` this machine does the work."
        ) from error
    try:
        if others and isinstance(pager.store, SqliteStore):
            raise SettingsError(
                f"The store {pager.store.place} is a file of this machine, which the cluster's machine "
                f"{min(others)} cannot write: name a database (`--store postgresql://HOST/DATABASE`), or use "
                "`--ray local`."
            )
        remote, pickled = ray.remote(build_elsewhere), pickle.dumps(pager)

        def submit(task: Task) -> Future[Outcome]:
            # the dashboard shows a task by the name of its skill
            options = {"num_cpus": 1, "max_retries": RAY_RETRIES, "name": task.skill.name}
            future: Future[Outcome] = remote.options(**options).remote(pickled, task).future()
            return future

        yield Workers(count, lambda _: nullcontext(submit), (ray.exceptions.RayError,))
    finally:
        ray.shutdown()
