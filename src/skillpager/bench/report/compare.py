"""Two runs of the same methods and queries beside each other: a run of yours, and published rows."""

from pathlib import Path

import pandas as pd

from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.judge.judges import EVIDENCE
from skillpager.bench.report.results import ROWS, PublishedResults, Results
from skillpager.bench.report.statistics import COVERAGE, MICRO_REDUCTION, SUFFICIENCY
from skillpager.errors import BenchError

MEASURES = (SUFFICIENCY, COVERAGE, MICRO_REDUCTION)


def open_results(path: Path) -> Results:
    """Return the results of a run under the evidence judge, or published results."""
    if (path / ROWS).exists():
        return PublishedResults(path)
    return Results(BenchFolder(path), EVIDENCE, allow_trained=True)


def compare_runs(run: Results, published: Results, *, tolerance: float) -> pd.DataFrame:
    """Return a row for each method of both, on the queries of both.

    The columns are `method`, `queries`, `same picks` (percent), for each measure its value in the run and the
    difference from the published one in points, and `agrees`: whether no difference is above the tolerance.
    """
    lines: list[dict[str, object]] = []
    for label in filter(published.has, run.labels):
        mine, theirs = run.rows(label), published.rows(label)
        both = mine[["query", "picks"]].merge(theirs[["query", "picks"]], on="query")
        if both.empty:
            continue
        mine, theirs = (rows[rows["query"].isin(both["query"])] for rows in (mine, theirs))
        same = float((both["picks_x"] == both["picks_y"]).mean())
        line: dict[str, object] = {"method": label, "queries": len(both), "same picks": 100 * same}
        gaps = {}
        for measure in (each for each in MEASURES if each.known(mine) and each.known(theirs)):
            line[measure.heading] = measure.of(mine)
            line[f"− published, {measure.name}"] = gaps[measure] = measure.of(mine) - measure.of(theirs)
        lines.append(line | {"agrees": max(map(abs, gaps.values())) <= tolerance})
    if not lines:
        raise BenchError(
            f"{run.folder.path} and {published.folder.path} have no method and query in common: "
            "run the same methods on the same data."
        )
    return pd.DataFrame(lines)
