"""The style of all figures, and the paper's figures from a run, with the paper's values beside ours."""

import io
import textwrap
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skillpager.bench.data import to_skill
from skillpager.bench.report import paper
from skillpager.bench.report.compared import COMMON
from skillpager.bench.report.measures import AVERAGE_NODES, FRAGMENT_REDUCTION, SUFFICIENCY
from skillpager.bench.report.paper import PaperTable
from skillpager.bench.report.results import Results
from skillpager.display_text import one_line
from skillpager.errors import require_extra
from skillpager.output.graph import EDGE_COLORS, TYPE_COLORS, own_settings
from skillpager.pager import SkillPager
from skillpager.types import EdgeKind, NodeType

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, DPI = 7.2, 150  # inches, pixels an inch
INK, GREY, PALE = "#222222", "#6B6B6B", "#D0D0D0"
# Okabe and Ito's colours, those of the node types
BLUE, GREEN = TYPE_COLORS[NodeType.CONCEPT], TYPE_COLORS[NodeType.STEP]
ORANGE, PURPLE = TYPE_COLORS[NodeType.PARAM], TYPE_COLORS[NodeType.EXAMPLE]
RED, SKY = TYPE_COLORS[NodeType.ERROR_HANDLING], TYPE_COLORS[NodeType.PRECONDITION]
SMALL = 7.5  # points
AXIS = "Sufficient contexts (%)"
WHISKERS: dict[str, Any] = {"capsize": 2.5, "elinewidth": 0.9, "capthick": 0.9}
OWN_LINE: dict[str, Any] = {"color": BLUE, "marker": "o", "markersize": 5, "label": "this run", "zorder": 3}
# the paper's values, wherever they stand beside ours
PAPER_LINE: dict[str, Any] = {
    "color": GREY,
    "marker": "d",
    "markerfacecolor": "white",
    "linestyle": (0, (2, 2)),
    "linewidth": 1,
    "label": "paper",
}
# half of the distance of our point from the paper's, in rows or tenths of the axis: no interval hides another
DODGE = 0.12
GRAPH_NODES = 42  # of the skill in the paper's figure of a graph
# a warning that stands in each picture, because pictures are copied without their captions
_STAMP = ContextVar("stamp", default="")
STAMP_CHARACTERS = 110  # of a line, at `SMALL` and `WIDTH`


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure as PNG and SVG, with its title, caption and alternative text."""

    name: str  # of its files, also its anchor
    title: str
    caption: str  # how to read it
    alt: str  # for readers who cannot see it
    png: bytes
    svg: bytes


def drawing() -> AbstractContextManager[None]:
    """Return the context in which figures are drawn; Matplotlib's settings are left as they were.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    matplotlib = require_extra("matplotlib", extra="bench", purpose="A figure of the benchmark")
    style = matplotlib.rc_params_from_file(paper.DATA / "figures.mplstyle", use_default_template=False)
    return own_settings(style, extra="bench", purpose="A figure of the benchmark")


