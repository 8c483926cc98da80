"""The figures of a report: the paper's, with its values beside ours, and sufficiency against cost."""

import base64
import io
import textwrap
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from math import cos, pi, sin
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skillpager.bench.data import to_skill
from skillpager.bench.report import paper
from skillpager.bench.report.budgets import Curve, read_curves
from skillpager.bench.report.compared import COMMON
from skillpager.bench.report.measures import AVERAGE_NODES, FRAGMENT_REDUCTION, MICRO_REDUCTION, SUFFICIENCY
from skillpager.bench.report.methods import BASELINE, default_methods
from skillpager.bench.report.paper import PaperTable
from skillpager.bench.report.results import Results
from skillpager.bench.report.table import escape_markdown, render
from skillpager.display_text import one_line
from skillpager.errors import require_extra
from skillpager.output.graph import EDGE_COLORS, TYPE_COLORS, own_settings
from skillpager.pager import SkillPager
from skillpager.types import EdgeKind, NodeType

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, DPI = 7.2, 150  # inches, pixels an inch
SMALL = 7.5  # points
INK, GREY, PALE = "#222222", "#6B6B6B", "#D0D0D0"
BLUE, RED = TYPE_COLORS[NodeType.CONCEPT], TYPE_COLORS[NodeType.ERROR_HANDLING]
AXIS = "Sufficient contexts (%)"
WHISKERS: dict[str, Any] = {"capsize": 2.5, "elinewidth": 0.9, "capthick": 0.9}
OWN_LINE: dict[str, Any] = {"color": BLUE, "marker": "o", "markersize": 5, "label": "this run", "zorder": 3}
# the paper's values, wherever they stand beside ours
PAPER_LINE: dict[str, Any] = {
    **{"color": GREY, "marker": "d", "markerfacecolor": "white", "label": "paper"},
    **{"linestyle": (0, (2, 2)), "linewidth": 1},
}
# half of the distance of our point from the paper's, in rows or tenths of the axis: no interval hides another
DODGE = 0.12
GRAPH_NODES = 42  # of the skill in the paper's figure of a graph
STAMP_CHARACTERS = 110  # of a line, at `SMALL` and `WIDTH`
FIGURES = "figures"  # folder of a report
# color, marker and dashes of each line that a reader can follow in one picture: the last two are for print
# in grey; the other methods are pale. The colors are those of the node types, Okabe and Ito's.
_KINDS = ("CONCEPT", "ERROR_HANDLING", "STEP", "PARAM", "EXAMPLE", "PRECONDITION")
_DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)), (0, (2.5, 1)), (0, (7, 1, 1, 1, 1, 1)))
LINES = [
    {"color": TYPE_COLORS[NodeType[kind]], "marker": marker, "linestyle": dashes}
    for kind, marker, dashes in zip(_KINDS, "osD^vP", _DASHES, strict=True)
]
SIDE_BY_SIDE = 1.3  # distance of methods at the same budget, in percent of the tokens
# distances, in points, and directions in which a label is tried, the nearest first
DISTANCES, DIRECTIONS = (7, 13, 20, 28, 38, 50), 12


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure as PNG and SVG, with its title, caption and alternative text."""

    name: str  # of its files, also its anchor
    title: str
    note: str  # how to read it
    alt: str  # for readers who cannot see it
    png: bytes
    svg: bytes

    def to_markdown(self) -> str:
        """Return Markdown that shows the file of the figure beside the report."""
        title, alt, note = map(escape_markdown, (self.title, self.alt, self.note))
        return f"**{title}**\n\n![{alt}]({FIGURES}/{self.name}.svg)\n\n{note}\n"

    def to_html(self) -> str:
        """Return an HTML figure that contains the drawing."""
        image = base64.b64encode(self.svg).decode()
        return render("figure.html", picture=self, source=f"data:image/svg+xml;base64,{image}")


@contextmanager
def new_figure(height: float, width: float = WIDTH) -> Iterator["Figure"]:
    """Yield an empty figure, sizes in inches, in the style of reports; other drawings keep their settings.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    purpose = "A figure of the benchmark"
    matplotlib = require_extra("matplotlib", extra="bench", purpose=purpose)
    style = matplotlib.rc_params_from_file(paper.DATA / "figures.mplstyle", use_default_template=False)
    with own_settings(style, extra="bench", purpose=purpose):
        from matplotlib.figure import Figure

        yield Figure(figsize=(width, height), layout="constrained", dpi=DPI)


