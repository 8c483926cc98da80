"""What the navigator makes of notes on nodes, until it is trained on them."""

import numpy as np
from numpy.typing import NDArray

from skillpager.strategies.picking import cosines
from skillpager.types import IndexNotes, Query

# chosen on the skills of half of the authors (benchmarks/enriched.py): how much the cosine of the query with
# the nearest ask of a node counts, and by how much a node may be less needed than one that it must come with
ASK_WEIGHT = 12.0
ALONG_STEP = 1.0


def odds_with_notes(odds: NDArray[np.float64], notes: IndexNotes, query: Query) -> NDArray[np.float64]:
    """Return `(n,)`: log odds that the query needs each node, moved by what the nodes are asked for.

    A node rises with the cosine of its nearest ask and the query, or the clause that fits best, above the
    mean of all nodes that have notes; one that is asked for nothing counts as the farthest of them.
    """
    parts = np.stack([part.embedding for part in (query, *query.clauses)], axis=1)
    of_asks = cosines(notes.rows, parts).max(1).astype(np.float64)
    nearest = np.full(len(odds), of_asks.min())
    np.maximum.at(nearest, notes.owners, of_asks)
    moved = odds.copy()
    moved[notes.noted] += ASK_WEIGHT * (nearest[notes.noted] - nearest[notes.noted].mean())
    source, target = notes.along.T
    result = moved.copy()
    np.maximum.at(result, target, moved[source] - ALONG_STEP)
    return result
