"""The strategies of pyversity as ours: its order, our budget and record.

`diversity` is pyversity's own: 0 is relevance alone, 1 diversity alone, the opposite of `mmr_lambda`. What
lies between means something else in each strategy, so that each has a default of its own, chosen on
training data.

Reference: pyversity 0.2 (Pringled).
"""

import numpy as np

from skillpager.errors import require_extra
from skillpager.strategies.budget import resolve
from skillpager.strategies.picking import cosines
from skillpager.strategies.scoring import ScoredPicker, select_by_score
from skillpager.types import Budget, FloatArray, Query, Selection, SkillIndex, TokenMeter


def check_diversity(diversity: float) -> None:
    """Raise for a diversity that is none.

    Raises:
        ValueError: It is outside 0 to 1.
    """
    if not 0.0 <= diversity <= 1.0:
        raise ValueError(f"diversity must be between 0 and 1, not {diversity}")


def select_diverse(
    strategy: str,
    diversity: float,
    index: SkillIndex,
    query: Query,
    *,
    budget: Budget,
    meter: TokenMeter,
    jitter: float = 0.0,
) -> Selection:
    """Return the selection that admits nodes in pyversity's order until it is full.

    Under `max_tokens` the order is that of all nodes: one that does not fit is passed over for the next,
    and the order is not computed anew. The marginal value is pyversity's score at that rank; nodes that
    no rank was asked for have 0.

    Args:
        strategy: `dpp`, `msd` or `cover`: pyversity's name and ours.
        diversity: Weight of diversity, 0 to 1.
        index: The skill's index.
        query: The query.
        budget: How much the page may hold.
        meter: Prices the growing page.
        jitter: Added to the cosine of each node with itself, so that no row is a sum of others.

    Raises:
        MissingExtraError: The `pyversity` package is not installed.
    """
    package = require_extra("pyversity", extra="strategies", purpose=f"The strategy {strategy}")
    relevance = cosines(index.embeddings, query.embedding)
    if diversity == 0:  # pyversity's own order by relevance does not keep ties in document order
        return select_by_score(strategy, index, query, relevance, budget=budget, meter=meter)
    total = len(index.nodes)
    ranks = resolve(budget, total).max_nodes if budget.max_tokens is None else total
    rows = _independent(index.embeddings, jitter) if jitter else index.embeddings
    ranked = package.diversify(rows, relevance, k=ranks, strategy=strategy, diversity=diversity)
    scores: FloatArray = np.zeros_like(relevance)
    scores[ranked.indices] = ranked.selection_scores
    picker = ScoredPicker(index, query, scores, budget=budget, meter=meter)
    picker.admit_in_order(ranked.indices.tolist())
    return picker.selection(strategy)


def _independent(rows: FloatArray, jitter: float) -> FloatArray:
    """Return `(n, dim + n)`: rows of the same cosines with each other, and `jitter` more with themselves."""
    own = np.sqrt(jitter) * np.eye(len(rows), dtype=np.float32)
    return np.concatenate([rows, own.astype(np.float32)], axis=1)
