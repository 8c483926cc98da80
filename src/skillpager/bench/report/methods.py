"""Methods side by side: their main measures, paired tests, and curves at equal budgets."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from skillpager.bench.report.measures import (
    AVERAGE_NODES,
    COVERAGE,
    LATENCY_MEDIAN,
    MACRO_REDUCTION,
    MICRO_REDUCTION,
    SUFFICIENCY,
)
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import LEVEL, Interval, bootstrap, bootstrap_p, holm, mcnemar
from skillpager.bench.run.methods import OFFLINE, SUITES, parse_method
from skillpager.json_types import JsonObject

# the method that the others are compared with: the paper's
BASELINE = "mmr"
ALPHA = 1 - LEVEL


def default_methods(results: Results) -> tuple[str, ...]:
    """Return the methods without options, but for those of an ablation, in the order of the suites."""
    ablations = {label for labels in SUITES.values() for label in labels} - set(OFFLINE)
    plain = [label for label in results.labels if parse_method(label).strategy == label]
    return tuple(label for label in plain if label not in ablations and results.has(label))


# measures of a summary, beside sufficiency
_SUMMARY = {
    "coverage": COVERAGE,
    "nodes": AVERAGE_NODES,
    "token_reduction": MICRO_REDUCTION,
    "token_reduction_macro": MACRO_REDUCTION,
    "milliseconds": LATENCY_MEDIAN,
}


def summarise(results: Results, labels: Iterable[str]) -> list[JsonObject]:
    """Return the main measures of each method that was run and judged, percentages as such.

    Keys: `method`, `queries` (that were judged), `sufficiency`, its `interval` over queries (two ends), and
    `coverage`, `nodes`, `token_reduction`, `token_reduction_macro`, `milliseconds`, each None where the judge
    does not measure it.
    """
    found: list[JsonObject] = []
    for label in filter(results.has, labels):
        rows = results.rows(label)
        interval = SUFFICIENCY.interval(rows)
        values = {name: measure.of(rows) for name, measure in _SUMMARY.items()}
        found.append(
            {
                "method": label,
                "queries": len(rows),
                "sufficiency": round(interval.value, 2),
                "interval": [round(interval.low, 2), round(interval.high, 2)],
                **{name: None if math.isnan(value) else round(value, 2) for name, value in values.items()},
            }
        )
    return found


# ---- paired tests


@dataclass(frozen=True, slots=True)
class Compared:
    """The sufficiency of a method against that of the baseline on the same queries."""

    method: str
    difference: Interval  # method minus baseline, points, interval over queries
    clustered: Interval  # the same, interval over skills
    saved: float  # by how many points the method reduces tokens more
    p: float  # two-sided, of the bootstrap over skills, that the means are equal
    only_method: int  # queries that only the method answers
    only_baseline: int
    p_mcnemar: float  # exact and two-sided; McNemar's test takes queries for independent
    p_holm: float = math.nan  # `p`, corrected for the number of methods

    @property
    def significant(self) -> bool:
        """Whether the two differ significantly, by the corrected p."""
        return self.p_holm < ALPHA


def compare_methods(results: Results, labels: Iterable[str], *, baseline: str = BASELINE) -> list[Compared]:
    """Return each method against the baseline on the queries that both have.

    The p values are those of the bootstrap over skills, corrected together by Holm's method.
    """
    found: list[Compared] = []
    for label in labels:
        rows, base = results.common(label, baseline)
        if label == baseline or not len(rows):
            continue
        gaps = rows["sufficient"].to_numpy() - base["sufficient"].to_numpy()
        skills = list(rows["skill"])
        wins, losses = int(np.sum(gaps > 0)), int(np.sum(gaps < 0))
        found.append(
            Compared(
                label,
                difference=bootstrap(gaps).scaled(100),
                clustered=bootstrap(gaps, clusters=skills).scaled(100),
                saved=MICRO_REDUCTION.of(rows) - MICRO_REDUCTION.of(base),
                p=bootstrap_p(gaps, clusters=skills),
                only_method=wins,
                only_baseline=losses,
                p_mcnemar=mcnemar(wins, losses),
            )
        )
    corrected = holm([each.p for each in found])
    return [replace(each, p_holm=p) for each, p in zip(found, corrected, strict=True)]


# ---- equal budgets


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A method over budgets, on the queries that it was judged on at every budget.

    Attributes:
        method: Its label without a budget.
        points: By budget (0 to 1), ascending: `used` (the share of all tokens that the pages have in fact, 0
            to 1), `sufficiency` and `coverage` (percent; NaN where the judge measures none).
        rows: A row for each query, by its id: `skill`, a column of verdicts for each budget, and `area`, the
            area under the query's own curve, 0 to 1.
    """

    method: str
    points: pd.DataFrame
    rows: pd.DataFrame

    @property
    def shares(self) -> tuple[float, ...]:
        """The budgets."""
        return tuple(self.points.index)

    def area(self, *, by_skill: bool = False) -> Interval:
        """Return the normalised area under the sufficiency curve, percent, with its bootstrap interval.

        It is the trapezoid rule over the budgets, divided by their range, and so the mean sufficiency
        over budgets. The rule is linear: the area of the mean curve is the mean of the queries' areas.
        """
        clusters = list(self.rows["skill"]) if by_skill else None
        return bootstrap(self.rows["area"], clusters=clusters).scaled(100)

    def gaps(self, base: "Curve") -> pd.DataFrame:
        """Return by how much the numbers of each query of both curves are above those of the other."""
        mine = self.rows[self.rows.index.isin(base.rows.index)]
        columns = [name for name in (*self.shares, "area") if name in base.rows]
        return (mine[columns] - base.rows.loc[mine.index, columns]).assign(skill=mine["skill"])


