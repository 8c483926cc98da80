"""Nodes by estimated need instead of similarity: a small network says what the query needs.

    p(n)      = chance that the query needs node n (a network over `features`)
    weight(n) = −log(1 − p(n))
    value(n)  = weight(n) / cost(n)^COST_EXPONENT; the cost is its tokens and those of opening a gap
    next      = the node of the largest value, with its `required_context`
    chance    = that nothing is missing, from the weight that is left out and how large the page is (`Odds`)

As in MMR, nodes of every type are in the pool. Redundancy counts for nothing: to discount near-copies of the
picks helped no page in cross-validation.
The page ends where its chance less the price of its tokens is largest, or, if the budget has a `sufficiency`,
where the chance reaches it. A fixed price of a token gives more sufficiency per token than a fixed target
chance, because it spends less where doubt remains anyway. `max_nodes` and `max_tokens` may end it earlier;
only a budget with `fill` goes on to them.

Reference: paper §3.2 for the ideas; the estimate is this package's (docs/measured.md).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from skillpager.errors import StrategyError, reinstall_command
from skillpager.sections import sections_of
from skillpager.sequence_net import SequenceNet
from skillpager.strategies.navigator.features import (
    CHANCE_SIGNALS,
    COVERAGE_NAMES,
    GROUPS,
    NAMES,
    QUERY_KINDS,
    IndexFeatures,
    Odds,
    coverage_signals,
    features_of,
    kinds_of,
    query_signals,
)
from skillpager.strategies.navigator.lexical import IntArray, clauses_of
from skillpager.strategies.navigator.notes import needs_with_notes
from skillpager.strategies.navigator.structure import Variants, required_context
from skillpager.strategies.picking import PerIndex, Picker, cosines, falling
from skillpager.types import (
    Budget,
    FloatArray,
    Query,
    ScoreKind,
    Selection,
    SkillIndex,
    SkipReason,
    TokenMeter,
)

MODEL = "models/navigator/navigator.npz"
# the models learned from English skills, few of which have fewer nodes; a chance for others would be a guess
LEAST_NODES = 6
FIRST_NOT_LATIN = "\u0250"  # letters from here on are of other scripts
# a probability stays below 1, whose weight is infinite, and is rounded to millionths, where machines agree
LARGEST_NEED = 1 - 1e-6
STEPS = 1e6

# the network reads no more nodes of a skill. With 100 of them (a third of the nodes, in the median) pages of
# skills of several files suffice for 89.2 % of 360 queries, with all for 88.6 %
MOST_READ_NODES = 600
UNREAD_LOGIT = -30.0  # of the others, whose chance is 0

# chosen by cross-validation over skills (training/train_navigator.py)
COST_EXPONENT = 0.6  # of the tokens that a node costs
SECTION_WEIGHT = 0.5  # of the mean log odds of its section beside a node's own
OPENING_TOKENS = 12.0  # surcharge of a node that is not beside a shown one: neighbours are missed most
# a page without limits rather suffices than not, whatever its tokens cost: a query that needs much of a large
# skill would else get a node or two
LEAST_CHANCE = 0.5
# the price of a token falls with the size of the skill: the larger it is, the more a query needs of it
TYPICAL_TOKENS, SIZE_EXPONENT = 2000, 0.6
# a page without limits has no more tokens: of folders of thousands of nodes the chance would grow too slowly
MOST_TOKENS = 8000
# a page that saves less than this share of the skill is the whole skill: so little is not worth a doubt
LEAST_SAVING = 0.2
# below this chance that the skill answers the query at all, its page is lean, and as short as pays off
LEAN_BELOW = 0.1
WORTH_DIGITS = 9  # of a page's worth; machines whose logarithms differ in the last bits agree on these


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

    def price_of(self, query: Query, full_tokens: int, breadth: float, *, lean: bool) -> float:
        """Return the chance that a token must be worth, for a query on a skill of `full_tokens`."""
        price = math.exp(float(kinds_of(query, breadth) @ np.log(self.price[int(lean)])))
        return price * math.pow(TYPICAL_TOKENS / max(1, full_tokens), SIZE_EXPONENT)

    def odds_of(self, query: Query, needs: FloatArray, full_tokens: int, breadth: float) -> Odds:
        """Return the odds that pages for a query with these needs suffice, of a skill of `full_tokens`."""
        if self.chance is None:
            return Odds(None, 0.0, 0.0, 0.0)
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
    """

    net: SequenceNet
    embedding: str
    scale: tuple[float, float]
    limits: Limits
    breadth: tuple[FloatArray, float]
    coverage: tuple[FloatArray, float] | None = None
    limits_with_notes: Limits | None = None

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
        coverage = None
        if "covered.weight" in arrays:
            weight = arrays["covered.weight"].astype(np.float32)
            if weight.shape != (len(COVERAGE_NAMES),):
                raise ValueError("its coverage was trained on other signals")
            coverage = weight, float(arrays["covered.bias"])
        noted = Limits.of(arrays, "notes.") if "notes.price" in arrays else None
        embedding, scale = str(arrays["embedding"]), (slope, intercept)
        return cls(net, embedding, scale, Limits.of(arrays), breadth, coverage, noted)

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
        return float(np.rint(STEPS / (1 + np.exp(-odds))) / STEPS)

    def reasons(self, known: IndexFeatures, query: Query) -> list[dict[str, float]]:
        """Return for each node what each group of features adds to its log odds, as shares that add up to 1.

        A group's share is what the log odds lose when its features are those of an average node.
        """
        features, average = features_of(known, query), self.net.arrays["0.mean"]
        likely = self._likely(known, features)
        full = self._logits(known, features, likely)
        lost, end = [], 0
        for names in GROUPS.values():
            start, end = end, end + len(names)
            without = features.copy()
            without[:, start:end] = average[start:end]
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
        sections = np.unique(known.section.member[likely], return_inverse=True)[1]
        logits = np.full(len(features), UNREAD_LOGIT, np.float32)
        logits[likely] = with_sections(self.net.logits(features[likely], sections)[:, 0], sections)
        return logits