def save(figure: "Figure", results: Results, *, name: str, title: str, note: str, alt: str) -> Picture:
    """Return a figure as PNG and SVG, without dates; the same figure gives the same bytes.

    A warning of the results stands in the picture itself, because pictures are copied without their captions.
    """
    if results.trained_note:
        lines = textwrap.fill(results.trained_note, STAMP_CHARACTERS)
        figure.suptitle(lines, x=0.01, ha="left", fontsize=SMALL, color=RED)
    png, svg = io.BytesIO(), io.BytesIO()
    figure.savefig(png, format="png", dpi=DPI, metadata={"Software": None})
    figure.savefig(svg, format="svg", metadata={"Date": None})
    return Picture(name, title, note, alt, png.getvalue(), svg.getvalue())


# ---- the paper's figures


def concept_figure(results: Results) -> Picture | None:
    """Return the concept ablation as points with intervals; None if no variant was run (paper §5.2.2)."""
    found = _beside_paper(results, paper.CONCEPT)
    if COMMON.issuperset(found.index):
        return None
    places = np.arange(len(found), dtype=float)
    with new_figure(0.9 + 0.34 * len(found)) as figure:
        axes = figure.add_subplot()
        for kind, look, shift in (("", OWN_LINE, -DODGE), ("paper_", PAPER_LINE, DODGE)):
            values, ends = _interval(found, kind)
            axes.errorbar(values, places + shift, xerr=ends, **{**look, "linestyle": "none"}, **WHISKERS)
        axes.set(ylim=(len(found) - 0.5, -0.5), xlim=(-1.5, 101.5), xlabel=AXIS)
        axes.set_yticks(places, found["name"].replace("Adaptive", "Adaptive: mmr"))
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x")
        # the costs in a column of their own, right of the data
        for place, nodes in zip(places, found["nodes"], strict=True):
            right = axes.get_yaxis_transform()
            axes.text(1.02, place, f"{nodes:.1f} nodes", size=SMALL, va="center", transform=right)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2)
        return save(
            figure,
            results,
            name="concept-ablation",
            title="Concept nodes in the candidate pool",
            note="Points: sufficiency with its 95 % bootstrap interval over queries, of this run (filled) "
            "and of the paper (open; another judge, encoder and data). Right: mean nodes of a context of "
            "this run.",
            alt=f"Dot plot of sufficiency. {_in_words(found)}",
        )


def lambda_figure(results: Results) -> Picture | None:
    """Return sufficiency over λ; None if fewer than two values were run (paper §5.3.1)."""
    found = _beside_paper(results, paper.LAMBDA)
    if len(found) < 2:
        return None
    with new_figure(3.2, 5.4) as figure:
        axes = figure.add_subplot()
        _draw_sufficiency(axes, found)
        axes.set_xticks(found["knob"], [f"{row.knob:g}\n{row.nodes:.1f} nodes" for row in found.itertuples()])
        heading = "λ, the weight of relevance against redundancy; mean nodes in a context of this run"
        axes.set_xlabel(heading, size=SMALL)
        axes.legend(loc="lower right")
        return save(
            figure,
            results,
            name="lambda-sweep",
            title="Sufficiency over λ",
            note="Bars: 95 % bootstrap intervals over queries; below λ: mean nodes in a context. At low λ "
            "the diversity penalty soon makes every candidate's value negative, and selection stops early. "
            "Dotted: the paper (another judge, encoder and data).",
            alt=f"Line chart of sufficiency over λ. {_in_words(found)}",
        )


