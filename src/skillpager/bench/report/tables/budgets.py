"""The table of the matched-budget curves."""

from collections.abc import Sequence

from skillpager.bench.report.comparisons import BASELINE
from skillpager.bench.report.curves import Curve, shared_areas
from skillpager.bench.report.statistics import Interval, bootstrap, bootstrap_p, holm
from skillpager.bench.report.tables.methods import CI
from skillpager.bench.report.tables.table import Cell, Column, PValue, Row, Table

# budgets at which the table shows the curves
SHOWN = (0.3, 0.5, 0.7)


def matched_budgets(curves: Sequence[Curve]) -> Table | None:
    """Return the areas under matched-budget curves, in their order; None without curves."""
    if not curves:
        return None
    tests = _tests(curves)
    rows = tuple(
        Row(
            (curve.method, curve.area(), *tests.get(curve.method, (None, None)), *_points(curve)),
            strong=curve.method == BASELINE,
        )
        for curve in curves
    )
    columns = (
        Column("Method"),
        Column(f"Area (%) {CI}"),
        Column(f"against {BASELINE} (points) {CI}"),
        Column("p, Holm", digits=4),
        *(
            Column(title, f"Budget of {100 * share:.0f} %", 1)
            for share in SHOWN
            for title in ("Suff. (%)", "used (%)")
        ),
    )
    return Table(
        "matched-budgets",
        "Equal budgets: sufficiency when every method may spend the same share of a skill's tokens",
        columns,
        rows,
        note=f"Area: under the curve of sufficiency over budgets {_span(curves[0])}, by the trapezoid rule, "
        "divided by that range: the mean sufficiency over budgets. Its interval draws queries. Interval and "
        f"p of the difference draw skills; p is corrected for {len(tests)} tests. A budget is a ceiling: "
        "“used” is what the contexts take in fact.",
    )


def _span(curve: Curve) -> str:
    low, high = 100 * curve.shares[0], 100 * curve.shares[-1]
    return f"from {low:.0f} to {high:.0f} % of a skill's tokens"


def _tests(curves: Sequence[Curve]) -> dict[str, tuple[Interval, PValue]]:
    """Return how the area of each method differs from the baseline's, points, and the corrected p."""
    base = next((curve for curve in curves if curve.method == BASELINE), None)
    if base is None:
        return {}
    found = {}
    for curve in curves:
        mine, theirs, skills = shared_areas(curve, base)
        if curve is not base and len(mine):
            difference = bootstrap(mine - theirs, clusters=skills).scaled(100)
            found[curve.method] = difference, bootstrap_p(mine - theirs, clusters=skills)
    corrected = holm([p for _, p in found.values()])
    return {
        name: (difference, PValue(p))
        for (name, (difference, _)), p in zip(found.items(), corrected, strict=True)
    }


def _points(curve: Curve) -> list[Cell]:
    """Return sufficiency and tokens used at each of the shown budgets."""
    cells: list[Cell] = []
    for share in SHOWN:
        place = curve.place(share)
        cells += [None, None] if place is None else [curve.sufficiency[place], 100 * curve.used[place]]
    return cells
