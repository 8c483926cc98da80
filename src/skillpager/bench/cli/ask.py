"""Measure pages from the skills of a library: `skillpager bench ask`."""

from pathlib import Path
from typing import Annotated

import typer

from skillpager.bench.cli.options import ASKED, Pool, Rows
from skillpager.bench.cli.route import print_measures
from skillpager.cli.messages import UsageError, reported
from skillpager.cli.options import AsJson, CacheDir
from skillpager.cli.views import progress_bar


@reported
def ask(
    pool: Pool,
    asked: Annotated[list[Path], ASKED],
    out: Rows,
    methods: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Of ask, page-1, page-3, whole-1, whole-3, right-page; separated by commas.",
        ),
    ] = "ask,page-1,page-3,whole-1,whole-3,right-page",
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Make one page from the skills of a large library for queries whose evidence is known.

    A page suffices if it holds the evidence. It is compared with pages and texts of the first skills of the
    ranking, with 1,200 and 2,400 tokens and without a ceiling. Rows have ids and numbers, no texts; those
    that are in the folder are not computed again. Indexes are kept in a temporary folder unless --cache-dir
    names one.

    \b
    Examples:
      skillpager bench ask pool --asked test --out asked
      skillpager bench ask pool.jsonl.xz --asked test --methods ask,whole-1 --out asked-few
    """
    import tempfile

    from skillpager.bench.routing.pages import (
        CEILINGS,
        measure_pages,
        summarize_pages,
        write_documents,
        write_pool,
    )
    from skillpager.library import Library
    from skillpager.pager import SkillPager

    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch)
        queries = write_documents(asked, target / "asked")
        pools = [write_pool(path, target / f"pool-{number}") for number, path in enumerate(pool)]
        library = Library(SkillPager(store=cache_dir or target / "cache"), [target / "asked", *pools])
        with progress_bar("skills") as progress:
            library.prepare(progress)
        offered = {skill.path for skill in library.skills(for_model=True)}
        known = [query for query in queries if query.path in offered]
        if not known:
            raise UsageError("No skill of --asked is offered: POOL has others of the same names.")
        with progress_bar("queries") as progress:
            rows = measure_pages(library, known, out, progress, list(dict.fromkeys(methods.split(","))))
    results: list[dict[str, object]] = []
    for kind in dict.fromkeys(row.kind for row in rows):
        for limit in CEILINGS:
            for method in dict.fromkeys(row.method for row in rows):
                mine = [row for row in rows if (row.kind, row.method) == (kind, method)]
                if mine:
                    named = {"kind": kind, "max_tokens": limit, "method": method}
                    results.append({**named, **summarize_pages(mine, limit)})
    print_measures(results, as_json=as_json)
