"""Matched-budget curves: the results of methods that may spend the same share of the tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from skillpager.bench.report.measures import COVERAGE, MICRO_REDUCTION, SUFFICIENCY
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import Interval, Numbers, bootstrap, bootstrap_p, holm
from skillpager.bench.report.tables.methods import BASELINE, CI
from skillpager.bench.report.tables.table import Cell, PValue, Table
from skillpager.bench.run.methods import METHOD_STRATEGIES, parse_method

# budgets at which the table shows the curves
SHOWN = (0.3, 0.5, 0.7)

# column of the reasons
NOT_RUN = "Not run"
# why the strategies without shipped weights have no row, unless a run names a model
NO_MODEL = {
    "reranker": "no cross-encoder was named: skillpager bench run --methods reranker:MODEL@tokens=50%",
    "llmlingua2": "no weights of LLMLingua-2 were named: … --methods llmlingua2:MODEL@tokens=50%",
    "openprovence": "no weights of OpenProvence were named: … --methods openprovence:MODEL@tokens=50%",
    "llm_outline": "no chat model was asked: set SKILLPAGER_LLM_MODEL, … --methods llm_outline@tokens=50%",
}


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A method over budgets, on the queries that it was judged on at every budget."""

    method: str  # label without its budget
    shares: tuple[float, ...]  # budgets, ascending, as shares of the skill's tokens, 0 to 1
    used: tuple[float, ...]  # share of all tokens that the pages have in fact, at each budget
    sufficiency: tuple[float, ...]  # percent, at each budget
    coverage: tuple[float, ...]  # percent, at each budget; NaN where the judge measures none
    query: tuple[str, ...]  # ids of the queries
    skill: tuple[str, ...]  # ids of their skills
    verdicts: Numbers  # `(n_budgets, n_queries)`, 1 where the page is sufficient, else 0
    areas: Numbers  # `(n_queries,)` area under each query's own curve, 0 to 1

    def area(self, *, by_skill: bool = False) -> Interval:
        """Return the normalised area under the sufficiency curve, percent, with its bootstrap interval.

        It is the trapezoid rule over the budgets, divided by their range, and so the mean sufficiency
        over budgets. The rule is linear: the area of the mean curve is the mean of the queries' areas.
        """
        return bootstrap(self.areas, clusters=self.skill if by_skill else None).scaled(100)

    def differences(self, base: "Curve") -> list[Interval]:
        """Return at each budget of both curves the points by which this is above another, drawing skills."""
        mine, theirs = self.common(base)
        skills = [self.skill[place] for place in mine]
        return [
            bootstrap(
                self.verdicts[self.shares.index(share)][mine]
                - base.verdicts[base.shares.index(share)][theirs],
                clusters=skills,
            ).scaled(100)
            for share in self.shares
            if share in base.shares
        ]

    def common(self, base: "Curve") -> tuple[list[int], list[int]]:
        """Return the places of the queries that both curves have, in this and in the other."""
        places = {query: place for place, query in enumerate(base.query)}
        mine = [place for place, query in enumerate(self.query) if query in places]
        return mine, [places[self.query[place]] for place in mine]


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


def _curve(results: Results, name: str, labels: Mapping[float, str]) -> Curve:
    shares = tuple(sorted(labels))
    points = results.common(*(labels[share] for share in shares))
    verdicts = np.stack([rows["sufficient"].to_numpy() for rows in points])
    return Curve(
        method=name,
        shares=shares,
        used=tuple(1 - MICRO_REDUCTION.of(rows) / 100 for rows in points),
        sufficiency=tuple(SUFFICIENCY.of(rows) for rows in points),
        coverage=tuple(COVERAGE.of(rows) for rows in points),
        query=tuple(points[0]["query"]),
        skill=tuple(points[0]["skill"]),
        verdicts=verdicts,
        areas=np.trapezoid(verdicts, np.asarray(shares), axis=0) / (shares[-1] - shares[0]),
    )


def compare_curves(curves: Sequence[Curve], base: Curve) -> dict[str, tuple[Interval, float]]:
    """Return by method how the area of each other curve differs from `base`, on the queries of both.

    Points with their interval, and p corrected for the number of curves; both draw skills.
    """
    found: dict[str, tuple[Interval, float]] = {}
    for curve in curves:
        mine, theirs = curve.common(base)
        if curve is base or not mine:
            continue
        gaps = curve.areas[mine] - base.areas[theirs]
        skills = [curve.skill[place] for place in mine]
        difference = bootstrap(gaps, clusters=skills).scaled(100)
        found[curve.method] = difference, bootstrap_p(gaps, clusters=skills)
    corrected = holm([p for _, p in found.values()])
    return {name: (found[name][0], p) for name, p in zip(found, corrected, strict=True)}


def not_run(curves: Sequence[Curve]) -> dict[str, str]:
    """Return each strategy that takes a budget and has no curve, with the reason in words."""
    present = {parse_method(curve.method).strategy.partition(":")[0] for curve in curves}
    missing = [name for name in METHOD_STRATEGIES if name not in {*present, "full"}]
    return {name: NO_MODEL.get(name, "not in this run: skillpager bench sweep budget") for name in missing}


def matched_budgets(curves: Sequence[Curve]) -> Table | None:
    """Return the areas under matched-budget curves, in their order; None without curves."""
    if not curves:
        return None
    base = next((curve for curve in curves if curve.method == BASELINE), None)
    tests = compare_curves(curves, base) if base else {}
    with_coverage = not any(np.isnan(curve.coverage).any() for curve in curves)
    rows: list[dict[str, Cell]] = []
    for curve in curves:
        difference, p = tests.get(curve.method, (None, None))
        row: dict[str, Cell] = {
            "Method": curve.method,
            f"Area (%) {CI}": curve.area(),
            f"against {BASELINE} (points) {CI}": difference,
            "p, Holm": None if p is None else PValue(p),
        }
        for share in SHOWN:
            place = curve.shares.index(share) if share in curve.shares else None
            group = f"Budget of {100 * share:.0f} %"
            row[f"{group}: Suff. (%)"] = None if place is None else curve.sufficiency[place]
            if with_coverage:
                row[f"{group}: {COVERAGE.heading}"] = None if place is None else curve.coverage[place]
            row[f"{group}: used (%)"] = None if place is None else 100 * curve.used[place]
        rows.append(row)
    absent = not_run(curves)
    if absent:
        rows = [row | {NOT_RUN: None} for row in rows]
        rows += [
            dict.fromkeys(rows[0]) | {"Method": name, NOT_RUN: reason} for name, reason in absent.items()
        ]
    low, high = 100 * curves[0].shares[0], 100 * curves[0].shares[-1]
    return Table(
        "matched-budgets",
        "Equal budgets: sufficiency when every method may spend the same share of a skill's tokens",
        rows,
        note=f"Area: under the curve of sufficiency over budgets from {low:.0f} to {high:.0f} % of a skill's "
        "tokens, by the trapezoid rule, divided by that range: the mean sufficiency over budgets. Its "
        "interval draws queries. Interval and p of the difference draw skills; p is corrected for "
        f"{len(tests)} tests. A budget is a ceiling: “used” is what the contexts take in fact. A strategy "
        "whose model was not at hand has no numbers, because other weights would make another method.",
        digits={"p, Holm": 4} | {heading: 1 for heading in rows[0] if heading.startswith("Budget")},
        strong={BASELINE},
    )
