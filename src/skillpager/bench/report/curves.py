"""Matched-budget curves: what a method achieves when every method may spend the same share of the tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from skillpager.bench.report.measures import COVERAGE, MICRO_REDUCTION, SUFFICIENCY
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import Interval, Numbers, bootstrap
from skillpager.bench.run.methods import parse_method


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A method over budgets, on the queries that it was judged on at every budget.

    Attributes:
        method: Label of the method without its budget.
        shares: Budgets: ceilings on the context as shares of the skill's tokens, ascending, 0 to 1.
        used: Share of all tokens that the contexts have in fact, at each budget.
        sufficiency: Percent, at each budget.
        coverage: Percent, at each budget; NaN where the judge measures none.
        query: Ids of the queries.
        skill: Ids of their skills.
        areas: `(n_queries,)` area under each query's own curve, 0 to 1.
    """

    method: str
    shares: tuple[float, ...]
    used: tuple[float, ...]
    sufficiency: tuple[float, ...]
    coverage: tuple[float, ...]
    query: tuple[str, ...]
    skill: tuple[str, ...]
    areas: Numbers

    def area(self, *, by_skill: bool = False) -> Interval:
        """Return the normalised area under the sufficiency curve, percent, with its bootstrap interval.

        It is the trapezoid rule over the budgets, divided by their range, and so the mean sufficiency
        over budgets. The rule is linear: the area of the mean curve is the mean of the queries' areas.
        """
        return bootstrap(self.areas, clusters=self.skill if by_skill else None).scaled(100)

    def place(self, share: float) -> int | None:
        """Return which of the budgets `share` is; None if it was not run."""
        return self.shares.index(share) if share in self.shares else None


def read_curves(results: Results) -> list[Curve]:
    """Return a curve for each method that was judged at two budgets or more, best area first."""
    budgets: dict[str, dict[float, str]] = {}
    for label in results.labels:
        share = parse_method(label).share
        if share is not None and results.has(label):
            budgets.setdefault(without_budget(label), {})[share] = label
    curves = [_curve(results, name, labels) for name, labels in budgets.items() if len(labels) > 1]
    return sorted((curve for curve in curves if curve.query), key=lambda curve: -float(curve.areas.mean()))


def without_budget(label: str) -> str:
    """Return the label of a method without its limit of tokens."""
    return replace(parse_method(label), share=None, max_tokens=None, max_nodes=None).label


def shared_areas(first: Curve, second: Curve) -> tuple[Numbers, Numbers, tuple[str, ...]]:
    """Return the areas of two curves on the queries that both have, and the skills of these."""
    places = {query: place for place, query in enumerate(second.query)}
    mine = [place for place, query in enumerate(first.query) if query in places]
    theirs = [places[first.query[place]] for place in mine]
    return first.areas[mine], second.areas[theirs], tuple(first.skill[place] for place in mine)


def _curve(results: Results, name: str, labels: Mapping[float, str]) -> Curve:
    shares = tuple(sorted(labels))
    points = results.common(*(labels[share] for share in shares))
    return Curve(
        method=name,
        shares=shares,
        used=tuple(1 - MICRO_REDUCTION.of(rows) / 100 for rows in points),
        sufficiency=tuple(SUFFICIENCY.of(rows) for rows in points),
        coverage=tuple(COVERAGE.of(rows) for rows in points),
        query=points[0].query,
        skill=points[0].skill,
        areas=_areas(np.stack([rows.sufficient for rows in points]), shares),
    )


def _areas(verdicts: Numbers, shares: Sequence[float]) -> Numbers:
    """Return the normalised area under each column of `verdicts`, `(n_shares, n_queries)`."""
    areas: Numbers = np.trapezoid(verdicts, np.asarray(shares), axis=0) / (shares[-1] - shares[0])
    return areas