def read_curves(results: Results) -> list[Curve]:
    """Return a curve for each method that was judged at two budgets or more, best area first."""
    budgets: dict[str, dict[float, str]] = {}
    for label in results.labels:
        share = parse_method(label).share
        if share is not None and results.has(label):
            budgets.setdefault(without_budget(label), {})[share] = label
    curves = [_curve(results, name, labels) for name, labels in budgets.items() if len(labels) > 1]
    return sorted((c for c in curves if len(c.rows)), key=lambda curve: -float(curve.rows["area"].mean()))


def without_budget(label: str) -> str:
    """Return the label of a method without its limits."""
    return replace(parse_method(label), share=None, max_tokens=None, max_nodes=None).label


def _curve(results: Results, name: str, labels: Mapping[float, str]) -> Curve:
    shares = sorted(labels)
    found = dict(zip(shares, results.common(*(labels[share] for share in shares)), strict=True))
    points = {
        share: {
            "used": 1 - MICRO_REDUCTION.of(rows) / 100,
            "sufficiency": SUFFICIENCY.of(rows),
            "coverage": COVERAGE.of(rows),
        }
        for share, rows in found.items()
    }
    verdicts = pd.DataFrame({share: rows.set_index("query")["sufficient"] for share, rows in found.items()})
    areas = np.trapezoid(verdicts, shares, axis=1) / (shares[-1] - shares[0])
    skills = found[shares[0]].set_index("query")["skill"]
    return Curve(name, pd.DataFrame(points).T, verdicts.assign(skill=skills, area=areas))


def compare_curves(curves: Sequence[Curve], base: Curve) -> dict[str, tuple[Interval, float]]:
    """Return by method how the area of each other curve differs from `base`, on the queries of both.

    Points with their interval, and p corrected for the number of curves; both draw skills.
    """
    found: dict[str, tuple[Interval, float]] = {}
    for curve in curves:
        gaps = curve.gaps(base)
        if curve is not base and len(gaps):
            skills = list(gaps["skill"])
            difference = bootstrap(gaps["area"], clusters=skills).scaled(100)
            found[curve.method] = difference, bootstrap_p(gaps["area"], clusters=skills)
    corrected = holm([p for _, p in found.values()])
    return {name: (found[name][0], p) for name, p in zip(found, corrected, strict=True)}