def node_budget_figure(results: Results) -> Picture | None:
    """Return sufficiency and token reduction over k; None if fewer than two k were run (paper §5.3.2)."""
    every = _beside_paper(results, paper.NODE_BUDGET)
    found = every.drop(index="full", errors="ignore")
    if len(found) < 2:
        return None
    with new_figure(3.1) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        _draw_sufficiency(left, found)
        right.plot(found["knob"], found["reduction"], **OWN_LINE)
        right.plot(found["knob"], found["paper_reduction"], **PAPER_LINE)
        right.set_ylabel("Fragment token reduction (%)")
        right.grid(axis="y")
        if "full" in every.index:
            dashes = {"color": INK, "linewidth": 0.8, "linestyle": (0, (6, 3))}
            left.axhline(every.loc["full", "value"], label="full document, this run", **dashes)
        for axes in (left, right):
            axes.set_xticks(found["knob"])
            axes.set_xlabel("k: nodes that may be selected")
            if paper.NODE_BUDGET.own in found.index:
                own = found.loc[paper.NODE_BUDGET.own, "knob"]
                axes.axvline(own, color=PALE, linewidth=5, alpha=0.6, zorder=0)
        left.legend(loc="lower right")
        reductions = ", ".join(f"{value:.1f}" for value in found["reduction"])
        return save(
            figure,
            results,
            name="k-sweep",
            title="Sufficiency and token reduction over k",
            note="Left: sufficiency, with 95 % bootstrap intervals over queries. Right: fragment token "
            "reduction. Shaded: the paper's operating point, k = 20. Dotted: the paper (another judge, "
            "encoder and data).",
            alt=f"Two line charts over k. {_in_words(found)} Token reductions are {reductions} %.",
        )


def _beside_paper(results: Results, table: PaperTable) -> pd.DataFrame:
    """Return our numbers of the methods of a table that were run, and the paper's, by label."""
    lines = []
    for row in table.rows:
        rows = results.rows(row.label, results.ablation_skills)
        if len(rows):
            found = SUFFICIENCY.interval(rows)
            ours = (found.value, found.low, found.high, AVERAGE_NODES.of(rows), FRAGMENT_REDUCTION.of(rows))
            theirs = (row.sufficiency, row.low, row.high, row.nodes, row.token_reduction)
            knob = row.label.partition("=")[2]
            lines.append((row.label, row.name, float(knob) if knob else None, *ours, *theirs))
    numbers = ("value", "low", "high", "nodes", "reduction")
    columns = ["label", "name", "knob", *numbers, *(f"paper_{name}" for name in numbers)]
    return pd.DataFrame(lines, columns=columns).set_index("label")


def _interval(found: pd.DataFrame, kind: str) -> tuple[Any, list[Any]]:
    """Return estimates, and how far the ends of their intervals are away."""
    value = found[f"{kind}value"]
    return value, [value - found[f"{kind}low"], found[f"{kind}high"] - value]


def _draw_sufficiency(axes: "Axes", found: pd.DataFrame) -> None:
    """Draw our line and the paper's side by side, each with its intervals."""
    step = DODGE / 10 * (found["knob"].max() - found["knob"].min())
    for kind, look, shift in (("", OWN_LINE, -step / 2), ("paper_", PAPER_LINE, step / 2)):
        values, ends = _interval(found, kind)
        axes.errorbar(found["knob"] + shift, values, yerr=ends, **look, **WHISKERS)
    axes.set(ylim=(0, 101.5), ylabel=AXIS)
    axes.grid(axis="y")


def _in_words(found: pd.DataFrame) -> str:
    rows = found[["name", "value", "paper_value"]].itertuples(index=False)
    return f"{'; '.join(f'{name} {ours:.1f} % (paper {theirs:.1f} %)' for name, ours, theirs in rows)}."


