"""Need instead of similarity: a small network estimates for every node whether the query can do without it.

    p(n)     = chance that the query needs node n (a network over the signals of `signals`)
    worth(n) = −log(1 − p(n)), less for a node whose twin is picked
    value(n) = worth(n) / cost(n)^COST_EXPONENT, its tokens and those of opening a gap
    next     = the node of most value, with what it cannot be read without (`units`)
    chance   = calibrated from the worth that is left out: exp(−left) if needs were independent

MMR's two ideas stay: a node is paid for what it adds to the picks, and every node of any type is in the pool.
Picking ends at the limits that are given, or when the chance that nothing is missing reaches `sufficiency`.
With neither it ends when no node is worth its tokens: one floor of value for all queries buys more
sufficiency for the same tokens than one chance for all, because it spends less where doubt remains anyway.

Reference: paper §3.2 for the ideas; the estimate is this package's (docs/models.md).
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from zipfile import BadZipFile

import numpy as np

from skillpager.errors import StrategyError
from skillpager.sequence_net import SequenceNet
from skillpager.strategies.navigator.clauses import clauses_of
from skillpager.strategies.navigator.features import GROUPS, NAMES, Place, signals_of
from skillpager.strategies.navigator.required_context import units_of
from skillpager.strategies.per_index import PerIndex
from skillpager.strategies.picking import Picker, cosines
from skillpager.types import Budget, FloatArray, Query, Selection, SkillIndex, SkipReason, TokenMeter

MODEL = "models/navigator/navigator.npz"

# chosen by cross-validation over skills (training/train_navigator.py)
COST_EXPONENT = 0.6  # of the tokens that a node costs
OPENING_TOKENS = 12.0  # what a node costs on top that is not beside a shown one: cut units are missed most
TWIN_COSINE = 0.92  # nodes nearer than this say the same thing
TWIN_SHARE = 1.0  # what a node is still worth once its twin is picked: 1 is all of it
# queries of one index whose needs are kept: the same one is asked again within another budget
MAX_KEPT_QUERIES = 32
# a probability is kept from 1, whose worth is infinite, and cut to millionths, where machines agree
LARGEST_NEED = 1 - 1e-6
STEPS = 1e6


@dataclass(frozen=True)
class NeedModel:
    """The weights of the navigator.

    Attributes:
        net: Estimates needs.
        embedding: Which rows it reads: encoder id, `/` and text form.
        scale: Slope and intercept that calibrate its logits.
        chance: Slope and intercept of the log odds of sufficiency over the log of the worth left out;
            None for exp(-left), which holds if needs are independent of each other.
        floor: Value below which a node is not worth its tokens.
    """

    net: SequenceNet
    embedding: str
    scale: tuple[float, float]
    chance: tuple[float, float] | None
    floor: float

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> "NeedModel":
        """Return the model of the arrays of a file.

        Raises:
            KeyError: One is missing.
            ValueError: It was trained on other signals.
        """
        if tuple(arrays["signals"].tolist()) != NAMES:
            raise ValueError("it was trained on other signals")
        weights = {name[4:]: arrays[name] for name in arrays if name.startswith("net.")}
        slope, intercept = arrays["scale"].tolist()
        rise, start = arrays["chance"].tolist()
        return cls(
            SequenceNet(weights),
            str(arrays["embedding"]),
            (slope, intercept),
            (rise, start),
            float(arrays["floor"]),
        )

    def needs(self, place: Place, query: Query) -> FloatArray:
        """Return `(n,)`: the chance that the query needs each node, to a millionth."""
        return self._needs(self._logits(place, signals_of(place, query)))

    def sufficiency(self, left: float) -> float:
        """Return the chance that nothing is missing when nodes of this worth are left out."""
        if self.chance is None:
            return float(np.exp(-left))
        rise, start = self.chance
        return float(1 / (1 + np.exp(-(start + rise * np.log(max(left, 1e-9))))))

    def reasons(self, place: Place, query: Query) -> list[dict[str, float]]:
        """Return for each node what each group of signals adds to its log odds, as shares that add up to 1.

        A group adds what is lost when its signals are those of an average node.
        """
        signals = signals_of(place, query)
        full = self._logits(place, signals)
        lost = []
        start = 0
        for names in GROUPS.values():
            without = signals.copy()
            without[:, start : start + len(names)] = self._average[start : start + len(names)]
            lost.append(np.maximum(full - self._logits(place, without), 0))
            start += len(names)
        shares = np.stack(lost, axis=1)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-6)
        return [dict(zip(GROUPS, row, strict=True)) for row in shares.round(3).tolist()]

    @cached_property
    def _average(self) -> FloatArray:
        return self.net.arrays["0.mean"]

    def _logits(self, place: Place, signals: FloatArray) -> FloatArray:
        return self.net.logits(signals, place.section.member)[:, 0]

    def _needs(self, logits: FloatArray) -> FloatArray:
        slope, intercept = self.scale
        chances = 1 / (1 + np.exp(-(slope * logits.astype(np.float64) + intercept)))
        needs: FloatArray = (np.rint(chances * STEPS) / STEPS).clip(0, LARGEST_NEED).astype(np.float64)
        return needs


class _Known:
    """What is kept of an index: its signals' fixed part, its units, and the needs of the last queries."""

    def __init__(self, index: SkillIndex) -> None:
        self.place = Place(index)
        self.units: Mapping[int, tuple[int, ...]] = units_of(index.nodes)
        self._lock = threading.Lock()
        self._needs: OrderedDict[tuple[str, bytes, int], tuple[NeedModel, FloatArray]] = OrderedDict()

    def needs(self, model: NeedModel, query: Query) -> FloatArray:
        """Return the needs of a query, estimating them when they are not kept; not to be changed."""
        key = (query.text, query.embedding.tobytes(), len(query.clauses))
        with self._lock:
            kept = self._needs.get(key)
        if kept is None or kept[0] is not model:
            kept = (model, model.needs(self.place, query))
            with self._lock:
                self._needs[key] = kept
                if len(self._needs) > MAX_KEPT_QUERIES:
                    self._needs.popitem(last=False)
        return kept[1]


