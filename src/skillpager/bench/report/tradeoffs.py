"""Figures of sufficiency against cost: all methods in one picture, and methods over equal budgets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import cos, pi, sin
from typing import TYPE_CHECKING, Any

import numpy as np

from skillpager.bench.report.budgets import Curve
from skillpager.bench.report.figures import (
    AXIS,
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PALE,
    PURPLE,
    RED,
    SKY,
    SMALL,
    WHISKERS,
    Picture,
    drawing,
    new_figure,
    save,
)
from skillpager.bench.report.measures import MICRO_REDUCTION, SUFFICIENCY
from skillpager.bench.report.methods import BASELINE, default_methods
from skillpager.bench.report.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# colour, marker and dashes of each line that a reader can follow in one picture: the last two are for print
# in grey; the other methods are pale
LINES = tuple(
    zip(
        (BLUE, RED, GREEN, ORANGE, PURPLE, SKY),
        "osD^vP",
        ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)), (0, (2.5, 1)), (0, (7, 1, 1, 1, 1, 1))),
        strict=True,
    )
)
SIDE_BY_SIDE = 1.3  # distance of methods at the same budget, in percent of the tokens
# distances, in points, and directions in which a label is tried, the nearest first
DISTANCES, DIRECTIONS = (7, 13, 20, 28, 38, 50), 12

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
        reductions, heights = zip(*((p.reduction, p.sufficiency) for p in best), strict=True)
        axes.step(reductions, heights, where="pre", color=PALE, linewidth=1.6, zorder=1)
        for point in points:
            color = BLUE if point.method == BASELINE else INK if point in best else GREY
            look: dict[str, Any] = {"marker": "D" if point.method == BASELINE else "o", "color": color}
            look["markerfacecolor"] = color if point in best else "white"
            axes.plot(point.reduction, point.sufficiency, markersize=6, zorder=3, **look)
        axes.set_xlabel("Token reduction (%): further right is cheaper")
        axes.set_ylabel(AXIS)
        axes.grid()
        axes.margins(0.08)
        label_points(axes, points)
        return save(
            figure,
            name="pareto",
            title="All methods at their default budgets: sufficiency against token reduction",
            caption="Filled: methods that no other beats in both; the line joins them. Open: some other "
            f"method is at least as good in both. Diamond: {BASELINE}, the paper's method.",
            alt=f"Scatter chart. {'; '.join(values)}. On the frontier: {', '.join(p.method for p in best)}.",
        )


def label_points(axes: "Axes", points: Sequence[Point]) -> None:
    """Write the names of points in the first place, going outwards, that covers no point and no other name.

    A line leads to a name that is not beside its point. The limits of the axes must be final.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.transforms import Bbox

    canvas = FigureCanvasAgg(axes.figure)  # type: ignore[arg-type]
    canvas.draw()  # type: ignore[no-untyped-call]  # the layout, and with it every place, is final then
    radius = 4.5 * canvas.figure.dpi / 72
    centres = [axes.transData.transform((point.reduction, point.sufficiency)) for point in points]
    taken = [Bbox.from_extents(x - radius, y - radius, x + radius, y + radius) for x, y in centres]
    inside = axes.get_window_extent()
    turns = [
        2 * pi * step / DIRECTIONS for step in sorted(range(DIRECTIONS), key=lambda s: min(s, DIRECTIONS - s))
    ]
    for point in points:
        place, strong = (point.reduction, point.sufficiency), point.method == BASELINE
        look: dict[str, Any] = {
            "size": SMALL,
            "weight": "normal",
            "color": INK,
            "textcoords": "offset points",
        }
        if strong:
            look |= {"weight": "bold", "color": BLUE}
        text = axes.annotate(point.method, place, (0, 0), **look)
        for distance, turn in product(DISTANCES, turns):
            x, y = cos(turn), sin(turn)
            text.xyann = (distance * x, distance * y)
            text.set_horizontalalignment("left" if x > 0.1 else "right" if x < -0.1 else "center")
            text.set_verticalalignment("bottom" if y > 0.5 else "top" if y < -0.5 else "center")
            box = text.get_window_extent()
            if inside.x0 < box.x0 and box.x1 < inside.x1 and not any(map(box.overlaps, taken)):
                break
        taken.append(box)
        if distance > DISTANCES[1]:
            leader = {"arrowstyle": "-", "color": GREY, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}
            axes.annotate("", place, text.xyann, textcoords="offset points", arrowprops=leader)


def budget_figure(curves: Sequence[Curve]) -> Picture | None:
    """Return sufficiency over budgets, and how the best methods differ; None without curves."""
    if not curves:
        return None
    best = curves[0]
    base = [curve for curve in curves if curve.method == BASELINE]
    followed = [*base, *(curve for curve in curves if curve.method != BASELINE)][: len(LINES)]
    looks = dict(zip((curve.method for curve in followed), LINES, strict=False))
    near = [curve for curve in followed if curve is not best and curve.method != BASELINE]
    low, *_, high = best.shares
    with drawing():
        figure = new_figure(6.2 if near else 3.7)
        rows = 1 + bool(near)
        panels = figure.subplots(rows, 1, squeeze=False, sharex=True, height_ratios=(4, 3)[:rows])[:, 0]
        _draw_curves(panels[0], curves, looks)
        if near:
            _draw_differences(panels[1], best, near, looks)
        panels[-1].set_xlabel("Budget (% of the skill's tokens)")
        panels[-1].set_xticks([100 * share for share in best.shares])
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        areas = "; ".join(f"{curve.method} {_area(curve)} %" for curve in curves)
        return save(
            figure,
            name="matched-budgets",
            title="Equal budgets: methods when each may spend the same share of a skill's tokens",
            caption=f"Above: {BASELINE} and the methods with the largest area under the curve, given in the "
            "legend; pale: all others. A budget is a ceiling: a method "
            "that stops early does not use it all. Below: how the next best differ from the best on the same "
            "queries, with 95 % bootstrap intervals over skills.",
            alt=f"Line charts over budgets of {100 * low:.0f} to {100 * high:.0f} % of the tokens. "
            f"Areas: {areas}.",
        )


def _area(curve: Curve) -> str:
    return f"{100 * curve.rows['area'].mean():.1f}"


def _draw_curves(axes: "Axes", curves: Sequence[Curve], looks: Mapping[str, Look]) -> None:
    """Draw the sufficiency of every method, the best above the others."""
    for rank, curve in enumerate(curves):
        look: dict[str, Any] = {"color": PALE, "linewidth": 1, "zorder": 1}
        if curve.method in looks:
            color, marker, dashes = looks[curve.method]
            look = {
                "color": color,
                "marker": marker,
                "linestyle": dashes,
                "markersize": 4.5,
                "linewidth": 1.3,
            }
            look |= {"label": f"{curve.method} ({_area(curve)})", "zorder": 3 + len(curves) - rank}
        axes.plot(100 * curve.points["share"], curve.points["sufficiency"], **look)
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
        shares = [share for share in curve.shares if share in best.shares]
        places = 100 * np.array(shares) + SIDE_BY_SIDE * (place - (len(near) - 1) / 2)
        look: dict[str, Any] = {"color": color, "marker": marker, "linestyle": "none", "markersize": 4}
        axes.errorbar(places, values, yerr=sides, **look, **{**WHISKERS, "capsize": 1.5})
    axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
    axes.set_ylabel(f"Points above {best.method}")
    axes.grid(axis="y")
