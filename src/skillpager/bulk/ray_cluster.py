"""Workers on a Ray cluster: actors that hold encoder and classifier, and write into the store themselves."""

import io
import logging
import os
import socket
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

from skillpager.bulk.places import Crew, OpenPlace, Workplace, check_recipe
from skillpager.bulk.worker import Built, Greeting, SkillWorker, Task
from skillpager.errors import SettingsError, require_extra
from skillpager.settings import hide_secrets

if TYPE_CHECKING:
    from skillpager.pager import SkillPager

logger = logging.getLogger(__name__)

# address of a cluster that is started for the run, and given up after it
LOCAL = "local"
# the cluster of RAY_ADDRESS, or one that runs on this machine; else `local`
AUTO = "auto"
# beginning of an address of Ray Client: a run would end with the connection, where Ray's jobs go on
CLIENT = "ray://"
NAMESPACE = "skillpager"
KNOCK_SECONDS = 10.0
# a cluster knows some 20 seconds later that a machine is gone
PATIENCE = 60.0
# upper ends of the buckets of the histogram of seconds
BUCKETS = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]
# settings of Ray, unless the user has others: it tells its makers nothing and warns of nothing, and its
# workers yield to other programs no more than local processes do
ENVIRONMENT = {
    "RAY_worker_niceness": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_USAGE_STATS_PROMPT_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
}


def ray_place(pager: "SkillPager", address: str = AUTO, workers: int | None = None) -> OpenPlace:
    """Return what makes a place on a Ray cluster.

    Args:
        pager: Its encoder, classifier and store are the workers'.
        address: The cluster: `HOST:PORT`, `auto` for the one of `RAY_ADDRESS` or of this machine, `local`
            for one that is started for the run. `auto` without any is `local`.
        workers: Number of workers; default: one for each processor of the cluster.

    Raises:
        MissingExtraError: Ray is not installed.
        SettingsError: The address is one of Ray Client.
    """
    if (os.environ.get("RAY_ADDRESS", "") if address == AUTO else address).startswith(CLIENT):
        raise SettingsError(
            f"`{CLIENT}` begins an address of Ray Client, which SkillPager does not use: run the command on "
            "a machine of the cluster with `--ray HOST:6379`, or have it run there: "
            "`ray job submit --address http://HOST:8265 -- skillpager index PATH --ray`."
        )
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    ray: Any = require_extra("ray", extra="ray", purpose="Indexing on a cluster")

    @contextmanager
    def open_place(_tasks: int) -> Iterator[Workplace]:
        ours = not ray.is_initialized()
        # Ray prints every death of a worker to stdout, which is for data; outcomes tell what came of it
        with redirect_stdout(_DebugLog()):
            if ours:
                _connect(ray, address)
            try:
                with closing(Crew(RayAgency(pager, ray), workers or _processors(ray))) as crew:
                    yield crew
            finally:
                if ours:
                    ray.shutdown()

    return open_place


class _DebugLog(io.TextIOBase):
    """A stream whose lines are logged."""

    def write(self, text: str) -> int:
        """Log a text."""
        if text.strip():
            logger.debug("%s", text.strip())
        return len(text)


