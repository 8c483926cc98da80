"""Routing measured: ranks of the skills that queries need, and what pages from them hold; resumable."""

import re
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from skillpager.bench.data.records import Record, append_records, read_records
from skillpager.bench.judge.evidence_measure import evidence_coverage
from skillpager.bench.report.statistics import Interval, bootstrap
from skillpager.bench.routing.data import RoutingQuery, RoutingSkill
from skillpager.errors import BenchError, SkillPagerError, require_extra
from skillpager.library import Library
from skillpager.library.discovery import FoundSkill, Progress
from skillpager.library.routing.router import load_router, route_query
from skillpager.library.routing.routes import Route
from skillpager.library.routing.word_index import WordIndex, field_terms
from skillpager.parsing.skill import ENTRY_FILE
from skillpager.strategies.navigator.lexical import terms_of

DEPTH = 50  # ranks that rows tell
# ceilings on the tokens of a page; None for none
CEILINGS = (1200, 2400, None)
# `library.page`; the page of the needed skill; pages, or texts, of the first skills of the ranking
METHODS = "ask, right-page, page-N or whole-N"

# ranks the skills of one library: at most `DEPTH` ids, best first
Rank = Callable[[str], list[str]]


class OwnRouter:
    """Routing as the library does it.

    Args:
        skills: The skills.
        needed: Ids of those that any query needs; whether any skill fits is also asked without them.
    """

    def __init__(self, skills: Sequence[RoutingSkill], needed: Collection[str] = ()) -> None:
        self._skills, self._index = skills, WordIndex(None)
        self._all = range(len(skills))
        self._rest = [place for place in self._all if skills[place].id not in needed]
        self._index.update(
            self._all,
            lambda keys: (
                (key, field_terms(skills[key].name, skills[key].description, skills[key].body))
                for key in keys
            ),
        )

    def rank(self, query: str) -> list[str]:
        """Return the ids."""
        return [routed.skill.path.as_posix() for routed in self._route(self._all, query, DEPTH).skills]

    def fits(self, query: str) -> tuple[float, float]:
        """Return the chance that any skill fits, in the library and in that without the needed ones."""
        return self._route(self._all, query, 1).fits, self._route(self._rest, query, 1).fits

    def _route(self, places: Sequence[int], query: str, k: int) -> Route:
        chosen = [self._skills[place] for place in places]
        found = [FoundSkill(each.name, each.description, Path(each.id), None, None) for each in chosen]
        return route_query(self._index.search(places), found, query, k=k, model=load_router())


def full_text_search(skills: Sequence[RoutingSkill], *, described: bool = False) -> Rank:
    """Return a ranking by SQLite's full-text search: `bm25()` over columns, any term of the query.

    With `described` it reads names and descriptions alone, which is what hosts show of skills.
    """
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE skills USING fts5(name, description, body, tokenize=porter)")
    database.executemany(
        "INSERT INTO skills VALUES (?, ?, ?)",
        ((skill.name, skill.description, "" if described else skill.body) for skill in skills),
    )

    def rank(query: str) -> list[str]:
        terms = dict.fromkeys(term for term in terms_of(query) if term.isalnum())
        if not terms:
            return []
        rows = database.execute(
            "SELECT rowid FROM skills WHERE skills MATCH ? ORDER BY bm25(skills), rowid LIMIT ?",
            (" OR ".join(f'"{term}"' for term in terms), DEPTH),
        )
        return [skills[row - 1].id for (row,) in rows]

    return rank


def merged_words(skills: Sequence[RoutingSkill]) -> Rank:
    """Return a ranking by bm25s over names, descriptions and bodies as one text."""
    bm25s = require_extra("bm25s", extra="strategies", purpose="The method bm25s")
    texts = [f"{skill.name}\n{skill.description}\n{skill.body}" for skill in skills]
    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)

    def rank(query: str) -> list[str]:
        tokens = bm25s.tokenize([query], stopwords="en", show_progress=False)
        places, scores = index.retrieve(tokens, k=min(DEPTH, len(skills)), show_progress=False)
        found = zip(places[0].tolist(), scores[0].tolist(), strict=True)
        return [skills[place].id for place, score in found if score > 0]

    return rank


OURS = "route"
RANKERS: Mapping[str, Callable[[Sequence[RoutingSkill]], Rank]] = {
    OURS: lambda skills: OwnRouter(skills).rank,
    "fts5": full_text_search,
    "fts5-described": lambda skills: full_text_search(skills, described=True),
    "bm25s": merged_words,
}


@dataclass(frozen=True, slots=True)
class Row(Record):
    """The id and kind of a query that was measured, and the number of skills in the library."""

    query: str
    kind: str
    library: int


AnyRow = TypeVar("AnyRow", bound=Row)


@dataclass(frozen=True, slots=True)
class RoutingRow(Row):
    """What a method found for a query.

    Attributes:
        ranks: By needed skill its rank from 1; None if it is not among the first `DEPTH`.
        ms: Milliseconds of processor time.
        fits: Estimated chance that any skill fits; None if the method estimates none.
        without: The same in the library without all skills that any query needs.
    """

    ranks: dict[str, int | None]
    ms: float
    fits: float | None = None
    without: float | None = None


