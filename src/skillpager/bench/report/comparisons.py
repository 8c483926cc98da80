"""Methods against a baseline on the same queries, with p values corrected for their number."""

from collections.abc import Iterable
from dataclasses import dataclass

from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import LEVEL, Comparison, compare, holm
from skillpager.bench.run.methods import parse_method

# the method that the others are compared with: the paper's
BASELINE = "mmr"
ALPHA = 1 - LEVEL
# the suites whose methods are compared at their default budgets
_SUITES = ("offline", "main")


@dataclass(frozen=True, slots=True)
class Compared:
    """A method against the baseline.

    Attributes:
        method: Its label.
        comparison: How it differs from the baseline.
        p_holm: The p of the comparison, corrected for the number of methods.
    """

    method: str
    comparison: Comparison
    p_holm: float

    @property
    def significant(self) -> bool:
        """Whether the two differ."""
        return self.p_holm < ALPHA


def default_methods(results: Results) -> tuple[str, ...]:
    """Return the methods to compare at their default budgets, in the order of the suites.

    They are those of the suites `offline` and `main`, else all methods that were run without options.
    """
    suites = dict.fromkeys(label for name in _SUITES for label in results.suite(name))
    plain = (label for label in results.labels if parse_method(label).strategy == label)
    return tuple(label for label in suites or plain if results.has(label))


def compare_methods(results: Results, labels: Iterable[str], *, baseline: str = BASELINE) -> list[Compared]:
    """Return each method against the baseline on the queries that both have.

    The p values are those of the bootstrap over skills, corrected together by Holm's method.
    """
    found: list[tuple[str, Comparison]] = []
    for label in labels:
        rows, base = results.common(label, baseline)
        if label != baseline and len(rows):
            found.append((label, compare(rows.sufficient, base.sufficient, clusters=rows.skill)))
    corrected = holm([comparison.p for _, comparison in found])
    return [Compared(label, comparison, p) for (label, comparison), p in zip(found, corrected, strict=True)]
