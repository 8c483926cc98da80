"""The model of the navigator: estimated needs, the chance that a page suffices, and the price of a token.

Reference: this package's own (docs/measured.md).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from skillpager.errors import StrategyError, reinstall_command
from skillpager.sequence_net import SequenceNet
from skillpager.strategies.navigator.features import (
    COVERAGE_NAMES,
    GROUPS,
    LEAST_NEED,
    NAMES,
    IndexFeatures,
    coverage_signals,
    features_of,
)
from skillpager.strategies.navigator.lexical import IntArray, terms_of
from skillpager.strategies.picking import cosines
from skillpager.types import FloatArray, Query

MODEL = "models/navigator/navigator.npz"
# the models learned from English skills, few of which have fewer nodes; a chance for others would be a guess
LEAST_NODES = 6
FIRST_NOT_LATIN = "\u0250"  # letters from here on are of other scripts
# a probability stays below 1, whose weight is infinite, and is rounded to millionths, where machines agree
LARGEST_NEED = 1 - 1e-6
STEPS = 1e6

# the network reads no more nodes of a skill. Of 368 pages of skills of several files, none seen in training,
# 86.4 % sufficed with an earlier model, as with all nodes; with 100 nodes 82.9 %
MOST_READ_NODES = 600
UNREAD_LOGIT = -30.0  # of the others, whose chance is 0

# chosen by cross-validation over skills (training/train_navigator.py)
SECTION_WEIGHT = 0.5  # of the mean log odds of its section beside a node's own
FILE_WEIGHT = 0.25  # of how far the log odds of the best node of its file are below the best of all
ANY_TOPIC_ODDS = 2.0  # log odds that a skill about any topic answers a query whose words it cannot have
# the price of a token falls with the size of the skill: the larger it is, the more a query needs of it
TYPICAL_TOKENS, SIZE_EXPONENT = 2000, 0.6


# terms of a short and of a long query: the medians of those that the model learned from
SHORT_TERMS, LONG_TERMS = 5, 27
# kinds of queries that have a chance and a price of their own: those in few words about one thing, those that
# say much, and those in few words about whole procedures
QUERY_KINDS = ("short", "long", "broad")
# so much of the price of a token in skills of several files, nine of ten of whose pages then suffice: by kind
# of query, on default and on lean pages
FOLDER_PRICE = np.array([[0.25, 0.5, 0.7], [0.5, 0.5, 0.5]])

# logarithms; of a page: weight of the nodes that are left out, the largest of them, tokens of those shown;
# of a query: the largest weight, all weights, tokens of the skill, terms; and how broad it is, as log odds
CHANCE_SIGNALS = ("left", "largest left", "shown", "largest", "total", "full", "terms", "breadth")
LARGEST_SKILL = 13_000  # tokens; larger ones count as this: the models learned from few of them
MOST_TERMS = 36  # further ones of a query are ignored: of the long ones, one in twenty has more
LARGEST_ODDS = 30.0  # beyond which a chance is 0 or 1


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
    left: float = 0.0
    largest: float = 0.0
    shown: float = 0.0

    def chance(self, left: float, largest: float, shown: int) -> float:
        """Return the chance that nothing is missing, for two weights and the tokens that are shown."""
        if self.base is None:
            return math.exp(-left)
        odds = self.base + self.left * _log(left) + self.largest * _log(largest) + self.shown * _log(shown)
        return 1 / (1 + math.exp(-min(LARGEST_ODDS, max(-LARGEST_ODDS, odds))))


def query_signals(query: Query, needs: FloatArray, full_tokens: int, breadth: float) -> FloatArray:
    """Return the signals of sufficiency that are the same for every page of a query."""
    weights = -np.log1p(-needs)
    terms = min(MOST_TERMS, len(set(terms_of(query.text))))
    signals = (float(weights.max()), float(weights.sum()), min(full_tokens, LARGEST_SKILL), terms + 1)
    return np.array([*(_log(signal) for signal in signals), breadth])


def _log(value: float) -> float:
    return math.log(max(value, LEAST_NEED))


def length_of(query: Query) -> float:
    """Return 0 for a short query, 1 for a long one, and a share between them."""
    terms = max(1, len(set(terms_of(query.text))))
    share = math.log(terms / SHORT_TERMS) / math.log(LONG_TERMS / SHORT_TERMS)
    return min(1.0, max(0.0, share))


def kinds_of(query: Query, breadth: float) -> FloatArray:
    """Return `(len(QUERY_KINDS),)` shares; `breadth` are the log odds that a short query is broad."""
    long = length_of(query)
    broad = (1 - long) / (1 + math.exp(-breadth))
    return np.array([(1 - long) - broad, long, broad], np.float64)


def size_factor(full_tokens: int) -> float:
    """Return the factor of the price of a token in a skill of this size."""
    return math.pow(TYPICAL_TOKENS / min(LARGEST_SKILL, max(1, full_tokens)), SIZE_EXPONENT)


@dataclass(frozen=True, eq=False)
class Limits:
    """How far pages go: the chance that they suffice, and what a token must add to it.

    Attributes:
        chance: Weights `(len(QUERY_KINDS), len(CHANCE_SIGNALS))` and biases `(len(QUERY_KINDS),)` of the log
            odds that a page suffices; None for exp(-left), which holds if needs are independent.
        price: `(2, len(QUERY_KINDS))`: chance of sufficiency that a token of the page must be worth in a
            skill of `TYPICAL_TOKENS`, by default and on lean pages.
    """

    chance: tuple[NDArray[np.float64], NDArray[np.float64]] | None
    price: FloatArray

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray], prefix: str = "") -> Self:
        """Return those of the arrays of a file whose names begin with a prefix; errors as of a model."""
        chance = arrays[f"{prefix}chance.weight"], arrays[f"{prefix}chance.bias"]
        if chance[0].shape != (len(QUERY_KINDS), len(CHANCE_SIGNALS)):
            raise ValueError("its chances were trained on other signals")
        return cls((chance[0].astype(np.float64), chance[1].astype(np.float64)), arrays[f"{prefix}price"])

    def price_of(self, kinds: FloatArray, full_tokens: int, *, lean: bool, several: bool = False) -> float:
        """Return the chance that a token must be worth, for a query of these `kinds_of` queries.

        `several` is whether the skill has several files.
        """
        price = self.price[int(lean)] * (FOLDER_PRICE[int(lean)] if several else 1.0)
        return math.exp(float(kinds @ np.log(price))) * size_factor(full_tokens)

    def odds_of(self, query: Query, needs: FloatArray, full_tokens: int, breadth: float) -> Odds:
        """Return the odds that pages for a query with these needs suffice, of a skill of `full_tokens`."""
        if self.chance is None:
            return Odds(None)
        shares = kinds_of(query, breadth)
        weights, bias = shares @ self.chance[0], float(shares @ self.chance[1])
        fixed = query_signals(query, needs, full_tokens, breadth)
        left, largest, shown = weights[:3].tolist()
        return Odds(bias + float(weights[3:] @ fixed), left, largest, shown)


@dataclass(frozen=True, eq=False)
class NeedModel:
    """The network of the navigator and its calibration.

    Attributes:
        net: Estimates needs.
        embedding: The embeddings that it reads: encoder id, `/` and text form.
        scale: Slope and intercept that calibrate its logits.
        limits: Of pages of skills without notes on nodes.
        breadth: Weights `(dim,)` and bias of the log odds that a short query is about whole procedures.
        coverage: Weights `(len(COVERAGE_NAMES),)` and bias of the log odds that a skill answers a query; None
            if they were not trained.
        limits_with_notes: Of pages of skills with notes, if they were trained.
        topics: Weights `(dim,)` and bias of the log odds that a skill is about any topic that a user brings,
            such as a quiz; None if they were not trained.
    """

    net: SequenceNet
    embedding: str
    scale: tuple[float, float]
    limits: Limits
    breadth: tuple[FloatArray, float]
    coverage: tuple[FloatArray, float] | None = None
    limits_with_notes: Limits | None = None
    topics: tuple[FloatArray, float] | None = None

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """Return the model of the arrays of a file.

        Raises:
            KeyError: One is missing.
            ValueError: It was trained on other features.
        """
        if tuple(arrays["signals"].tolist()) != NAMES:
            raise ValueError("it was trained on other features")
        net = SequenceNet({name[4:]: arrays[name] for name in arrays if name.startswith("net.")})
        slope, intercept = arrays["scale"].tolist()
        breadth = arrays["broad.weight"].astype(np.float32), float(arrays["broad.bias"])
        coverage, topics = (
            (arrays[f"{name}.weight"].astype(np.float32), float(arrays[f"{name}.bias"]))
            if f"{name}.weight" in arrays
            else None
            for name in ("covered", "topics")
        )
        if coverage and coverage[0].shape != (len(COVERAGE_NAMES),):
            raise ValueError("its coverage was trained on other signals")
        noted = Limits.of(arrays, "notes.") if "notes.price" in arrays else None
        embedding, scale = str(arrays["embedding"]), (slope, intercept)
        return cls(net, embedding, scale, Limits.of(arrays), breadth, coverage, noted, topics)

    def needs(self, known: IndexFeatures, query: Query) -> FloatArray:
        """Return `(n,)`: the chance that the query needs each node, to a millionth."""
        features = features_of(known, query)
        return self.calibrated(self._logits(known, features, self._likely(known, features)))

    def calibrated(self, logits: FloatArray) -> FloatArray:
        """Return the chances that logits of the network represent, to a millionth."""
        slope, intercept = self.scale
        chances = 1 / (1 + np.exp(-(slope * logits.astype(np.float64) + intercept)))
        needs: FloatArray = (np.rint(chances * STEPS) / STEPS).clip(0, LARGEST_NEED)
        return needs

    def limits_of(self, *, noted: bool) -> Limits:
        """Return the limits of pages of skills with notes on nodes or without."""
        return (self.limits_with_notes if noted else None) or self.limits

    def breadth_of(self, query: Query) -> float:
        """Return the log odds that a short query is about whole procedures, to a millionth."""
        weight, bias = self.breadth
        return float(np.rint(STEPS * (float(cosines(weight[None], query.embedding)[0]) + bias)) / STEPS)

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
        if self.topics is not None:
            weight, bias = self.topics
            odds += ANY_TOPIC_ODDS / (1 + math.exp(-float(known.centre @ weight) - bias))
        return float(np.rint(STEPS / (1 + np.exp(-odds))) / STEPS)

    def reasons(self, known: IndexFeatures, query: Query) -> list[dict[str, float]]:
        """Return for each node what each group of features adds to its log odds, as shares that add up to 1.

        A group's share is what the log odds lose when its features are those of an average node, and the
        notes those of a skill that has none.
        """
        features, average = features_of(known, query), self.net.arrays["0.mean"]
        likely = self._likely(known, features)
        full = self._logits(known, features, likely)
        lost, end = [], 0
        for group, names in GROUPS.items():
            start, end = end, end + len(names)
            without = features.copy()
            without[:, start:end] = 0 if group == "notes" else average[start:end]
            lost.append(np.maximum(full - self._logits(known, without, likely), 0))
        shares = np.stack(lost, axis=1)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-6)
        return [dict(zip(GROUPS, row, strict=True)) for row in shares.round(3).tolist()]

    def _likely(self, known: IndexFeatures, features: FloatArray) -> IntArray:
        """Return the ordinals that the network reads: of a large skill the sections with the best nodes."""
        member = known.section.member
        if len(member) <= MOST_READ_NODES:
            return np.arange(len(member))
        best = known.section.best(self.net.linear(features)[:, 0])
        return np.sort(np.argsort(-best[member], kind="stable")[:MOST_READ_NODES])

    def _logits(self, known: IndexFeatures, features: FloatArray, likely: IntArray) -> FloatArray:
        """Return `(n,)`: the logits of the nodes that the network reads; others are not needed."""
        sections, files = (
            np.unique(each.member[likely], return_inverse=True)[1] for each in (known.section, known.file)
        )
        logits = np.full(len(features), UNREAD_LOGIT, np.float32)
        logits[likely] = in_context(self.net.logits(features[likely], sections)[:, 0], sections, files)
        return logits


def in_context(logits: FloatArray, sections: IntArray, files: IntArray) -> FloatArray:
    """Return `(n,)` logits plus a share of the section's mean, less one of how far the file's best is behind.

    What a query needs stands together: part of a procedure is worth little, and so is the second best of a
    file that has nothing good. `sections` and `files` are the numbers of those of each node, `(n,)`.
    """
    raised = logits + SECTION_WEIGHT * (np.bincount(sections, logits) / np.bincount(sections))[sections]
    best = np.full(files.max() + 1, -np.inf)
    np.maximum.at(best, files, raised)
    found: FloatArray = (raised + FILE_WEIGHT * (best - best.max())[files]).astype(np.float32)
    return found


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
