"""What the navigator makes of notes on nodes, until it is trained on them."""

import numpy as np
from numpy.typing import NDArray

from skillpager.strategies.picking import cosines
from skillpager.types import IndexNotes, Query

# chosen on the skills of half of the authors (training/enriched.py): what the cosine with the nearest ask of a
# node counts, how far above the mean of all nodes it makes no difference, and how much less than a node those
# are needed that must come with it
ASK_WEIGHT, ASK_MARGIN, ALONG_STEP = 6.0, 0.1, 1.0


def odds_with_notes(odds: NDArray[np.float64], notes: IndexNotes, query: Query) -> NDArray[np.float64]:
    """Return `(n,)`: log odds that the query needs each node, moved by what the nodes are asked for.

    The query is compared with its nearest ask, or its clause that fits best. A node that is asked for nothing
    counts as the farthest of all, one without notes as their mean.
    """
    parts = np.stack([part.embedding for part in (query, *query.clauses)], axis=1)
    of_asks = cosines(notes.rows, parts).max(1).astype(np.float64)
    nearest = np.full(len(odds), of_asks.min())
    np.maximum.at(nearest, notes.owners, of_asks)
    distance = np.zeros(len(odds))
    distance[notes.noted] = nearest[notes.noted] - nearest[notes.noted].mean()
    moved = odds + ASK_WEIGHT * (distance - ASK_MARGIN)
    result = moved.copy()
    np.maximum.at(result, notes.along[:, 1], moved[notes.along[:, 0]] - ALONG_STEP)
    return result
