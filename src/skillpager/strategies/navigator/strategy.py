"""Nodes by estimated need instead of similarity: a small network says what the query needs.

    p(n)      = chance that the query needs node n (a network over `features`)
    weight(n) = −log(1 − p(n)), less for a node whose twin is picked
    value(n)  = weight(n) / cost(n)^COST_EXPONENT; the cost is its tokens and those of opening a gap
    next      = the node of the largest value, with its `required_context`
    chance    = calibrated from the weight that is left out: exp(−left) if needs were independent

MMR's two ideas stay: a node counts for what it adds to the picks, and nodes of every type are in the pool.
Picking stops when the best value falls below a fixed threshold, or, if the budget has a `sufficiency`, when
the chance that nothing is missing reaches it. A fixed threshold gives more sufficiency per token than a fixed
target chance, because it spends less where doubt remains anyway. `max_nodes` and `max_tokens` may end it
earlier; only a budget with `fill` goes on to them.

Reference: paper §3.2 for the ideas; the estimate is this package's (docs/models.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from skillpager.memory import LRUCache
from skillpager.strategies.navigator.features import IndexFeatures
from skillpager.strategies.navigator.lexical import clauses_of
from skillpager.strategies.navigator.model import NeedModel, shipped_model
from skillpager.strategies.navigator.required_context import required_context
from skillpager.strategies.picking import KeptCosines, PerIndex, Picker
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
TWIN_COSINE = 0.92  # nodes closer than this say the same thing
TWIN_SHARE = 1.0  # of its weight that a node retains once its twin is picked
# for one index: the same query often comes again with another budget
MAX_CACHED_QUERIES = 32
MAX_CACHED_COLUMNS = 200  # for one index: 800 bytes a node


class _Prepared:
    """Cached for an index: its features, required context, and the needs of the last queries."""

    def __init__(self, index: SkillIndex) -> None:
        self.features = IndexFeatures(index)
        self.required = required_context(index.nodes)
        self.cosines = KeptCosines(self.features.rows, MAX_CACHED_COLUMNS)
        self._estimates = LRUCache[tuple[NeedModel, str, bytes, int], tuple[FloatArray, float | None]](
            MAX_CACHED_QUERIES
        )

    def estimates(self, model: NeedModel, query: Query) -> tuple[FloatArray, float | None]:
        """Return the needs of a query, and the chance that the skill covers it; cached or estimated.

        Callers must not change the array.
        """

        def estimate() -> tuple[FloatArray, float | None]:
            needs = model.needs(self.features, query)
            return needs, model.covered(self.features, query, needs)

        key = (model, query.text, query.embedding.tobytes(), len(query.clauses))
        return self._estimates.get_or_make(key, estimate)


@dataclass(frozen=True, slots=True)
class Navigator:
    """Nodes by estimated need per token, until the page probably suffices.

    Attributes:
        model: Estimates needs; None for the shipped one.
        cost_exponent: Exponent of the tokens that a node costs.
        opening_tokens: Surcharge of a node that is not beside a shown one; its mark if that costs more.
        twin_share: Share of its weight that a node retains once its twin is picked; 1 ignores redundancy.
        closure: Whether a pick adds its required context.
    """

    name: str = "navigator"
    model: NeedModel | None = None
    cost_exponent: float = COST_EXPONENT
    opening_tokens: float = OPENING_TOKENS
    twin_share: float = TWIN_SHARE
    closure: bool = True
    prepared: PerIndex[_Prepared] = field(default_factory=PerIndex, repr=False, compare=False)

    @property
    def embedding(self) -> str:
        """The embeddings that it reads: encoder id, `/` and text form."""
        return self._model.embedding

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return the nodes of the largest value, down to the model's floor or as the budget says.

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
        picker.marginal, covered = prepared.estimates(self._model, query)
        walk = _Walk(self, self._model, prepared, picker)
        by_itself = budget.sufficiency is None and not budget.fill
        reason = walk.run(floor=self._model.floor_of(query) if by_itself else 0.0)
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


class _Walk:
    """One selection in progress: which nodes are open or shown, and the weight and value of each."""

    def __init__(self, navigator: Navigator, model: NeedModel, prepared: _Prepared, picker: Picker) -> None:
        self._navigator, self._model, self._prepared, self._picker = navigator, model, prepared, picker
        count = len(picker.marginal)
        self._weight = -np.log1p(-picker.marginal)
        self._open = np.ones(count, bool)
        self._left = float(self._weight.sum())
        # shown neighbours of each node
        self._beside = np.zeros(count, np.intp)
        gap = max(float(picker.meter.gap_tokens), navigator.opening_tokens)
        costs = prepared.features.tokens.astype(np.float64) + gap * np.array([[1.0], [0.0], [-1.0]])
        # by number of shown neighbours
        self._divisor = np.maximum(costs, 1.0) ** navigator.cost_exponent
        self._values = self._weight / self._divisor[0]

    def run(self, *, floor: float) -> SkipReason:
        """Pick until the budget ends, no node is left or the best value is below `floor`; return why."""
        picker, target = self._picker, self._picker.budget.sufficiency
        while True:
            best = int(self._values.argmax())
            # values of open nodes are 0 or more, those of others -1
            if not self._open[best]:
                return SkipReason.MAX_TOKENS
            if picker.room <= 0:
                return SkipReason.MAX_NODES
            if target is not None and picker.picks and self._model.sufficiency(self._left) >= target:
                return SkipReason.SUFFICIENCY
            if self._values[best] < floor and picker.picks:
                return SkipReason.BELOW_THRESHOLD
            self._pick(best, completes=False)

    def _pick(self, ordinal: int, *, completes: bool) -> None:
        """Pick an open node if it fits, with its required context; lower the weight of its twins."""
        if not self._open[ordinal]:
            return
        picker, share = self._picker, self._navigator.twin_share
        self._open[ordinal], self._values[ordinal] = False, -1.0
        left = max(0.0, self._left - float(self._weight[ordinal]))
        if not picker.admit(ordinal, sufficiency=self._model.sufficiency(left)):
            return
        if completes:
            picker.completions.add(ordinal)
        self._left = left
        cosine = self._prepared.cosines.with_row(ordinal)
        np.maximum(picker.redundancy, cosine, out=picker.redundancy)
        if share != 1:
            twins = np.flatnonzero((cosine >= TWIN_COSINE) & self._open)
            if len(twins):
                weight = self._weight[twins]
                self._weight[twins] = weight * share
                self._left = max(0.0, self._left - float(weight.sum()) * (1 - share))
                self._values[twins] = self._weight[twins] / self._divisor[self._beside[twins], twins]
        for near in (ordinal - 1, ordinal + 1):
            if 0 <= near < len(self._open):
                self._beside[near] += 1
                if self._open[near]:
                    self._values[near] = self._weight[near] / self._divisor[self._beside[near], near]
        if self._navigator.closure:
            for needed in self._prepared.required.get(ordinal, ()):
                self._pick(needed, completes=True)