def _connect(ray: Any, address: str) -> None:
    """Connect to a cluster, or start one on this machine.

    Raises:
        SettingsError: There is no cluster at the address.
    """
    options: dict[str, object] = {"namespace": NAMESPACE, "logging_level": "ERROR", "log_to_driver": False}
    try:
        if address == AUTO:
            # without an address Ray looks for a cluster, and starts one if there is none
            ray.init(**options)
        elif address == LOCAL:
            ray.init(address=LOCAL, include_dashboard=False, **options)
        else:
            _knock(address)
            ray.init(address=address, **options)
    except (OSError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise SettingsError(
            f"There is no Ray cluster at {hide_secrets(address)} ({reason}): `ray start --head` starts one, "
            "`ray status` shows it; `--ray local` needs none."
        ) from error


def _knock(address: str) -> None:
    """Raise an `OSError` if nothing listens at `HOST:PORT`: Ray itself tries for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError("write HOST:PORT, auto or local")
    socket.create_connection((host, int(port)), KNOCK_SECONDS).close()


def _processors(ray: Any) -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


class RayAgency:
    """Starts actors on the cluster to which this process is connected."""

    patience = PATIENCE

    def __init__(self, pager: "SkillPager", ray: Any) -> None:
        errors = ray.exceptions
        self.deaths: tuple[type[BaseException], ...] = (
            *(errors.RayActorError, errors.WorkerCrashedError, errors.NodeDiedError, errors.ObjectLostError),
            *(errors.OutOfMemoryError, errors.LocalRayletDiedError, errors.TaskCancelledError),
        )
        self._ray, self._pager = ray, pager
        self._here = ray.util.get_node_ip_address()
        for node in ray.nodes():
            if node["Alive"]:
                self._check_store(node["NodeManagerAddress"])
        self._actor = ray.remote(RayWorker)
        self._shared = ray.put(pager)

    def hire(self) -> "RayHandle":
        """Start an actor; return it before it is ready."""
        options = {"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0}
        return RayHandle(self._actor.options(**options).remote(self._shared), self._ray)

    def check(self, greeting: Greeting) -> None:
        """Raise a `SettingsError` if an actor is on a machine without the store, or makes other indexes."""
        self._check_store(greeting.address)
        check_recipe(self._pager, greeting)

    def _check_store(self, address: str) -> None:
        from skillpager.stores import SqliteStore

        store = self._pager.store
        if isinstance(store, SqliteStore) and address != self._here:
            raise SettingsError(
                f"The store {store.place} is a file of this machine, which the cluster's machine {address} "
                "cannot write: name a database (`--store postgresql://HOST/DATABASE`), or use `--ray local`."
            )

    def no_workers(self) -> str:
        """Return in words why no worker may have started, and what to do."""
        free = self._ray.available_resources().get("CPU", 0)
        return (
            f"The cluster has {free:g} of {_processors(self._ray)} processors free, and each worker takes "
            "one: `ray status` shows what takes them. All its machines need skillpager and its models."
        )

    def close(self) -> None:
        """Give back nothing: the cluster is the caller's."""


class RayHandle:
    """A worker that is an actor."""

    def __init__(self, actor: Any, ray: Any) -> None:
        self._actor, self._ray = actor, ray

    def greet(self) -> Future[Greeting]:
        """Return the future of its greeting."""
        future: Future[Greeting] = self._actor.greet.remote().future()
        return future

    def build(self, task: Task) -> Future[Built]:
        """Return the future of what comes of a task, which the dashboard shows by number and skill."""
        method = self._actor.build.options(name=f"{task.number} of {task.known}: {task.skill.name}")
        future: Future[Built] = method.remote(task).future()
        return future

    def dismiss(self) -> None:
        """End it, in the midst of a task if need be."""
        self._ray.kill(self._actor)


class RayWorker(SkillWorker):
    """A worker that is an actor: it knows its machine, and counts for the dashboard."""

    def __init__(self, pager: "SkillPager") -> None:
        super().__init__(pager)
        from ray.util.metrics import Counter, Gauge, Histogram

        self._reached = Gauge(
            "skillpager_skills_reached", "Number of the skill in hand, among those of its run."
        )
        self._known = Gauge("skillpager_skills_known", "Skills of the run, as far as its sources were read.")
        self._skills = Counter("skillpager_skills_indexed", "Skills that were indexed.")
        self._failures = Counter("skillpager_skills_failed", "Skills that could not be indexed.")
        self._nodes = Counter("skillpager_nodes_indexed", "Nodes of the skills that were indexed.")
        self._seconds = Histogram("skillpager_index_seconds", "Seconds to index a skill.", BUCKETS)

    def __repr__(self) -> str:
        """Return its name in the dashboard and in Ray's logs."""
        return "SkillPager's indexer"

    def greet(self) -> Greeting:
        """Return which indexes this worker makes, and on which machine."""
        import ray

        greeting = super().greet()
        return Greeting(greeting.process, greeting.recipe, greeting.error, ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]

    def build(self, task: Task) -> Built:
        """Return what came of a task, and count it."""
        self._reached.set(task.number)
        self._known.set(task.known)
        built = super().build(task)
        (self._skills if built.error is None else self._failures).inc()
        if built.nodes:
            self._nodes.inc(built.nodes)
        self._seconds.observe(built.seconds)
        return built
