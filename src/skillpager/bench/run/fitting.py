"""Fit the settings of the paper's graph baselines that depend on the encoder, on training skills.

The paper gives neither the threshold of `greedy_graph` nor the k of `topk_dependency`, only how many nodes
each selects on average (§4.3, table tab:main-results). Both are set so that they select as many here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from skillpager.bench.data import to_skill
from skillpager.bench.data.records import QueryRecord, SkillRecord, records_digest
from skillpager.bench.report import paper
from skillpager.bench.report.statistics import Numbers
from skillpager.errors import BenchError
from skillpager.pager import SkillPager
from skillpager.pages.assemble import NodeMeter
from skillpager.strategies.baselines.graph import NO_THRESHOLD, GreedyGraph, TopKDependency
from skillpager.types import Budget, Query, Selection, SkillIndex, Strategy

_PAPER_NODES = {row.label: row.nodes or 0.0 for row in paper.MAIN.rows}
GREEDY_NODES, DEPENDENCY_NODES = _PAPER_NODES["greedy_graph"], _PAPER_NODES["topk_dependency"]
# a threshold is rounded to so many digits, so that it can be written in a label
DIGITS = 3
# the paper's smaller budget of nodes: with predecessors on top, more seeds would be far from its 14.8 nodes
SEEDS = range(1, 21)

Case = tuple[SkillIndex, Query]


@dataclass(frozen=True, slots=True)
class FittedBaselines:
    """The settings for one encoder and text form, and what they were fitted on.

    Attributes:
        encoder: Id of the encoder.
        embedded_text: Which text of a node is embedded: `context`, `heading` or `bare`.
        threshold: Least gain of `greedy_graph`, -1 to 1.
        seeds: The k of `topk_dependency`.
        greedy_nodes: Mean number of nodes that `greedy_graph` selects with that threshold.
        dependency_nodes: Mean number of nodes that `topk_dependency` selects with that k.
        skills: Number of training skills.
        queries: Number of queries about them.
        mean_nodes: Mean number of nodes of a skill.
        skills_sha256: Digest of the training skills, as in the manifest of a benchmark folder.
    """

    encoder: str
    embedded_text: str
    threshold: float
    seeds: int
    greedy_nodes: float
    dependency_nodes: float
    skills: int
    queries: int
    mean_nodes: float
    skills_sha256: str


def fit_baselines(
    pager: SkillPager,
    skills: Sequence[SkillRecord],
    queries: Sequence[QueryRecord],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> FittedBaselines:
    """Return the settings with which the baselines select as many nodes as in the paper, on training skills.

    `progress` is called with the skills that are indexed and all skills.

    Raises:
        BenchError: There are no queries.
        SkillPagerError: A skill cannot be indexed.
    """
    if not queries:
        raise BenchError("The data has no queries, and without them nothing can be fitted.")
    asked: dict[str, list[str]] = {}
    for query in queries:
        asked.setdefault(query.skill, []).append(query.query)
    cases: list[Case] = []
    sizes: list[int] = []
    used = [record for record in skills if record.id in asked]
    for number, record in enumerate(used, 1):
        index = pager.index(to_skill(record))
        sizes.append(len(index.nodes))
        cases += [(index, Query(text, pager.embed_query(text))) for text in asked[record.id]]
        if progress:
            progress(number, len(used))
    lowest = [lowest_gains(_select(case, GreedyGraph(NO_THRESHOLD))) for case in cases]
    threshold, greedy_nodes = best_threshold(lowest, GREEDY_NODES)
    # of two that are as near the smaller
    nodes = {k: fmean(len(_select(case, TopKDependency(k)).picks) for case in cases) for k in SEEDS}
    seeds = min(nodes, key=lambda k: abs(nodes[k] - DEPENDENCY_NODES))
    return FittedBaselines(
        encoder=pager.recipe.encoder,
        embedded_text=pager.recipe.embedded_text,
        threshold=threshold,
        seeds=seeds,
        greedy_nodes=round(greedy_nodes, 2),
        dependency_nodes=round(nodes[seeds], 2),
        skills=len(used),
        queries=len(cases),
        mean_nodes=round(fmean(sizes), 2),
        skills_sha256=records_digest(skills),
    )


def lowest_gains(walk: Selection) -> Numbers:
    """Return for each pick of a walk the lowest gain up to it: a larger threshold ends the walk before it."""
    gains = np.array([pick.relevance for pick in walk.picks], np.float64)
    gains[:1] = np.inf  # the entry node needs no gain
    return np.minimum.accumulate(gains)


def best_threshold(lowest: Sequence[Numbers], target: float) -> tuple[float, float]:
    """Return the threshold whose mean number of nodes is nearest to `target`, and that number.

    Of two that are as near it is the larger. `lowest` are the `lowest_gains` of each query's walk.
    """
    ascending = np.sort(np.concatenate(list(lowest)))
    thresholds = np.round(np.arange(10**DIGITS, -(10**DIGITS) - 1, -1) / 10**DIGITS, DIGITS)
    means = (len(ascending) - np.searchsorted(ascending, thresholds)) / len(lowest)
    best = int(np.argmin(np.abs(means - target)))
    return float(thresholds[best]), float(means[best])


def _select(case: Case, strategy: Strategy) -> Selection:
    """Return what a strategy selects under the paper's budget of nodes."""
    index, query = case
    return strategy.select(index, query, budget=Budget(), meter=NodeMeter(index.nodes))
