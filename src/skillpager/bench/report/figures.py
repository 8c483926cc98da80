"""The figures of a report: the paper's, with its values beside ours, and sufficiency against cost."""

import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skillpager.bench.report import paper, tables
from skillpager.bench.report.methods import MIN_USED, default_methods, filling_curve, read_curves
from skillpager.bench.report.paper import PaperTable
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import FRAGMENT_REDUCTION, MICRO_REDUCTION, SUFFICIENCY, Interval
from skillpager.errors import require_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, DPI = 7.2, 150  # inches, pixels an inch
SMALL = 7.5  # points
INK, GREY, PALE = "#222222", "#6B6B6B", "#D0D0D0"
# of Okabe and Ito's palette, safe for color-blind readers
BLUE, RED = "#0072B2", "#D55E00"
AXIS = "Sufficient contexts (%)"
OWN_LINE: dict[str, Any] = {"color": BLUE, "marker": "o", "markersize": 5, "label": "this run", "zorder": 3}
PAPER_LINE: dict[str, Any] = {
    **{"color": GREY, "marker": "d", "markerfacecolor": "white", "label": "paper"},
    **{"linestyle": (0, (2, 2)), "linewidth": 1},
}
DODGE = 0.006  # of the axis, of our point and the paper's to the sides: no interval hides another
STAMP_CHARACTERS = 110  # of a line, at `SMALL` and `WIDTH`
# lines that a reader can follow in one picture, also in print without colors; the other methods are pale
LINES: list[dict[str, Any]] = [
    {"color": BLUE, "marker": "o", "linestyle": "-"},
    {"color": RED, "marker": "s", "linestyle": (0, (5, 1.5))},
    {"color": "#009E73", "marker": "D", "linestyle": (0, (1, 1))},
    {"color": "#E69F00", "marker": "^", "linestyle": (0, (5, 1.5, 1, 1.5))},
    {"color": "#CC79A7", "marker": "v", "linestyle": (0, (2.5, 1))},
    {"color": "#56B4E9", "marker": "P", "linestyle": (0, (7, 1, 1, 1, 1, 1))},
]


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure as PNG, with its title, caption and alternative text."""

    name: str  # of its file, also its anchor
    title: str
    note: str  # how to read it
    alt: str  # for readers who cannot see it
    png: bytes


@contextmanager
def new_figure(height: float) -> Iterator["Figure"]:
    """Yield an empty figure, height in inches, in the style of reports."""
    matplotlib = require_extra("matplotlib", extra="bench", purpose="A figure of the benchmark")
    style = matplotlib.rc_params_from_file(paper.DATA / "figures.mplstyle", use_default_template=False)
    with matplotlib.rc_context():
        # the defaults, so that the bytes of a picture do not depend on other drawings of the process
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": "skillpager", "text.hinting": "no_hinting", **style})
        from matplotlib.figure import Figure

        yield Figure(figsize=(WIDTH, height), layout="constrained", dpi=DPI)


def save(figure: "Figure", results: Results, *, name: str, title: str, note: str, alt: str) -> Picture:
    """Return a figure as PNG; the same figure gives the same bytes.

    A warning of the results stands in the picture itself, because pictures are copied without their captions.
    """
    if results.trained_note:
        lines = textwrap.fill(results.trained_note, STAMP_CHARACTERS)
        figure.suptitle(lines, x=0.01, ha="left", fontsize=SMALL, color=RED)
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=DPI, metadata={"Software": None})
    return Picture(name, title, note, alt, png.getvalue())


def draw_intervals(
    axes: "Axes", places: Sequence[float] | Sequence[str], cells: Iterable[Interval], **look: Any
) -> None:
    """Draw values as a line, with their intervals."""
    middle, low, high = np.array([astuple(cell) for cell in cells]).T
    axes.errorbar(places, middle, [middle - low, high - middle], capsize=2.5, **look)


def sweep_figure(table: PaperTable, results: Results) -> Picture | None:
    """Return sufficiency and token reduction over λ or k; None with fewer than two values (paper §5.3)."""
    knob = "λ, the weight of relevance" if table is paper.LAMBDA else "k, the nodes that may be selected"
    rows_of = {row: results.rows(row.label, results.ablation_skills) for row in table.rows}
    swept = [row for row, rows in rows_of.items() if len(rows) and row.label != "full"]
    if len(swept) < 2:
        return None
    values = [float(row.label.partition("=")[2]) for row in swept]
    ours = [SUFFICIENCY.interval(rows_of[row]) for row in swept]
    theirs = [Interval(row.sufficiency, row.low, row.high) for row in swept]
    reductions = [FRAGMENT_REDUCTION.of(rows_of[row]) for row in swept]
    shift = DODGE * (max(values) - min(values))
    with new_figure(3.1) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        draw_intervals(left, [value - shift for value in values], ours, **OWN_LINE)
        draw_intervals(left, [value + shift for value in values], theirs, **PAPER_LINE)
        right.plot(values, reductions, **OWN_LINE)
        right.plot(values, [row.token_reduction for row in swept], **PAPER_LINE)
        for row, rows in rows_of.items():
            if row.label == "full" and len(rows):
                dashes = {"color": INK, "linewidth": 0.8, "linestyle": (0, (6, 3))}
                left.axhline(SUFFICIENCY.of(rows), label="full document, this run", **dashes)
                left.axhline(row.sufficiency, label="full document, paper", **dashes | {"color": GREY})
        left.set(ylim=(0, 101.5), ylabel=AXIS)
        right.set_ylabel("Fragment token reduction (%)")
        for axes in (left, right):
            axes.set_xticks(values)
            axes.set_xlabel(knob)
            axes.grid(axis="y")
        left.legend(loc="lower right")
        numbers = [
            f"{row.name} {mine.value:.1f} % (paper {row.sufficiency:.1f} %)"
            for row, mine in zip(swept, ours, strict=True)
        ]
        return save(
            figure,
            results,
            name=table.label,
            title=table.title,
            note="Left: sufficiency, with 95 % bootstrap intervals over queries. Right: fragment token "
            "reduction. Dotted: the paper (another judge, encoder and data).",
            alt=f"Two line charts. {'; '.join(numbers)}. Token reductions are "
            f"{', '.join(f'{value:.1f}' for value in reductions)} %.",
        )


def entry_figure(results: Results) -> Picture | None:
    """Return sufficiency by the place of the needed lines; None without the table."""
    table = tables.entry_bias(results)
    if table is None:
        return None
    with new_figure(3.1) as figure:
        axes = figure.add_subplot()
        for look, label in zip(LINES, table.rows.columns[2:], strict=False):
            draw_intervals(axes, tables.THIRDS, table.rows[label], label=label, **look)
        axes.set(xlabel="Place of the needed lines in the skill", ylabel=AXIS, ylim=(0, 101.5))
        axes.grid(axis="y")
        figure.legend(loc="outside right center")
        alt = f"Line chart. {table.texts.to_csv(index=False)}"
        return save(figure, results, name=table.name, title=table.title, note=table.note, alt=alt)


def pareto_figure(results: Results) -> Picture | None:
    """Return all methods at their default budgets, with the frontier; None with fewer than two."""
    found = {label: results.rows(label) for label in default_methods(results)}
    if len(found) < 2:
        return None
    numbers = [(MICRO_REDUCTION.of(rows), SUFFICIENCY.of(rows)) for rows in found.values()]
    points = pd.DataFrame(numbers, index=list(found), columns=["reduction", "sufficiency"])
    best = frontier(points)
    with new_figure(4.6) as figure:
        axes = figure.add_subplot()
        # as steps: what is below and left of a point is beaten by it
        axes.step(best["reduction"], best["sufficiency"], where="pre", color=PALE, linewidth=1.6, zorder=1)
        for method, *place in points.itertuples():
            color = BLUE if method == results.baseline else INK if method in best.index else GREY
            fill = color if method in best.index else "white"
            ends = SUFFICIENCY.interval(found[str(method)], by_skill=True)
            axes.vlines(place[0], ends.low, ends.high, color=color, linewidth=0.8, zorder=2)
            axes.plot(*place, marker="o", color=color, markerfacecolor=fill, markersize=6, zorder=3)
        axes.set(xlabel="Token reduction (%): further right is cheaper", ylabel=AXIS)
        axes.grid()
        axes.margins(x=0.15, y=0.08)
        for method, *place in points[points.index.isin([*best.index, results.baseline])].itertuples():
            axes.annotate(str(method), (place[0], place[1]), (4, 4), textcoords="offset points", size=SMALL)
        places = [
            f"{method} {height:.1f} % at {place:.1f} % fewer tokens"
            for method, place, height in points.itertuples()
        ]
        return save(
            figure,
            results,
            name="pareto",
            title="All methods at their default budgets: sufficiency against token reduction",
            note="Filled: methods that no other beats in both; the line joins them. Bars: 95 % intervals "
            f"over skills. Open: another is as good in both. Blue: {results.baseline}; all are in the table.",
            alt=f"Scatter chart. {'; '.join(places)}. On the frontier: {', '.join(best.index)}.",
        )


def frontier(points: pd.DataFrame) -> pd.DataFrame:
    """Return the Pareto frontier, by ascending first column: the rows than which none is better.

    Better is at least as high in every column, and higher in one.
    """
    worse = [((points >= row).all(axis=1) & (points > row).any(axis=1)).any() for _, row in points.iterrows()]
    return points[~np.array(worse)].sort_index().sort_values(points.columns[0], kind="stable")


def budget_figure(results: Results) -> Picture | None:
    """Return sufficiency over budgets; None without curves."""
    curves = read_curves(results)
    if not curves:
        return None
    base = filling_curve(curves, results.baseline)
    ranked = sorted((curve for curve in curves if curve.fills), key=lambda curve: curve is not base)
    looks = dict(zip((curve.method for curve in ranked), LINES, strict=False))
    low, *_, high = 100 * curves[0].points.index
    areas = {curve.method: f"{100 * curve.rows['area'].mean():.1f}" for curve in curves}
    with new_figure(4.2) as figure:
        axes = figure.add_subplot()
        for rank, curve in enumerate(curves):
            look: dict[str, Any] = {"color": PALE, "linewidth": 1, "zorder": 1}
            if curve.method in looks:
                look = {**looks[curve.method], "markersize": 4.5, "linewidth": 1.3}
                name = curve.method.replace("@lambda=", "@λ ")
                look |= {"label": f"{name} ({areas[curve.method]})", "zorder": 3 + len(curves) - rank}
            spent = curve.points["used"] >= MIN_USED * 100 * curve.points.index
            axes.plot(100 * curve.points.index, curve.points["sufficiency"].where(spent), **look)
        axes.set(xlabel="Budget (% of the skill's tokens)", ylabel=AXIS, ylim=(0, 101.5))
        axes.set_xticks(100 * curves[0].points.index)
        axes.grid()
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)
        return save(
            figure,
            results,
            name="matched-budgets",
            title="Equal budgets: methods when each may spend the same share of a skill's tokens",
            note=f"{base.method if base else results.baseline} and the methods with the largest area under "
            "the curve, in the legend; pale: all others. A line has no point where a method uses less than "
            f"{100 * MIN_USED:.0f} % of a budget.",
            alt=f"Line chart over budgets of {low:.0f} to {high:.0f} % of the tokens. "
            f"Areas: {'; '.join(f'{method} {area} %' for method, area in areas.items())}.",
        )