class ShippedModel:
    """The model inside the package, read at first use."""

    def __init__(self) -> None:
        """Load nothing yet."""
        self._lock = threading.Lock()
        self._model: NeedModel | None = None

    def read(self) -> NeedModel:
        """Return the model.

        Raises:
            StrategyError: The file is missing or damaged.
        """
        with self._lock:
            if self._model is None:
                path = files("skillpager") / MODEL
                try:
                    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
                        self._model = NeedModel.of({name: arrays[name] for name in arrays.files})
                except (OSError, ValueError, KeyError, BadZipFile) as error:
                    raise StrategyError(
                        f"The shipped navigator {path} cannot be read ({error}): the installation is "
                        "damaged, so run `pip install --force-reinstall --no-deps skillpager`."
                    ) from error
            return self._model


SHIPPED = ShippedModel()


@dataclass(frozen=True, slots=True)
class Navigator:
    """Nodes by estimated need per token, until the page probably suffices.

    Attributes:
        name: `navigator`.
        model: Estimates needs; the shipped one by default.
        cost_exponent: Of the tokens that a node costs.
        opening_tokens: What a node costs on top that is not beside a shown one; its marker if that is dearer.
        twin_share: What a node is still worth once its twin is picked; 1 ignores redundancy.
        closure: Whether a pick brings what it cannot be read without.
        known: What was computed of indexes, kept for the next query.
    """

    name: str = "navigator"
    model: NeedModel | None = None
    cost_exponent: float = COST_EXPONENT
    opening_tokens: float = OPENING_TOKENS
    twin_share: float = TWIN_SHARE
    closure: bool = True
    known: PerIndex[_Known] = field(default_factory=PerIndex, repr=False, compare=False)

    @property
    def embedding(self) -> str:
        """Which rows it reads: encoder id, `/` and text form."""
        return self._model.embedding

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return the nodes of most value, up to the budget; without one, those above the model's floor.

        `max_nodes` bounds the picks when it is given; what they cannot be read without comes on top. With
        none it is the number of all nodes.

        Raises:
            StrategyError: The shipped model cannot be read.
        """
        count = len(index.nodes)
        most = count if budget.max_nodes is None else min(budget.max_nodes, count)
        picker = Picker(index.nodes, Budget(most, budget.max_tokens, budget.sufficiency), meter)
        relevance = cosines(index.embeddings, query.embedding)
        if not count:
            return _finish(self.name, query, picker, relevance, relevance, relevance, SkipReason.NOT_REACHED)
        known = self.known.of(index, _Known)
        walk = _Walk(self, known, self._model, known.needs(self._model, query), picker)
        reason = walk.run(relevance, floor=self._model.floor if budget == Budget() else 0.0)
        return _finish(self.name, query, picker, relevance, walk.redundancy, walk.needs, reason)

    def clauses(self, query: str) -> Sequence[str]:
        """Return the clauses of a query, which are looked for one by one besides the whole."""
        return clauses_of(query)

    def reasons(self, index: SkillIndex, query: Query) -> Sequence[Mapping[str, float]]:
        """Return for each node the share of each group of signals in its estimated need.

        Raises:
            StrategyError: The shipped model cannot be read.
        """
        if not index.nodes:
            return []
        return self._model.reasons(self.known.of(index, _Known).place, query)

    @property
    def _model(self) -> NeedModel:
        return self.model or SHIPPED.read()


class _Walk:
    """The picks so far, and what is worth picking next."""

    def __init__(
        self, navigator: Navigator, known: _Known, model: NeedModel, needs: FloatArray, picker: Picker
    ) -> None:
        self._navigator, self._known, self._model, self._picker = navigator, known, model, picker
        self.needs = needs
        self.redundancy = np.zeros(len(needs), np.float32)
        self._worth = -np.log1p(-needs)
        self._tokens = known.place.tokens.astype(np.float64)
        self._gap = max(float(picker.meter.gap_tokens), navigator.opening_tokens)
        self._open = np.ones(len(needs), bool)
        self._shown = np.zeros(len(needs) + 2, bool)  # with a place before the first and behind the last
        self._left = float(self._worth.sum())

    def run(self, relevance: FloatArray, *, floor: float) -> SkipReason:
        """Pick until budget, pool or what is worth its tokens ends; return why the rest is left out."""
        target = self._picker.budget.sufficiency
        while self._open.any():
            if self._picker.full:
                return SkipReason.MAX_NODES
            if target is not None and self._picker.picks and self._chance() >= target:
                return SkipReason.SUFFICIENCY
            values = self._values()
            best = int(values.argmax())
            if values[best] < floor and self._picker.picks:
                return SkipReason.BELOW_THRESHOLD
            self._pick(best, relevance, completes=False)
        return SkipReason.MAX_TOKENS

    def _chance(self) -> float:
        return self._model.sufficiency(self._left)

    def _values(self) -> FloatArray:
        """Return `(n,)` values, where a node away from what is shown costs more; -1 for the picked."""
        beside = self._shown[:-2].astype(float) + self._shown[2:]
        cost = np.maximum(self._tokens + self._gap * (1 - beside), 1.0)
        values: FloatArray = np.where(self._open, self._worth / cost**self._navigator.cost_exponent, -1.0)
        return values

    def _pick(self, ordinal: int, relevance: FloatArray, *, completes: bool) -> None:
        if not self._open[ordinal]:
            return
        self._open[ordinal] = False
        left = max(0.0, self._left - float(self._worth[ordinal]))
        admitted = self._picker.admit(
            ordinal,
            relevance=float(relevance[ordinal]),
            redundancy=float(self.redundancy[ordinal]),
            marginal=float(self.needs[ordinal]),
            sufficiency=self._model.sufficiency(left),
        )
        if not admitted:
            return
        if completes:
            self._picker.completions.add(ordinal)
        self._left = left
        self._shown[ordinal + 1] = True
        self._discount(ordinal)
        if self._navigator.closure:
            for needed in self._known.units.get(ordinal, ()):
                self._pick(needed, relevance, completes=True)

    def _discount(self, ordinal: int) -> None:
        """Lower the worth of nodes that say what a picked one says."""
        cosine = cosines(self._known.place.rows, self._known.place.rows[ordinal])
        np.maximum(self.redundancy, cosine, out=self.redundancy)
        twins = (cosine >= TWIN_COSINE) & self._open
        if twins.any():
            worth = self._worth[twins]
            self._worth[twins] = worth * self._navigator.twin_share
            self._left = max(0.0, self._left - float(worth.sum()) * (1 - self._navigator.twin_share))


def _finish(
    name: str,
    query: Query,
    picker: Picker,
    relevance: FloatArray,
    redundancy: FloatArray,
    needs: FloatArray,
    reason: SkipReason,
) -> Selection:
    return picker.selection(
        name, query.text, relevance=relevance, redundancy=redundancy, marginal=needs, reason=reason
    )
