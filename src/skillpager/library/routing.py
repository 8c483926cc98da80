"""The router: which skills of a library a query needs, how likely each is, and whether any fits.

Words and embeddings propose candidates; a small trained model turns what is known of each into a chance.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from skillpager.errors import StrategyError, reinstall_command
from skillpager.library.discovery import FoundSkill
from skillpager.library.fields import FIELDS, FieldIndex, Hits, hash_terms, pick_terms, routing_terms
from skillpager.library.routes import Route, RoutedSkill
from skillpager.library.vectors import VectorIndex
from skillpager.types import FloatArray

MODEL = Path(__file__).parents[1] / "models" / "router" / "router.json"
FOUND_IN = FIELDS[:3]  # where a term speaks for a skill; in `negated` it speaks against it
# candidates: those with the best scores over all fields, in each field, and the nearest embeddings
BEST_OF_ALL, BEST_OF_FIELD, NEAREST = 100, 20, 100

# what the model reads of each candidate; see `features_of`
COLUMNS = (
    *("name_bm25", "description_bm25", "body_bm25", "relative_bm25", "rank_bm25"),
    *("name_share", "description_share", "body_share", "share", "rarest"),
    *("cosine", "relative_cosine", "rank_cosine", "has_cosine", "node_cosine", "has_node"),
    *("mention", "negated", "terms", "skills"),
)
# what it reads of all candidates together, to say whether any fits; see `fit_features_of`
FIT_COLUMNS = ("best", "all", "second", "best_share", "best_cosine", "terms", "skills")

LARGEST_ODDS = 30.0


@dataclass(frozen=True, eq=False)
class Searched:
    """What routing searches: the skills of a library by words and by embeddings.

    Attributes:
        skills: The skills, in the order in which equally good ones are listed.
        fields: Their words, by the names of `FIELDS`.
        vectors: Their embeddings; None without an encoder.
    """

    skills: Sequence[FoundSkill]
    fields: Mapping[str, FieldIndex]
    vectors: VectorIndex | None = None


@dataclass(frozen=True, eq=False)
class Candidates:
    """The skills that may fit a query, and what is known of each.

    Attributes:
        skills: `(c,)` their places in the library, ascending.
        features: `(c, len(COLUMNS))` float64.
        terms: The terms of the query that any skill holds, rarest first.
        weights: `(len(FIELDS), c, len(terms))` float32: BM25 of each term in each field.
    """

    skills: NDArray[np.intp]
    features: NDArray[np.float64]
    terms: tuple[str, ...]
    weights: FloatArray

    def column(self, name: str) -> NDArray[np.float64]:
        """Return `(c,)`: one feature of all candidates."""
        found: NDArray[np.float64] = self.features[:, COLUMNS.index(name)]
        return found


def features_of(
    searched: Searched, query: str, row: FloatArray | None = None, *, most_terms: int
) -> Candidates:
    """Return the candidates of a query and their features.

    Args:
        searched: The library.
        query: The query.
        row: `(dim,)` float32, unit length: its embedding; None without embeddings.
        most_terms: So many terms of the query are searched, the rarest.
    """
    terms, hits, scores, total = _search_words(searched, query, most_terms)
    size = len(searched.skills)
    proposed = [_best(total, BEST_OF_ALL), *(_best(score, BEST_OF_FIELD) for score in scores)]
    vectors = None if row is None else searched.vectors
    if vectors is not None and row is not None:
        proposed.append(vectors.nearest(row, NEAREST))
    skills = np.unique(np.concatenate(proposed))
    weights = _weights(hits, skills, size, len(terms))
    features = np.zeros((len(skills), len(COLUMNS)))
    if len(skills):
        rarity = np.min([hit.rarity for hit in hits], axis=0)
        columns = _word_columns(weights, rarity, total[skills], float(total.max()), size)
        if vectors is not None and row is not None:
            columns |= _vector_columns(vectors.cosines(row, skills), vectors.known[skills])
        asked = f" {' '.join(routing_terms(query))} "
        columns["mention"] = [_is_named(searched.skills[place].name, asked) for place in skills]
        columns["terms"], columns["skills"] = math.log1p(len(terms)), math.log(size)
        for name, values in columns.items():
            features[:, COLUMNS.index(name)] = values
    return Candidates(skills, features, tuple(terms), weights)


def best_by_words(searched: Searched, query: str, *, most_terms: int, most: int) -> NDArray[np.intp]:
    """Return at most `most` places of the skills whose words fit a query best; unordered."""
    *_, total = _search_words(searched, query, most_terms)
    return _best(total, most)


def _search_words(
    searched: Searched, query: str, most_terms: int
) -> tuple[list[str], list[Hits], list[NDArray[np.float64]], NDArray[np.float64]]:
    """Return terms, their hits in all fields, `(n,)` BM25 in each field of `FOUND_IN`, and their sums."""
    terms = pick_terms(query, searched.fields, most_terms)
    hashes = hash_terms(terms)
    hits = [searched.fields[name].hits(hashes) for name in FIELDS]
    size = len(searched.skills)
    scores: list[NDArray[np.float64]] = [
        np.bincount(hit.skills, hit.weights, size).astype(np.float64) for hit in hits[: len(FOUND_IN)]
    ]
    return terms, hits, scores, scores[0] + scores[1] + scores[2]


def _best(scores: NDArray[np.float64], most: int) -> NDArray[np.intp]:
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


Columns = dict[str, "NDArray[np.float64] | FloatArray | Sequence[float] | float"]


def _word_columns(
    weights: FloatArray, rarity: NDArray[np.float64], totals: NDArray[np.float64], best: float, size: int
) -> Columns:
    """Return the features of the words that query and candidates share."""
    held = weights > 0
    mass = max(float(rarity.sum()), 1e-9)
    anywhere = held[: len(FOUND_IN)].any(0)
    columns: Columns = {
        "relative_bm25": totals / max(best, 1e-9),
        "rank_bm25": 1 / (1 + _ranks(totals)),
        "share": anywhere @ rarity / mass,
        "rarest": (anywhere * rarity).max(1, initial=0) / math.log1p((size - 0.5) / 1.5 if size > 1 else 1),
        "negated": held[-1] @ rarity / mass,
    }
    for number, name in enumerate(FOUND_IN):
        columns[f"{name}_bm25"] = np.log1p(weights[number].sum(1, dtype=np.float64))
        columns[f"{name}_share"] = held[number] @ rarity / mass
    return columns


def _vector_columns(cosines: FloatArray, known: NDArray[np.bool_]) -> Columns:
    best = float(cosines.max())
    return {
        "cosine": cosines,
        "relative_cosine": np.where(known, cosines - best, 0),
        "rank_cosine": np.where(known, 1 / (1 + _ranks(cosines)), 0),
        "has_cosine": known.astype(np.float64),
    }


def _ranks(values: NDArray[np.float64] | FloatArray) -> NDArray[np.int64]:
    """Return the rank of each value, 0 for the largest; of equal ones the first is before."""
    ranks = np.empty(len(values), np.int64)
    ranks[np.argsort(-values, kind="stable")] = np.arange(len(values))
    return ranks


def _is_named(name: str, asked: str) -> bool:
    """Return whether a query, given as its terms, names a skill, in one word or in several."""
    terms = routing_terms(name)
    # the first of the terms of `git-bisect` is `gitbisect`
    forms = (terms[:1], terms[1:]) if len(terms) > 1 else (terms,)
    return any(form and f" {' '.join(form)} " in asked for form in forms)


def fit_features_of(found: Candidates, chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `(len(FIT_COLUMNS),)`: what says whether any of at least one candidate fits."""
    order = np.argsort(-chances, kind="stable")
    best = order[0]
    second = float(chances[order[1]]) if len(order) > 1 else 0.0
    columns = {
        "best": _log_odds(float(chances[best])),
        "all": _log_odds(1 - float(np.prod(1 - chances))),
        "second": _log_odds(second),
        "best_share": found.column("share").max(),
        "best_cosine": found.column("cosine").max(),
        "terms": found.column("terms")[best],
        "skills": found.column("skills")[best],
    }
    return np.array([columns[name] for name in FIT_COLUMNS], np.float64)


