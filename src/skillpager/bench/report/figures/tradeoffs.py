"""Sufficiency against cost: all methods in one picture, and methods over equal budgets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from skillpager.bench.report.figures.drawing import (
    BLUE,
    GREY,
    INK,
    LINES,
    PALE,
    SMALL,
    Picture,
    drawing,
    new_figure,
    save,
)
from skillpager.bench.report.figures.labels import label_points
from skillpager.bench.report.figures.paper_figures import AXIS
from skillpager.bench.report.measures import MICRO_REDUCTION, SUFFICIENCY
from skillpager.bench.report.results import Results
from skillpager.bench.report.tables.budgets import Curve
from skillpager.bench.report.tables.methods import BASELINE, default_methods

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# lines that a reader can follow in one picture; the other methods are grey
FOLLOWED = 5
PANELS_ACROSS = 5


@dataclass(frozen=True, slots=True)
class Point:
    """A method in the plane of sufficiency and token reduction (micro), both in percent."""

    method: str
    reduction: float
    sufficiency: float

    def beats(self, other: "Point") -> bool:
        """Return True if this is at least as good in both and better in one."""
        mine, others = (self.reduction, self.sufficiency), (other.reduction, other.sufficiency)
        return mine != others and all(own >= their for own, their in zip(mine, others, strict=True))


def points_of(results: Results, labels: Iterable[str]) -> list[Point]:
    """Return the points of methods, in their order."""
    found = ((label, results.rows(label)) for label in labels)
    return [Point(label, MICRO_REDUCTION.of(rows), SUFFICIENCY.of(rows)) for label, rows in found]


def frontier(points: Sequence[Point]) -> list[Point]:
    """Return the Pareto frontier: the points that no other beats, by ascending token reduction."""
    best = [point for point in points if not any(other.beats(point) for other in points)]
    return sorted(best, key=lambda point: (point.reduction, point.method))


def pareto_figure(results: Results) -> Picture | None:
    """Return all methods at their default budgets, with the frontier; None with fewer than two."""
    points = points_of(results, default_methods(results))
    if len(points) < 2:
        return None
    best = frontier(points)
    values = [f"{p.method} {p.sufficiency:.1f} % at {p.reduction:.1f} % fewer tokens" for p in points]
    with drawing():
        figure = new_figure(4.6)
        axes = figure.add_subplot()
        # as steps: what is below and left of a point is beaten by it
        x, y = [point.reduction for point in best], [point.sufficiency for point in best]
        axes.step(x, y, where="pre", color=PALE, linewidth=1.6, zorder=1)
        for point in points:
            color = BLUE if point.method == BASELINE else INK if point in best else GREY
            axes.plot(point.reduction, point.sufficiency, "o", color=color, markersize=6, zorder=3)
        axes.set_xlabel("Token reduction (%): further right is cheaper")
        axes.set_ylabel(AXIS)
        axes.grid()
        axes.margins(0.08)
        label_points(axes, [((p.reduction, p.sufficiency), p.method, p.method == BASELINE) for p in points])
        return save(
            figure,
            name="pareto",
            title="All methods at their default budgets: sufficiency against token reduction",
            caption="Dark: methods that no other beats in both; the line joins them. Grey: some other "
            f"method is at least as good in both. Blue: {BASELINE}, the paper's method.",
            alt=f"Scatter chart. {'; '.join(values)}. On the frontier: {', '.join(p.method for p in best)}.",
        )


def budget_figure(curves: Sequence[Curve]) -> Picture | None:
    """Return sufficiency and coverage over budgets, the best methods in colour; None without curves."""
    if not curves:
        return None
    base = [curve for curve in curves if curve.method == BASELINE]
    followed = base + [curve for curve in curves if curve.method != BASELINE][:FOLLOWED]
    with_coverage = not np.isnan([curve.coverage for curve in curves]).any()
    low, *_, high = curves[0].shares
    with drawing():
        figure = new_figure(3.9)
        panels = figure.subplots(1, 1 + with_coverage, squeeze=False)[0]
        _draw_curves(panels[0], curves, followed, [curve.sufficiency for curve in curves])
        panels[0].set_ylabel(AXIS)
        if with_coverage:
            _draw_curves(panels[1], curves, followed, [curve.coverage for curve in curves])
            panels[1].set_ylabel("Evidence in the contexts (%)")
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=4)
        return save(
            figure,
            name="matched-budgets",
            title="Equal budgets: methods when each may spend the same share of a skill's tokens",
            caption=f"In colour: {BASELINE} and the methods with the largest area under the curve, given in "
            "the legend; grey: all others (table and small panels name them). A budget is a ceiling: a "
            "method that stops early does not use it all.",
            alt=f"Line charts over budgets of {100 * low:.0f} to {100 * high:.0f} % of the tokens. Areas: "
            f"{'; '.join(f'{curve.method} {100 * curve.areas.mean():.1f} %' for curve in curves)}.",
        )


def _draw_curves(
    axes: "Axes", curves: Sequence[Curve], followed: Sequence[Curve], values: Sequence[Sequence[float]]
) -> None:
    looks = dict(zip((curve.method for curve in followed), LINES, strict=False))
    for curve, heights in zip(curves, values, strict=True):
        shares = 100 * np.array(curve.shares)
        if curve.method in looks:
            color, marker = looks[curve.method]
            name = f"{curve.method} ({100 * curve.areas.mean():.1f})"
            axes.plot(shares, heights, color=color, marker=marker, markersize=4.5, label=name, zorder=3)
        else:
            axes.plot(shares, heights, color=PALE, linewidth=1, zorder=1)
    axes.set_xlabel("Budget (% of the skill's tokens)")
    axes.set_ylim(0, 101.5)
    axes.grid()


def panels_figure(curves: Sequence[Curve]) -> Picture | None:
    """Return a panel for each method, sufficiency over the tokens that it uses; None without curves."""
    if not curves:
        return None
    down = -(-len(curves) // PANELS_ACROSS)
    ends = [
        f"{each.method} reaches {each.sufficiency[-1]:.1f} % with {100 * each.used[-1]:.1f} % of the tokens"
        for each in curves
    ]
    with drawing():
        figure = new_figure(0.5 + 1.5 * down)
        panels = figure.subplots(down, PANELS_ACROSS, sharex=True, sharey=True, squeeze=False).ravel()
        for axes, curve in zip(panels, curves, strict=False):
            _draw_panel(axes, curve, curves)
        for place, axes in enumerate(panels):
            axes.set_visible(place < len(curves))
            axes.tick_params(labelbottom=place >= len(curves) - PANELS_ACROSS)
        figure.supxlabel("Tokens used (% of the skills' tokens)", size=SMALL + 1)
        figure.supylabel(AXIS, size=SMALL + 1)
        return save(
            figure,
            name="matched-budgets-used",
            title="Each method by the tokens that it uses",
            caption=f"Blue: the method; dashed: {BASELINE}; pale: all methods. A point for each budget. The "
            "number is the area under the curve over budgets (%). A curve that ends early is a method that "
            "stops by itself.",
            alt="Small line charts, one a method: sufficiency over the share of tokens used. "
            f"{'; '.join(ends)}.",
        )


def _draw_panel(axes: "Axes", curve: Curve, curves: Sequence[Curve]) -> None:
    for other in curves:
        used = 100 * np.array(other.used)
        axes.plot(used, other.sufficiency, color=PALE, linewidth=0.6, zorder=1)
        if other is curve:
            axes.plot(used, other.sufficiency, color=BLUE, marker="o", markersize=2.5, zorder=3)
        elif other.method == BASELINE:
            axes.plot(used, other.sufficiency, color=GREY, linestyle="--", linewidth=1, zorder=2)
    axes.set_title(curve.method, size=SMALL, loc="left")
    axes.text(96, 6, f"{100 * curve.areas.mean():.1f}", size=SMALL, ha="right")
    axes.set(xlim=(0, 100), ylim=(0, 100), xticks=(0, 50, 100), yticks=(0, 50, 100))
    axes.tick_params(labelsize=SMALL)
    axes.grid()
