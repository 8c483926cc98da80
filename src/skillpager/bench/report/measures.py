"""Measures as values: what each is, where it comes from, and how it is taken from the rows of a method.

A measure yields a number for each query first (`per_query`) and aggregates last (`of`), so that the rows
behind every figure can be looked at, resampled and tested.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from skillpager.bench.data.records import JudgmentRecord, SelectionRecord
from skillpager.bench.report.statistics import Interval, Numbers, bootstrap
from skillpager.types import NodeType

PERCENT, MILLISECONDS, NODES = "%", "ms", "nodes"
_SCALES = {PERCENT: 100.0, MILLISECONDS: 1000.0, NODES: 1.0}


@dataclass(frozen=True, slots=True, eq=False)
class QueryRows:
    """The judged contexts of one method, one row a query, as columns of equal length.

    Attributes:
        query: Ids of the queries.
        skill: Ids of their skills.
        sufficient: 1 where the judge held the context for sufficient, else 0.
        coverage: Share of the evidence in the context, 0 to 1; NaN where the judge measures none.
        unanimous: 1 where all votes agree, else 0; NaN where there is one vote.
        nodes: Nodes in the context.
        concepts: Concept nodes in the context.
        tokens: Tokens of the context.
        full_tokens: Tokens of the skill without front matter.
        node_tokens: Tokens of the nodes in the context.
        pool_tokens: Tokens of all typed nodes of the skill.
        seconds: Time of selection and rendering.
    """

    query: tuple[str, ...]
    skill: tuple[str, ...]
    sufficient: Numbers
    coverage: Numbers
    unanimous: Numbers
    nodes: Numbers
    concepts: Numbers
    tokens: Numbers
    full_tokens: Numbers
    node_tokens: Numbers
    pool_tokens: Numbers
    seconds: Numbers

    def __len__(self) -> int:
        return len(self.query)

    def of_queries(self, queries: Collection[str]) -> "QueryRows":
        """Return the rows of some queries, in the same order."""
        return self.take([place for place, query in enumerate(self.query) if query in queries])

    def of_skills(self, skills: Collection[str]) -> "QueryRows":
        """Return the rows of the queries about some skills, in the same order."""
        return self.take([place for place, skill in enumerate(self.skill) if skill in skills])

    def take(self, places: Sequence[int]) -> "QueryRows":
        """Return the rows at some places, in the order of `places`."""
        chosen = np.asarray(places, dtype=int)
        columns = {column.name: getattr(self, column.name)[chosen] for column in fields(self)[2:]}
        return QueryRows(
            query=tuple(self.query[place] for place in places),
            skill=tuple(self.skill[place] for place in places),
            **columns,
        )


def join(
    selections: Iterable[SelectionRecord], judgments: Mapping[str, JudgmentRecord], queries: Iterable[str]
) -> QueryRows:
    """Return the rows of a method's selections that have a verdict, in the order of `queries`.

    A verdict on another context than the selection's counts as none. Of two selections for one query the
    last counts.
    """
    known = {
        record.query: _row(record, judgments[record.query])
        for record in selections
        if _judged(record, judgments)
    }
    present = [query for query in queries if query in known]
    rows = [known[query] for query in present]
    skills = tuple(skill for skill, _ in rows)
    columns = np.array([numbers for _, numbers in rows], dtype=float).reshape(len(rows), len(_COLUMNS))
    return QueryRows(tuple(present), skills, **dict(zip(_COLUMNS, columns.T, strict=True)))


_COLUMNS = tuple(column.name for column in fields(QueryRows)[2:])


def _judged(selection: SelectionRecord, judgments: Mapping[str, JudgmentRecord]) -> bool:
    verdict = judgments.get(selection.query)
    return verdict is not None and verdict.context_sha256 == selection.context_sha256


def _row(selection: SelectionRecord, verdict: JudgmentRecord) -> tuple[str, tuple[float, ...]]:
    """Return the skill and the numbers of a row, without the text of its context."""
    unanimous = float(len(set(verdict.votes)) == 1) if len(verdict.votes) > 1 else np.nan
    return selection.skill, (
        float(verdict.sufficient),
        np.nan if verdict.coverage is None else verdict.coverage,
        unanimous,
        len(selection.nodes),
        selection.types.get(NodeType.CONCEPT, 0),
        selection.tokens,
        selection.full_tokens,
        selection.node_tokens,
        selection.pool_tokens,
        selection.seconds,
    )


# ---- measures


@dataclass(frozen=True, slots=True)
class Measure:
    """A quantity of a method: over its rows, the sum of `parts` by the sum of `wholes`, or a quantile.

    Attributes:
        name: Short name, as a column of a table has it.
        unit: `%`, `ms` or `nodes`; values are in that unit.
        digits: Decimals worth printing.
        definition: What it is, in a sentence.
        reference: Where it comes from.
        parts: Numerator of each query.
        wholes: Denominator of each query; None for 1, which makes the measure a mean.
        quantile: The quantile of `parts` that is meant, 0 to 1; None for the ratio of sums.
    """

    name: str
    unit: str
    digits: int
    definition: str
    reference: str
    parts: Callable[[QueryRows], Numbers]
    wholes: Callable[[QueryRows], Numbers] | None = None
    quantile: float | None = None

    def per_query(self, rows: QueryRows) -> Numbers:
        """Return the measure of each query alone, `(len(rows),)`, in its unit."""
        parts = self.parts(rows)
        return self._scale * (parts if self.wholes is None else parts / self.wholes(rows))

    def of(self, rows: QueryRows) -> float:
        """Return the measure over all rows, in its unit; NaN if a row has no such number."""
        if not self.known(rows):
            return math.nan
        parts = self.parts(rows)
        if self.quantile is not None:
            return self._scale * float(np.quantile(parts, self.quantile))
        wholes = float(len(rows)) if self.wholes is None else float(self.wholes(rows).sum())
        return self._scale * float(parts.sum()) / wholes

    def interval(self, rows: QueryRows, *, by_skill: bool = False) -> Interval:
        """Return the measure with its 95 % bootstrap interval, in its unit; NaN if a row has no such number.

        Args:
            rows: Rows of a method.
            by_skill: Draw skills instead of queries.

        Raises:
            ValueError: The measure is a quantile: it has no interval here.
        """
        if self.quantile is not None:
            raise ValueError(f"{self.name} is a quantile, not a ratio of sums")
        if not self.known(rows):
            return Interval(math.nan, math.nan, math.nan)
        wholes = None if self.wholes is None else self.wholes(rows)
        clusters = rows.skill if by_skill else None
        return bootstrap(self.parts(rows), wholes, clusters=clusters).scaled(self._scale)

    def known(self, rows: QueryRows) -> bool:
        """Tell whether there are rows, and each has a number for this measure."""
        return len(rows) > 0 and not bool(np.isnan(self.parts(rows)).any())

    @property
    def _scale(self) -> float:
        return _SCALES[self.unit]


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
    lambda rows: rows.concepts / np.maximum(rows.nodes, 1),
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
