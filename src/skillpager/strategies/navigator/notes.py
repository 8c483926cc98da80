"""What the navigator makes of notes on nodes, until it is trained on them."""

import numpy as np

from skillpager.strategies.picking import cosines
from skillpager.types import FloatArray, IndexNotes, Query

# chosen on the skills of half of the authors (training/enriched.py): what the cosine with the nearest ask of
# a node counts, and how much less than a node those are needed that must come with it
ASK_WEIGHT, ALONG_STEP = 6.0, 1.0
LEAST_NEED, STEPS = 1e-6, 1e6  # needs are rounded to millionths, where machines agree
BISECTIONS = 32


def needs_with_notes(needs: FloatArray, notes: IndexNotes, query: Query) -> FloatArray:
    """Return `(n,)`: the chances that the query needs each node, moved by what the nodes are asked for.

    The query is compared with its nearest ask, or its clause that fits best. A node that is asked for nothing
    counts as the farthest of all, one without notes as their mean. Notes say which nodes are needed, not how
    many: the sum of the chances stays.
    """
    parts = np.stack([part.embedding for part in (query, *query.clauses)], axis=1)
    of_asks = cosines(notes.rows, parts).max(1).astype(np.float64)
    nearest = np.full(len(needs), of_asks.min())
    np.maximum.at(nearest, notes.owners, of_asks)
    above = np.zeros(len(needs))
    above[notes.noted] = nearest[notes.noted] - nearest[notes.noted].mean()
    chances = needs.clip(LEAST_NEED, 1 - LEAST_NEED)
    odds = np.log(chances / (1 - chances)) + ASK_WEIGHT * above
    moved = odds.copy()
    np.maximum.at(moved, notes.along[:, 1], odds[notes.along[:, 0]] - ALONG_STEP)
    low, high = -40.0, 40.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        too_many = (1 / (1 + np.exp(-moved - middle))).sum() > chances.sum()
        low, high = (low, middle) if too_many else (middle, high)
    rounded: FloatArray = np.rint(STEPS / (1 + np.exp(-moved - low))) / STEPS
    return rounded.clip(0, 1 - LEAST_NEED)
