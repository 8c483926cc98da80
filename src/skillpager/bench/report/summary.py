"""A run in a few columns: one row a method, for the terminal and for scripts.

Intervals draw queries, as the paper's do.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from skillpager.bench.report.measures import (
    AVERAGE_NODES,
    COVERAGE,
    LATENCY_MEDIAN,
    MACRO_REDUCTION,
    MICRO_REDUCTION,
    SUFFICIENCY,
    Measure,
    QueryRows,
)
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import Interval
from skillpager.output.json import JsonObject

COLUMNS = (
    "method",
    "queries",
    "suff. %",
    "95 % CI",
    "coverage %",
    "nodes",
    "token red. %",
    "macro %",
    "ms",
)
_OTHERS = {
    "coverage": COVERAGE,
    "nodes": AVERAGE_NODES,
    "token_reduction": MICRO_REDUCTION,
    "token_reduction_macro": MACRO_REDUCTION,
    "milliseconds": LATENCY_MEDIAN,
}


@dataclass(frozen=True, slots=True)
class Summary:
    """The measures of one method, percentages as such.

    Attributes:
        method: Its label.
        queries: How many contexts were judged.
        sufficiency: Share of them that the judge held for sufficient, with its 95 % interval.
        others: Other measures by name; None where the judge does not measure it.
    """

    method: str
    queries: int
    sufficiency: Interval
    others: Mapping[str, float | None]

    @property
    def cells(self) -> list[str]:
        """The cells of a row under `COLUMNS`; a measure that the judge has not is a dash."""
        found = self.sufficiency
        cells = [self.method, str(self.queries), f"{found.value:.1f}", f"{found.low:.1f}–{found.high:.1f}"]
        return [*cells, *("–" if value is None else f"{value:.1f}" for value in self.others.values())]

    def to_json(self) -> JsonObject:
        """Return the summary as one flat object."""
        found = self.sufficiency
        return {
            "method": self.method,
            "queries": self.queries,
            "sufficiency": round(found.value, 2),
            "interval": [round(found.low, 2), round(found.high, 2)],
            **self.others,
        }


def summarise(results: Results, labels: Iterable[str]) -> list[Summary]:
    """Return the measures of each method that was run and judged."""
    return [_summary(label, results.rows(label)) for label in labels if results.has(label)]


def _summary(label: str, rows: QueryRows) -> Summary:
    others = {name: _rounded(measure, rows) for name, measure in _OTHERS.items()}
    return Summary(label, len(rows), SUFFICIENCY.interval(rows), others)


def _rounded(measure: Measure, rows: QueryRows) -> float | None:
    value = measure.of(rows)
    return None if math.isnan(value) else round(value, 2)
