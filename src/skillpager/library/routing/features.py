"""Features of routing: the skills that may fit a query, and what words and vectors say of each."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from skillpager.library.discovery import FoundSkill
from skillpager.library.routing.fields import (
    FieldIndex,
    Hits,
    hash_terms,
    pairs_of,
    pick_terms,
    routing_terms,
)
from skillpager.library.routing.vectors import DESCRIBED, OPENING, SkillVectors
from skillpager.strategies.navigator.lexical import clauses_of
from skillpager.types import FloatArray

FOUND_IN = ("name", "description", "body")  # where a term speaks for a skill
TERM_FIELDS = (
    *FOUND_IN,
    "negated",
)  # where terms are searched one by one; in `negated` they speak against it
FURTHER = ("opening", "phrases")  # of which the sum alone counts
# candidates: the best over all fields, where rare terms count more, or as in BM25; and the best in each field
BEST_OF_ALL, BEST_OF_SUM, BEST_OF_FIELD = 100, 50, 30  # of the further fields together as many as of a field
BEST_OF_CLAUSE = 5  # and for each clause: one skill of several that a task needs may have but a line of it
NEAREST = 30  # and those whose description has the nearest vectors
MAX_KEPT_NAMES = 20_000  # some 5 MB
USUAL_TERMS = 5  # a description with fewer terms counts as if it had so many

FloatRow = NDArray[np.float64]

# what the model reads of each candidate; see `features_of`
COLUMNS = (
    *(f"{field}_{kind}" for field in FOUND_IN for kind in ("bm25", "share", "relative", "rank")),
    *(f"{field}_{kind}" for field in FURTHER for kind in ("bm25", "relative", "rank")),
    *("relative", "rank", "repeated", "rare", "rare_rank", "further_relative", "further_rank"),
    *("share", "rare_share", "described_share", "described_rarest", "rarest", "rarest_three"),
    *("name_cover", "description_cover", "description_length", "body_length"),
    *("clause_relative", "clause_rank", "clause_share", "clause_mean"),
    *(f"near_{of}{kind}" for of in ("description", "opening", "clause") for kind in ("", "_gap", "_rank")),
    *("mention", "negated", "terms", "known", "clauses", "skills"),
)


@dataclass(frozen=True, eq=False)
class Searched:
    """What routing searches: the skills of a library by words and by vectors.

    Attributes:
        skills: The skills, in the order in which equally good ones are listed.
        fields: Their words, by the names of `FIELDS`.
        vectors: Their vectors.
        size: Number of skills of the library; `skills` are all of them, or those that may be candidates.
    """

    skills: Sequence[FoundSkill]
    fields: Mapping[str, FieldIndex]
    vectors: SkillVectors
    size: int


@dataclass(frozen=True, eq=False)
class Candidates:
    """The skills that may fit a query, and what is known of each.

    Attributes:
        skills: `(c,)` their places in the library, ascending.
        features: `(c, len(COLUMNS))` float64.
        terms: The terms of the query that any skill holds, rarest first.
        weights: `(len(TERM_FIELDS), c, len(terms))` float32: BM25 of each term in each of these fields.
    """

    skills: NDArray[np.intp]
    features: NDArray[np.float64]
    terms: tuple[str, ...]
    weights: FloatArray

    def column(self, name: str) -> FloatRow:
        """Return `(c,)`: one feature of all candidates."""
        found: FloatRow = self.features[:, COLUMNS.index(name)]
        return found


def features_of(searched: Searched, query: str, *, most_terms: int) -> Candidates:
    """Return the candidates of a query and their features.

    Args:
        searched: The library.
        query: The query.
        most_terms: So many terms of the query are searched, the rarest.
    """
    asked = routing_terms(query)
    terms = pick_terms(asked, [searched.fields[name] for name in TERM_FIELDS], most_terms)
    hashes = hash_terms(terms)
    hits = [searched.fields[name].hits(hashes) for name in TERM_FIELDS]
    rows = len(searched.skills)
    pairs = pick_terms(pairs_of(asked), [searched.fields["phrases"]], most_terms)
    further = [_total(searched.fields["opening"].hits(hashes), rows)]
    further.append(_total(searched.fields["phrases"].hits(hash_terms(pairs)), rows))
    times = Counter(asked)
    often = 1 + np.log([times[term] for term in terms])
    rarity: FloatRow = np.min([hit.rarity for hit in hits], axis=0)
    clauses = [routing_terms(clause) for clause in clauses_of(query)]
    parts = clause_terms(clauses, terms)
    # one for the query, then one for each clause
    vectors = np.array([searched.vectors.terms.of_query(hash_terms(part)) for part in (asked, *clauses)])
    proposed = propose(hits, further[0] + further[1], rarity * often, parts)
    skills = np.union1d(proposed, searched.vectors.nearest(vectors[0], NEAREST))
    weights = _weights(hits, skills, rows, len(terms))
    features = np.zeros((len(skills), len(COLUMNS)))
    if len(skills):
        columns = _word_columns(weights, rarity, often, searched.size)
        columns |= _further_columns([total[skills] for total in further])
        columns |= _length_columns(searched.fields, weights > 0, skills)
        columns |= _clause_columns(weights, rarity, parts)
        columns |= _near_columns(searched.vectors.cosines(vectors, skills))
        text = f" {' '.join(asked)} "
        columns["mention"] = [_is_named(searched.skills[place].name, text) for place in skills]
        columns["terms"] = math.log1p(len(terms))
        # what no skill has ever heard of says that none may fit
        columns["known"] = len(terms) / min(len(times), most_terms)
        columns["clauses"], columns["skills"] = len(parts), math.log(searched.size)
        for name, values in columns.items():
            features[:, COLUMNS.index(name)] = values
    return Candidates(skills, features, tuple(terms), weights)


def propose(
    hits: Sequence[Hits],
    further: FloatRow,
    importance: FloatRow,
    parts: NDArray[np.bool_],
    *,
    breadth: int = 1,
) -> NDArray[np.intp]:
    """Return the candidates, ascending.

    Args:
        hits: Of the terms in each of `FOUND_IN`, at least.
        further: `(skills,)`: BM25 of the fields of `FURTHER` together.
        importance: `(terms,)`: in a sum over all fields rare and repeated terms count more than in BM25,
            which finds 7 points more of the skills that long queries need.
        parts: `(clauses, terms)`: the terms of each clause.
        breadth: So many times as many are proposed, where scores are not exact.
    """
    size = len(further)
    scores = [_total(hit, size) for hit in hits[: len(FOUND_IN)]]
    total = np.zeros(size)
    for hit in hits[: len(FOUND_IN)]:
        total += np.bincount(hit.skills, hit.weights * importance[hit.terms], size)
    proposed = [_best(score, breadth * BEST_OF_FIELD) for score in (*scores, further)]
    proposed.append(_best(total, breadth * BEST_OF_ALL))
    proposed.append(_best(np.sum(scores, axis=0), breadth * BEST_OF_SUM))
    for part in parts:  # names and descriptions alone: their postings are short
        score = np.zeros(size)
        for hit in hits[:2]:
            mine = part[hit.terms]
            score += np.bincount(hit.skills[mine], hit.weights[mine], size)
        proposed.append(_best(score, breadth * BEST_OF_CLAUSE))
    return np.unique(np.concatenate(proposed))


def _total(hits: Hits, size: int) -> FloatRow:
    """Return `(size,)`: the BM25 of all terms together of each skill."""
    return np.bincount(hits.skills, hits.weights, size).astype(float)


def clause_terms(clauses: Sequence[Sequence[str]], terms: Sequence[str]) -> NDArray[np.bool_]:
    """Return `(clauses, terms)`: which terms stand in each clause; no rows for a query of one clause."""
    held = [set(clause) for clause in clauses]
    return np.array([[term in clause for term in terms] for clause in held], bool).reshape(
        len(held), len(terms)
    )


def _best(scores: FloatRow, most: int) -> NDArray[np.intp]:
    """Return at most `most` places of the best scores above 0; of equal ones the first."""
    found = np.flatnonzero(scores > 0)
    if len(found) > most:
        bound = np.partition(scores[found], -most)[-most]
        above, equal = found[scores[found] > bound], found[scores[found] == bound]
        found = np.concatenate([above, equal[: most - len(above)]])
    return found


def _weights(hits: Sequence[Hits], skills: NDArray[np.intp], size: int, terms: int) -> FloatArray:
    """Return `(fields, c, terms)`: the BM25 of each term in each field of the candidates."""
    weights = np.zeros((len(hits), len(skills), terms), np.float32)
    places = np.full(size, -1, np.int32)
    places[skills] = np.arange(len(skills))
    for field, hit in zip(weights, hits, strict=True):
        mine = places[hit.skills]
        wanted = mine >= 0
        field[mine[wanted], hit.terms[wanted]] = hit.weights[wanted]
    return weights


Columns = dict[str, "FloatRow | FloatArray | Sequence[float] | float"]


def _word_columns(weights: FloatArray, rarity: FloatRow, often: FloatRow, size: int) -> Columns:
    """Return the features of the words that query and candidates share.

    Args:
        weights: As in `Candidates`.
        rarity: `(terms,)`.
        often: `(terms,)`: 1 for a term that the query has once, more for one that it repeats.
        size: Number of skills of the library.
    """
    held = weights[: len(FOUND_IN)] > 0
    anywhere, described = held.any(0), held[:2].any(0)
    greatest = math.log1p((size - 0.5) / 1.5) if size > 1 else 1.0
    mass, squares = max(float(rarity.sum()), 1e-9), rarity**2
    square_mass = max(float(squares.sum()), 1e-9)
    together = weights[: len(FOUND_IN)].sum(0, dtype=np.float64)
    total, rare = together.sum(1), together @ (rarity * often)
    rarest = np.sort(anywhere * rarity, axis=1)[:, ::-1]
    columns: Columns = {
        "relative": _relative(total),
        "rank": _ranks(total),
        "repeated": _relative(together @ often),
        "rare": _relative(rare),
        "rare_rank": _ranks(rare),
        "share": anywhere @ rarity / mass,
        "rare_share": anywhere @ squares / square_mass,
        "described_share": described @ squares / square_mass,
        "described_rarest": (described * rarity).max(1, initial=0) / greatest,
        "rarest": rarest.max(1, initial=0) / greatest,
        "rarest_three": rarest[:, :3].sum(1) / (3 * greatest),
        "negated": (weights[-1] > 0) @ rarity / mass,
    }
    for number, name in enumerate(FOUND_IN):
        score = weights[number].sum(1, dtype=np.float64)
        columns |= {
            f"{name}_bm25": np.log1p(score),
            f"{name}_share": held[number] @ rarity / mass,
            f"{name}_relative": _relative(score),
            f"{name}_rank": _ranks(score) * (score > 0),
        }
    return columns


def _further_columns(totals: Sequence[FloatRow]) -> Columns:
    """Return the features of the further fields, from the BM25 of each of `FURTHER`."""
    together = np.sum(totals, axis=0)
    columns: Columns = {"further_relative": _relative(together), "further_rank": _ranks(together)}
    for name, total in zip(FURTHER, totals, strict=True):
        columns |= {
            f"{name}_bm25": np.log1p(total),
            f"{name}_relative": _relative(total),
            f"{name}_rank": _ranks(total) * (total > 0),
        }
    return columns


def _length_columns(
    fields: Mapping[str, FieldIndex], held: NDArray[np.bool_], skills: NDArray[np.intp]
) -> Columns:
    """Return how much of names and descriptions the query holds, and how long descriptions and bodies are."""
    name, description, body = (fields[each].lengths[skills] for each in FOUND_IN)
    return {
        "name_cover": held[0].sum(1) / np.maximum(name, 1),
        "description_cover": held[1].sum(1) / np.maximum(description, USUAL_TERMS),
        "description_length": np.log1p(description),
        "body_length": np.log1p(body),
    }


def _clause_columns(weights: FloatArray, rarity: FloatRow, parts: NDArray[np.bool_]) -> Columns:
    """Return how good a candidate is for the clause that it fits best, and for all clauses on average."""
    inside = parts if len(parts) else np.ones((1, len(rarity)), bool)
    chosen = inside.T.astype(np.float32)
    scores = weights[: len(FOUND_IN)].sum(0) @ chosen
    held = (weights[: len(FOUND_IN)] > 0).any(0)
    relative = _relative(scores)
    return {
        "clause_relative": relative.max(1),
        "clause_mean": relative.mean(1),
        "clause_rank": (_ranks(scores) * (scores > 0)).max(1),
        "clause_share": (held @ (chosen * rarity[:, None]) / np.maximum(inside @ rarity, 1e-9)).max(1),
    }


def _near_columns(cosines: FloatArray) -> Columns:
    """Return how near candidates are to the query, and descriptions to the clause that they are nearest to.

    Args:
        cosines: `(2, c, 1 + clauses)`: of description and opening with the query, then with each clause.
    """
    clauses = cosines[DESCRIBED, :, 1:] if cosines.shape[2] > 1 else cosines[DESCRIBED]
    near = {
        "description": cosines[DESCRIBED, :, :1],
        "opening": cosines[OPENING, :, :1],
        "clause": clauses,
    }
    columns: Columns = {}
    for name, values in near.items():
        columns |= {
            f"near_{name}": values.max(1),
            f"near_{name}_gap": (values - values.max(0)).max(1),
            f"near_{name}_rank": _ranks(values.max(1)),
        }
    return columns


def _relative(scores: NDArray[np.float64] | FloatArray) -> NDArray[np.float64]:
    """Return scores as shares of the greatest of each column; zeros if there is none above 0."""
    return np.asarray(scores / np.maximum(scores.max(0), 1e-9), np.float64)


def _ranks(values: NDArray[np.float64] | FloatArray) -> NDArray[np.float64]:
    """Return 1 for the largest value of each column, 1/2 for the second and so on; ties to the earlier."""
    order = np.argsort(-values, axis=0, kind="stable")
    ranks = np.empty(values.shape)
    places = 1 / np.arange(1.0, len(values) + 1)
    np.put_along_axis(ranks, order, places if values.ndim == 1 else places[:, None], axis=0)
    return ranks


def _is_named(name: str, asked: str) -> bool:
    """Return whether a query, given as its terms, names a skill, in one word or in several."""
    return any(form in asked for form in _written(name))


@lru_cache(MAX_KEPT_NAMES)
def _written(name: str) -> tuple[str, ...]:
    """Return how a query may write the name of a skill, as terms between spaces."""
    terms = routing_terms(name)
    # the first of the terms of `git-bisect` is `gitbisect`
    forms = (terms[:1], terms[1:]) if len(terms) > 1 else (terms,)
    return tuple(f" {' '.join(form)} " for form in forms if form)