def graph_figure(results: Results, pager: SkillPager) -> Picture | None:
    """Return the graph of the skill that has nearest 42 nodes; None if stage 1 was not run (paper §5.1).

    Raises:
        SkillPagerError: The skill cannot be indexed.
    """
    counts = results.node_counts
    parsed = [skill for skill in results.skills if skill.id in counts]
    chosen = min(parsed, key=lambda skill: abs(counts[skill.id] - GRAPH_NODES), default=None)
    if chosen is None:
        return None
    index = pager.index(to_skill(chosen))
    nodes, name = index.nodes, one_line(index.skill.name)
    with new_figure(1.2 + 0.17 * len(nodes)) as figure:
        axes = figure.add_subplot()
        for edge in index.edges:
            bend = 0 if edge.kind is EdgeKind.SEQUENCE else 0.5
            look: dict[str, Any] = {"arrowstyle": "->", "color": EDGE_COLORS[edge.kind], "linewidth": 0.7}
            look |= {"connectionstyle": f"arc3,rad={bend if edge.target > edge.source else -bend}"}
            axes.annotate("", (0, edge.target), (0, edge.source), arrowprops=look)
        for place, node in enumerate(nodes):
            axes.plot(0, place, "o", color=TYPE_COLORS[node.type], markersize=5, zorder=3)
            text = f"{node.id} {str(node.type).replace('_', ' ')}: {one_line(node.text, 60)}"
            axes.text(0.12, place, text, size=SMALL - 1, va="center")
        axes.set(xlim=(-1, 1), ylim=(len(nodes), -1))
        axes.set_axis_off()
        types, kinds = (
            ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in Counter(found).most_common())
            for found in ([str(node.type) for node in nodes], [str(edge.kind) for edge in index.edges])
        )
        return save(
            figure,
            results,
            name="node-graph",
            title=f"Nodes and edges of a skill of {len(nodes)} nodes: {name}",
            note="Nodes in document order, with id, type and first words. Edges: sequence along the "
            "line; semantic (brown), reference (violet) and condition (red) as arcs. Selection by MMR does "
            "not read the edges; the graph baselines do.",
            alt=f"Graph of the skill {name}: {types}; edges: {kinds}.",
        )


# ---- sufficiency against cost


def pareto_figure(results: Results) -> Picture | None:
    """Return all methods at their default budgets, with the frontier; None with fewer than two."""
    found = {label: results.rows(label) for label in default_methods(results)}
    if len(found) < 2:
        return None
    numbers = [(MICRO_REDUCTION.of(rows), SUFFICIENCY.of(rows)) for rows in found.values()]
    points = pd.DataFrame(numbers, index=list(found), columns=["reduction", "sufficiency"])
    best = frontier(points)
    values = [
        f"{method} {height:.1f} % at {place:.1f} % fewer tokens"
        for method, place, height in points.itertuples()
    ]
    with new_figure(4.6) as figure:
        axes = figure.add_subplot()
        # as steps: what is below and left of a point is beaten by it
        axes.step(best["reduction"], best["sufficiency"], where="pre", color=PALE, linewidth=1.6, zorder=1)
        for method, *place in points.itertuples():
            color = BLUE if method == BASELINE else INK if method in best.index else GREY
            axes.plot(
                *place,
                marker="D" if method == BASELINE else "o",
                color=color,
                markerfacecolor=color if method in best.index else "white",
                markersize=6,
                zorder=3,
            )
        axes.set(xlabel="Token reduction (%): further right is cheaper", ylabel=AXIS)
        axes.grid()
        axes.margins(0.08)
        label_points(axes, points)
        return save(
            figure,
            results,
            name="pareto",
            title="All methods at their default budgets: sufficiency against token reduction",
            note="Filled: methods that no other beats in both; the line joins them. Open: some other "
            f"method is at least as good in both. Diamond: {BASELINE}, the paper's method.",
            alt=f"Scatter chart. {'; '.join(values)}. On the frontier: {', '.join(best.index)}.",
        )


def frontier(points: pd.DataFrame) -> pd.DataFrame:
    """Return the Pareto frontier, by ascending first column: the rows than which none is better.

    Better is at least as high in every column, and higher in one.
    """
    worse = [((points >= row).all(axis=1) & (points > row).any(axis=1)).any() for _, row in points.iterrows()]
    return points[~np.array(worse)].sort_index().sort_values(points.columns[0], kind="stable")


