"""Measure pages from the skills of a library: `skillpager bench ask`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.bench.cli.options import ASKED, Pool, Rows
from skillpager.cli.messages import UsageError, print_json, reported
from skillpager.cli.options import AsJson, CacheDir
from skillpager.cli.views import print_table, progress_bar

if TYPE_CHECKING:
    from skillpager.bench.routing.pages import PageRow

DEFAULT_COMPOSED = 100


@reported
def ask(
    pool: Pool,
    asked: Annotated[list[Path], ASKED],
    out: Rows,
    composed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Queries composed of those of two skills, and of three.")
    ] = DEFAULT_COMPOSED,
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

    A page suffices if it holds the evidence of each task. It is compared with pages and texts of the first
    skills of the ranking, with 1,200 and 2,400 tokens and without a ceiling. Rows have ids and numbers, no
    texts; those that are in the folder are not computed again. Indexes are kept in a temporary folder unless
    --cache-dir names one.

    \b
    Examples:
      skillpager bench ask pool --asked test --out asked
      skillpager bench ask pool.jsonl.xz --asked test --composed 20 --methods ask,whole-1 --out asked-few
    """
    import tempfile

    from skillpager.bench.routing.asked import compose_all, read_originals, write_documents, write_pool
    from skillpager.bench.routing.pages import measure_pages
    from skillpager.library import Library
    from skillpager.pager import SkillPager
    from skillpager.stores.memory import NoStore

    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch)
        queries = write_documents(read_originals(asked), target / "asked")
        pools = [write_pool(path, target / f"pool-{number}") for number, path in enumerate(pool)]
        folders, cache = [target / "asked", *pools], cache_dir or target / "cache"
        library = Library(SkillPager(store=cache), folders)
        with progress_bar("skills") as progress:
            library.prepare(progress)
        offered = {skill.path for skill in library.skills(for_model=True)}
        known = [query for query in queries if query.path in offered]
        if not known:
            raise UsageError("No skill of --asked is offered: POOL has others of the same names.")
        with progress_bar("queries") as progress:
            rows = measure_pages(
                library,
                lambda: Library(SkillPager(store=NoStore()), folders, cache=cache),
                compose_all(known, composed),
                out,
                progress,
                list(dict.fromkeys(methods.split(","))),
            )
    _print_results(rows, as_json=as_json)


def _print_results(rows: "list[PageRow]", *, as_json: bool) -> None:
    from skillpager.bench.routing.pages import CEILINGS, summarize_pages

    results = []
    for kind, limit, method in [
        (kind, limit, method)
        for kind in dict.fromkeys(row.kind for row in rows)
        for limit in CEILINGS
        for method in dict.fromkeys(row.method for row in rows)
    ]:
        mine = [row for row in rows if (row.kind, row.method) == (kind, method)]
        if mine:
            results.append((kind, limit, method, summarize_pages(mine, limit)))
    if as_json:
        lines = [
            {
                "kind": kind,
                "max_tokens": limit,
                "method": method,
                "queries": each.queries,
                "sufficient": [each.sufficient.value, each.sufficient.low, each.sufficient.high],
                "found": [each.found.value, each.found.low, each.found.high],
                "coverage": each.coverage,
                "tokens": each.tokens,
                "right": each.right,
                "none": each.none,
                "skills": each.skills,
                "ms": each.ms,
                "cold_ms": each.cold_ms,
            }
            for kind, limit, method, each in results
        ]
        print_json({"results": lines})
        return
    numbers = ["queries", "sufficient", "coverage", "tokens", "found", "right", "none", "ms", "cold ms"]
    print_table(
        ["kind", "max tokens", "method", *numbers],
        [
            [
                kind,
                f"{limit or ''}",
                method,
                str(each.queries),
                *(f"{100 * share:.1f}" for share in (each.sufficient.value, each.coverage)),
                f"{each.tokens:.0f}",
                *(f"{100 * share:.1f}" for share in (each.found.value, each.right, each.none)),
                *("" if time is None else f"{time:.0f}" for time in (each.ms, each.cold_ms)),
            ]
            for kind, limit, method, each in results
        ],
        right=["max tokens", *numbers],
    )
