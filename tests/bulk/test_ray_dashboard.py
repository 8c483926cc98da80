"""The progress of a run on a real Ray cluster with the whole dashboard: names of tasks, and metrics of the node."""

import gc
import re
import socket
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest
import ray
from ray.cluster_utils import Cluster
from ray.util.state import list_actors, list_tasks

from bulk_parts import telling_pager, write_skills
from skillpager.bulk import index_skills, ray_place, sources_of
from skillpager.bulk.ray_cluster import ENVIRONMENT

# the package `ray` itself has neither dashboard nor metrics; with `pip install "ray[default]"` this runs
pytest.importorskip("aiohttp_cors", reason="ray[default] is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning")

COUNT = 60
SECONDS = 0.2  # a skill takes at least so long: time in which metrics are reported
LOOKS = (20, 40, 50)


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


@pytest.fixture(autouse=True)
def _no_network() -> None:
    """Allow connections to this machine's own address, at which the cluster is."""


def test_progress_can_be_seen_in_the_dashboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    for name, value in (ENVIRONMENT | {"PYTHONPATH": str(Path(__file__).parents[1])}).items():
        monkeypatch.setenv(name, value)
    head = {
        "num_cpus": 2,
        "object_store_memory": 80 * 1024**2,
        "include_dashboard": True,
        "dashboard_port": free_port(),
        "metrics_export_port": port,
        "_system_config": {"metrics_report_interval_ms": 500, "task_events_report_interval_ms": 200},
    }
    started = Cluster(initialize_head=True, head_node_args=head)
    names: set[str] = set()
    actors: set[str] = set()
    metrics: dict[str, float] = {}

    def look(done: int, _known: int) -> None:
        if done not in LOOKS:
            return
        names.update(task.name for task in list_tasks(limit=1_000))
        actors.update(str(actor.repr_name) for actor in list_actors(detail=True))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
        for name, value in re.findall(r"^ray_(skillpager_\w+)\{.*\} (\S+)$", text, re.MULTILINE):
            metrics[name] = max(metrics.get(name, 0.0), float(value))

    skills = write_skills(tmp_path / "skills", COUNT)
    try:
        with closing(telling_pager(tmp_path, tmp_path / "store", seconds=SECONDS)) as pager:
            sources = sources_of([skills], pager.settings)
            index_skills(pager, sources, ray_place(pager, started.address, 2), progress=look)
    finally:
        ray.shutdown()
        started.shutdown()
        del started
        gc.collect()
    assert f"12 of {COUNT}: skill-011" in names
    assert actors == {"SkillPager's indexer"}
    assert metrics["skillpager_skills_known"] == COUNT
    # reported twice a second, while two workers index up to ten skills
    assert LOOKS[-1] - 20 <= metrics["skillpager_skills_reached"] <= LOOKS[-1] + 2
    assert metrics["skillpager_skills_indexed_total"] >= 10
    assert metrics["skillpager_nodes_indexed_total"] >= 10
    assert "skillpager_index_seconds_count" in metrics
