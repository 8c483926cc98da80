"""Routing measured: the ranks of the skills that each query needs, by our method and others; resumable."""

import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from skillpager.bench.data.records import Record, append_records, read_records
from skillpager.bench.report.statistics import Interval, bootstrap
from skillpager.bench.routing.data import RoutingQuery, RoutingSkill
from skillpager.encoders.builtin import BuiltinEncoder
from skillpager.errors import BenchError, require_extra
from skillpager.library.discovery import FoundSkill
from skillpager.library.routing.router import load_router, route_query
from skillpager.library.routing.routes import Route
from skillpager.library.routing.word_index import WordIndex, field_terms
from skillpager.strategies.navigator.lexical import terms_of

DEPTH = 50  # ranks that rows tell
RAREST = 16  # terms of a long query that the limited full-text search looks for
SUFFIX = ".jsonl"


class Ranker(Protocol):
    """Ranks the skills of one library."""

    def rank(self, query: str) -> list[str]:
        """Return at most `DEPTH` ids, best first."""


class OwnRouter:
    """Routing as the library does it.

    Args:
        skills: The skills.
        needed: Ids of those that any query needs; whether any skill fits is also asked without them.
    """

    def __init__(self, skills: Sequence[RoutingSkill], needed: Collection[str] = ()) -> None:
        index = WordIndex(None)
        index.update(
            range(len(skills)),
            lambda keys: (
                (key, field_terms(skills[key].name, skills[key].description, skills[key].body))
                for key in keys
            ),
        )
        self._skills, self._index = skills, index
        self._all = range(len(skills))
        self._rest = [place for place in self._all if skills[place].id not in needed]

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


class FullTextSearch:
    """SQLite's full-text search: `bm25()` over columns, any term of the query.

    Args:
        skills: The skills.
        described: Names and descriptions alone, which is what hosts show of skills.
        rarest: So many terms of the query, the rarest; 0 for all.
    """

    def __init__(self, skills: Sequence[RoutingSkill], *, described: bool = False, rarest: int = 0) -> None:
        self._ids = [skill.id for skill in skills]
        self._rarest = rarest
        self._database = sqlite3.connect(":memory:")
        columns = "name, description" if described else "name, description, body"
        self._database.execute(f"CREATE VIRTUAL TABLE skills USING fts5({columns}, tokenize=porter)")
        self._database.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(skills, row)")
        marks = ", ".join("?" * len(columns.split(", ")))
        self._database.executemany(
            f"INSERT INTO skills VALUES ({marks})",  # noqa: S608 - question marks
            ((skill.name, skill.description, *(() if described else (skill.body,))) for skill in skills),
        )

    def rank(self, query: str) -> list[str]:
        """Return the ids."""
        terms = list(dict.fromkeys(term for term in terms_of(query) if term.isalnum()))
        if self._rarest and len(terms) > self._rarest:
            terms = sorted(terms, key=self._holders)[: self._rarest]
        if not terms:
            return []
        rows = self._database.execute(
            "SELECT rowid FROM skills WHERE skills MATCH ? ORDER BY bm25(skills), rowid LIMIT ?",
            (" OR ".join(f'"{term}"' for term in terms), DEPTH),
        )
        return [self._ids[row - 1] for (row,) in rows]

    def _holders(self, term: str) -> int:
        found = self._database.execute("SELECT doc FROM terms WHERE term = ?", (term,)).fetchone()
        return found[0] if found else len(self._ids)


class MergedWords:
    """bm25s over names, descriptions and bodies as one text."""

    def __init__(self, skills: Sequence[RoutingSkill]) -> None:
        bm25s = require_extra("bm25s", extra="strategies", purpose="The method bm25s")
        self._bm25s = bm25s
        self._ids = [skill.id for skill in skills]
        texts = [f"{skill.name}\n{skill.description}\n{skill.body}" for skill in skills]
        self._index = bm25s.BM25()
        self._index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)

    def rank(self, query: str) -> list[str]:
        """Return the ids."""
        tokens = self._bm25s.tokenize([query], stopwords="en", show_progress=False)
        count = min(DEPTH, len(self._ids))
        places, scores = self._index.retrieve(tokens, k=count, show_progress=False)
        found = zip(places[0].tolist(), scores[0].tolist(), strict=True)
        return [self._ids[place] for place, score in found if score > 0]