def new_figure(height: float, width: float = WIDTH) -> "Figure":
    """Return an empty figure, sizes in inches; the layout makes room for labels."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", dpi=DPI)


@contextmanager
def stamped(note: str) -> Iterator[None]:
    """Write a note into the pictures that are saved in this context, above what they show."""
    token = _STAMP.set(note)
    try:
        yield
    finally:
        _STAMP.reset(token)


def save(figure: "Figure", *, name: str, title: str, caption: str, alt: str) -> Picture:
    """Return a figure as PNG and SVG, without dates; the same figure gives the same bytes."""
    if note := _STAMP.get():
        lines = textwrap.fill(note, STAMP_CHARACTERS)
        figure.suptitle(lines, x=0.01, ha="left", fontsize=SMALL, color=RED)
    png, svg = io.BytesIO(), io.BytesIO()
    figure.savefig(png, format="png", dpi=DPI, metadata={"Software": None})
    figure.savefig(svg, format="svg", metadata={"Date": None})
    return Picture(name, title, caption, alt, png.getvalue(), svg.getvalue())


# ---- the paper's figures


def concept_figure(results: Results) -> Picture | None:
    """Return the concept ablation as points with intervals; None if no variant was run (paper §5.2.2)."""
    found = _beside_paper(results, paper.CONCEPT)
    if COMMON.issuperset(found.index):
        return None
    places = np.arange(len(found), dtype=float)
    with drawing():
        figure = new_figure(0.9 + 0.34 * len(found))
        axes = figure.add_subplot()
        for (kind, look), shift in zip(
            (("", OWN_LINE), ("paper_", PAPER_LINE)), (-DODGE, DODGE), strict=True
        ):
            values, ends = _interval(found, kind)
            axes.errorbar(values, places + shift, xerr=ends, **{**look, "linestyle": "none"}, **WHISKERS)
        axes.set_ylim(len(found) - 0.5, -0.5)
        axes.set_yticks(places, found["name"].replace("Adaptive", "Adaptive: mmr"))
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(-1.5, 101.5)
        axes.set_xlabel(AXIS)
        axes.grid(axis="x")
        # the costs in a column of their own, right of the data
        for place, nodes in zip(places, found["nodes"], strict=True):
            look = {"size": SMALL, "va": "center", "transform": axes.get_yaxis_transform()}
            axes.text(1.02, place, f"{nodes:.1f} nodes", **look)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2)
        return save(
            figure,
            name="concept-ablation",
            title="Concept nodes in the candidate pool",
            caption="Points: sufficiency with its 95 % bootstrap interval over queries, of this run (filled) "
            "and of the paper (open; another judge, encoder and data). Right: mean nodes of a context of "
            "this run.",
            alt=f"Dot plot of sufficiency. {_in_words(found)}",
        )


def lambda_figure(results: Results) -> Picture | None:
    """Return sufficiency over λ; None if fewer than two values were run (paper §5.3.1)."""
    found = _beside_paper(results, paper.LAMBDA)
    if len(found) < 2:
        return None
    with drawing():
        figure = new_figure(3.2, 5.4)
        axes = figure.add_subplot()
        _draw_sufficiency(axes, found)
        axes.set_xticks(found["knob"], [f"{row.knob:g}\n{row.nodes:.1f} nodes" for row in found.itertuples()])
        heading = "λ, the weight of relevance against redundancy; mean nodes in a context of this run"
        axes.set_xlabel(heading, size=SMALL)
        axes.legend(loc="lower right")
        return save(
            figure,
            name="lambda-sweep",
            title="Sufficiency over λ",
            caption="Bars: 95 % bootstrap intervals over queries; below λ: mean nodes in a context. At low λ "
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
    with drawing():
        figure = new_figure(3.1)
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
                axes.axvline(
                    found.loc[paper.NODE_BUDGET.own, "knob"], color=PALE, linewidth=5, alpha=0.6, zorder=0
                )
        left.legend(loc="lower right")
        reductions = ", ".join(f"{value:.1f}" for value in found["reduction"])
        return save(
            figure,
            name="k-sweep",
            title="Sufficiency and token reduction over k",
            caption="Left: sufficiency, with 95 % bootstrap intervals over queries. Right: fragment token "
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
    axes.set_ylim(0, 101.5)
    axes.set_ylabel(AXIS)
    axes.grid(axis="y")


def _in_words(found: pd.DataFrame) -> str:
    """Return the values in words."""
    rows = found[["name", "value", "paper_value"]].itertuples(index=False)
    return f"{'; '.join(f'{name} {ours:.1f} % (paper {theirs:.1f} %)' for name, ours, theirs in rows)}."


# ---- the graph of one skill, as stage 1 infers it


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
    with drawing():
        figure = new_figure(1.2 + 0.17 * len(nodes))
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
            name="node-graph",
            title=f"Nodes and edges of a skill of {len(nodes)} nodes: {name}",
            caption="Nodes in document order, with id, type and first words. Edges: sequence along the "
            "line; semantic (brown), reference (violet) and condition (red) as arcs. Selection by MMR does "
            "not read the edges; the graph baselines do.",
            alt=f"Graph of the skill {name}: {types}; edges: {kinds}.",
        )
