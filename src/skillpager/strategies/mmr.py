"""Maximal Marginal Relevance over the whole node pool: the paper's selection.

    marginal(n) = mmr_lambda · relevance(n) − (1 − mmr_lambda) · redundancy(n)

relevance is the cosine of query and node, redundancy the largest cosine of the node with any
pick, zero before the first. Picking stops at `max_nodes`, when no node fits `max_tokens`, or when
the best marginal is below zero. All node types are in the pool; ties go to the earlier node.

Reference: paper §3.2, equations (2) and (3); Carbonell and Goldstein 1998.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from skillpager.strategies.budget import resolve
from skillpager.strategies.picking import Picker, cosines
from skillpager.types import Budget, FloatArray, Query, Selection, SkillIndex, SkipReason, TokenMeter

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
        relevance = cosines(index.embeddings, query.embedding)
        picker = Picker(index.nodes, resolve(budget, len(index.nodes)), meter)
        pool = _Pool(self.columns.of(index.embeddings), relevance, np.float32(self.mmr_lambda))
        reason = SkipReason.MAX_NODES
        while not picker.full and pool.left:
            best = pool.best()
            if pool.marginal[best] < 0:
                reason = SkipReason.NEGATIVE_MARGINAL
                break
            values = (float(relevance[best]), float(pool.redundancy[best]), float(pool.marginal[best]))
            picked = picker.admit(best, relevance=values[0], redundancy=values[1], marginal=values[2])
            pool.remove(best, picked=picked)
        return picker.selection(
            self.name,
            query.text,
            relevance=relevance,
            redundancy=pool.redundancy,
            marginal=pool.final(),
            reason=reason,
        )


class _Pool:
    """Candidates with their current redundancy and marginal value; a removed one has marginal -inf."""

    def __init__(
        self, column: Callable[[int], FloatArray], relevance: FloatArray, mmr_lambda: np.float32
    ) -> None:
        self._column = column
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