class Dense:
    """Cosines of the query and of names with descriptions, by the shipped encoder."""

    def __init__(self, skills: Sequence[RoutingSkill]) -> None:
        self._encoder = BuiltinEncoder()
        self._ids = [skill.id for skill in skills]
        self._rows = self._encoder.encode_documents([f"{each.name}: {each.description}" for each in skills])

    def rank(self, query: str) -> list[str]:
        """Return the ids."""
        cosines = self._rows @ self._encoder.encode_query(query)
        best = np.argsort(-cosines, kind="stable")[:DEPTH]
        return [self._ids[place] for place in best.tolist()]


OURS = "route"
RANKERS: Mapping[str, Callable[[Sequence[RoutingSkill]], Ranker]] = {
    OURS: OwnRouter,
    "fts5": FullTextSearch,
    "fts5-rarest": lambda skills: FullTextSearch(skills, rarest=RAREST),
    "fts5-described": lambda skills: FullTextSearch(skills, described=True),
    "bm25s": MergedWords,
    "dense": Dense,
}
TITLES = {
    OURS: "`library.route`",
    "fts5": "SQLite FTS5, all columns",
    "fts5-rarest": f"SQLite FTS5, the {RAREST} rarest terms",
    "fts5-described": "SQLite FTS5, name and description (what hosts show)",
    "bm25s": "bm25s, one merged field",
    "dense": "cosine of the shipped encoder",
}


def make_ranker(method: str, skills: Sequence[RoutingSkill], needed: Collection[str]) -> Ranker:
    """Return a method's ranker of some skills, of which `needed` are the ids of those that any query needs.

    Raises:
        BenchError: The method is unknown.
        MissingExtraError: It needs a package that is not installed.
    """
    if method not in RANKERS:
        raise BenchError(f"Unknown method {method!r}: choose from {', '.join(RANKERS)}.")
    return OwnRouter(skills, needed) if method == OURS else RANKERS[method](skills)


@dataclass(frozen=True, slots=True)
class RoutingRow(Record):
    """What a method found for a query.

    Attributes:
        query: Its id.
        kind: Its kind.
        ranks: By needed skill its rank from 1; None if it is not among the first `DEPTH`.
        library: Skills of the library.
        ms: Milliseconds of processor time.
        fits: Estimated chance that any skill fits; None if the method estimates none.
        without: The same in the library without all skills that any query needs.
    """

    query: str
    kind: str
    ranks: dict[str, int | None]
    library: int
    ms: float
    fits: float | None = None
    without: float | None = None


def measure_method(
    method: str,
    skills: Sequence[RoutingSkill],
    queries: Sequence[RoutingQuery],
    folder: Path,
    progress: Callable[[int, int], None],
) -> list[RoutingRow]:
    """Return the rows of a method, after adding those to `<folder>/<method>.jsonl` that are missing.

    Raises:
        BenchError: The method is unknown, or a row is damaged or of a library of another size.
        MissingExtraError: The method needs a package that is not installed.
    """
    path = folder / f"{method}{SUFFIX}"
    rows = list(read_records(path, RoutingRow))
    if any(row.library != len(skills) for row in rows):
        raise BenchError(f"{path} has rows of another library: choose another --out, or delete it.")
    done = {row.query for row in rows}
    missing = [query for query in queries if query.id not in done]
    if not missing:
        return rows
    needed = {id_ for query in queries for id_ in query.needs}
    ranker = make_ranker(method, skills, needed)
    for number, query in enumerate(missing):
        progress(number, len(missing))
        started = time.process_time()
        found = ranker.rank(query.text)
        ms = 1000 * (time.process_time() - started)
        ranks = {id_: found.index(id_) + 1 if id_ in found else None for id_ in query.needs}
        fits = (
            [round(chance, 4) for chance in ranker.fits(query.text)] if isinstance(ranker, OwnRouter) else []
        )
        row = RoutingRow(query.id, query.kind, ranks, len(skills), round(ms, 2), *fits)
        append_records(path, [row])
        rows.append(row)
    return rows


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
    right, wrong = (np.array(values) for values in zip(*pairs, strict=True))
    auc = np.mean((right[:, None] > wrong) + 0.5 * (right[:, None] == wrong))
    values = np.concatenate([right, wrong])
    gaps = values - np.repeat([1.0, 0.0], len(right))
    places = np.minimum((values * bins).astype(int), bins - 1)
    return float(auc), float(np.abs(np.bincount(places, gaps, bins)).sum() / len(values))
