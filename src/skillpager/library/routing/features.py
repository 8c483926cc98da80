"""Features of routing: the skills that may fit a query, and what their words say of each."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skillpager.library.routing import word_index
from skillpager.library.routing.word_index import NEGATED, HashArray, WordSearch
from skillpager.strategies.navigator.lexical import BM25_B, BM25_K1, clauses_of, terms_of
from skillpager.types import FloatArray

FOUND_IN = ("name", "description", "body")  # where a term speaks for a skill
FURTHER = ("opening", "phrases")  # of these only the sum counts
# mean terms of each field in 18,812 public skills: the same everywhere, so that a new skill changes
# no other's score
USUAL_LENGTHS = {
    "name": 4.0, "description": 33.0, "body": 800.0, "opening": 190.0, "phrases": 250.0, NEGATED: 2.0
}  # fmt: skip
# candidates: the best over all fields, where rare terms count more, or as in BM25; and the best in each field
BEST_OF_ALL, BEST_OF_SUM, BEST_OF_FIELD = 100, 50, 30  # of the further fields together as many as of a field
BEST_OF_CLAUSE = 5  # and for each clause: one skill of several that a task needs may have but a line of it
USUAL_TERMS = 5  # a description with fewer terms counts as if it had this many

FloatRow = NDArray[np.float64]
Columns = dict[str, "FloatRow | FloatArray | Sequence[float] | float"]

# what the model reads of each candidate
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
    """The skills that may fit a query, and what is known of each."""

    skills: NDArray[np.intp]  # `(c,)` their places in the library, ascending
    features: NDArray[np.float64]  # `(c, len(COLUMNS))`
    terms: tuple[str, ...]  # of the query, those that any skill holds, rarest first
    # by field `(c, len(terms))`: BM25 of each term; of `phrases` that of pairs of terms
    weights: Mapping[str, FloatArray]

    def column(self, name: str) -> FloatRow:
        """Return `(c,)`: one feature of all candidates."""
        found: FloatRow = self.features[:, COLUMNS.index(name)]
        return found


def features_of(
    words: WordSearch, query: str, *, most_terms: int, name_at: Callable[[int], str]
) -> Candidates:
    """Return the candidates of a query and their features; its `most_terms` rarest terms are searched."""
    asked = terms_of(query)
    times = Counter(asked)
    terms, holders = _rarest(words, times, FOUND_IN, most_terms)
    pairs, pair_holders = _rarest(words, dict.fromkeys(word_index.pairs_of(asked)), ("phrases",), most_terms)
    held_by = {**dict(zip(FOUND_IN, holders, strict=True)), "opening": words.holders("opening", terms)}
    # what a skill is not for is not searched: its words are as rare as in descriptions
    held_by |= {"phrases": pair_holders[0], NEGATED: held_by["description"]}
    rarities = {field: rarity_of(each, words.size) for field, each in held_by.items()}
    rarity: FloatRow = np.min([rarities[field] for field in FOUND_IN], axis=0)
    often = 1 + np.log([times[term] for term in terms])
    clauses = [set(terms_of(clause)) for clause in clauses_of(query)]
    parts = np.array([[term in clause for term in terms] for clause in clauses], bool)
    places, packed = words.read(_propose(words, terms, pairs, rarity * often, parts))
    searched = {field: pairs if field == "phrases" else terms for field in word_index.FIELDS}
    weights, lengths = _bm25(packed, searched, rarities)
    columns = _word_columns(weights, rarity, often, words.size)
    columns |= _further_columns(weights, lengths)
    columns |= _clause_columns(weights, rarity, parts if len(parts) else np.ones((1, len(terms)), bool))
    text = f" {' '.join(asked)} "
    columns |= {
        "mention": [any(form in text for form in _written(name_at(place))) for place in places.tolist()],
        "terms": math.log1p(len(terms)),
        # what no skill has ever heard of says that none may fit
        "known": len(terms) / max(1, min(len(times), most_terms)),
        "clauses": len(parts),
        "skills": math.log(max(1, words.size)),
    }
    features = np.column_stack([np.broadcast_to(columns[name], len(places)) for name in COLUMNS])
    return Candidates(places, features.astype(np.float64), tuple(terms), weights)


def _rarest(
    words: WordSearch, asked: Iterable[str], fields: Sequence[str], most: int
) -> tuple[list[str], NDArray[np.int64]]:
    """Return the `most` rarest terms that any of the fields holds, and `(fields, terms)`, their holders.

    A whole task names its tools once among hundreds of common words. Ties go to the earlier term.
    """
    distinct = list(asked)
    holders = np.array([words.holders(field, distinct) for field in fields])
    most_held = holders.max(0)
    order = np.argsort(most_held, kind="stable")
    chosen = order[most_held[order] > 0][:most]
    return [distinct[place] for place in chosen.tolist()], holders[:, chosen]


def rarity_of(holders: NDArray[np.int64], size: int) -> FloatRow:
    """Return the inverse document frequency of terms, from how many of `size` skills hold each."""
    # a skill that has just been replaced may still count
    rarity: FloatRow = np.log1p((np.maximum(size - holders, 0) + 0.5) / (holders + 0.5))
    return rarity


def _bm25(
    packed: Sequence[bytes], searched: Mapping[str, Sequence[str]], rarities: Mapping[str, FloatRow]
) -> tuple[dict[str, FloatArray], HashArray]:
    """Return by field `(c, terms)`, BM25 of each term in each candidate; and `(c, FIELDS)`, the lengths."""
    hashes = [word_index.hash_in(field, term) for field, terms in searched.items() for term in terms]
    counts, lengths = word_index.read_counts(packed, np.array(hashes, np.uint32))
    ends = np.cumsum([len(terms) for terms in searched.values()])
    weights = {}
    for field, held, length in zip(searched, np.split(counts, ends[:-1], axis=1), lengths.T, strict=True):
        norms = BM25_K1 * (1 - BM25_B + BM25_B * length / USUAL_LENGTHS[field])
        weights[field] = np.asarray(
            held * (rarities[field] * (BM25_K1 + 1)) / (held + norms[:, None]), np.float32
        )
    return weights, lengths


def _propose(
    words: WordSearch,
    terms: Sequence[str],
    pairs: Sequence[str],
    importance: FloatRow,
    parts: NDArray[np.bool_],
) -> set[tuple[int, int]]:
    """Return the addresses of the candidates; `parts` is `(clauses, terms)`.

    `importance`, `(terms,)`, weighs rare and repeated terms more than BM25: this finds 7 points more of the
    skills that long queries need.
    """
    weighted = zip(terms, importance.tolist(), strict=True)
    asked = [(field, term, weight) for term, weight in weighted for field in FOUND_IN]
    found = words.best(asked, BEST_OF_ALL)
    found |= words.best([(field, term, 1) for term in terms for field in FOUND_IN], BEST_OF_SUM)
    for field in FOUND_IN:
        found |= words.best([(field, term, 1) for term in terms], BEST_OF_FIELD)
    further = [("opening", term, 1.0) for term in terms] + [("phrases", pair, 1.0) for pair in pairs]
    found |= words.best(further, BEST_OF_FIELD)
    for part in parts:  # names and descriptions alone: their postings are short
        mine = [terms[place] for place in np.flatnonzero(part).tolist()]
        found |= words.best([(field, term, 1) for term in mine for field in FOUND_IN[:2]], BEST_OF_CLAUSE)
    return found


def _word_columns(weights: Mapping[str, FloatArray], rarity: FloatRow, often: FloatRow, size: int) -> Columns:
    """Return the features of the words that query and candidates share; `often` is 1 plus for repetition."""
    held = {field: weights[field] > 0 for field in FOUND_IN}
    described = held["name"] | held["description"]
    anywhere = described | held["body"]
    greatest = math.log1p((size - 0.5) / 1.5) if size > 1 else 1.0
    mass, squares = max(float(rarity.sum()), 1e-9), rarity**2
    square_mass = max(float(squares.sum()), 1e-9)
    together = np.sum([weights[field] for field in FOUND_IN], axis=0, dtype=np.float64)
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
        "negated": (weights[NEGATED] > 0) @ rarity / mass,
    }
    for field in FOUND_IN:
        columns |= _field_columns(field, weights[field].sum(1, dtype=np.float64))
        columns[f"{field}_share"] = held[field] @ rarity / mass
    return columns


def _further_columns(weights: Mapping[str, FloatArray], lengths: HashArray) -> Columns:
    """Return the features of the further fields, and how long names, descriptions and bodies are."""
    totals = {field: weights[field].sum(1, dtype=np.float64) for field in FURTHER}
    together = np.sum(list(totals.values()), axis=0)
    name, description, body = lengths.T[: len(FOUND_IN)]
    columns: Columns = {
        "further_relative": _relative(together),
        "further_rank": _ranks(together),
        "name_cover": (weights["name"] > 0).sum(1) / np.maximum(name, 1),
        "description_cover": (weights["description"] > 0).sum(1) / np.maximum(description, USUAL_TERMS),
        "description_length": np.log1p(description),
        "body_length": np.log1p(body),
    }
    for field, total in totals.items():
        columns |= _field_columns(field, total)
    return columns


def _field_columns(field: str, total: FloatRow) -> Columns:
    return {
        f"{field}_bm25": np.log1p(total),
        f"{field}_relative": _relative(total),
        f"{field}_rank": _ranks(total) * (total > 0),
    }


def _clause_columns(weights: Mapping[str, FloatArray], rarity: FloatRow, parts: NDArray[np.bool_]) -> Columns:
    """Return how good a candidate is for the clause that it fits best, and for all clauses on average."""
    chosen = parts.T.astype(np.float32)
    together = np.sum([weights[field] for field in FOUND_IN], axis=0)
    scores = together @ chosen
    relative = _relative(scores)
    shares = (together > 0) @ (chosen * rarity[:, None]) / np.maximum(parts @ rarity, 1e-9)
    return {
        "clause_relative": relative.max(1),
        "clause_mean": relative.mean(1),
        "clause_rank": (_ranks(scores) * (scores > 0)).max(1),
        "clause_share": shares.max(1),
    }


def _relative(scores: NDArray[np.float64] | FloatArray) -> NDArray[np.float64]:
    """Return scores as shares of the greatest of each column; zeros if there is none above 0."""
    return np.asarray(scores / np.maximum(scores.max(0, initial=0), 1e-9), np.float64)


def _ranks(values: NDArray[np.float64] | FloatArray) -> NDArray[np.float64]:
    """Return 1 for the largest value of each column, 1/2 for the second and so on; ties to the earlier."""
    order = np.argsort(-values, axis=0, kind="stable")
    return 1 / (1.0 + np.argsort(order, axis=0, kind="stable"))


def _written(name: str) -> tuple[str, ...]:
    """Return the forms in which a query may have the name of a skill, as terms between spaces."""
    terms = terms_of(name)
    # the first of the terms of `git-bisect` is `gitbisect`
    forms = (terms[:1], terms[1:]) if len(terms) > 1 else (terms,)
    return tuple(f" {' '.join(form)} " for form in forms if form)