def label_points(axes: "Axes", points: pd.DataFrame) -> None:
    """Write the names of points in the first place, going outwards, that covers no point and no other name.

    A line leads to a name that is not beside its point. The limits of the axes must be final.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.transforms import Bbox

    canvas = FigureCanvasAgg(axes.figure)  # type: ignore[arg-type]
    canvas.draw()  # type: ignore[no-untyped-call]  # the layout, and with it every place, is final then
    radius = 4.5 * canvas.figure.dpi / 72
    centers = axes.transData.transform(points.to_numpy())
    taken = [Bbox.from_extents(x - radius, y - radius, x + radius, y + radius) for x, y in centers]
    inside = axes.get_window_extent()
    steps = sorted(range(DIRECTIONS), key=lambda step: min(step, DIRECTIONS - step))
    for method, *place in points.itertuples():
        look: dict[str, Any] = {"weight": "bold", "color": BLUE} if method == BASELINE else {"color": INK}
        look |= {"size": SMALL, "textcoords": "offset points"}
        text = axes.annotate(str(method), tuple(place), (0, 0), **look)
        for distance, step in product(DISTANCES, steps):
            x, y = cos(2 * pi * step / DIRECTIONS), sin(2 * pi * step / DIRECTIONS)
            text.xyann = (distance * x, distance * y)
            text.set_horizontalalignment("left" if x > 0.1 else "right" if x < -0.1 else "center")
            text.set_verticalalignment("bottom" if y > 0.5 else "top" if y < -0.5 else "center")
            box = text.get_window_extent()
            if inside.x0 < box.x0 and box.x1 < inside.x1 and not any(map(box.overlaps, taken)):
                break
        taken.append(box)
        if distance > DISTANCES[1]:
            leader = {"arrowstyle": "-", "color": GREY, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}
            axes.annotate("", tuple(place), text.xyann, textcoords="offset points", arrowprops=leader)


def budget_figure(results: Results) -> Picture | None:
    """Return sufficiency over budgets, and how the best methods differ; None without curves."""
    curves = read_curves(results)
    if not curves:
        return None
    best = curves[0]
    ranked = sorted(curves, key=lambda curve: curve.method != BASELINE)  # the baseline first
    looks = dict(zip((curve.method for curve in ranked), LINES, strict=False))
    near = [curve for curve in ranked[: len(LINES)] if curve is not best and curve.method != BASELINE]
    low, *_, high = best.shares
    areas = {curve.method: f"{100 * curve.rows['area'].mean():.1f}" for curve in curves}
    rows = 1 + bool(near)
    with new_figure(6.2 if near else 3.7) as figure:
        panels = figure.subplots(rows, 1, squeeze=False, sharex=True, height_ratios=(4, 3)[:rows])[:, 0]
        for rank, curve in enumerate(curves):
            look: dict[str, Any] = {"color": PALE, "linewidth": 1, "zorder": 1}
            if curve.method in looks:
                look = {**looks[curve.method], "markersize": 4.5, "linewidth": 1.3}
                look |= {"label": f"{curve.method} ({areas[curve.method]})", "zorder": 3 + len(curves) - rank}
            panels[0].plot(100 * curve.points["share"], curve.points["sufficiency"], **look)
        panels[0].set(ylabel=AXIS, ylim=(0, 101.5))
        panels[0].grid()
        for place, curve in enumerate(near):
            shift = SIDE_BY_SIDE * (place - (len(near) - 1) / 2)
            _draw_differences(panels[1], curve, best, shift, {**looks[curve.method], "linestyle": "none"})
        if near:
            panels[1].axhline(0, color=INK, linewidth=0.8, zorder=1)
            panels[1].set_ylabel(f"Points above {best.method}")
            panels[1].grid(axis="y")
        panels[-1].set_xlabel("Budget (% of the skill's tokens)")
        panels[-1].set_xticks([100 * share for share in best.shares])
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        return save(
            figure,
            results,
            name="matched-budgets",
            title="Equal budgets: methods when each may spend the same share of a skill's tokens",
            note=f"Above: {BASELINE} and the methods with the largest area under the curve, given in the "
            "legend; pale: all others. A budget is a ceiling: a method "
            "that stops early does not use it all. Below: how the next best differ from the best on the same "
            "queries, with 95 % bootstrap intervals over skills.",
            alt=f"Line charts over budgets of {100 * low:.0f} to {100 * high:.0f} % of the tokens. "
            f"Areas: {'; '.join(f'{method} {area} %' for method, area in areas.items())}.",
        )


def _draw_differences(axes: "Axes", curve: Curve, best: Curve, shift: float, look: dict[str, Any]) -> None:
    """Draw by how many points a method differs from the best at each budget, moved to the side by `shift`."""
    gaps = curve.differences(best)
    sides = [[gap.value - gap.low for gap in gaps], [gap.high - gap.value for gap in gaps]]
    places = 100 * np.array([share for share in curve.shares if share in best.shares]) + shift
    whiskers = {**WHISKERS, "capsize": 1.5, "markersize": 4}
    axes.errorbar(places, [gap.value for gap in gaps], yerr=sides, **look, **whiskers)
