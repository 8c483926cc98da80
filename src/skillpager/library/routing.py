"""The router: which skills of a library a query needs, how likely each is, and whether any fits.

Words propose candidates; a small trained model turns what is known of each into a chance.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skillpager.errors import StrategyError, reinstall_command
from skillpager.library.features import COLUMNS, FOUND_IN, Candidates, Searched, features_of
from skillpager.library.routes import Route, RoutedSkill

MODEL = Path(__file__).parents[1] / "models" / "router" / "router.json"
# what calibration reads of each candidate; scores alone order candidates, and say nothing about a query
CHANCE_COLUMNS = ("score", "among_all", "best", "terms", "clauses", "skills")
# what it reads of all candidates together, to say whether any fits; see `fit_features_of`
FIT_COLUMNS = ("best", "all", "second", "share", "best_share", "terms", "clauses", "skills")

LARGEST_ODDS = 30.0


def chance_features_of(found: Candidates, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `(c, len(CHANCE_COLUMNS))`: what says how likely each of at least one candidate is needed."""
    best = float(scores.max())
    among_all = scores - best - math.log(float(np.exp(scores - best).sum()))
    columns = {
        "score": scores,
        "among_all": among_all,
        "best": np.full(len(scores), best),
        **{name: found.column(name) for name in ("terms", "clauses", "skills")},
    }
    return np.column_stack([columns[name] for name in CHANCE_COLUMNS])


def fit_features_of(found: Candidates, chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `(len(FIT_COLUMNS),)`: what says whether any of at least one candidate fits."""
    order = np.argsort(-chances, kind="stable")
    best = order[0]
    second = float(chances[order[1]]) if len(order) > 1 else 0.0
    columns = {
        "best": _log_odds(float(chances[best])),
        "all": _log_odds(1 - float(np.prod(1 - chances))),
        "second": _log_odds(second),
        "share": found.column("share")[best],
        "best_share": found.column("share").max(),
        **{name: found.column(name)[best] for name in ("terms", "clauses", "skills")},
    }
    return np.array([columns[name] for name in FIT_COLUMNS], np.float64)


def _log_odds(chance: float) -> float:
    bounded = min(1 - 1e-9, max(1e-9, chance))
    return math.log(bounded / (1 - bounded))


def _chance(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    chances: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(odds, -LARGEST_ODDS, LARGEST_ODDS)))
    return chances


Weights = tuple[NDArray[np.float64], float]


@dataclass(frozen=True, eq=False)
class RouterModel:
    """The trained model of the router: from features to chances.

    Attributes:
        layers: Weights `(inputs, outputs)` and biases `(outputs,)` of each layer; tanh stands between two.
        direct: `(inputs,)` weights that lead from the features to the score past the layers.
        chance: Weights and bias of the log odds that a query needs a candidate, from `CHANCE_COLUMNS`.
        fits: Weights and bias of the log odds that any skill fits, from `FIT_COLUMNS`.
        threshold: Chance below which perhaps no skill fits.
        most_terms: Terms of a query that are searched.
    """

    layers: tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]
    direct: NDArray[np.float64]
    chance: Weights
    fits: Weights
    threshold: float
    most_terms: int

    def scores(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `(c,)`: scores that order the candidates of one query."""
        values = features
        for number, (weights, biases) in enumerate(self.layers):
            values = (np.tanh(values) if number else values) @ weights + biases
        scores: NDArray[np.float64] = values[:, 0] + features @ self.direct
        return scores

    def chances(self, found: Candidates) -> NDArray[np.float64]:
        """Return `(c,)`: the chance that the query needs each of at least one candidate."""
        weights, bias = self.chance
        return _chance(chance_features_of(found, self.scores(found.features)) @ weights + bias)

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
        if tuple(text["columns"]) != COLUMNS:
            raise ValueError("it reads other features")
        layers = tuple(
            (np.array(layer["weights"], np.float64), np.array(layer["biases"], np.float64))
            for layer in text["layers"]
        )
        widths = [len(COLUMNS), *(len(biases) for _, biases in layers)]
        shapes = [weights.shape for weights, _ in layers]
        direct = np.array(text["direct"], np.float64)
        if shapes != list(pairwise(widths)) or widths[-1] != 1 or direct.shape != (len(COLUMNS),):
            raise ValueError(f"its layers have the shapes {shapes} and {direct.shape}")
        chance = _read_weights(text["chance"], CHANCE_COLUMNS)
        fits = _read_weights(text["fits"], FIT_COLUMNS)
        return RouterModel(layers, direct, chance, fits, float(text["threshold"]), int(text["most_terms"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StrategyError(
            f"The router's model {path} cannot be used ({error}): the installation is damaged, so run "
            f"`{reinstall_command()}`."
        ) from error


def _read_weights(part: Mapping[str, Any], columns: tuple[str, ...]) -> Weights:
    weights = np.array(part["weights"], np.float64)
    if tuple(part["columns"]) != columns or weights.shape != (len(columns),):
        raise ValueError(f"it has weights of {part['columns']}, not of {columns}")
    return weights, float(part["bias"])


def route_query(searched: Searched, query: str, *, k: int, model: RouterModel) -> Route:
    """Return the `k` skills that a query most likely needs, best first.

    The arguments are those of `features_of`.
    """
    found = features_of(searched, query, most_terms=model.most_terms)
    size = len(searched.skills)
    if not len(found.skills):
        return Route(query, (), 0.0, size, model.threshold)
    chances = model.chances(found)
    best = np.argsort(-chances, kind="stable")[:k]
    routed = tuple(_routed(searched, found, place, float(chances[place])) for place in best.tolist())
    fits = model.fit(fit_features_of(found, chances))
    return Route(query, routed, fits, size, model.threshold)


def _routed(searched: Searched, found: Candidates, place: int, chance: float) -> RoutedSkill:
    """Return a candidate with its reasons."""
    held: list[NDArray[np.bool_]] = [found.weights[field, place] > 0 for field in range(len(FOUND_IN))]
    features = dict(zip(COLUMNS, found.features[place].tolist(), strict=True))
    return RoutedSkill(
        searched.skills[found.skills[place]],
        chance,
        terms=tuple(term for term, is_held in zip(found.terms, np.any(held, axis=0), strict=True) if is_held),
        fields=tuple(name for name, terms in zip(FOUND_IN, held, strict=True) if terms.any()),
        features=tuple(features.items()),
    )
