"""Sufficiency against cost: all methods in one picture, and methods over equal budgets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from skillpager.bench.report.figures.drawing import (
    BLUE,
    GREY,
    INK,
    LINES,
    PALE,
    SMALL,
    WHISKERS,
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

# lines that a reader can follow in one picture, beside the baseline; the other methods are grey
FOLLOWED = 5
# distance of methods at the same budget, in percent of the tokens
SIDE_BY_SIDE = 1.3
# how many panels may stand in a row, the best first
PANELS_ACROSS = (5, 4, 6)
# of a panel that is as wide as the figure, inches
PANEL_HEIGHT = 6.6

Look = tuple[str, str, Any]


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
        corners = [(p.reduction, p.sufficiency) for p in best[:1]]
        for before, after in pairwise(best):
            corners += [(before.reduction, after.sufficiency), (after.reduction, after.sufficiency)]
        axes.plot(*zip(*corners, strict=True), color=PALE, linewidth=1.6, zorder=1)
        for point in points:
            color = BLUE if point.method == BASELINE else INK if point in best else GREY
            marker = "D" if point.method == BASELINE else "o"
            look: dict[str, Any] = {
                "marker": marker,
                "color": color,
                "markerfacecolor": color if point in best else "white",
            }
            axes.plot(point.reduction, point.sufficiency, markersize=6, zorder=3, **look)
        axes.set_xlabel("Token reduction (%): further right is cheaper")
        axes.set_ylabel(AXIS)
        axes.grid()
        axes.margins(0.08)
        named = [((p.reduction, p.sufficiency), p.method, p.method == BASELINE) for p in points]
        label_points(axes, named, lines=corners)
        return save(
            figure,
            name="pareto",
            title="All methods at their default budgets: sufficiency against token reduction",
            caption="Filled: methods that no other beats in both; the line joins them. Open: some other "
            f"method is at least as good in both. Diamond: {BASELINE}, the paper's method.",
            alt=f"Scatter chart. {'; '.join(values)}. On the frontier: {', '.join(p.method for p in best)}.",
        )


def budget_figure(curves: Sequence[Curve]) -> Picture | None:
    """Return sufficiency over budgets, and how the best methods differ; None without curves."""
    if not curves:
        return None
    best = curves[0]
    base = [curve for curve in curves if curve.method == BASELINE]
    followed = base + [curve for curve in curves if curve.method != BASELINE][:FOLLOWED]
    looks = dict(zip((curve.method for curve in followed), LINES, strict=False))
    near = [curve for curve in followed if curve is not best and curve.method != BASELINE]
    low, *_, high = curves[0].shares
    with drawing():
        figure = new_figure(6.2 if near else 3.7)
        rows = 1 + bool(near)
        panels = figure.subplots(rows, 1, squeeze=False, sharex=True, height_ratios=(4, 3)[:rows])[:, 0]
        _draw_curves(panels[0], curves, looks)
        if near:
            _draw_differences(panels[1], best, near, looks)
        panels[-1].set_xlabel("Budget (% of the skill's tokens)")
        panels[-1].set_xticks([100 * share for share in curves[0].shares])
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        return save(
            figure,
            name="matched-budgets",
            title="Equal budgets: methods when each may spend the same share of a skill's tokens",
            caption=f"Above: {BASELINE} and the methods with the largest area under the curve, given in the "
            "legend; pale: all others (table and small panels name them). A budget is a ceiling: a method "
            "that stops early does not use it all. Below: how the next best differ from the best on the same "
            "queries, with 95 % bootstrap intervals over skills.",
            alt=f"Line charts over budgets of {100 * low:.0f} to {100 * high:.0f} % of the tokens. Areas: "
            f"{'; '.join(f'{curve.method} {100 * curve.areas.mean():.1f} %' for curve in curves)}.",
        )


def _draw_curves(axes: "Axes", curves: Sequence[Curve], looks: Mapping[str, Look]) -> None:
    """Draw the sufficiency of every method, the best above the others."""
    for rank, curve in enumerate(curves):
        shares = 100 * np.array(curve.shares)
        if curve.method not in looks:
            axes.plot(shares, curve.sufficiency, color=PALE, linewidth=1, zorder=1)
            continue
        color, marker, dashes = looks[curve.method]
        name = f"{curve.method} ({100 * curve.areas.mean():.1f})"
        look: dict[str, Any] = {
            "color": color,
            "marker": marker,
            "linestyle": dashes,
            "markersize": 4.5,
            "linewidth": 1.3,
        }
        axes.plot(shares, curve.sufficiency, label=name, zorder=3 + len(curves) - rank, **look)
    axes.set_ylabel(AXIS)
    axes.set_ylim(0, 101.5)
    axes.grid()


def _draw_differences(axes: "Axes", best: Curve, near: Sequence[Curve], looks: Mapping[str, Look]) -> None:
    """Draw by how many points the next best methods differ from the best, side by side at each budget."""
    for place, curve in enumerate(near):
        color, marker, _ = looks[curve.method]
        gaps = curve.differences(best)
        values = [gap.value for gap in gaps]
        sides = [[gap.value - gap.low for gap in gaps], [gap.high - gap.value for gap in gaps]]
        shares = 100 * np.array(curve.shares) + SIDE_BY_SIDE * (place - (len(near) - 1) / 2)
        look: dict[str, Any] = {"color": color, "marker": marker, "linestyle": "none", "markersize": 4}
        axes.errorbar(shares, values, yerr=sides, **look, **{**WHISKERS, "capsize": 1.5})
    axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
    axes.set_ylabel(f"Points above {best.method}")
    axes.grid(axis="y")


def panels_figure(curves: Sequence[Curve]) -> Picture | None:
    """Return a panel for each method, sufficiency over the tokens that it uses; None without curves."""
    if not curves:
        return None
    down, across = panel_grid(len(curves))
    ends = [
        f"{each.method} reaches {each.sufficiency[-1]:.1f} % with {100 * each.used[-1]:.1f} % of the tokens"
        for each in curves
    ]
    with drawing():
        figure = new_figure(0.5 + PANEL_HEIGHT / across * down)
        panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
        for axes, curve in zip(panels, curves, strict=False):
            _draw_panel(axes, curve, curves)
        for place, axes in enumerate(panels):
            axes.set_visible(place < len(curves))
            axes.tick_params(labelbottom=place >= len(curves) - across)
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


def panel_grid(count: int) -> tuple[int, int]:
    """Return rows and columns for `count` panels; of the last row at most half is empty."""
    across = min(PANELS_ACROSS, key=lambda across: -count % across / across) if count > 3 else count
    return -(-count // across), across


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
    axes.set(xlim=(0, 103), ylim=(0, 103), xticks=(0, 50, 100), yticks=(0, 50, 100))
    axes.tick_params(labelsize=SMALL)
    axes.grid()
