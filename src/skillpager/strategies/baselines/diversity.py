"""Other ways to weigh relevance against variety: adapters of pyversity's strategies.

`diversity` is pyversity's: 0 is relevance alone, 1 diversity alone, the opposite of `mmr_lambda`. The values
between mean something else in each strategy: each has its own default, chosen on training data.

Reference: pyversity 0.2 (Pringled).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skillpager.errors import require_extra
from skillpager.strategies.picking import Picker, cosines, resolve, select_by_score
from skillpager.types import Budget, FloatArray, Query, ScoreKind, Selection, SkillIndex, TokenMeter


@dataclass(frozen=True, slots=True)
class Diverse:
    """A strategy of pyversity, of the same name.

    `diversity` is 0 to 1; 0 picks by relevance alone. `jitter` is added to the cosine of each node with
    itself, so that no row is a sum of others.
    """

    diversity: float
    name: str
    jitter: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.diversity <= 1.0:
            raise ValueError(f"diversity must be between 0 and 1, not {self.diversity}")

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return the selection that admits nodes in pyversity's order until it is full.

        Under `max_tokens` all nodes are put in order once; one that does not fit is passed over for the next.
        The marginal value is pyversity's score at that rank, 0 for nodes without a rank.
        """
        package = require_extra("pyversity", extra="strategies", purpose=f"The strategy {self.name}")
        relevance = cosines(index.embeddings, query.embedding)
        if self.diversity == 0:  # pyversity's own order by relevance does not keep ties in document order
            return select_by_score(self.name, index, query, relevance, budget=budget, meter=meter)
        total = len(index.nodes)
        ranks = resolve(budget, total).max_nodes if budget.max_tokens is None else total
        rows = index.embeddings
        if self.jitter:  # more columns: the same cosines with other rows, and `jitter` more with itself
            own = math.sqrt(self.jitter) * np.eye(total, dtype=np.float32)
            rows = np.concatenate([rows, own], axis=1)
        ranked = package.diversify(rows, relevance, k=ranks, strategy=self.name, diversity=self.diversity)
        scores: FloatArray = np.zeros_like(relevance)
        scores[ranked.indices] = ranked.selection_scores
        kind = ScoreKind.DIVERSITY
        picker = Picker(index, query, budget=budget, meter=meter, scores=scores, score_kind=kind)
        picker.fill(ranked.indices.tolist())
        return picker.selection(self.name)


@dataclass(frozen=True, slots=True)
class Dpp(Diverse):
    """A determinantal point process: relevant nodes whose rows span the largest volume; O(n·k·(d + k)).

    Each pick is the node with the longest remainder once its projection on the earlier picks is subtracted,
    scaled by a weight that grows exponentially with relevance. When the picks span all directions, that
    weight alone decides. At diversity 1 relevance has no influence.

    Reference: Chen, Zhang and Zhou 2018, fast greedy MAP inference; pyversity.
    """

    # pyversity's default; on training data all values from 0.1 to 0.5 are within 1 point of each other, at
    # half of the tokens 0.5 is ahead by 2
    diversity: float = 0.5
    name: str = "dpp"
    # on the diagonal of the kernel: far above the rounding errors of float32, which would decide (or
    # overflow) once the picks span all directions, and far below the cosines
    jitter: ClassVar[float] = 1e-3


@dataclass(frozen=True, slots=True)
class Msd(Diverse):
    """Max-sum diversification: relevance, and the distances to all earlier picks added up; O(n·d) a pick.

        score(n) = (1 − diversity) · relevance(n) + diversity · Σ (1 − cosine(n, pick))

    The sum grows with every pick while relevance does not, so that a small diversity has a large effect.

    Reference: Borodin, Lee and Ye 2012; pyversity.
    """

    # on training data 0.01 is sufficient for 58.3 % of queries at half of the tokens, 0.1 for 49.3, 0.5 for
    # 34.7, and relevance alone for 55.6
    diversity: float = 0.01
    name: str = "msd"


@dataclass(frozen=True, slots=True)
class Cover(Diverse):
    """Facility location: relevance, and how well the picks represent all nodes of the skill; O(n²) a pick.

        score(n) = (1 − diversity) · relevance(n) + diversity · Σ over all nodes of the coverage that n adds

    The coverage of a node is the square root of its summed cosines with the picks. The sum grows with the
    number of nodes while relevance does not, so that a small diversity has a large effect. Under `max_tokens`
    all nodes are put in order, which takes seconds for a thousand.

    Reference: Lin and Bilmes 2011; pyversity.
    """

    # on training data 0.005 is sufficient for 55.2 % of queries at half of the tokens, 0.05 for 51.2, 0.5 for
    # 23.4, and relevance alone for 55.6: coverage of the skill is not what a query asks for
    diversity: float = 0.005
    name: str = "cover"
