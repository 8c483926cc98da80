"""Measure routing: `skillpager bench route`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import print_json, reported
from skillpager.cli.options import AsJson
from skillpager.cli.views import print_table, progress_bar
from skillpager.errors import BenchError, SettingsError

if TYPE_CHECKING:
    from skillpager.bench.routing import RoutingRow


@reported
def route(
    pool: Annotated[
        list[Path],
        typer.Argument(
            metavar="POOL", help="Folders of skills, or files of JSON lines (id, skill_md; also .xz)."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the rows.")],
    tasks: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="tasks.jsonl and relevance.json of SkillRouter-Eval-Core."),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The skills that the tasks need, NAME.md.")
    ] = None,
    asked: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="Evidence data: skills, and queries for them; may be repeated."),
    ] = None,
    methods: Annotated[
        str, typer.Option(metavar="LIST", help="Of route, fts5, fts5-described, bm25s; separated by commas.")
    ] = "route,fts5,fts5-described,bm25s",
    as_json: AsJson = False,
) -> None:
    """Rank the skills of a large library for queries whose needed skills are known.

    Rows have ids and ranks, no texts. Intervals are over queries.

    \b
    Examples:
      skillpager bench route pool --asked test --out routed
      skillpager bench route pool.jsonl.xz --tasks eval_core --truth skillsbench --out routed-tasks
    """
    from skillpager.bench.routing import measure_method, merge, read_asked, read_pool, read_tasks

    if not (tasks and truth) and not asked:
        raise SettingsError("Nothing to ask: give --tasks with --truth, or --asked.")
    parts = [read_tasks(tasks, truth)] if tasks and truth else []
    parts += [read_asked(folder) for folder in asked or ()]
    skills, queries = merge(parts, (skill for path in pool for skill in read_pool(path)))
    if not queries:
        raise BenchError("The data has no queries.")
    rows = {}
    for method in dict.fromkeys(methods.split(",")):
        with progress_bar(method) as progress:
            rows[method] = measure_method(method, skills, queries, out, progress)
    _print_measures(rows, list(dict.fromkeys(query.kind for query in queries)), as_json=as_json)


def _print_measures(
    rows: Mapping[str, Sequence["RoutingRow"]], kinds: Sequence[str], *, as_json: bool
) -> None:
    """Print the measures of each kind of query and method: with intervals as JSON, or as a table."""
    from skillpager.bench.routing import fit_quality, summarize

    results: list[dict[str, object]] = []
    lines: list[list[str]] = []
    for kind in kinds:
        for method in rows:
            mine = [row for row in rows[method] if row.kind == kind]
            measured, fits = summarize(mine), fit_quality(mine)
            intervals = {name: [each.value, each.low, each.high] for name, each in measured.items()}
            chances = {"fits_auc": fits[0], "fits_ece": fits[1]} if fits else {}
            results.append({"kind": kind, "method": method, "queries": len(mine), **intervals, **chances})
            shares = [
                f"{100 * share:.1f}" for share in (*(each.value for each in measured.values()), *(fits or ()))
            ]
            lines.append([kind, method, str(len(mine)), *shares, *([] if fits else ["", ""])])
    if as_json:
        print_json({"results": results})
        return
    columns = ["kind", "method", "queries", *measured, "AUC of fits", "ECE of fits"]
    print_table(columns, lines, right=columns[2:])
