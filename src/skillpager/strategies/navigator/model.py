"""The trained model of the navigator: from features to needs, and to chances of sufficiency and coverage."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from skillpager.errors import StrategyError, reinstall_command
from skillpager.sequence_net import SequenceNet
from skillpager.strategies.navigator.features import (
    COVERAGE_NAMES,
    GROUPS,
    NAMES,
    IndexFeatures,
    coverage_signals,
    features_of,
)
from skillpager.strategies.navigator.lexical import terms_of
from skillpager.types import FloatArray, Query

MODEL = "models/navigator/navigator.npz"
# the models learned from English skills, few of which have fewer nodes; a chance for others would be a guess
LEAST_NODES = 6
FIRST_NOT_LATIN = "\u0250"  # letters from here on are of other scripts
# terms of a short and of a long query: the medians of those that the model learned from
SHORT_TERMS, LONG_TERMS = 5, 27

# logarithms; of a page: weight of the nodes that are left out, the largest of them, tokens of those shown;
# of a query: the largest weight, all weights, tokens of the skill, terms of the query
CHANCE_SIGNALS = ("left", "largest left", "shown", "largest", "total", "full", "terms")
LEAST_SIGNAL = 1e-6
LARGEST_ODDS = 30.0  # beyond which a chance is 0 or 1

# a probability stays below 1, whose weight is infinite, and is rounded to millionths, where machines agree
LARGEST_NEED = 1 - 1e-6
STEPS = 1e6


@dataclass(frozen=True, slots=True)
class Odds:
    """Log odds that a page suffices, as it grows.

    Attributes:
        base: What the query and the skill add; None if the chance is exp(-left).
        left: Factor of the log of the weight that is left out.
        largest: Factor of the log of the largest weight that is left out.
        shown: Factor of the log of the page's tokens.
    """

    base: float | None
    left: float
    largest: float
    shown: float

    def chance(self, left: float, largest: float, shown: int) -> float:
        """Return the chance that nothing is missing.

        Args:
            left: Weight of all nodes that are left out.
            largest: The largest of them.
            shown: Tokens of the nodes that are shown.
        """
        if self.base is None:
            return math.exp(-left)
        odds = self.base + self.left * _log(left) + self.largest * _log(largest) + self.shown * _log(shown)
        return 1 / (1 + math.exp(-min(LARGEST_ODDS, max(-LARGEST_ODDS, odds))))


def query_signals(query: Query, needs: FloatArray, full_tokens: int) -> FloatArray:
    """Return the signals of sufficiency that are the same for every page of a query."""
    weights = -np.log1p(-needs)
    terms = len(set(terms_of(query.text)))
    signals = (float(weights.max()), float(weights.sum()), full_tokens, terms + 1)
    return np.array([_log(signal) for signal in signals])


def _log(value: float) -> float:
    return math.log(max(value, LEAST_SIGNAL))


def _length(query: Query) -> float:
    """Return 0 for a short query, 1 for a long one, and a share between them."""
    terms = max(1, len(set(terms_of(query.text))))
    share = math.log(terms / SHORT_TERMS) / math.log(LONG_TERMS / SHORT_TERMS)
    return min(1.0, max(0.0, share))


@dataclass(frozen=True, eq=False)
class NeedModel:
    """The network of the navigator and its calibration.

    Attributes:
        net: Estimates needs.
        embedding: The embeddings that it reads: encoder id, `/` and text form.
        scale: Slope and intercept that calibrate its logits.
        chance: Weights `(2, len(CHANCE_SIGNALS))` and biases `(2,)` of the log odds that a page suffices, for
            short and for long queries; None for exp(-left), which holds if needs are independent.
        price: Chance of sufficiency that a token of the page must be worth, for short and for long queries.
        coverage: Weights `(len(COVERAGE_NAMES),)` and bias of the log odds that a skill answers a query; None
            if they were not trained.
    """

    net: SequenceNet
    embedding: str
    scale: tuple[float, float]
    chance: tuple[NDArray[np.float64], NDArray[np.float64]] | None
    price: tuple[float, float]
    coverage: tuple[FloatArray, float] | None = None

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> "NeedModel":
        """Return the model of the arrays of a file.

        Raises:
            KeyError: One is missing.
            ValueError: It was trained on other features.
        """
        if tuple(arrays["signals"].tolist()) != NAMES:
            raise ValueError("it was trained on other features")
        net = SequenceNet({name[4:]: arrays[name] for name in arrays if name.startswith("net.")})
        slope, intercept = arrays["scale"].tolist()
        chance = arrays["chance.weight"].astype(np.float64), arrays["chance.bias"].astype(np.float64)
        if chance[0].shape != (2, len(CHANCE_SIGNALS)):
            raise ValueError("its chances were trained on other signals")
        short, long = arrays["price"].tolist()
        embedding, coverage = str(arrays["embedding"]), None
        if "covered.weight" in arrays:
            weight = arrays["covered.weight"].astype(np.float32)
            if weight.shape != (len(COVERAGE_NAMES),):
                raise ValueError("its coverage was trained on other signals")
            coverage = weight, float(arrays["covered.bias"])
        return cls(net, embedding, (slope, intercept), chance, (short, long), coverage)

    def needs(self, known: IndexFeatures, query: Query) -> FloatArray:
        """Return `(n,)`: the chance that the query needs each node, to a millionth."""
        return self.calibrated(self._logits(known, features_of(known, query)))

    def calibrated(self, logits: FloatArray) -> FloatArray:
        """Return the chances that logits of the network represent, to a millionth."""
        slope, intercept = self.scale
        chances = 1 / (1 + np.exp(-(slope * logits.astype(np.float64) + intercept)))
        needs: FloatArray = (np.rint(chances * STEPS) / STEPS).clip(0, LARGEST_NEED)
        return needs

    def price_of(self, query: Query) -> float:
        """Return the chance that a token must be worth: between both prices, by length of query."""
        share, (short, long) = _length(query), self.price
        price: float = short ** (1 - share) * long**share
        return price

    def odds_of(self, query: Query, needs: FloatArray, full_tokens: int) -> Odds:
        """Return the odds that pages for a query suffice.

        Args:
            query: The query.
            needs: `(n,)` its needs.
            full_tokens: Tokens of the whole skill.
        """
        if self.chance is None:
            return Odds(None, 0.0, 0.0, 0.0)
        share = _length(query)
        weights, bias = ((1 - share) * both[0] + share * both[1] for both in self.chance)
        fixed = query_signals(query, needs, full_tokens)
        left, largest, shown = weights[:3].tolist()
        return Odds(float(bias) + float(weights[3:] @ fixed), left, largest, shown)

    def covered(self, known: IndexFeatures, query: Query, needs: FloatArray) -> float | None:
        """Return the chance that the skill answers the query at all, to a millionth.

        None if the model cannot estimate it: it was not trained to, or not on skills this small or queries in
        this script. `needs` are those of the query.
        """
        letters = [letter for letter in query.text if letter.isalpha()]
        latin = sum(letter < FIRST_NOT_LATIN for letter in letters)
        if self.coverage is None or len(needs) < LEAST_NODES or 2 * latin < len(letters):
            return None
        weight, bias = self.coverage
        odds = float(coverage_signals(known, query, needs).astype(np.float64) @ weight) + bias
        return float(np.rint(STEPS / (1 + np.exp(-odds))) / STEPS)

    def reasons(self, known: IndexFeatures, query: Query) -> list[dict[str, float]]:
        """Return for each node what each group of features adds to its log odds, as shares that add up to 1.

        A group's share is what the log odds lose when its features are those of an average node.
        """
        features, average = features_of(known, query), self.net.arrays["0.mean"]
        full = self._logits(known, features)
        lost, end = [], 0
        for names in GROUPS.values():
            start, end = end, end + len(names)
            without = features.copy()
            without[:, start:end] = average[start:end]
            lost.append(np.maximum(full - self._logits(known, without), 0))
        shares = np.stack(lost, axis=1)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-6)
        return [dict(zip(GROUPS, row, strict=True)) for row in shares.round(3).tolist()]

    def _logits(self, known: IndexFeatures, features: FloatArray) -> FloatArray:
        return self.net.logits(features, known.section.member)[:, 0]


@cache
def shipped_model() -> NeedModel:
    """Return the model inside the package, read at first use.

    Raises:
        StrategyError: The file is missing or damaged.
    """
    path = Path(__file__).parents[2] / MODEL
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            return NeedModel.of({name: arrays[name] for name in arrays.files})
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise StrategyError(
            f"The shipped navigator {path} cannot be read ({error}): the installation is "
            f"damaged, so run `{reinstall_command()}`."
        ) from error
