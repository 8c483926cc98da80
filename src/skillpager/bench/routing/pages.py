"""Pages from the skills of a library, measured: how much of a query's evidence they hold."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skillpager.bench.judge.evidence_measure import evidence_coverage
from skillpager.bench.report.statistics import Interval, bootstrap
from skillpager.bench.routing.data import RoutingQuery
from skillpager.bench.routing.routes import SUFFIX, Row, measure_missing
from skillpager.errors import BenchError, SkillPagerError
from skillpager.library import Library
from skillpager.parsing.skill import ENTRY_FILE

# ceilings on the tokens of a page; None for none
CEILINGS = (1200, 2400, None)
# `library.page`; the page of the needed skill; pages, or texts, of the first skills of the ranking
METHODS = "ask, right-page, page-N or whole-N"


@dataclass(frozen=True, slots=True)
class PageRow(Row):
    """How much the page of a method for a query holds of its evidence.

    Attributes:
        method: The method.
        max_tokens: Ceiling on its tokens; None for none.
        tokens: Its tokens.
        sufficient: Whether it holds the evidence.
        coverage: Share of the evidence that it holds.
        skills: Skills of which it shows anything.
        right: Those of them that the query needs.
    """

    method: str
    max_tokens: int | None
    tokens: int
    sufficient: bool
    coverage: float
    skills: int
    right: int


def make_text(
    library: Library, query: str, needed: Path, method: str, limit: int | None
) -> tuple[str, int, Sequence[Path]]:
    """Return the text of a method, its tokens, and the folders of the skills that it shows.

    The pages of several skills have equal ceilings; a skill that cannot be read has none.
    """
    if method == "ask":
        made = library.page(query, max_tokens=limit)
        return made.text, made.tokens, [part.skill.path for part in made.parts]
    kind, _, number = method.partition("-")
    paths = [needed]
    if kind != "right":
        paths = [each.skill.path for each in library.route(query, k=int(number), for_model=True).skills]
    pager, pages = library.pager, []
    each = None if limit is None else limit // max(1, len(paths))
    for path in paths:
        try:
            whole = kind == "whole"
            pages.append(
                pager.whole(path, max_tokens=each) if whole else pager.page(path, query, max_tokens=each)
            )
        except SkillPagerError:
            continue
    return "\n".join(page.text for page in pages), sum(page.tokens for page in pages), paths


def measure_pages(
    method: str,
    library: Library,
    queries: Sequence[RoutingQuery],
    places: Mapping[str, Path],
    folder: Path,
    progress: Callable[[int, int], None],
) -> list[PageRow]:
    """Return the rows of a method, after adding those to `<folder>/<method>.jsonl` that are missing.

    Args:
        method: One of `METHODS`.
        library: The library.
        queries: Queries with evidence.
        places: Folders of the needed skills, by their ids.
        folder: Folder of the rows.
        progress: Called with the number of queries that are done, and of all.

    Raises:
        BenchError: The method is unknown, or a row is damaged or of a library of another size.
    """
    if not re.fullmatch(r"ask|right-page|(page|whole)-[1-9]\d?", method):
        raise BenchError(f"Unknown method {method!r}: choose from {METHODS}.")
    size = len(library.skills())

    def measure(query: RoutingQuery) -> list[PageRow]:
        place = places[query.needs[0]]
        lines = (place / ENTRY_FILE).read_bytes().decode().split("\n")
        rows = []
        for limit in CEILINGS:
            text, tokens, paths = make_text(library, query.text, place, method, limit)
            coverage, sufficient = evidence_coverage(text, lines, query.evidence)
            numbers = tokens, sufficient, round(coverage, 4), len(paths), int(place in paths)
            rows.append(PageRow(query.id, query.kind, size, method, limit, *numbers))
        return rows

    path = folder / f"{method}{SUFFIX}"
    return measure_missing(path, PageRow, queries, size, lambda: measure, progress)


def summarize_pages(rows: Iterable[PageRow]) -> dict[str, float | Interval]:
    """Return how much the pages of one method under one ceiling hold, over queries.

    `sufficient` is the share of the pages that suffice, `found` that of the queries whose skill is on the
    page, `right` that of the skills on the pages that are needed, `none` that of the pages without a skill.
    """
    rows = list(rows)
    return {
        "queries": len(rows),
        "sufficient": bootstrap([row.sufficient for row in rows]),
        "found": bootstrap([row.right for row in rows]),
        "coverage": float(np.mean([row.coverage for row in rows])),
        "tokens": float(np.mean([row.tokens for row in rows])),
        "right": sum(row.right for row in rows) / max(1, sum(row.skills for row in rows)),
        "none": float(np.mean([row.skills == 0 for row in rows])),
        "skills": float(np.mean([row.skills for row in rows])),
    }