def _log_odds(chance: float) -> float:
    bounded = min(1 - 1e-9, max(1e-9, chance))
    return math.log(bounded / (1 - bounded))


def _chance(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    chances: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(odds, -LARGEST_ODDS, LARGEST_ODDS)))
    return chances


@dataclass(frozen=True, eq=False)
class RouterModel:
    """The trained model of the router: from features to chances.

    Attributes:
        layers: Weights `(inputs, outputs)` and biases `(outputs,)`; between two layers stands tanh, and
            behind the last the logistic function.
        fits: Weights and bias of the log odds that any skill fits.
        threshold: Chance below which no skill is said to fit.
        most_terms: Terms of a query that are searched.
    """

    layers: tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]
    fits: tuple[NDArray[np.float64], float]
    threshold: float
    most_terms: int

    def chances(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `(c,)`: the chance that the query needs each candidate."""
        values = features
        for number, (weights, biases) in enumerate(self.layers):
            values = (np.tanh(values) if number else values) @ weights + biases
        return _chance(values[:, 0])

    def fit(self, features: NDArray[np.float64]) -> float:
        """Return the chance that any candidate fits."""
        weights, bias = self.fits
        return float(_chance(np.array(features @ weights + bias)))


@cache
def load_router(path: Path = MODEL) -> RouterModel:
    """Return the model in a file.

    Raises:
        StrategyError: It cannot be read, or was trained on other features.
    """
    try:
        text = json.loads(path.read_text(encoding="utf-8"))
        if tuple(text["columns"]) != COLUMNS or tuple(text["fits"]["columns"]) != FIT_COLUMNS:
            raise ValueError("it reads other features")
        layers = tuple(
            (np.array(layer["weights"], np.float64), np.array(layer["biases"], np.float64))
            for layer in text["layers"]
        )
        widths = [len(COLUMNS), *(len(biases) for _, biases in layers)]
        shapes = [weights.shape for weights, _ in layers]
        if shapes != list(pairwise(widths)) or widths[-1] != 1:
            raise ValueError(f"its layers have the shapes {shapes}")
        fits = np.array(text["fits"]["weights"], np.float64)
        if fits.shape != (len(FIT_COLUMNS),):
            raise ValueError(f"it has {fits.shape} weights of the fit")
        return RouterModel(
            layers, (fits, float(text["fits"]["bias"])), float(text["threshold"]), int(text["most_terms"])
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StrategyError(
            f"The router's model {path} cannot be used ({error}): the installation is damaged, so run "
            f"`{reinstall_command()}`."
        ) from error


def route_query(
    searched: Searched, query: str, row: FloatArray | None, *, k: int, model: RouterModel
) -> Route:
    """Return the `k` skills that a query most likely needs, best first.

    The arguments are those of `features_of`.
    """
    found = features_of(searched, query, row, most_terms=model.most_terms)
    size = len(searched.skills)
    if not len(found.skills):
        return Route(query, (), 0.0, size, model.threshold)
    chances = model.chances(found.features)
    best = np.argsort(-chances, kind="stable")[:k]
    routed = tuple(_routed(searched, found, place, float(chances[place])) for place in best.tolist())
    fits = model.fit(fit_features_of(found, chances))
    bare = 0 if searched.vectors is None else int((~searched.vectors.known).sum())
    return Route(query, routed, fits, size, model.threshold, bare)


def _routed(searched: Searched, found: Candidates, place: int, chance: float) -> RoutedSkill:
    """Return a candidate with its reasons."""
    held: list[NDArray[np.bool_]] = [found.weights[field, place] > 0 for field in range(len(FOUND_IN))]
    features = dict(zip(COLUMNS, found.features[place].tolist(), strict=True))
    return RoutedSkill(
        searched.skills[found.skills[place]],
        chance,
        terms=tuple(term for term, is_held in zip(found.terms, np.any(held, axis=0), strict=True) if is_held),
        fields=tuple(name for name, terms in zip(FOUND_IN, held, strict=True) if terms.any()),
        cosine=features["cosine"] if features["has_cosine"] else None,
        node_cosine=features["node_cosine"] if features["has_node"] else None,
        features=tuple(features.items()),
    )
