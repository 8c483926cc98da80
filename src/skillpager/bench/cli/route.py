"""Measure routing: `skillpager bench route`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.bench.cli.options import ASKED, Pool, Rows
from skillpager.cli.messages import UsageError, print_json, reported
from skillpager.cli.options import AsJson
from skillpager.cli.views import print_table, progress_bar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillpager.bench.routing.routes import RoutingRow


@reported
def route(
    pool: Pool,
    out: Rows,
    tasks: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="tasks.jsonl and relevance.json of SkillRouter-Eval-Core."),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The skills that the tasks need, NAME.md.")
    ] = None,
    asked: Annotated[list[Path] | None, ASKED] = None,
    methods: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Of route, fts5, fts5-rarest, fts5-described, bm25s, dense; separated by commas.",
        ),
    ] = "route,fts5,fts5-rarest,fts5-described,bm25s",
    as_json: AsJson = False,
) -> None:
    """Rank the skills of a large library for queries whose needed skills are known.

    Rows have ids and ranks, no texts; those that are in the folder are not computed again. Intervals are over
    queries.

    \b
    Examples:
      skillpager bench route pool --asked test --out routed
      skillpager bench route pool.jsonl.xz --tasks eval_core --truth skillsbench --out routed-tasks
    """
    from skillpager.bench.routing.data import merge, read_asked, read_pool, read_tasks
    from skillpager.bench.routing.routes import measure_method

    if not (tasks and truth) and not asked:
        raise UsageError("Nothing to ask: give --tasks with --truth, or --asked.")
    parts = [read_tasks(tasks, truth)] if tasks and truth else []
    parts += [read_asked(folder) for folder in asked or ()]
    skills, queries = merge(parts, (skill for path in pool for skill in read_pool(path)))
    found = {}
    for method in dict.fromkeys(methods.split(",")):
        with progress_bar(method) as progress:
            found[method] = measure_method(method, skills, queries, out, progress)
    _print_results(found, as_json=as_json)


def _print_results(found: "dict[str, list[RoutingRow]]", *, as_json: bool) -> None:
    from skillpager.bench.routing.routes import fit_quality, summarize

    results: list[dict[str, object]] = []
    for kind in dict.fromkeys(row.kind for rows in found.values() for row in rows):
        for method, rows in found.items():
            mine = [row for row in rows if row.kind == kind]
            if mine:
                fits = fit_quality(mine)
                shown = {"fits_auc": fits[0], "fits_ece": fits[1]} if fits else {}
                results.append(
                    {"kind": kind, "method": method, "queries": len(mine), **summarize(mine), **shown}
                )
    print_measures(results, as_json=as_json)


def print_measures(results: "Sequence[Mapping[str, object]]", *, as_json: bool) -> None:
    """Print measures: as JSON with their intervals, or as a table of percentages and counts."""
    from skillpager.bench.report.statistics import Interval

    if as_json:
        forms = [
            {
                name: [each.value, each.low, each.high] if isinstance(each, Interval) else each
                for name, each in result.items()
            }
            for result in results
        ]
        print_json({"results": forms})
        return
    columns = list(dict.fromkeys(name for result in results for name in result))

    def cell(value: object) -> str:
        number = value.value if isinstance(value, Interval) else value
        if isinstance(number, float):
            return f"{100 * number:.1f}" if number <= 1 else f"{number:.0f}"
        return "" if number is None else f"{number}"

    lines = [[cell(result.get(name)) for name in columns] for result in results]
    print_table(columns, lines, right=[name for name in columns if name not in ("kind", "method")])
