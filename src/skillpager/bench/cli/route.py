"""Measure routing: `skillpager bench route`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.bench.cli.options import ASKED, Pool, Rows
from skillpager.cli.messages import UsageError, print_json, reported
from skillpager.cli.options import AsJson
from skillpager.cli.views import print_table, progress_bar

if TYPE_CHECKING:
    from skillpager.bench.routing.rows import RoutingRow

SHOWN = ("Hit@1", "MRR@10", "nDCG@10", "R@10", "R@50", "Full@3", "Full@5", "Full@10")


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
    from skillpager.bench.routing.rows import measure_method

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
    from skillpager.bench.routing.rows import fit_quality, summarize

    kinds = dict.fromkeys(row.kind for rows in found.values() for row in rows)
    results = []
    for kind in kinds:
        for method, rows in found.items():
            mine = [row for row in rows if row.kind == kind]
            if mine:
                results.append((kind, method, len(mine), summarize(mine), fit_quality(mine)))
    if as_json:
        lines = [
            {
                "kind": kind,
                "method": method,
                "queries": count,
                **{name: [each.value, each.low, each.high] for name, each in measured.items()},
                **({"fits_auc": fits[0], "fits_ece": fits[1]} if fits else {}),
            }
            for kind, method, count, measured, fits in results
        ]
        print_json({"results": lines})
        return
    print_table(
        ["kind", "method", "queries", *SHOWN, "fits AUC"],
        [
            [
                kind,
                method,
                str(count),
                *(f"{100 * measured[name].value:.1f}" for name in SHOWN),
                f"{fits[0]:.2f}" if fits else "",
            ]
            for kind, method, count, measured, fits in results
        ],
        right=["queries", *SHOWN, "fits AUC"],
    )
