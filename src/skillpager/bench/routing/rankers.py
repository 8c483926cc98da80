"""Methods that rank the skills of a library for a query: ours, and those that users compare with."""

import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from skillpager.bench.routing.data import RoutingSkill
from skillpager.encoders.builtin import BuiltinEncoder
from skillpager.errors import BenchError, require_extra
from skillpager.library.discovery import FoundSkill
from skillpager.library.routing.features import Searched
from skillpager.library.routing.fields import (
    FIELDS,
    FieldIndex,
    Postings,
    field_terms,
    make_postings,
    merge_postings,
)
from skillpager.library.routing.router import load_router, route_query
from skillpager.library.routing.vectors import SkillVectors, load_vectors
from skillpager.strategies.navigator.lexical import terms_of

DEPTH = 50  # ranks that rows tell
PART = 2_000  # skills whose terms are in memory at once
RAREST = 16  # terms of a long query that the limited full-text search looks for


class Ranker(Protocol):
    """Ranks the skills of one library."""

    def rank(self, query: str) -> tuple[list[str], float | None]:
        """Return at most `DEPTH` ids, best first, and the chance that any skill fits, if it is estimated."""


class OwnRouter:
    """Routing as the library does it: words by field, and the trained model.

    Args:
        skills: The skills.
        needed: Ids of those that any query needs; whether any skill fits is also asked without them.
    """

    def __init__(self, skills: Sequence[RoutingSkill], needed: Collection[str] = ()) -> None:
        self._model = load_router()
        fields = _postings(skills)
        self._all = _searched(skills, fields, np.ones(len(skills), bool))
        self._rest = _searched(skills, fields, np.array([skill.id not in needed for skill in skills], bool))

    def rank(self, query: str) -> tuple[list[str], float | None]:
        """Return the ids and the chance that any fits."""
        route = route_query(self._all, query, k=DEPTH, model=self._model)
        return [routed.skill.path.as_posix() for routed in route.skills], route.fits

    def fit_without(self, query: str) -> float | None:
        """Return the chance that any skill fits in a library without the needed ones."""
        return route_query(self._rest, query, k=1, model=self._model).fits


def _postings(skills: Sequence[RoutingSkill]) -> list[Postings]:
    """Return the postings of each field; the terms of a part of the skills are in memory at a time."""
    parts = []
    for start in range(0, len(skills), PART):
        some = skills[start : start + PART]
        terms = [field_terms(skill.name, skill.description, skill.body) for skill in some]
        parts.append([make_postings(field) for field in zip(*terms, strict=True)])
    places = [np.arange(start, min(start + PART, len(skills))) for start in range(0, len(skills), PART)]
    return [merge_postings(of, places) for of in zip(*parts, strict=True)]


def _searched(
    skills: Sequence[RoutingSkill], fields: Sequence[Postings], kept: NDArray[np.bool_]
) -> Searched:
    """Return the library of the kept skills."""
    ordinals = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    size = int(kept.sum())
    found = [
        FoundSkill(skill.name, skill.description, Path(skill.id), None, None)
        for skill, keep in zip(skills, kept, strict=True)
        if keep
    ]
    vectors = load_vectors()
    return Searched(
        found,
        {name: FieldIndex([part], ordinals, size) for name, part in zip(FIELDS, fields, strict=True)},
        SkillVectors(vectors, [vectors.of_skills(fields)], ordinals, size),
        size,
    )


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

    def rank(self, query: str) -> tuple[list[str], float | None]:
        """Return the ids."""
        terms = list(dict.fromkeys(term for term in terms_of(query) if term.isalnum()))
        if self._rarest and len(terms) > self._rarest:
            terms = sorted(terms, key=self._holders)[: self._rarest]
        if not terms:
            return [], None
        rows = self._database.execute(
            "SELECT rowid FROM skills WHERE skills MATCH ? ORDER BY bm25(skills), rowid LIMIT ?",
            (" OR ".join(f'"{term}"' for term in terms), DEPTH),
        )
        return [self._ids[row - 1] for (row,) in rows], None

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

    def rank(self, query: str) -> tuple[list[str], float | None]:
        """Return the ids."""
        tokens = self._bm25s.tokenize([query], stopwords="en", show_progress=False)
        count = min(DEPTH, len(self._ids))
        places, scores = self._index.retrieve(tokens, k=count, show_progress=False)
        found = zip(places[0].tolist(), scores[0].tolist(), strict=True)
        return [self._ids[place] for place, score in found if score > 0], None


class Dense:
    """Cosines of the query and of names with descriptions, by the shipped encoder."""

    def __init__(self, skills: Sequence[RoutingSkill]) -> None:
        self._encoder = BuiltinEncoder()
        self._ids = [skill.id for skill in skills]
        self._rows = self._encoder.encode_documents([f"{each.name}: {each.description}" for each in skills])

    def rank(self, query: str) -> tuple[list[str], float | None]:
        """Return the ids."""
        cosines = self._rows @ self._encoder.encode_query(query)
        best = np.argsort(-cosines, kind="stable")[:DEPTH]
        return [self._ids[place] for place in best.tolist()], None


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