def _measure_missing(
    path: Path,
    kind: type[AnyRow],
    queries: Sequence[RoutingQuery],
    library: int,
    start: Callable[[], Callable[[RoutingQuery], list[AnyRow]]],
    progress: Progress,
) -> list[AnyRow]:
    """Return the rows of a file, after adding those of queries that have none.

    `library` is the number of its skills. `start` returns what measures a query, if any is missing.
    """
    rows = list(read_records(path, kind))
    if any(row.library != library for row in rows):
        raise BenchError(f"{path} has rows of another library: choose another --out, or delete it.")
    done = {row.query for row in rows}
    if missing := [query for query in queries if query.id not in done]:
        measure = start()
        for number, query in enumerate(missing):
            progress(number, len(missing))
            made = measure(query)
            append_records(path, made)
            rows += made
    return rows


def measure_method(
    method: str,
    skills: Sequence[RoutingSkill],
    queries: Sequence[RoutingQuery],
    folder: Path,
    progress: Progress,
) -> list[RoutingRow]:
    """Return the rows of a method, after adding those to `<folder>/<method>.jsonl` that are missing.

    Raises:
        BenchError: The method is unknown, or a row is damaged or of a library of another size.
        MissingExtraError: The method needs a package that is not installed.
    """
    if method not in RANKERS:
        raise BenchError(f"Unknown method {method!r}: choose from {', '.join(RANKERS)}.")

    def start() -> Callable[[RoutingQuery], list[RoutingRow]]:
        needed = {id_ for query in queries for id_ in query.needs}
        own = OwnRouter(skills, needed) if method == OURS else None
        rank = own.rank if own else RANKERS[method](skills)

        def measure(query: RoutingQuery) -> list[RoutingRow]:
            started = time.process_time()
            found = rank(query.text)
            ms = round(1000 * (time.process_time() - started), 2)
            ranks = {id_: found.index(id_) + 1 if id_ in found else None for id_ in query.needs}
            chances = [round(chance, 4) for chance in own.fits(query.text)] if own else []
            return [RoutingRow(query.id, query.kind, len(skills), ranks, ms, *chances)]

        return measure

    return _measure_missing(folder / f"{method}.jsonl", RoutingRow, queries, len(skills), start, progress)


def measures_of(row: RoutingRow) -> dict[str, float]:
    """Return the measures of one query, 0 to 1."""
    places = sorted(rank for rank in row.ranks.values() if rank is not None)
    count = len(row.ranks)
    gain = sum(1 / np.log2(place + 1) for place in places if place <= 10)
    most = sum(1 / np.log2(place + 1) for place in range(1, min(10, count) + 1))
    within: Mapping[int, int] = {k: sum(place <= k for place in places) for k in (3, 5, 10, DEPTH)}
    return {
        "Hit@1": float(bool(places) and places[0] == 1),
        "MRR@10": 1 / places[0] if places and places[0] <= 10 else 0.0,
        "nDCG@10": float(gain / most),
        "R@10": within[10] / count,
        f"R@{DEPTH}": within[DEPTH] / count,
        **{f"Full@{k}": float(within[k] == count) for k in (3, 5, 10)},
    }


def summarize(rows: Iterable[RoutingRow]) -> dict[str, Interval]:
    """Return the mean of each measure over rows, with its bootstrap interval."""
    found = [measures_of(row) for row in rows]
    return {name: bootstrap([each[name] for each in found]) for name in found[0]}


def fit_quality(rows: Iterable[RoutingRow], *, bins: int = 10) -> tuple[float, float] | None:
    """Return AUC and expected calibration error of `fits`; None for a method that estimates none.

    Each query counts twice: with the skills that it needs, and without.
    """
    pairs = [(row.fits, row.without) for row in rows if row.fits is not None and row.without is not None]
    if not pairs:
        return None
    metrics = require_extra("sklearn.metrics", extra="bench", purpose="The AUC")
    truth, chances = np.tile([1.0, 0.0], len(pairs)), np.array(pairs).ravel()
    places = np.minimum((chances * bins).astype(int), bins - 1)
    error = np.abs(np.bincount(places, chances - truth, bins)).sum() / len(chances)
    return float(metrics.roc_auc_score(truth, chances)), float(error)


@dataclass(frozen=True, slots=True)
class PageRow(Row):
    """How much the page of a method for a query holds of its evidence.

    Attributes:
        max_tokens: Ceiling on its tokens; None for none.
        coverage: Share of the evidence that it holds.
        skills: Number of skills of which it shows anything.
        right: Number of those that the query needs.
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
    progress: Progress,
) -> list[PageRow]:
    """Return the rows of a method, after adding those to `<folder>/<method>.jsonl` that are missing.

    Args:
        method: One of `METHODS`.
        library: The library.
        queries: Queries with evidence.
        places: Folders of the needed skills, by their ids.
        folder: Folder of the rows.
        progress: Called with the number of queries that are done, and of all that were missing.

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

    return _measure_missing(folder / f"{method}.jsonl", PageRow, queries, size, lambda: measure, progress)


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
