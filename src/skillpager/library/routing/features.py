"""Features of routing: the skills that may fit a query, and what their words say of each."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from skillpager.library.routing.word_index import WordSearch
from skillpager.library.routing.words import (
    FIELDS,
    PHRASES,
    TERM_FIELDS,
    HashArray,
    hash_in,
    pairs_of,
    read_counts,
)
from skillpager.strategies.navigator.lexical import BM25_B, BM25_K1, clauses_of, terms_of
from skillpager.types import FloatArray

FOUND_IN = ("name", "description", "body")  # where a term speaks for a skill
FURTHER = ("opening", PHRASES)  # of these only the sum counts
# mean terms of each field in 18,812 public skills: the same everywhere, so that a new skill changes
# no other's score
USUAL_LENGTHS = {
    "name": 4.0, "description": 33.0, "body": 800.0, "opening": 190.0, "negated": 2.0, PHRASES: 250.0
}  # fmt: skip
# candidates: the best over all fields, where rare terms count more, or as in BM25; and the best in each field
BEST_OF_ALL, BEST_OF_SUM, BEST_OF_FIELD = 100, 50, 30  # of the further fields together as many as of a field
BEST_OF_CLAUSE = 5  # and for each clause: one skill of several that a task needs may have but a line of it
USUAL_TERMS = 5  # a description with fewer terms counts as if it had this many
MAX_KEPT_NAMES = 20_000  # some 5 MB

FloatRow = NDArray[np.float64]
Columns = dict[str, "FloatRow | FloatArray | Sequence[float] | float"]

# what the model reads of each candidate; see `features_of`
COLUMNS = (
    *(f"{field}_{kind}" for field in FOUND_IN for kind in ("bm25", "share", "relative", "rank")),
    *(f"{field}_{kind}" for field in FURTHER for kind in ("bm25", "relative", "rank")),
    *("relative", "rank", "repeated", "rare", "rare_rank", "further_relative", "further_rank"),
    *("share", "rare_share", "described_share", "described_rarest", "rarest", "rarest_three"),
    *("name_cover", "description_cover", "description_length", "body_length"),
    *("clause_relative", "clause_rank", "clause_share", "clause_mean"),
    *("mention", "negated", "terms", "known", "clauses", "skills"),
)


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


def features_of(
    words: WordSearch, query: str, *, most_terms: int, name_at: Callable[[int], str]
) -> Candidates:
    """Return the candidates of a query and their features.

    Args:
        words: The words of the library's skills.
        query: The query.
        most_terms: Number of terms of the query that are searched, the rarest.
        name_at: Returns the name of the skill at a place of the library.
    """
    asked = terms_of(query)
    # what a field that is not searched holds is as rare as in descriptions
    terms, holders = _pick(words, asked, FOUND_IN, most_terms)
    pairs, pair_holders = _pick(words, pairs_of(asked), (PHRASES,), most_terms)
    rarities = [rarity_of(each, words.size) for each in holders]
    rarities += [rarity_of(words.holders("opening", terms), words.size), rarities[1]]
    times = Counter(asked)
    often = 1 + np.log([times[term] for term in terms])
    rarity: FloatRow = np.min(rarities[: len(FOUND_IN)], axis=0)
    parts = clause_terms(query, terms)
    places, packed = words.read(_propose(words, terms, pairs, rarity * often, parts))
    hashes = [[hash_in(number, term) for term in terms] for number in range(len(TERM_FIELDS))]
    pair_hashes = [hash_in(FIELDS.index(PHRASES), pair) for pair in pairs]
    counts, lengths = read_counts(packed, np.array(sum(hashes, pair_hashes), np.uint32))
    of_pairs, of_terms = counts[:, : len(pairs)], counts[:, len(pairs) :]
    weights = np.array(
        [
            _bm25(each, lengths[:, number], rarity_in, field)
            for number, (field, rarity_in, each) in enumerate(
                zip(TERM_FIELDS, rarities, np.split(of_terms, len(TERM_FIELDS), axis=1), strict=True)
            )
        ]
    )
    opening = weights[TERM_FIELDS.index("opening")].sum(1, dtype=np.float64)
    pair_rarity = rarity_of(pair_holders[0], words.size)
    phrases = _bm25(of_pairs, lengths[:, FIELDS.index(PHRASES)], pair_rarity, PHRASES)
    features = np.zeros((len(places), len(COLUMNS)))
    if len(places):
        columns = _word_columns(weights, rarity, often, words.size)
        columns |= _further_columns([opening, phrases.sum(1, dtype=np.float64)])
        columns |= _length_columns(lengths, weights > 0)
        columns |= _clause_columns(weights, rarity, parts)
        text = f" {' '.join(asked)} "
        columns["mention"] = [_is_named(name_at(place), text) for place in places.tolist()]
        columns["terms"] = math.log1p(len(terms))
        # what no skill has ever heard of says that none may fit
        columns["known"] = len(terms) / min(len(times), most_terms)
        columns["clauses"], columns["skills"] = len(parts), math.log(words.size)
        for name, values in columns.items():
            features[:, COLUMNS.index(name)] = values
    return Candidates(places, features, tuple(terms), weights)


def _pick(
    words: WordSearch, asked: Sequence[str], fields: Sequence[str], most: int
) -> tuple[list[str], NDArray[np.int64]]:
    """Return the terms that any of the fields holds, rarest first, at most `most`, each once.

    A whole task names its tools once among hundreds of common words, each of which stands in many skills.
    Of equally rare terms the first in the query comes first. With them: `(fields, terms)`, how many skills
    hold each.
    """
    distinct = list(dict.fromkeys(asked))
    holders = np.array([words.holders(field, distinct) for field in fields])
    most_held = holders.max(0)
    chosen = np.argsort(np.where(most_held > 0, most_held, np.iinfo(np.int64).max), kind="stable")
    chosen = chosen[: min(most, int((most_held > 0).sum()))]
    return [distinct[place] for place in chosen.tolist()], holders[:, chosen]


def rarity_of(holders: NDArray[np.int64], size: int) -> FloatRow:
    """Return the inverse document frequency of terms, from how many of `size` skills hold each."""
    # a skill that has just been replaced may still count
    rarity: FloatRow = np.log1p((np.maximum(size - holders, 0) + 0.5) / (holders + 0.5))
    return rarity


def _bm25(counts: NDArray[np.uint8], lengths: HashArray, rarity: FloatRow, field: str) -> FloatArray:
    """Return `(c, t)`: BM25 of each term in one field of each candidate."""
    norms = BM25_K1 * (1 - BM25_B + BM25_B * lengths / USUAL_LENGTHS[field])
    weights: FloatArray = (counts * (rarity * (BM25_K1 + 1)) / (counts + norms[:, None])).astype(np.float32)
    return weights


def _propose(
    words: WordSearch,
    terms: Sequence[str],
    pairs: Sequence[str],
    importance: FloatRow,
    parts: NDArray[np.bool_],
) -> set[tuple[int, int]]:
    """Return the addresses of the candidates.

    Args:
        words: The words of the library's skills.
        terms: Those of the query.
        pairs: Pairs of them.
        importance: `(terms,)`: in a sum over all fields rare and repeated terms count more than in BM25,
            which finds 7 points more of the skills that long queries need.
        parts: `(clauses, terms)`: the terms of each clause.
    """
    found = words.best(
        [
            (field, term, weight)
            for term, weight in zip(terms, importance.tolist(), strict=True)
            for field in FOUND_IN
        ],
        BEST_OF_ALL,
    )
    found |= words.best([(field, term, 1) for term in terms for field in FOUND_IN], BEST_OF_SUM)
    for field in FOUND_IN:
        found |= words.best([(field, term, 1) for term in terms], BEST_OF_FIELD)
    further = [("opening", term, 1.0) for term in terms] + [(PHRASES, pair, 1.0) for pair in pairs]
    found |= words.best(further, BEST_OF_FIELD)
    for part in parts:  # names and descriptions alone: their postings are short
        mine = [terms[place] for place in np.flatnonzero(part).tolist()]
        found |= words.best([(field, term, 1) for term in mine for field in FOUND_IN[:2]], BEST_OF_CLAUSE)
    return found


def clause_terms(query: str, terms: Sequence[str]) -> NDArray[np.bool_]:
    """Return `(clauses, terms)`: which terms stand in each clause; no rows for a query of one clause."""
    held = [set(terms_of(clause)) for clause in clauses_of(query)]
    return np.array([[term in clause for term in terms] for clause in held], bool).reshape(
        len(held), len(terms)
    )


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


def _length_columns(lengths: HashArray, held: NDArray[np.bool_]) -> Columns:
    """Return how much of names and descriptions the query holds, and how long descriptions and bodies are."""
    name, description, body = lengths.T[: len(FOUND_IN)]
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
    terms = terms_of(name)
    # the first of the terms of `git-bisect` is `gitbisect`
    forms = (terms[:1], terms[1:]) if len(terms) > 1 else (terms,)
    return tuple(f" {' '.join(form)} " for form in forms if form)
