"""The paper's figures, re-drawn from a run, with the paper's values beside ours."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skillpager.bench.data import to_skill
from skillpager.bench.report import paper
from skillpager.bench.report.figures.drawing import (
    BLUE,
    GREY,
    INK,
    PALE,
    PAPER_LINE,
    SMALL,
    WHISKERS,
    Picture,
    drawing,
    new_figure,
    percent_axis,
    save,
)
from skillpager.bench.report.figures.labels import label_ends
from skillpager.bench.report.measures import AVERAGE_NODES, FRAGMENT_REDUCTION, SUFFICIENCY
from skillpager.bench.report.paper import PaperRow, PaperTable
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import Interval
from skillpager.display_text import one_line
from skillpager.output.graph_text import draw
from skillpager.pager import SkillPager

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXIS = "Sufficient contexts (%)"
THIS_RUN, PAPER = "this run", "paper"
FULL = "full"
# nearly every suite holds these methods
COMMON = frozenset({"mmr", FULL})
OWN_LINE: dict[str, Any] = {"color": BLUE, "marker": "o", "markersize": 5, "label": THIS_RUN, "zorder": 3}
# nodes of the skill in the paper's figure of a graph
GRAPH_NODES = 42
# half of the distance of our point from the paper's, in rows or tenths of the axis: no interval hides another
DODGE = 0.12


@dataclass(frozen=True, slots=True)
class _Measured:
    """A row of the paper's table with our measurement."""

    row: PaperRow
    sufficiency: Interval
    nodes: float
    reduction: float

    @property
    def knob(self) -> float:
        """The value that was swept."""
        return float(self.row.label.partition("=")[2])


def concept_figure(results: Results) -> Picture | None:
    """Return the concept ablation as points with intervals; None if no variant was run (paper §5.2.2)."""
    measured = _measure(results, paper.CONCEPT)
    if all(each.row.label in COMMON for each in measured):
        return None
    places = np.arange(len(measured), dtype=float)
    with drawing():
        figure = new_figure(0.9 + 0.34 * len(measured))
        axes = figure.add_subplot()
        _draw_intervals(axes, places - DODGE, measured, across=True)
        axes.set_ylim(len(measured) - 0.5, -0.5)
        names = ["Adaptive: mmr" if each.row.label == "mmr" else each.row.name for each in measured]
        axes.set_yticks(places, names)
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(-1.5, 101.5)
        axes.set_xlabel(AXIS)
        axes.grid(axis="x")
        # the costs in a column of their own, right of the data
        for place, each in zip(places, measured, strict=True):
            text = f"{each.nodes:.1f} nodes"
            axes.text(1.02, place, text, size=SMALL, va="center", transform=axes.get_yaxis_transform())
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2)
        return save(
            figure,
            name="concept-ablation",
            title="Concept nodes in the candidate pool",
            caption="Points: sufficiency with its 95 % bootstrap interval over queries, of this run (filled) "
            "and of the paper (open; another judge, encoder and data). Right: mean nodes of a context of "
            "this run.",
            alt=f"Dot plot of sufficiency. {_in_words(measured)}",
        )


# ---- sweeps


def lambda_figure(results: Results) -> Picture | None:
    """Return sufficiency over λ; None if fewer than two values were run (paper §5.3.1)."""
    measured = _measure(results, paper.LAMBDA)
    if len(measured) < 2:
        return None
    weights = [each.knob for each in measured]
    with drawing():
        figure = new_figure(3.2, 5.4)
        axes = figure.add_subplot()
        _draw_sufficiency(axes, weights, measured)
        axes.set_xticks(weights, [f"{each.knob:g}\n{each.nodes:.1f} nodes" for each in measured])
        heading = "λ, the weight of relevance against redundancy; mean nodes in a context of this run"
        axes.set_xlabel(heading, size=SMALL)
        axes.margins(x=0.06)
        label_ends(axes, _ends(measured))
        return save(
            figure,
            name="lambda-sweep",
            title="Sufficiency over λ",
            caption="Bars: 95 % bootstrap intervals over queries; below λ: mean nodes in a context. At low λ "
            "the diversity penalty soon makes every candidate's value negative, and selection stops early. "
            "Dotted: the paper (another judge, encoder and data).",
            alt=f"Line chart of sufficiency over λ. {_in_words(measured)}",
        )


