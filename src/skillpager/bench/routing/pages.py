"""Pages from the skills of a library: how much of a query's evidence they hold, and what a ranking gives."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from skillpager.bench.data.folder import append_records, read_records
from skillpager.bench.data.records import Record
from skillpager.bench.report.statistics import Interval, bootstrap
from skillpager.bench.routing.asked import Composed
from skillpager.errors import BenchError, SkillPagerError
from skillpager.library import Library
from skillpager.types import Page

ROWS = "pages.jsonl"
# ceilings on the tokens of a page; None for none
CEILINGS = (1200, 2400, None)
# queries whose page is also made by a new pager that has no index
COLD_QUERIES = 20
OURS = "ask"
TITLES = {
    OURS: "`library.page`",
    "page-1": "top 1, its page",
    "page-3": "top 3, their pages",
    "whole-1": "top 1, whole",
    "whole-3": "top 3, whole",
    "right-page": "the right skills, their pages",
}


@dataclass(frozen=True, slots=True)
class Held:
    """What a page holds of what its query needs.

    Attributes:
        max_tokens: Ceiling on its tokens; None for none.
        tokens: Its tokens.
        sufficient: Whether it holds the evidence of each task.
        coverage: Share of the evidence that it holds, mean over the tasks.
        skills: Skills of which it shows anything.
        right: Those of them that the query needs.
    """

    max_tokens: int | None
    tokens: int
    sufficient: bool
    coverage: float
    skills: int
    right: int


@dataclass(frozen=True, slots=True)
class PageRow(Record):
    """What a method makes of a query under each ceiling.

    Attributes:
        query: Id of the query.
        kind: Its kind.
        method: The method.
        tasks: Skills that the query needs.
        library: Skills of the library.
        held: What the pages hold.
        ms: Of ours: milliseconds of processor time for route and page, once the skills are indexed.
        cold_ms: The same by a new pager, which loads the catalog and has no index of any skill.
    """

    query: str
    kind: str
    method: str
    tasks: int
    library: int
    held: tuple[Held, ...]
    ms: float | None = None
    cold_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """A text in answer to a query: its tokens, and the folders of the skills that it shows."""

    text: str
    tokens: int
    paths: Sequence[Path]


Maker = Callable[[Library, Composed, int | None], Made]


def _ask(library: Library, query: Composed, limit: int | None) -> Made:
    page = library.page(query.text, max_tokens=limit)
    return Made(page.text, page.tokens, [part.skill.path for part in page.parts])


def _top(most: int, *, whole: bool) -> Maker:
    """Return the method that gives each of the best skills of the ranking an equal share of the ceiling."""

    def make(library: Library, query: Composed, limit: int | None) -> Made:
        found = library.route(query.text, k=most, for_model=True).skills
        return _join(library, query, [each.skill.path for each in found], limit, whole=whole)

    return make


def _right(library: Library, query: Composed, limit: int | None) -> Made:
    return _join(library, query, [task.path for task in query.tasks], limit, whole=False)


def _join(
    library: Library, query: Composed, paths: Sequence[Path], limit: int | None, *, whole: bool
) -> Made:
    """Return pages of skills under equal ceilings, one after the other; one that cannot be read has none."""
    each = None if limit is None else limit // max(1, len(paths))
    pages: list[Page] = []
    for path in paths:
        try:
            pager = library.pager
            page = (
                pager.whole(path, max_tokens=each) if whole else pager.page(path, query.text, max_tokens=each)
            )
        except SkillPagerError:
            continue
        pages.append(page)
    return Made("\n".join(page.text for page in pages), sum(page.tokens for page in pages), paths)


MAKERS: Mapping[str, Maker] = {
    OURS: _ask,
    "page-1": _top(1, whole=False),
    "page-3": _top(3, whole=False),
    "whole-1": _top(1, whole=True),
    "whole-3": _top(3, whole=True),
    "right-page": _right,
}


def measure_pages(
    library: Library,
    cold: Callable[[], Library],
    queries: Sequence[Composed],
    folder: Path,
    progress: Callable[[int, int], None],
    methods: Sequence[str] = tuple(MAKERS),
) -> list[PageRow]:
    """Return the rows, after adding those to `<folder>/pages.jsonl` that are missing.

    Args:
        library: The library.
        cold: Returns it as a process finds it in which no skill is indexed yet.
        queries: The queries.
        folder: Folder of the rows.
        progress: Called with the number of queries that are done, and of all.
        methods: The methods.

    Raises:
        BenchError: A method is unknown, or a row is damaged or of a library of another size.
    """
    if unknown := set(methods) - MAKERS.keys():
        raise BenchError(f"Unknown method {sorted(unknown)[0]!r}: choose from {', '.join(MAKERS)}.")
    path, size = folder / ROWS, len(library.skills())
    rows = list(read_records(path, PageRow))
    if any(row.library != size for row in rows):
        raise BenchError(f"{path} has rows of another library: choose another --out, or delete it.")
    done = {(row.query, row.method) for row in rows}
    step = max(1, len(queries) // COLD_QUERIES)
    for number, query in enumerate(queries):
        progress(number, len(queries))
        missing = [method for method in methods if (query.id, method) not in done]
        made = [_measure(library, query, method, size) for method in missing]
        if number % step == 0:
            made = [_timed_cold(row, cold(), query) for row in made]
        append_records(path, made)
        rows += made
    return rows


def _measure(library: Library, query: Composed, method: str, size: int) -> PageRow:
    held = []
    for limit in CEILINGS:
        made = MAKERS[method](library, query, limit)
        coverage, is_enough = query.held_by(made.text)
        right = len(query.paths & {*made.paths})
        held.append(Held(limit, made.tokens, is_enough, round(coverage, 4), len(made.paths), right))
    ms = _milliseconds(library, query) if method == OURS else None
    return PageRow(query.id, query.kind, method, len(query.paths), size, tuple(held), ms)


def _timed_cold(row: PageRow, library: Library, query: Composed) -> PageRow:
    return replace(row, cold_ms=_milliseconds(library, query)) if row.method == OURS else row


def _milliseconds(library: Library, query: Composed) -> float:
    started = time.process_time()
    library.page(query.text)
    return round(1000 * (time.process_time() - started), 1)


@dataclass(frozen=True, slots=True)
class Summary:
    """What the pages of a method hold, over queries.

    Attributes:
        queries: Number of queries.
        sufficient: Share of the pages that suffice.
        coverage: Mean share of the evidence.
        tokens: Mean number of tokens.
        found: Share of the needed skills that are on the page.
        right: Share of the skills on the pages that are needed.
        none: Share of the queries without a skill on the page.
        skills: Mean number of skills on the page.
        ms: Median of `ms`; None if it was not measured.
        cold_ms: That of `cold_ms`.
    """

    queries: int
    sufficient: Interval
    coverage: float
    tokens: float
    found: Interval
    right: float
    none: float
    skills: float
    ms: float | None
    cold_ms: float | None


def summarize_pages(rows: Iterable[PageRow], limit: int | None) -> Summary:
    """Return what the pages of one method under one ceiling hold."""
    some = list(rows)
    held = [each for row in some for each in row.held if each.max_tokens == limit]
    return Summary(
        queries=len(held),
        sufficient=bootstrap([each.sufficient for each in held]),
        coverage=float(np.mean([each.coverage for each in held])),
        tokens=float(np.mean([each.tokens for each in held])),
        found=bootstrap([each.right / row.tasks for each, row in zip(held, some, strict=True)]),
        right=sum(each.right for each in held) / max(1, sum(each.skills for each in held)),
        none=float(np.mean([each.skills == 0 for each in held])),
        skills=float(np.mean([each.skills for each in held])),
        ms=_median(row.ms for row in some),
        cold_ms=_median(row.cold_ms for row in some),
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None
