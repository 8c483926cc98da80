"""The router: which skills of a library a query needs, how likely each is, and whether any fits.

Words propose candidates; a small trained model turns what is known of each into a chance.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from skillpager.errors import StrategyError, reinstall_command
from skillpager.library.discovery import FoundSkill
from skillpager.library.routing.features import COLUMNS, FOUND_IN, Candidates, features_of
from skillpager.library.routing.routes import Route, RoutedSkill
from skillpager.library.routing.word_index import WordSearch

MODEL = Path(__file__).parents[2] / "models" / "router" / "router.json"
# the same for all candidates of a query, or read of the best alone: it orders nothing, but says what
# a score means
OF_QUERY = (
    *("share", "rare_share", "described_share", "rarest", "rarest_three", "name_cover", "clause_share"),
    *("terms", "known", "clauses", "skills"),
)
# what the chance of a candidate is estimated from
CHANCE_COLUMNS = ("score", "among_all", "best", *OF_QUERY)
# what the chance that any skill fits is estimated from
FIT_COLUMNS = ("best", "all", "second", "best_score", *OF_QUERY)

LARGEST_ODDS = 30.0


def chance_features_of(found: Candidates, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `(c, len(CHANCE_COLUMNS))`: the features of the chances of at least one candidate."""
    best = int(scores.argmax())
    above = scores - scores[best]
    among_all = above - math.log(float(np.exp(above).sum()))
    same = [scores[best], *(found.column(name)[best] for name in OF_QUERY)]
    return np.column_stack([scores, among_all, np.tile(same, (len(scores), 1))])


def fit_features_of(
    found: Candidates, scores: NDArray[np.float64], chances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return `(len(FIT_COLUMNS),)`: the features of the chance that any of at least one candidate fits."""
    best, *others = np.argsort(-scores, kind="stable")[:2].tolist()
    return np.array(
        [
            _log_odds(float(chances[best])),
            _log_odds(1 - float(np.prod(1 - chances))),
            _log_odds(float(chances[others].sum())),
            scores[best],
            *(found.column(name)[best] for name in OF_QUERY),
        ],
        np.float64,
    )


def _log_odds(chance: float) -> float:
    bounded = min(1 - 1e-9, max(1e-9, chance))
    return math.log(bounded / (1 - bounded))


def _chance(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    chances: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(odds, -LARGEST_ODDS, LARGEST_ODDS)))
    return chances


Weights = tuple[NDArray[np.float64], float]


@dataclass(frozen=True, eq=False)
class RouterModel:
    """The trained model of the router: from features to chances."""

    # weights `(inputs, outputs)` and biases `(outputs,)` of each layer; tanh stands between two
    layers: tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]
    direct: NDArray[np.float64]  # `(inputs,)` weights from the features to the score, past the layers
    chance: Weights  # and bias of the log odds that a query needs a candidate, from `CHANCE_COLUMNS`
    fits: Weights  # and bias of the log odds that any skill fits, from `FIT_COLUMNS`
    threshold: float  # chance below which perhaps no skill fits
    most_terms: int  # of a query that are searched

    def scores(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `(c,)`: scores that order the candidates of one query."""
        values = features
        for number, (weights, biases) in enumerate(self.layers):
            values = (np.tanh(values) if number else values) @ weights + biases
        scores: NDArray[np.float64] = values[:, 0] + features @ self.direct
        return scores

    def chances(self, found: Candidates) -> tuple[NDArray[np.float64], float]:
        """Return `(c,)`, the chance that a query needs each of at least one candidate; and that any fits."""
        scores = self.scores(found.features)
        weights, bias = self.chance
        chances = _chance(chance_features_of(found, scores) @ weights + bias)
        weights, bias = self.fits
        fits = _chance(np.array(fit_features_of(found, scores, chances) @ weights + bias))
        return chances, float(fits)


@cache
def load_router(path: Path = MODEL) -> RouterModel:
    """Return the model in a file; a `StrategyError` if it cannot be read or reads other features."""
    try:
        text = json.loads(path.read_text(encoding="utf-8"))
        columns = text["columns"], text["chance"]["columns"], text["fits"]["columns"]
        if tuple(map(tuple, columns)) != (COLUMNS, CHANCE_COLUMNS, FIT_COLUMNS):
            raise ValueError("it reads other features")
        layers = tuple(
            (np.array(layer["weights"], np.float64), np.array(layer["biases"], np.float64))
            for layer in text["layers"]
        )
        direct = np.array(text["direct"], np.float64)
        chance, fits = (
            (np.array(text[name]["weights"], np.float64), float(text[name]["bias"]))
            for name in ("chance", "fits")
        )
        return RouterModel(layers, direct, chance, fits, float(text["threshold"]), int(text["most_terms"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StrategyError(
            f"The router's model {path} cannot be used ({error}): the installation is damaged, so run "
            f"`{reinstall_command()}`."
        ) from error


def route_query(
    words: WordSearch, skills: Sequence[FoundSkill], query: str, *, k: int, model: RouterModel
) -> Route:
    """Return the `k` skills that a query most likely needs, best first; `words` are those of `skills`."""
    found = features_of(words, query, most_terms=model.most_terms, name_at=lambda place: skills[place].name)
    if not len(found.skills):
        return Route(query, (), 0.0, len(skills), model.threshold)
    chances, fits = model.chances(found)
    best = np.argsort(-chances, kind="stable")[:k]
    routed = tuple(_routed(skills, found, place, float(chances[place])) for place in best.tolist())
    return Route(query, routed, fits, len(skills), model.threshold)


def _routed(skills: Sequence[FoundSkill], found: Candidates, place: int, chance: float) -> RoutedSkill:
    held = {field: found.weights[field][place] > 0 for field in FOUND_IN}
    is_held = np.any(list(held.values()), axis=0)
    return RoutedSkill(
        skills[found.skills[place]],
        chance,
        terms=tuple(term for term, is_mine in zip(found.terms, is_held, strict=True) if is_mine),
        fields=tuple(field for field, terms in held.items() if terms.any()),
    )
