"""The measures: definition and source of each, and its computation from the rows of a method.

A row is what one page does for one query. A measure yields a number for each row first (`per_query`) and
aggregates last (`of`), so that the rows behind every figure can be looked at, resampled and tested.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from skillpager.bench.data.records import JudgmentRecord, SelectionRecord
from skillpager.bench.report.statistics import Interval, Numbers, bootstrap
from skillpager.errors import require_extra
from skillpager.types import NodeType

require_extra("pandas", extra="bench", purpose="The benchmark's report")
# behind the check, which says what to install
import pandas as pd  # noqa: E402

PERCENT, MILLISECONDS, NODES = "%", "ms", "nodes"
_SCALES = {PERCENT: 100.0, MILLISECONDS: 1000.0, NODES: 1.0}

# the numbers of a row, without the ids of its query and of the query's skill
NUMBERS = (
    "sufficient",  # 1 where the judge held the page for sufficient, else 0
    "coverage",  # share of the evidence in the page, 0 to 1; NaN where the judge measures none
    "unanimous",  # 1 where all votes agree, else 0; NaN where there is one vote
    "nodes",  # nodes in the page
    "concepts",  # concept nodes in the page
    "tokens",  # tokens of the page
    "full_tokens",  # tokens of the skill without front matter
    "node_tokens",  # tokens of the nodes in the page
    "pool_tokens",  # tokens of all typed nodes of the skill
    "seconds",  # time of selection and rendering
)


def join(
    selections: Iterable[SelectionRecord], judgments: Mapping[str, JudgmentRecord], queries: Iterable[str]
) -> pd.DataFrame:
    """Return the rows of a method's selections that have a verdict, in the order of `queries`.

    A verdict on another page than the selection's is ignored. Of two selections for one query the last
    counts. The texts of the pages are left out; `picks` are ids in the order of picking.
    """
    rows: dict[str, tuple[object, ...]] = {}
    for each in selections:
        verdict = judgments.get(each.query)
        if verdict is None or verdict.context_sha256 != each.context_sha256:
            continue
        rows[each.query] = (
            each.query,
            each.skill,
            verdict.sufficient,
            np.nan if verdict.coverage is None else verdict.coverage,
            len(set(verdict.votes)) == 1 if len(verdict.votes) > 1 else np.nan,
            len(each.nodes),
            each.types.get(NodeType.CONCEPT, 0),
            each.tokens,
            each.full_tokens,
            each.node_tokens,
            each.pool_tokens,
            each.seconds,
            " ".join(each.picks),
        )
    found = [rows[query] for query in queries if query in rows]
    columns = ["query", "skill", *NUMBERS, "picks"]
    return pd.DataFrame(found, columns=columns).astype(dict.fromkeys(NUMBERS, float))


@dataclass(frozen=True, slots=True)
class Measure:
    """A quantity of a method: over its rows, the sum of `parts` by the sum of `wholes`, or a quantile."""

    name: str  # short, as a column of a table has it
    unit: str  # `%`, `ms` or `nodes`; values are in that unit
    digits: int  # decimals to print
    definition: str
    reference: str
    parts: Callable[[pd.DataFrame], "pd.Series[float]"]  # numerator of each row
    # denominator of each row; None for 1, which makes the measure a mean
    wholes: Callable[[pd.DataFrame], "pd.Series[float]"] | None = None
    quantile: float | None = None  # of `parts`, 0 to 1, in place of the ratio of sums

    @property
    def heading(self) -> str:
        """Name and unit, as the heading of a column."""
        return self.name if self.unit == NODES else f"{self.name} ({self.unit})"

    def per_query(self, rows: pd.DataFrame) -> Numbers:
        """Return the measure of each row alone, `(len(rows),)`, in its unit."""
        parts, wholes = self._sums(rows)
        return _SCALES[self.unit] * (parts if wholes is None else parts / wholes)

    def of(self, rows: pd.DataFrame) -> float:
        """Return the measure over all rows, in its unit; NaN if a row has no such number."""
        if not self.known(rows):
            return math.nan
        parts, wholes = self._sums(rows)
        if self.quantile is not None:
            return _SCALES[self.unit] * float(np.quantile(parts, self.quantile))
        return _SCALES[self.unit] * float(parts.sum()) / float(len(rows) if wholes is None else wholes.sum())

    def interval(self, rows: pd.DataFrame, *, by_skill: bool = False) -> Interval:
        """Return the measure with its 95 % bootstrap interval over queries, or over skills, in its unit.

        It is NaN if a row has no such number. A quantile has no interval here.
        """
        if self.quantile is not None:
            raise ValueError(f"{self.name} is a quantile, not a ratio of sums")
        if not self.known(rows):
            return Interval(math.nan, math.nan, math.nan)
        clusters = list(rows["skill"]) if by_skill else None
        return bootstrap(*self._sums(rows), clusters=clusters).scaled(_SCALES[self.unit])

    def known(self, rows: pd.DataFrame) -> bool:
        """Return True if there are rows, and each has a number for this measure."""
        return len(rows) > 0 and not bool(np.isnan(self._sums(rows)[0]).any())

    def _sums(self, rows: pd.DataFrame) -> tuple[Numbers, Numbers | None]:
        wholes = None if self.wholes is None else np.asarray(self.wholes(rows), dtype=float)
        return np.asarray(self.parts(rows), dtype=float), wholes


SUFFICIENCY = Measure(
    "Suff.",
    PERCENT,
    2,
    "Share of the queries whose context the judge held for sufficient.",
    "paper §4.2",
    lambda rows: rows.sufficient,
)
COVERAGE = Measure(
    "Coverage",
    PERCENT,
    1,
    "Mean share of a query's critical text that its context holds.",
    "evidence measure, docs/evidence-format.md",
    lambda rows: rows.coverage,
)
AVERAGE_NODES = Measure(
    "Nodes",
    NODES,
    2,
    "Mean number of nodes, or chunks, in a context.",
    "paper §5.2, “Avg. Nodes”",
    lambda rows: rows.nodes,
)
FRAGMENT_REDUCTION = Measure(
    "Fragment red.",
    PERCENT,
    2,
    "1 − tokens of all nodes shown / tokens of all nodes of the skills: what is not a node, such as a "
    "heading, counts on neither side. It is the token reduction of the paper's tables.",
    "paper §5.2.1, “aggregate fragment token reduction”",
    lambda rows: rows.pool_tokens - rows.node_tokens,
    lambda rows: rows.pool_tokens,
)
MICRO_REDUCTION = Measure(
    "Token red.",
    PERCENT,
    2,
    "1 − tokens of all contexts / tokens of all skill bodies, over the queries together (micro): long skills "
    "weigh more.",
    "paper §5.2.1, with the text an agent is given on both sides",
    lambda rows: rows.full_tokens - rows.tokens,
    lambda rows: rows.full_tokens,
)
MACRO_REDUCTION = Measure(
    "Token red., macro",
    PERCENT,
    2,
    "Mean over the queries of 1 − tokens of the context / tokens of the skill's body (macro): every query "
    "weighs the same.",
    "macro average of the same",
    lambda rows: 1 - rows.tokens / rows.full_tokens,
)
CONCEPT_SHARE = Measure(
    "Concept nodes",
    PERCENT,
    1,
    "Mean share of concept nodes among the nodes of a context.",
    "paper §5.2.2",
    lambda rows: rows.concepts / rows.nodes.clip(lower=1),
)
STRONG_VOTES = Measure(
    "3-0 votes",
    PERCENT,
    1,
    "Share of the verdicts on which all votes agree.",
    "paper §5.2.2, “strong-agreement rate”",
    lambda rows: rows.unanimous,
)
LATENCY_MEDIAN = Measure(
    "p50",
    MILLISECONDS,
    2,
    "Median time of selection and rendering; the embedding of the query is left out.",
    "paper §3.2, “Computational Cost”",
    lambda rows: rows.seconds,
    quantile=0.5,
)
LATENCY_95 = Measure(
    "p95",
    MILLISECONDS,
    2,
    "95th percentile of the same.",
    "paper §3.2, “Computational Cost”",
    lambda rows: rows.seconds,
    quantile=0.95,
)

MEASURES = (
    SUFFICIENCY,
    COVERAGE,
    AVERAGE_NODES,
    FRAGMENT_REDUCTION,
    MICRO_REDUCTION,
    MACRO_REDUCTION,
    CONCEPT_SHARE,
    STRONG_VOTES,
    LATENCY_MEDIAN,
    LATENCY_95,
)
