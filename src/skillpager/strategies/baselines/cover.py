"""Facility location: relevance, and how well the picks stand for all nodes of the skill.

    score(n) = (1 − diversity) · relevance(n) + diversity · Σ over all nodes of the coverage that n adds

The coverage of a node is the square root of its summed cosines with the picks. The sum grows with the
number of nodes while relevance does not, so that a small diversity goes a long way.

Reference: Lin and Bilmes 2011; pyversity.
"""

from dataclasses import dataclass

from skillpager.strategies.baselines.versity import Diverse

# on training data 0.005 is sufficient for 55.2 % of queries at half of the tokens, 0.05 for 51.2, 0.5 for
# 23.4, and relevance alone for 55.6: coverage of the skill is not what a query asks for
DEFAULT_DIVERSITY = 0.005


@dataclass(frozen=True, slots=True)
class Cover(Diverse):
    """Greedy facility-location coverage; O(n²) for each pick.

    Under `max_tokens` all nodes are put in order, which takes seconds for a thousand.

    Attributes:
        diversity: Weight of the coverage, 0 to 1; 0 picks by relevance alone.
        name: `cover`.
    """

    diversity: float = DEFAULT_DIVERSITY
    name: str = "cover"
