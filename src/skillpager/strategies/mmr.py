"""Maximal Marginal Relevance over the whole node pool: the paper's selection.

    marginal(n) = mmr_lambda · relevance(n) − (1 − mmr_lambda) · redundancy(n)

relevance is the cosine of query and node, redundancy the largest cosine of the node with any pick, zero
before the first. Picking stops at `max_nodes`, when no node fits `max_tokens`, or when the best marginal is
below zero. All node types are in the pool; ties go to the earlier node.

The cosines of a pick with the other nodes depend on no query: up to `MAX_KEPT_NODES` they are kept for later
queries. In a larger index picking goes on among a shortlist of the most promising nodes: after the first pick
redundancy only grows and marginals only fall, so while the best of the shortlist is above the last known
marginals of all other nodes, it is the best of all. Then a new shortlist is made, and only its nodes are
compared with the picks since. The picks are the same as if every node were compared with every pick.

Reference: paper §3.2, equations (2) and (3); Carbonell and Goldstein 1998.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from skillpager.strategies.picking import (
    MIN_CACHED_NODES,
    KeptCosines,
    Numbers,
    PerIndex,
    Picker,
    cosines,
    nearest,
)
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

BoolArray = NDArray[np.bool_]

DEFAULT_MMR_LAMBDA = 0.7  # paper §3.2
# nodes on a shortlist: for each pick that is left, and besides; with these most selections need one or two
SHORTLIST_FACTOR = 1
SHORTLIST_EXTRA = 32
MAX_SHORTLIST_NODES = 256
# with so many nodes, an index's cosines take up to 16 MB
MAX_KEPT_NODES = 2_048
# the value of a node that was tried, or is not a candidate
CLOSED = np.float32(-np.inf)

# for all values of mmr_lambda; in the kilobytes of all cosines of an index, 20 MB at most
_kept: PerIndex[KeptCosines] = PerIndex(
    size_of=lambda index: max(MIN_CACHED_NODES, len(index.nodes) ** 2 // 256)
)


@dataclass(frozen=True, slots=True)
class Mmr:
    """Maximal Marginal Relevance under a budget (paper §3.2).

    Attributes:
        mmr_lambda: Weight of relevance, 0 to 1; 1 picks by relevance alone.
    """

    mmr_lambda: float = DEFAULT_MMR_LAMBDA
    name: str = "mmr"

    def __post_init__(self) -> None:
        """Check the weight.

        Raises:
            ValueError: `mmr_lambda` is outside 0 to 1.
        """
        if not 0.0 <= self.mmr_lambda <= 1.0:
            raise ValueError(f"mmr_lambda must be between 0 and 1, not {self.mmr_lambda}")

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks in the order MMR makes them; O(n·d) for each pick."""
        return self.select_among(index, query, budget=budget, meter=meter)

    def select_among(
        self,
        index: SkillIndex,
        query: Query,
        *,
        budget: Budget,
        meter: TokenMeter,
        candidates: BoolArray | None = None,
        completions: Mapping[int, Sequence[int]] | None = None,
    ) -> Selection:
        """Return what `select` returns, from some of the nodes, or with what the picks depend on.

        Args:
            index: The skill's index.
            query: The query.
            budget: The budget; the dynamic `max_nodes` follows the number of all nodes.
            meter: Prices the growing page.
            candidates: `(n,)` bool, the nodes that may be picked; None for all.
            completions: The nodes that a pick depends on, by its ordinal. They are picked right after it,
                `max_nodes` does not count them, and the redundancy of later picks ignores them.
        """
        picker = Picker(index, query, budget=budget, meter=meter, score_kind=ScoreKind.MMR_MARGIN)
        walk = _Walk(picker, index, self.mmr_lambda, candidates, completions or {})
        reason = walk.run()
        if candidates is not None:
            walk.catch_up()
            picker.refuse(np.flatnonzero(~candidates).tolist(), SkipReason.NOT_IN_POOL)
        return picker.selection(self.name, reason=reason, numbers=walk.numbers())


