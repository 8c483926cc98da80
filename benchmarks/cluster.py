"""Indexing by processes and on a Ray cluster: how fast each is, and what kills cost.

    python benchmarks/cluster.py speed SKILLS --skills 60 --rounds 3 --out benchmarks/cluster_speed.csv
    python benchmarks/cluster.py kills SKILLS --skills 300 --kills 100 --out benchmarks/cluster_kills.csv

SKILLS is a folder of skills. `speed` indexes the same skills in turns with two processes and with two actors,
each time into a new store. `kills` indexes them on a cluster of three nodes, while a worker, now and then a
node or the driver is killed; a driver that was killed is started again.
"""

import argparse
import csv
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from skillpager import SkillPager
from skillpager.bulk import index_skills
from skillpager.bulk.workers import RAY_ENVIRONMENT
from skillpager.indexing import index_key
from skillpager.parsing.skill import read_skill
from skillpager.settings import Settings
from skillpager.stores.sqlite import SqliteStore

WORKERS = 2
SKILL_SECONDS = 300.0  # without a new skill for so long a run is given up
# of ten kills one is of a driver and one of a node, the others of workers
KINDS = ("worker",) * 4 + ("driver",) + ("worker",) * 4 + ("node",)
NODE: dict[str, Any] = {"num_cpus": 2, "object_store_memory": 80 * 1024**2, "include_dashboard": False}


def main() -> None:
    """Measure, and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("speed", "kills"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--skills", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=60.0, help="no kill after that")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    os.environ |= RAY_ENVIRONMENT
    skills = sorted(path.parent for path in options.folder.rglob("SKILL.md"))[: options.skills]
    if not skills:
        parser.error(f"{options.folder} has no skills, or links to them, which are not followed")
    if options.what == "speed":
        rows = measure_speed(skills, options.rounds)
    else:
        rows = kill(skills, options.kills, options.minutes)
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


# ---- speed


def measure_speed(skills: list[Path], rounds: int) -> list[dict[str, object]]:
    """Return the rates of processes and actors, and print the ratio of their medians."""
    rows: list[dict[str, object]] = []
    for number in range(rounds):
        for way in ("processes", "ray") if number % 2 == 0 else ("ray", "processes"):
            seconds, rate = index_once(skills, way)
            rows.append(
                {
                    "round": number,
                    "way": way,
                    "skills": len(skills),
                    "seconds": round(seconds, 1),
                    "skills_per_second": round(rate, 2),
                }
            )
            print(rows[-1], flush=True)
    medians = {
        way: statistics.median(float(str(row["skills_per_second"])) for row in rows if row["way"] == way)
        for way in ("processes", "ray")
    }
    print(f"medians {medians}; ray / processes = {medians['ray'] / medians['processes']:.2f}")
    return rows


def index_once(skills: list[Path], way: str) -> tuple[float, float]:
    """Return the seconds of a run, and the skills a second once both workers are at work."""
    with TemporaryDirectory() as folder:
        pager = SkillPager(settings=Settings(cache_dir=Path(folder)), store=Path(folder) / "store")
        times: list[float] = []
        started = time.perf_counter()
        outcomes = index_skills(
            pager,
            skills,
            jobs=WORKERS,
            ray="local" if way == "ray" else None,
            progress=lambda *_: times.append(time.perf_counter()),
        )
        ended = time.perf_counter()
        assert all(outcome.stored for outcome in outcomes), [outcome.error for outcome in outcomes]
        pager.close()
    warm = times[2 * WORKERS :]
    return ended - started, (len(warm) - 1) / (warm[-1] - warm[0])


# ---- kills


def kill(skills: list[Path], wanted: int, minutes: float) -> list[dict[str, object]]:
    """Return the kills of a run and what the store held at each; check what it holds at the end."""
    import ray
    from ray.cluster_utils import Cluster

    draw = random.Random(7)
    rows: list[dict[str, object]] = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        cluster = Cluster(initialize_head=True, head_node_args=NODE | {"num_cpus": 0})
        nodes = [cluster.add_node(**NODE) for _ in range(2)]
        store = SqliteStore(folder / "indexes")
        run = Run(skills, folder, cluster.address)
        started = time.perf_counter()
        try:
            run.start()
            while len(rows) < wanted and time.perf_counter() - started < minutes * 60:
                before = run.wait_for_more(store)
                if run.driver.poll() is not None:  # it is done
                    break
                what = KINDS[len(rows) % len(KINDS)]
                if what == "driver":
                    run.driver.kill()
                    run.driver.wait()
                    run.start()
                elif what == "node":
                    victim = nodes.pop(draw.randrange(len(nodes)))
                    cluster.remove_node(victim, allow_graceful=False)
                    nodes.append(cluster.add_node(**NODE))
                elif not kill_worker(nodes, draw):
                    time.sleep(0.1)
                    continue
                row = {"kill": len(rows) + 1, "of": what, "seconds": round(time.perf_counter() - started, 1)}
                rows.append(row | {"stored": before})
                print(rows[-1], flush=True)
            run.driver.wait()
        finally:
            run.driver.kill()
            ray.shutdown()
            cluster.shutdown()
        check(skills, store, run, len(rows))
        store.close()
    return rows


class Run:
    """A run of the command, which goes on after kills of its driver."""

    def __init__(self, skills: list[Path], folder: Path, address: str) -> None:
        words = [sys.executable, "-m", "skillpager", "index", *map(str, skills)]
        self.command = [
            *words,
            "--ray",
            address,
            "--jobs",
            str(WORKERS),
            "--cache-dir",
            str(folder),
            "--json",
        ]
        self.drivers = 0
        self.stored = 0

    def start(self) -> None:
        """Start a driver."""
        self.drivers += 1
        self.driver = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)

    def wait_for_more(self, store: SqliteStore) -> int:
        """Return the number of stored skills when it has grown, or the driver has ended."""
        end = time.monotonic() + SKILL_SECONDS
        while (now := len(store.entries())) <= self.stored and self.driver.poll() is None:
            if time.monotonic() > end:
                raise TimeoutError(f"{now} skills, and for {SKILL_SECONDS} s no other")
            time.sleep(0.1)
        self.stored = now
        return now


def kill_worker(nodes: list[Any], draw: random.Random) -> bool:
    """Kill one of the processes that index on these nodes; return False if there is none."""
    raylets = {process.process.pid for node in nodes for process in node.all_processes["raylet"]}
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    workers = [int(pid) for pid, parent, words in rows if int(parent) in raylets and "RayWorker" in words]
    if not workers:
        return False
    os.kill(draw.choice(workers), signal.SIGKILL)
    return True


def check(skills: list[Path], store: SqliteStore, run: Run, kills: int) -> None:
    """Print how many skills are lost, doubled and damaged."""
    with closing(SkillPager(settings=Settings(), store=store)) as pager:
        expected = {index_key(read_skill(path), pager.recipe) for path in skills}
        keys = [entry.key for entry in store.entries()]
        print(
            f"{kills} kills, {run.drivers} drivers: {len(expected)} skills, "
            f"{len(expected - set(keys))} lost, {len(keys) - len(set(keys))} doubled, "
            f"{len(set(keys) - expected)} unknown, {len(store.verify())} damaged; "
            f"last driver ended with {run.driver.returncode}"
        )


if __name__ == "__main__":
    main()
