"""Measure routing, and pages from the skills of a library: `skillpager bench route` and `bench ask`."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from skillpager.bench.cli.options import ASKED, Pool, Rows
from skillpager.cli.messages import UsageError, print_json, reported
from skillpager.cli.options import AsJson, CacheDir
from skillpager.cli.views import print_table, progress_bar


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
        typer.Option(metavar="LIST", help="Of route, fts5, fts5-described, bm25s; separated by commas."),
    ] = "route,fts5,fts5-described,bm25s",
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
    from skillpager.bench.routing.routes import fit_quality, measure_method, summarize

    if not (tasks and truth) and not asked:
        raise UsageError("Nothing to ask: give --tasks with --truth, or --asked.")
    parts = [read_tasks(tasks, truth)] if tasks and truth else []
    parts += [read_asked(folder) for folder in asked or ()]
    skills, queries = merge(parts, (skill for path in pool for skill in read_pool(path)))
    rows = {}
    for method in dict.fromkeys(methods.split(",")):
        with progress_bar(method) as progress:
            rows[method] = measure_method(method, skills, queries, out, progress)
    results: list[dict[str, object]] = []
    for kind in dict.fromkeys(query.kind for query in queries):
        for method in rows:
            mine = [row for row in rows[method] if row.kind == kind]
            fits = fit_quality(mine)
            shown = {"fits_auc": fits[0], "fits_ece": fits[1]} if fits else {}
            results.append({"kind": kind, "method": method, "queries": len(mine), **summarize(mine), **shown})
    _print_measures(results, as_json=as_json)


@reported
def ask(
    pool: Pool,
    asked: Annotated[list[Path], ASKED],
    out: Rows,
    methods: Annotated[
        str,
        typer.Option(metavar="LIST", help="Of ask, right-page, page-N, whole-N; separated by commas."),
    ] = "ask,page-1,page-3,whole-1,right-page",
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Make one page from the skills of a large library for queries whose evidence is known.

    A page suffices if it holds the evidence. It is compared with pages and texts of the first N skills of the
    ranking, with 1,200 and 2,400 tokens and without a ceiling. Rows have ids and numbers, no texts; those
    that are in the folder are not computed again. Indexes are kept in a temporary folder unless --cache-dir
    names one.

    \b
    Examples:
      skillpager bench ask pool --asked test --out asked
      skillpager bench ask pool.jsonl.xz --asked test --methods ask,whole-1 --out asked-few
    """
    from skillpager.bench.routing.data import read_asked, read_pool, write_skills
    from skillpager.bench.routing.routes import CEILINGS, measure_pages, summarize_pages
    from skillpager.library import Library
    from skillpager.pager import SkillPager

    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch)
        parts = [read_asked(folder) for folder in asked]
        places = write_skills((skill for skills, _ in parts for skill in skills), target / "asked")
        folders = [target / "asked"]
        for number, path in enumerate(pool):
            folders.append(path if path.is_dir() else target / f"pool-{number}")
            if not path.is_dir():
                write_skills(read_pool(path), folders[-1])
        library = Library(SkillPager(store=cache_dir or target / "cache"), folders)
        with progress_bar("skills") as progress:
            library.prepare(progress)
        offered = {skill.path for skill in library.skills(for_model=True)}
        queries = [query for _, own in parts for query in own if places[query.needs[0]] in offered]
        if not queries:
            raise UsageError("No skill of --asked is offered: POOL has others of the same names.")
        for method in dict.fromkeys(methods.split(",")):
            with progress_bar(method) as progress:
                rows += measure_pages(method, library, queries, places, out, progress)
    results: list[dict[str, object]] = []
    for kind in dict.fromkeys(row.kind for row in rows):
        for limit in CEILINGS:
            for method in dict.fromkeys(row.method for row in rows):
                mine = [
                    row for row in rows if (row.kind, row.max_tokens, row.method) == (kind, limit, method)
                ]
                named = {"kind": kind, "max_tokens": limit, "method": method}
                results.append({**named, **summarize_pages(mine)})
    _print_measures(results, as_json=as_json)


def _print_measures(results: Sequence[Mapping[str, object]], *, as_json: bool) -> None:
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
