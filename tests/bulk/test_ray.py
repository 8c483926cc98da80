"""Indexing on a real Ray cluster of several nodes, with kills of workers, of a node and of the driver."""

import gc
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

from bulk_parts import assert_all_stored, built, telling_pager, write_skills
from cli_process import environment, run
from postgres_server import PostgresServer
from skillpager.bulk import index_skills
from skillpager.bulk.workers import RAY_ENVIRONMENT
from skillpager.errors import SettingsError
from skillpager.stores.postgres import PostgresStore
from skillpager.stores.sqlite import SqliteStore

# sockets and files that Ray leaves to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning")

COUNT = 50
# a node has room for two workers, and the cluster for two more than are wanted
NODE: dict[str, Any] = {"num_cpus": 2, "object_store_memory": 80 * 1024**2, "include_dashboard": False}


@pytest.fixture(autouse=True)
def _no_network() -> None:
    """Allow connections to this machine's own address, at which the cluster is."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # the parts of the tests are a package that every machine has
    os.environ |= RAY_ENVIRONMENT | {"PYTHONPATH": str(Path(__file__).parents[1])}
    started = Cluster(initialize_head=True, head_node_args=NODE | {"num_cpus": 0})
    started.add_node(**NODE)
    started.add_node(**NODE)
    yield started
    ray.shutdown()
    started.shutdown()
    del os.environ["PYTHONPATH"]
    # here, where the mark above holds
    del started
    gc.collect()


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    return write_skills(tmp_path / "skills", COUNT)


def test_kills_of_workers_and_of_a_node_cost_no_skill(cluster: Cluster, tmp_path: Path, skills: Path) -> None:
    pager = telling_pager(tmp_path, tmp_path / "store")
    killed: list[int] = []
    nodes = list(cluster.worker_nodes)

    def kill_some(done: int, _: int) -> None:
        if done in (5, 15):
            os.kill(built(tmp_path)[-1][0], signal.SIGKILL)
            killed.append(done)
        if done == 25:
            cluster.remove_node(nodes[0], allow_graceful=False)
            killed.append(done)

    outcomes = index_skills(pager, [skills], jobs=2, ray=cluster.address, progress=kill_some)
    assert len(killed) == 3
    with closing(SqliteStore(tmp_path / "store")) as store:
        assert_all_stored(outcomes, skills, store)
    # a kill repeats at most what each worker had in hand
    assert COUNT <= len(built(tmp_path)) <= COUNT + 4
    assert not ray.is_initialized()
    again = index_skills(pager, [skills], jobs=2, ray=cluster.address)
    assert all(outcome.cached for outcome in again)
    pager.close()
    cluster.add_node(**NODE)


def test_the_command_indexes_an_archive_into_postgres(
    cluster: Cluster, tmp_path: Path, server: PostgresServer
) -> None:
    skills = write_skills(tmp_path / "skills", 4)
    archive = tmp_path / "skills.tar.gz"
    subprocess.run(["tar", "-czf", str(archive), "-C", str(tmp_path), skills.name], check=True)
    address = server.create_database("ray")
    parts = ("--encoder", "plain_parts:DigestEncoder", "--classifier", "plain_parts:TurnsClassifier")
    env = environment(tmp_path / "cache", PYTHONPATH=str(Path(__file__).parents[1]), PYTHONWARNINGS="default")
    words = ("index", archive, "--ray", cluster.address, "--store", address, *parts, "--json")
    done = run(*words, env=env)
    assert done.code == 0, done.err
    assert [skill["path"] for skill in done.json["skills"]] == [
        f"{archive}!skills/skill-{number:03}" for number in range(4)
    ]
    assert all(skill["kept"] and not skill["cached"] for skill in done.json["skills"])
    with closing(PostgresStore(address)) as store:
        assert {entry.key for entry in store.entries()} == {skill["key"] for skill in done.json["skills"]}
    again = run(*words, env=env)
    assert all(skill["cached"] for skill in again.json["skills"])


def test_a_file_is_no_store_for_several_machines(cluster: Cluster, tmp_path: Path, skills: Path) -> None:
    far = cluster.add_node(**NODE | {"node_ip_address": "127.0.0.2"})
    try:
        with (
            closing(telling_pager(tmp_path, tmp_path / "store")) as pager,
            pytest.raises(SettingsError, match=r"index\.db is a file of this machine.*127\.0\.0\.2.*--store"),
        ):
            index_skills(pager, [skills], ray=cluster.address)
    finally:
        cluster.remove_node(far)
    assert built(tmp_path) == []


def test_an_address_without_a_cluster_is_an_error(tmp_path: Path, skills: Path) -> None:
    env = environment(tmp_path / "cache", PYTHONWARNINGS="default")
    done = run("index", skills, "--encoder", "hashing", "--ray", "127.0.0.1:1", env=env)
    assert done.code == 1
    assert "Ray cannot be used at 127.0.0.1:1 (" in done.err
    assert "Traceback" not in done.err
