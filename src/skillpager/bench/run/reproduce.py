"""From data to results: the methods of one or more suites, run and judged in one folder.

Reference: paper §4 and §5, every table and figure.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from skillpager.bench.data import load_data
from skillpager.bench.data.folder import DATA, SKILLS, BenchFolder, data_entry
from skillpager.bench.data.records import QueryRecord, SkillRecord
from skillpager.bench.run.runs import prepare, run_methods
from skillpager.bench.run.selecting import Plan
from skillpager.bench.run.suites import SUITES
from skillpager.errors import BenchError
from skillpager.json_types import JsonObject


def open_run(data: Path | None, out: Path | None, plan: Plan) -> BenchFolder:
    """Return the folder of a run, with its data in it.

    Args:
        data: A benchmark folder or a folder of evidence data; None for the data that `out` holds.
        out: Folder of the run; None for `data` itself, when that is a benchmark folder.
        plan: How contexts are made.

    Raises:
        BenchError: There is no data, or `out` holds another run.
    """
    source = data or out
    if source is None:
        raise BenchError(
            "There is no data: name a benchmark folder or a folder of evidence data with --data."
        )
    skills, queries = load_data(source)
    if out is None and not (source / SKILLS).is_file():
        raise BenchError(f"{source} is evidence data: name a folder for the results with --out.")
    folder = BenchFolder(out or source)
    prepare(folder, skills, queries, plan, data=_described(source, skills, queries))
    return folder


def _described(source: Path, skills: Sequence[SkillRecord], queries: Sequence[QueryRecord]) -> JsonObject:
    """Return what the manifest says of the data: what its source said, with the digests of now."""
    said = BenchFolder(source).manifest().get(DATA) if (source / SKILLS).is_file() else None
    details = (
        dict(said) if isinstance(said, Mapping) else {"source": "evidence", "subset": source.resolve().name}
    )
    return {**details, **data_entry(skills, queries, source=str(details["source"]), details={})}


def run_suites(
    folder: BenchFolder,
    suites: Mapping[str, Sequence[str]],
    plan: Plan,
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Run the methods of suites, each once, and note in the manifest which suite has which.

    Args:
        folder: A folder that `open_run` returned.
        suites: Labels of each suite.
        plan: How contexts are made.
        jobs: Processes; one for each processor when None.
        progress: Called with the contexts done and all contexts to do.

    Returns:
        How many contexts were made.

    Raises:
        BenchError: A method is unknown, or some skills failed.
    """
    labels = [label for name in suites for label in suites[name]]
    made = run_methods(folder, labels, plan, jobs=jobs or os.cpu_count() or 1, progress=progress)
    known = folder.manifest().get("suites")
    merged = {
        **(known if isinstance(known, Mapping) else {}),
        **{name: list(suites[name]) for name in suites},
    }
    # in the order of the tables, whatever the order of the runs
    order = {name: place for place, name in enumerate(SUITES)}
    folder.update_manifest(
        {"suites": dict(sorted(merged.items(), key=lambda item: order.get(item[0], len(order))))}
    )
    return made