class _Walk:
    """One selection in progress; `candidates` and `completions` as for `select_among`."""

    def __init__(
        self,
        picker: Picker,
        index: SkillIndex,
        mmr_lambda: float,
        candidates: BoolArray | None,
        completions: Mapping[int, Sequence[int]],
    ) -> None:
        rows = index.embeddings
        self._picker, self._rows, self._completions = picker, rows, completions
        small = len(rows) <= MAX_KEPT_NODES
        self._kept = _kept.of(index, lambda _: KeptCosines(rows, len(rows))) if small else None
        self._gain: FloatArray = np.float32(mmr_lambda) * picker.relevance
        self._penalty = np.float32(1) - np.float32(mmr_lambda)
        # the gain of the nodes that can still be picked; if all are closed, the best is below zero
        self._open = self._gain.copy() if candidates is None else np.where(candidates, self._gain, CLOSED)
        # the picks that count as redundancy, and how many of them each node has been compared with
        self._picks: list[int] = []
        self._compared = np.zeros(len(rows), np.intp)
        # marginal values as far as nodes have been compared: none is larger than this
        self._value: FloatArray = self._open.copy()

    def run(self) -> SkipReason:
        """Pick until the budget or the pool ends, or the best marginal is below zero; return which."""
        picker = self._picker
        while picker.room > 0:
            best = int(self._value.argmax())  # the first of equals
            if self._value[best] < 0:
                return SkipReason.NEGATIVE_MARGINAL
            if not self._picks:
                self._pick_first(best)
            elif self._compared[best] < len(self._picks):
                self._compare(self._shortlist(best)[0])
            else:
                self._pick_from_shortlist(best)
        return SkipReason.MAX_NODES

    def catch_up(self) -> None:
        """Bring the picker's numbers of all nodes up to date."""
        self._compare(np.arange(len(self._rows)))
        self._picker.marginal = self._gain - self._penalty * self._picker.redundancy

    def numbers(self) -> partial[Numbers]:
        """Return what computes redundancy and marginal value of all nodes."""
        return partial(_numbers, self._rows, self._gain, self._penalty, self._picker.redundancy, self._picks)

    def _pick_first(self, ordinal: int) -> None:
        if not self._admit(ordinal, 0.0, self._value.item(ordinal)):
            self._value[ordinal] = CLOSED
            return
        self._picks.append(ordinal)
        self._picker.compare(ordinal)
        self._compared[:] = 1
        self._value = self._open - self._penalty * self._picker.redundancy
        self._complete(ordinal)

    def _compare(self, places: NDArray[np.intp]) -> None:
        """Bring redundancy and value of some nodes up to date."""
        missing = self._picks[int(self._compared[places].min(initial=len(self._picks))) :]
        if missing:
            redundancy = self._picker.redundancy[places]
            np.maximum(redundancy, nearest(self._rows[places], self._rows[missing]), out=redundancy)
            self._picker.redundancy[places] = redundancy
            self._value[places] = self._open[places] - self._penalty * redundancy
            self._compared[places] = len(self._picks)

    def _pick_from_shortlist(self, best: int) -> None:
        """Pick the node `best`, and others until one that is not on the shortlist may be better."""
        picker = self._picker
        places, others = self._shortlist(best)
        self._compare(places)
        ordinals = places.tolist()
        rows = self._rows if self._kept is not None else self._rows[places]
        value, redundancy = self._value[places], picker.redundancy[places]
        gain, limit = self._gain[places], CLOSED
        while picker.room > 0:
            place = int(value.argmax())
            marginal = value.item(place)
            if marginal <= limit or marginal < 0:
                break
            limit = others
            ordinal = ordinals[place]
            admitted = self._admit(ordinal, redundancy.item(place), marginal)
            value[place] = CLOSED
            if admitted:
                self._picks.append(ordinal)
                cosine = self._kept.with_row(place) if self._kept else cosines(rows, rows[place])
                np.maximum(redundancy, cosine, out=redundancy)
                np.minimum(value, gain - self._penalty * cosine, out=value)
                if self._completions:
                    self._complete(ordinal)
        self._value[places], picker.redundancy[places] = value, redundancy
        self._compared[places] = len(self._picks)

    def _shortlist(self, best: int) -> tuple[NDArray[np.intp], np.float32]:
        """Return the most promising nodes, `best` among them, and the largest value of all others."""
        value = self._value
        size = min(SHORTLIST_FACTOR * self._picker.room + SHORTLIST_EXTRA, MAX_SHORTLIST_NODES)
        if size >= len(value) or self._kept is not None:
            return np.arange(len(value)), CLOSED
        chosen = np.zeros(len(value), dtype=bool)
        chosen[value.argpartition(-size)[-size:]] = True
        chosen[best] = True
        return np.flatnonzero(chosen), value[~chosen].max(initial=CLOSED)

    def _admit(self, ordinal: int, redundancy: float, marginal: float) -> bool:
        self._open[ordinal] = CLOSED
        return self._picker.admit(ordinal, numbers=(redundancy, marginal))

    def _complete(self, ordinal: int) -> None:
        if ordinal in self._completions:
            self.catch_up()
            self._picker.complete(self._completions[ordinal])


def _numbers(
    rows: FloatArray, gain: FloatArray, penalty: np.float32, redundancy: FloatArray, picks: Sequence[int]
) -> Numbers:
    if picks:
        redundancy = np.maximum(redundancy, nearest(rows, rows[picks]))
    return redundancy, gain - penalty * redundancy
