"""Nodes by estimated need instead of similarity: a small network says what the query needs.

    p(n)      = chance that the query needs node n (a network over `features`)
    weight(n) = −log(1 − p(n))
    value(n)  = weight(n) / cost(n)^COST_EXPONENT; the cost is its tokens and those of opening a gap
    next      = the node of the largest value, with its `required_context`
    chance    = that nothing is missing, from the weight that is left out and how large the page is (`model`)

As in MMR, nodes of every type are in the pool. Redundancy counts for nothing: to discount near-copies of the
picks helped no page in cross-validation.
The page ends where its chance less the price of its tokens is largest, or, if the budget has a `sufficiency`,
where the chance reaches it. A fixed price of a token gives more sufficiency per token than a fixed target
chance, because it spends less where doubt remains anyway. `max_nodes` and `max_tokens` may end it earlier;
only a budget with `fill` goes on to them.

Reference: paper §3.2 for the ideas; the estimate is this package's (docs/measured.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from skillpager.sections import sections_of
from skillpager.strategies.navigator.features import IndexFeatures
from skillpager.strategies.navigator.lexical import clauses_of
from skillpager.strategies.navigator.model import NeedModel, Odds, shipped_model
from skillpager.strategies.navigator.required_context import required_context
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

# chosen by cross-validation over skills (training/train_navigator.py)
COST_EXPONENT = 0.6  # of the tokens that a node costs
OPENING_TOKENS = 12.0  # surcharge of a node that is not beside a shown one: neighbours are missed most
# a page without limits rather suffices than not, whatever its tokens cost: a query that needs much of a large
# skill would else get a node or two
LEAST_CHANCE = 0.5
WORTH_DIGITS = 9  # of a page's worth; machines whose logarithms differ in the last bits agree on these


class _Prepared:
    """Cached for an index: its features and required context."""

    def __init__(self, index: SkillIndex) -> None:
        self.features = IndexFeatures(index)
        self.required = required_context(index.nodes, sections_of(index))


@dataclass(frozen=True, slots=True)
class Navigator:
    """Nodes by estimated need per token, until the page probably suffices.

    Attributes:
        model: Estimates needs; None for the shipped one.
        cost_exponent: Exponent of the tokens that a node costs.
        opening_tokens: Surcharge of a node that is not beside a shown one; its mark if that costs more.
        closure: Whether a pick adds its required context.
    """

    name: str = "navigator"
    model: NeedModel | None = None
    cost_exponent: float = COST_EXPONENT
    opening_tokens: float = OPENING_TOKENS
    closure: bool = True
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
        limits = replace(budget, max_nodes=most)
        picker = Picker(index, query, budget=limits, meter=meter, score_kind=ScoreKind.NEED)
        if not index.nodes:
            return picker.selection(self.name, reason=SkipReason.NOT_REACHED)
        prepared = self.prepared.of(index, _Prepared)
        model = self._model
        needs = model.needs(prepared.features, query)
        covered = model.covered(prepared.features, query, needs)
        picker.marginal = needs
        gap = max(float(meter.gap_tokens), self.opening_tokens)
        odds = model.odds_of(query, needs, index.full_tokens)
        begin = partial(_Walk, self, prepared, needs, odds, gap)
        most = len(index.nodes)
        if budget.sufficiency is None and not budget.fill:
            most = _best_length(begin(), model.price_of(query))
        return picker.selection(self.name, reason=begin().run(picker, most), covered=covered)

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
        """Pick an open node with its required context.

        Args:
            ordinal: The node.
            picker: Records the pick, or refuses it if it does not fit; None to see what would be picked.
            completes: Whether another node required it.
        """
        if not self._open[ordinal]:
            return
        self._open[ordinal], self._values[ordinal] = False, -1.0
        self.steps += 1
        left = max(0.0, self._left - float(self._weight[ordinal]))
        shown = self.shown + int(self._prepared.features.tokens[ordinal])
        place = self._place_of_largest(ordinal)
        chance = self._odds.chance(left, self._falling[place], shown)
        if picker is not None:
            if not picker.admit(ordinal, sufficiency=chance):
                return
            rows = self._prepared.features.rows
            cosine = cosines(rows, rows[ordinal])
            np.maximum(picker.redundancy, cosine, out=picker.redundancy)
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

    def _place_of_largest(self, ordinal: int) -> int:
        """Return the place, in falling order, of the largest weight left out if a node is shown, too."""
        place = self._place
        while place < len(self._order) and (
            self._is_shown[self._order[place]] or self._order[place] == ordinal
        ):
            place += 1
        return place


def _best_length(walk: _Walk, price: float) -> int:
    """Return after how many steps of a walk its chance less the price of its tokens is largest.

    Only lengths whose chance is at least `LEAST_CHANCE` count; if none is, the walk goes to its end.
    """
    length, largest = None, -np.inf
    # no chance is above 1, so a page that has more tokens is worth less than that
    while 1 - price * walk.shown > largest and (ordinal := walk.best()) is not None:
        walk.pick(ordinal, None)
        worth = round(walk.chance - price * walk.shown, WORTH_DIGITS)
        if worth > largest and walk.chance >= LEAST_CHANCE:
            length, largest = walk.steps, worth
    return length or walk.steps