def node_budget_figure(results: Results) -> Picture | None:
    """Return sufficiency and token reduction over k; None if fewer than two k were run (paper §5.3.2)."""
    measured = _measure(results, paper.NODE_BUDGET)
    swept = [each for each in measured if each.row.label != FULL]
    if len(swept) < 2:
        return None
    knobs = [each.knob for each in swept]
    reductions = [each.reduction for each in swept]
    with drawing():
        figure = new_figure(3.1)
        left, right = figure.subplots(1, 2, sharey=True)
        _draw_sufficiency(left, knobs, swept)
        published = [each.row.token_reduction or 0.0 for each in swept]
        right.plot(knobs, reductions, **OWN_LINE)
        right.plot(knobs, published, **PAPER_LINE)
        percent_axis(right, "Fragment token reduction (%)")
        right.tick_params(labelleft=True)
        ends = _ends(swept)
        for each in measured:
            if each.row.label == FULL:
                left.axhline(each.sufficiency.value, color=INK, linewidth=0.8, linestyle=(0, (6, 3)))
                ends.append((each.sufficiency.value, "full document", INK))
        for axes in (left, right):
            axes.set_xticks(knobs)
            axes.set_xlabel("k: nodes that may be selected")
            axes.margins(x=0.06)
            for each in swept:
                if each.row.label == paper.NODE_BUDGET.own:
                    axes.axvline(each.knob, color=PALE, linewidth=5, alpha=0.6, zorder=0)
        label_ends(left, ends)
        label_ends(right, [(reductions[-1], THIS_RUN, BLUE), (published[-1], PAPER, GREY)])
        return save(
            figure,
            name="k-sweep",
            title="Sufficiency and token reduction over k",
            caption="Left: sufficiency, with 95 % bootstrap intervals over queries. Right: fragment token "
            "reduction. Shaded: the paper's operating point, k = 20. Dotted: the paper (another judge, "
            "encoder and data).",
            alt=f"Two line charts over k. {_in_words(swept)} "
            f"Token reductions are {', '.join(f'{value:.1f}' for value in reductions)} %.",
        )


def _draw_sufficiency(axes: "Axes", knobs: Sequence[float], measured: Sequence[_Measured]) -> None:
    """Draw our line and the paper's, each with its intervals."""
    step = DODGE / 10 * (knobs[-1] - knobs[0])
    _draw_intervals(axes, np.array(knobs) - step / 2, measured, dodge=step)
    percent_axis(axes, AXIS)


def _draw_intervals(
    axes: "Axes",
    places: NDArray[np.float64],
    measured: Sequence[_Measured],
    *,
    across: bool = False,
    dodge: float = 2 * DODGE,
) -> None:
    """Draw points with intervals, ours at `places`, the paper's `dodge` further; joined unless `across`."""
    ours = [each.sufficiency for each in measured]
    theirs = [Interval(each.row.sufficiency, each.row.low, each.row.high) for each in measured]
    for found, shift, look in ((ours, 0.0, OWN_LINE), (theirs, dodge, PAPER_LINE)):
        values = [each.value for each in found]
        sides = [[each.value - each.low for each in found], [each.high - each.value for each in found]]
        if across:
            unjoined = {**look, "linestyle": "none"}
            axes.errorbar(values, places + shift, xerr=sides, **unjoined, **WHISKERS)
        else:
            axes.errorbar(places + shift, values, yerr=sides, **look, **WHISKERS)


def _ends(measured: Sequence[_Measured]) -> list[tuple[float, str, str]]:
    """Return height, name and colour of the ends of our line and the paper's."""
    last = measured[-1]
    return [(last.sufficiency.value, THIS_RUN, BLUE), (last.row.sufficiency, PAPER, GREY)]


# ---- our measurements


def _measure(results: Results, table: PaperTable) -> list[_Measured]:
    measured = []
    for row in table.rows:
        found = results.rows(row.label, results.ablation_skills)
        if len(found):
            interval = SUFFICIENCY.interval(found)
            measured.append(_Measured(row, interval, AVERAGE_NODES.of(found), FRAGMENT_REDUCTION.of(found)))
    return measured


def _in_words(measured: Sequence[_Measured]) -> str:
    """Return the values in words."""
    pairs = ((each.row, each.sufficiency.value) for each in measured)
    return (
        f"{'; '.join(f'{row.name} {value:.1f} % (paper {row.sufficiency:.1f} %)' for row, value in pairs)}."
    )


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
    name = one_line(index.skill.name)
    types, kinds = (
        ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in Counter(found).most_common())
        for found in ([str(node.type) for node in index.nodes], [str(edge.kind) for edge in index.edges])
    )
    return Picture(
        name="node-graph",
        title=f"Nodes and edges of a skill of {len(index.nodes)} nodes: {name}",
        caption="Nodes in document order, with type, id and first words. Edges: sequence along the line; "
        "semantic, reference and condition as arcs. Selection by MMR does not read the edges; the graph "
        "baselines do.",
        alt=f"Graph of the skill {name}: {types}; edges: {kinds}.",
        png=draw(index, "png"),
        svg=draw(index, "svg"),
    )
