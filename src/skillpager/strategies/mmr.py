"""Maximal Marginal Relevance over the whole node pool: the paper's selection.

    marginal(n) = mmr_lambda · relevance(n) − (1 − mmr_lambda) · redundancy(n)

relevance is the cosine of query and node, redundancy the largest cosine of the node with any
pick, zero before the first. Picking stops at `max_nodes`, when no node fits `max_tokens`, or when
the best marginal is below zero. All node types are in the pool; ties go to the earlier node.

Reference: paper §3.2, equations (2) and (3); Carbonell and Goldstein 1998.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from skillpager.strategies.budget import resolve
from skillpager.strategies.picking import Picker, cosines
from skillpager.types import Budget, FloatArray, Query, Selection, SkillIndex, SkipReason, TokenMeter

BoolArray = NDArray[np.bool_]

DEFAULT_MMR_LAMBDA = 0.7  # paper §3.2

# what one strategy keeps between queries: columns of so many indexes, so many bytes together
MAX_KEPT_INDEXES = 8
MAX_KEPT_BYTES = 16 * 1024**2


class Columns:
    """Keeps the cosines of all nodes with single nodes, within a bound, for a few indexes."""

    def __init__(self) -> None:
        """Start empty."""
        self._kept: list[tuple[FloatArray, dict[int, FloatArray]]] = []

    def of(self, embeddings: FloatArray) -> Callable[[int], FloatArray]:
        """Return a function from an ordinal to `(n,)` cosines, which callers must not change."""
        columns = next((columns for known, columns in self._kept if known is embeddings), None)
        if columns is None:
            columns = {}
            self._kept = [(embeddings, columns), *self._kept[: MAX_KEPT_INDEXES - 1]]
        most = MAX_KEPT_BYTES // (MAX_KEPT_INDEXES * embeddings.itemsize * max(1, len(embeddings)))

        def column(ordinal: int) -> FloatArray:
            found = columns.get(ordinal)
            if found is None:
                found = cosines(embeddings, embeddings[ordinal])
                if len(columns) < most:
                    columns[ordinal] = found
            return found

        return column


@dataclass(frozen=True, slots=True)
class Mmr:
    """Maximal Marginal Relevance under a budget (paper §3.2).

    Attributes:
        mmr_lambda: Weight of relevance, 0 to 1; 1 picks by relevance alone.
        name: `mmr`.
        columns: Cosines of all nodes with earlier picks, kept for the next query on the same index.
    """

    mmr_lambda: float = DEFAULT_MMR_LAMBDA
    name: str = "mmr"
    columns: Columns = field(default_factory=Columns, repr=False, compare=False)

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
                `max_nodes` does not count them, and the picks that follow are not made to differ from them.
        """
        relevance = cosines(index.embeddings, query.embedding)
        picker = Picker(index.nodes, resolve(budget, len(index.nodes)), meter)
        pool = _Pool(self.columns.of(index.embeddings), relevance, np.float32(self.mmr_lambda))
        outside = [] if candidates is None else np.flatnonzero(~candidates).tolist()
        for ordinal in outside:
            pool.remove(ordinal, picked=False)
        reason = _fill(picker, pool, completions or {})
        final = pool.final()
        picker.refuse(outside, SkipReason.NOT_IN_POOL, redundancy=pool.redundancy, marginal=final)
        return picker.selection(
            self.name,
            query.text,
            relevance=relevance,
            redundancy=pool.redundancy,
            marginal=final,
            reason=reason,
        )


def _fill(picker: Picker, pool: "_Pool", completions: Mapping[int, Sequence[int]]) -> SkipReason:
    """Pick until the budget, the pool or the marginal values end it; return why the rest is left out."""
    while not picker.full and pool.left:
        best = pool.best()
        if pool.marginal[best] < 0:
            return SkipReason.NEGATIVE_MARGINAL
        relevance, redundancy, marginal = pool.numbers(best)
        picked = picker.admit(best, relevance=relevance, redundancy=redundancy, marginal=marginal)
        pool.remove(best, picked=picked)
        for ordinal in completions.get(best, ()) if picked else ():
            relevance, redundancy, marginal = pool.numbers(ordinal)
            picker.complete(ordinal, relevance=relevance, redundancy=redundancy, marginal=marginal)
    return SkipReason.MAX_NODES


class _Pool:
    """Candidates with their current redundancy and marginal value; a removed one has marginal -inf."""

    def __init__(
        self, column: Callable[[int], FloatArray], relevance: FloatArray, mmr_lambda: np.float32
    ) -> None:
        self._column = column
        self._relevance = relevance
        self._gain = mmr_lambda * relevance
        self._open_gain = self._gain.copy()  # -inf once a candidate is removed
        self._penalty = np.float32(1) - mmr_lambda
        self.redundancy = np.zeros_like(relevance)
        self.marginal = self._gain.copy()
        self._first = True
        self.left = len(relevance)

    def best(self) -> int:
        """Return the candidate of the largest marginal value, the earlier one of equals."""
        return int(self.marginal.argmax())

    def final(self) -> FloatArray:
        """Return every node's marginal value, removed ones included."""
        return self._gain - self._penalty * self.redundancy

    def numbers(self, ordinal: int) -> tuple[float, float, float]:
        """Return relevance, redundancy and marginal value of a node, removed or not."""
        redundancy = self.redundancy[ordinal]
        marginal = self._gain[ordinal] - self._penalty * redundancy
        return float(self._relevance[ordinal]), float(redundancy), float(marginal)

    def remove(self, ordinal: int, *, picked: bool) -> None:
        """Take a candidate out; when it was picked, raise the redundancy of the rest."""
        self.left -= 1
        self._open_gain[ordinal] = self.marginal[ordinal] = -np.inf
        if not picked:
            return
        cosine = self._column(ordinal)
        if self._first:  # the first pick sets redundancy, negative cosines included
            self.redundancy, self._first = cosine.copy(), False
        else:
            np.maximum(self.redundancy, cosine, out=self.redundancy)
        np.multiply(self.redundancy, self._penalty, out=self.marginal)
        np.subtract(self._open_gain, self.marginal, out=self.marginal)