def with_sections(logits: FloatArray, member: IntArray) -> FloatArray:
    """Return `(n,)` logits to which each node's section adds its mean, given `(n,)` numbers of sections.

    What a query needs stands together, and part of a procedure is worth little.
    """
    means = np.bincount(member, logits) / np.bincount(member)
    raised: FloatArray = (logits + SECTION_WEIGHT * means[member]).astype(np.float32)
    return raised


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


class _Prepared:
    """Cached for an index: its features and required context."""

    def __init__(self, index: SkillIndex) -> None:
        self.features = IndexFeatures(index)
        self.required = required_context(index.nodes, sections_of(index))
        self.variants = Variants(index.nodes)


@dataclass(frozen=True, slots=True)
class Navigator:
    """Nodes by estimated need per token, until the page probably suffices.

    Attributes:
        model: Estimates needs; None for the shipped one.
        cost_exponent: Exponent of the tokens that a node costs.
        opening_tokens: Surcharge of a node that is not beside a shown one; its mark if that costs more.
        closure: Whether a pick adds its required context.
        lean: Whether a page without limits ends where it probably suffices; by default it ends where it
            almost certainly does.
    """

    name: str = "navigator"
    model: NeedModel | None = None
    cost_exponent: float = COST_EXPONENT
    opening_tokens: float = OPENING_TOKENS
    closure: bool = True
    lean: bool = False
    prepared: PerIndex[_Prepared] = field(default_factory=PerIndex, repr=False, compare=False)

    @property
    def embedding(self) -> str:
        """The embeddings that it reads: encoder id, `/` and text form."""
        return self._model.embedding

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return the nodes of the largest value while they are worth their tokens, or as the budget says.

        `max_nodes` bounds the picks if it is given; their required context comes on top. The default is the
        number of all nodes.

        Raises:
            StrategyError: The shipped model cannot be read.
        """
        most = len(index.nodes) if budget.max_nodes is None else budget.max_nodes
        bounded = replace(budget, max_nodes=most)
        picker = Picker(index, query, budget=bounded, meter=meter, score_kind=ScoreKind.NEED)
        if not index.nodes:
            return picker.selection(self.name, reason=SkipReason.NOT_REACHED)
        prepared = self.prepared.of(index, _Prepared)
        model = self._model
        needs = model.needs(prepared.features, query)
        covered = model.covered(prepared.features, query, needs)
        limits, breadth = model.limits, model.breadth_of(query)
        if index.notes is not None:
            needs = needs_with_notes(needs, index.notes, query)
            limits = model.limits_with_notes or limits
        needs[prepared.variants.others(query.text, needs)] = 0.0
        picker.marginal = needs
        gap = max(float(meter.gap_tokens), self.opening_tokens)
        odds = limits.odds_of(query, needs, index.full_tokens, breadth)
        begin = partial(_Walk, self, prepared, needs, odds, gap)
        most = len(index.nodes)
        if budget.sufficiency is None and not budget.fill:
            unanswered = covered is not None and covered < LEAN_BELOW
            lean = self.lean or unanswered
            price = limits.price_of(query, index.full_tokens, breadth, lean=lean)
            most, shown = _best_length(begin(), price, 0.0 if unanswered else LEAST_CHANCE)
            ceiling = index.full_tokens if budget.max_tokens is None else budget.max_tokens
            saves_little = shown >= (1 - LEAST_SAVING) * index.full_tokens
            if saves_little and index.full_tokens <= ceiling and not lean:
                most = len(index.nodes)
        reason = begin().run(picker, most)
        picker.compare_picks()
        return picker.selection(self.name, reason=reason, covered=covered)

    def clauses(self, query: str) -> Sequence[str]:
        """Return the clauses of a query, which are embedded in addition to the whole."""
        return clauses_of(query)

    def reasons(self, index: SkillIndex, query: Query) -> Sequence[Mapping[str, float]]:
        """Return for each node the share of each group of features in its estimated need.

        Raises:
            StrategyError: The shipped model cannot be read.
        """
        if not index.nodes:
            return []
        return self._model.reasons(self.prepared.of(index, _Prepared).features, query)

    @property
    def _model(self) -> NeedModel:
        return self.model or shipped_model()


@dataclass(frozen=True, slots=True)
class Lean(Navigator):
    """The navigator with pages that end where they probably suffice."""

    name: str = "lean"
    lean: bool = True


class _Walk:
    """Nodes in the order of picking: which are open or shown, and the weight and value of each.

    Attributes:
        steps: How many nodes were picked or refused.
        shown: Tokens of the nodes that are shown.
        chance: That the shown nodes suffice.
    """

    def __init__(
        self, navigator: Navigator, prepared: _Prepared, needs: FloatArray, odds: Odds, gap: float
    ) -> None:
        self._navigator, self._prepared, self._odds = navigator, prepared, odds
        count = len(needs)
        self._weight = -np.log1p(-needs)
        self._open = np.ones(count, bool)
        self._is_shown = np.zeros(count, bool)
        self._left = float(self._weight.sum())
        # by falling weight, of which the first that is not shown is the largest that is left out; 0 ends them
        self._order = falling(self._weight)
        self._falling = [*self._weight[self._order].tolist(), 0.0]
        self._place = 0
        # shown neighbours of each node
        self._beside = np.zeros(count, np.intp)
        costs = prepared.features.tokens.astype(np.float64) + gap * np.array([[1.0], [0.0], [-1.0]])
        # by number of shown neighbours
        self._divisor = np.maximum(costs, 1.0) ** navigator.cost_exponent
        self._values = self._weight / self._divisor[0]
        self.steps, self.shown, self.chance = 0, 0, 0.0

    def run(self, picker: Picker, most: int) -> SkipReason:
        """Pick until the budget ends, no node is left or `most` were tried; return why it ended."""
        target = picker.budget.sufficiency
        while True:
            best = self.best()
            if best is None:
                return SkipReason.MAX_TOKENS
            if picker.room <= 0:
                return SkipReason.MAX_NODES
            if target is not None and picker.picks and self.chance >= target:
                return SkipReason.SUFFICIENCY
            if self.steps >= most and picker.picks:
                return SkipReason.BELOW_THRESHOLD
            self.pick(best, picker)

    def best(self) -> int | None:
        """Return the open node of the largest value; None if no node is open."""
        best = int(self._values.argmax())
        # values of open nodes are 0 or more, those of others -1
        return best if self._open[best] else None

    def pick(self, ordinal: int, picker: Picker | None, *, completes: bool = False) -> None:
        """Pick an open node with its required context; `completes` if it is that of another node.

        The picker records the pick, or refuses it if it does not fit; None to see what would be picked.
        """
        if not self._open[ordinal]:
            return
        self._open[ordinal], self._values[ordinal] = False, -1.0
        self.steps += 1
        left = max(0.0, self._left - float(self._weight[ordinal]))
        shown = self.shown + int(self._prepared.features.tokens[ordinal])
        # the place in falling order of the largest weight that is left out when this node is shown, too
        place = self._place
        while place < len(self._order) and (
            self._is_shown[self._order[place]] or self._order[place] == ordinal
        ):
            place += 1
        chance = self._odds.chance(left, self._falling[place], shown)
        if picker is not None:
            if not picker.admit(ordinal, sufficiency=chance):
                return
            if completes:
                picker.completions.add(ordinal)
        self._is_shown[ordinal] = True
        self._left, self.shown, self._place, self.chance = left, shown, place, chance
        for near in (ordinal - 1, ordinal + 1):
            if 0 <= near < len(self._open):
                self._beside[near] += 1
                if self._open[near]:
                    self._values[near] = self._weight[near] / self._divisor[self._beside[near], near]
        if self._navigator.closure:
            for needed in self._prepared.required.get(ordinal, ()):
                self.pick(needed, picker, completes=True)


def _best_length(walk: _Walk, price: float, least: float) -> tuple[int, int]:
    """Return the steps and tokens of a walk at which its chance less the price of its tokens is largest.

    Only lengths whose chance is at least `least` count; if none is, the walk goes to its end, or to
    `MOST_TOKENS`.
    """
    found, largest, last = None, -np.inf, (1, 0)
    # no chance is above 1, so a page that has more tokens is worth less than that
    while 1 - price * walk.shown > largest and (ordinal := walk.best()) is not None:
        walk.pick(ordinal, None)
        if walk.shown > MOST_TOKENS:
            break
        last = walk.steps, walk.shown
        worth = round(walk.chance - price * walk.shown, WORTH_DIGITS)
        if worth > largest and walk.chance >= least:
            found, largest = (walk.steps, walk.shown), worth
    return found or last
