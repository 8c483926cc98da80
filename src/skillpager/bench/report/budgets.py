"""Matched-budget curves: the results of methods that may spend the same share of the tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from skillpager.bench.report.measures import COVERAGE, MICRO_REDUCTION, SUFFICIENCY
from skillpager.bench.report.methods import BASELINE, CI
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import Interval, bootstrap, bootstrap_p, holm
from skillpager.bench.report.table import Cell, Table, frame, with_ends
from skillpager.bench.run.methods import parse_method

# budgets at which the table shows the curves
SHOWN = (0.3, 0.5, 0.7)


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A method over budgets, on the queries that it was judged on at every budget.

    Attributes:
        method: Its label without a budget.
        points: A row for each budget, ascending: `share` (the budget, 0 to 1), `used` (the share of all
            tokens that the pages have in fact), `sufficiency` and `coverage` (percent; NaN where the judge
            measures none).
        rows: A row for each query, by its id: `skill`, a column of verdicts for each budget, and `area`, the
            area under the query's own curve, 0 to 1.
    """

    method: str
    points: pd.DataFrame
    rows: pd.DataFrame

    @property
    def shares(self) -> tuple[float, ...]:
        """The budgets."""
        return tuple(self.points["share"])

    def at(self, share: float) -> dict[str, float]:
        """Return the point at a budget; empty if the method was not run there."""
        found = self.points[self.points["share"] == share].to_dict("records")
        return {str(name): float(value) for each in found for name, value in each.items()}

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

    def differences(self, base: "Curve") -> list[Interval]:
        """Return at each budget of both curves the points by which this is above another, drawing skills."""
        gaps = self.gaps(base)
        shares = [share for share in self.shares if share in gaps]
        return [bootstrap(gaps[share], clusters=list(gaps["skill"])).scaled(100) for share in shares]


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
    """Return the label of a method without its limit of tokens."""
    return replace(parse_method(label), share=None, max_tokens=None, max_nodes=None).label


def _curve(results: Results, name: str, labels: Mapping[float, str]) -> Curve:
    shares = sorted(labels)
    found = dict(zip(shares, results.common(*(labels[share] for share in shares)), strict=True))
    points = [
        (share, 1 - MICRO_REDUCTION.of(rows) / 100, SUFFICIENCY.of(rows), COVERAGE.of(rows))
        for share, rows in found.items()
    ]
    verdicts = pd.DataFrame({share: rows.set_index("query")["sufficient"] for share, rows in found.items()})
    areas = np.trapezoid(verdicts, shares, axis=1) / (shares[-1] - shares[0])
    skills = found[shares[0]].set_index("query")["skill"]
    columns = ["share", "used", "sufficiency", "coverage"]
    return Curve(name, pd.DataFrame(points, columns=columns), verdicts.assign(skill=skills, area=areas))


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


def matched_budgets(results: Results) -> Table | None:
    """Return the areas under matched-budget curves, the largest first; None without curves."""
    curves = read_curves(results)
    if not curves:
        return None
    base = next((curve for curve in curves if curve.method == BASELINE), None)
    tests = compare_curves(curves, base) if base else {}
    columns = {"sufficiency": "Suff. (%)", "coverage": COVERAGE.heading, "used": "used (%)"}
    if any(curve.points["coverage"].isna().any() for curve in curves):
        del columns["coverage"]
    lines: list[dict[str, Cell]] = []
    for curve in curves:
        difference, p = tests.get(curve.method, (None, None))
        line: dict[str, Cell] = {"Method": curve.method, **with_ends(f"Area (%) {CI}", curve.area())}
        line |= with_ends(f"against {BASELINE} (points) {CI}", difference) | {"p, Holm": p}
        for share in SHOWN:
            point = curve.at(share)
            for key, name in columns.items():
                number = point[key] * (100 if key == "used" else 1) if point else None
                line[f"Budget of {100 * share:.0f} %: {name}"] = number
        lines.append(line)
    low, high = 100 * curves[0].shares[0], 100 * curves[0].shares[-1]
    return Table(
        "matched-budgets",
        "Equal budgets: sufficiency when every method may spend the same share of a skill's tokens",
        frame(lines),
        note=f"Area: under the curve of sufficiency over budgets from {low:.0f} to {high:.0f} % of a skill's "
        "tokens, by the trapezoid rule, divided by that range: the mean sufficiency over budgets. Its "
        "interval draws queries. Interval and p of the difference draw skills; p is corrected for "
        f"{len(tests)} tests. A budget is a ceiling: “used” is what the contexts take in fact. "
        "Strategies whose weights do not ship need a model: --methods reranker:MODEL@tokens=50%.",
        digits={"p, Holm": 4} | {heading: 1 for heading in lines[0] if heading.startswith("Budget")},
        strong={BASELINE},
    )
