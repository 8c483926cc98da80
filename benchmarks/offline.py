"""The offline stage: time and peak memory per skill and for all skills.

Imports nothing heavy: the measured code runs in separate processes, whose peak memory starts at that of
this process.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from offline_worker import STAGES
from options import Options
from processes import Spent, own_environment, skillpager, spend, worker
from results import Cell, Check, Report, Table
from timing import median, percentile

JOBS = (1, 2)
QUICK_JOBS = (2,)

MEDIAN_SKILL_SECONDS = 0.5
ALL_SKILLS_SECONDS = 120.0
CACHED_SECONDS = 2.0
PEAK_MB = 400.0


@dataclass(frozen=True, slots=True)
class Indexed:
    """One skill, indexed in a fresh process."""

    seconds: float
    nodes: int
    size: int
    stages: dict[str, float]
    spent: Spent

    @property
    def indexing(self) -> float:
        """Seconds without the loading of models."""
        return self.seconds - self.stages["load models"]


def measure(options: Options) -> Report:
    """Return the report on the offline stage."""
    documents = options.documents()
    with TemporaryDirectory() as name:
        folder = Path(name)
        each = [index_alone(path, folder / f"each-{n}") for n, path in enumerate(documents)]
        whole = {
            jobs: _index_all(documents, jobs, folder / f"all-{jobs}")
            for jobs in (QUICK_JOBS if options.quick else JOBS)
        }
    tables = [_each_table(each), _stage_table(each), _all_table(each, whole)]
    note = f"{len(documents)} {options.corpus()}; {sum(item.nodes for item in each):,} nodes."
    return Report("Offline: from skill to index", tables, _checks(each, whole), note)


def index_alone(skill: Path, cache: Path) -> Indexed:
    """Return what a fresh process with an empty store spends on one skill."""
    spent = spend(worker("offline_worker.py", {"skill": str(skill), "cache": str(cache)}))
    said = json.loads(spent.output)
    return Indexed(said["seconds"], said["nodes"], said["bytes"], said["stages"], spent)


def _index_all(documents: Sequence[Path], jobs: int, cache: Path) -> tuple[Spent, Spent]:
    """Return what `skillpager index` spends on all documents with an empty store, and again."""
    command = skillpager("index", "--jobs", str(jobs), *documents)
    environment = own_environment(cache)
    return spend(command, environment=environment), spend(command, environment=environment)


def _each_table(each: Sequence[Indexed]) -> Table:
    kinds = {
        "index, models loaded (s)": [item.indexing for item in each],
        "load models (s)": [item.stages["load models"] for item in each],
        "whole process, Python included (s)": [item.spent.seconds for item in each],
        "processor time of the process (s)": [item.spent.processor_seconds for item in each],
        "peak memory of the process (MB)": [item.spent.peak_mb for item in each],
        "nodes": [float(item.nodes) for item in each],
    }
    rows: list[list[Cell]] = []
    for name, values in kinds.items():
        rows.append([name, median(values), percentile(values, 0.9), max(values)])
    return Table("One skill, in a fresh process with an empty store", ["", "median", "p90", "max"], rows)


def _stage_table(each: Sequence[Indexed]) -> Table:
    total = sum(item.seconds for item in each)
    rows: list[list[Cell]] = []
    for stage in STAGES:
        seconds = sum(item.stages.get(stage, 0.0) for item in each)
        rows.append([stage, seconds / len(each), 100 * seconds / total])
    rest = total - sum(sum(item.stages.values()) for item in each)
    rows.append(["rest", rest / len(each), 100 * rest / total])
    return Table("Share of each stage, all skills", ["stage", "mean (s)", "share (%)"], rows)


def _all_table(each: Sequence[Indexed], whole: dict[int, tuple[Spent, Spent]]) -> Table:
    nodes = sum(item.nodes for item in each)
    rows: list[list[Cell]] = []
    for jobs, runs in whole.items():
        for state, run in zip(("empty store", "cached"), runs, strict=True):
            speed = round(nodes / run.seconds) if state == "empty store" else "–"
            rows.append([jobs, state, run.seconds, run.processor_seconds, speed, run.peak_mb])
    columns = [
        "--jobs",
        "store",
        "wall clock (s)",
        "processor time (s)",
        "nodes per second",
        "peak memory (MB)",
    ]
    return Table("All skills with `skillpager index`, whole process", columns, rows)


def _checks(each: Sequence[Indexed], whole: dict[int, tuple[Spent, Spent]]) -> list[Check]:
    number = len(each)
    fastest = min(runs[0].seconds for runs in whole.values())
    cached = min(runs[1].seconds for runs in whole.values())
    return [
        Check("Median skill indexed", median([item.indexing for item in each]), MEDIAN_SKILL_SECONDS, "s"),
        Check(f"All {number} skills indexed", fastest, ALL_SKILLS_SECONDS, "s"),
        Check(f"All {number} skills again, cached", cached, CACHED_SECONDS, "s"),
        Check("Peak memory of any skill", max(item.spent.peak_mb for item in each), PEAK_MB, "MB"),
    ]
