"""The paper's figures, re-drawn from a run, with the paper's values beside ours."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillpager.bench.data import to_skill
from skillpager.bench.report import paper
from skillpager.bench.report.figures.drawing import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PAPER_LINE,
    SMALL,
    Picture,
    drawing,
    new_figure,
    percent_axis,
    save,
)
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
# the proposed methods and the whole document; all others are paler
_BARS = {"mmr": BLUE, "full": GREY}
_OTHER_BAR = "#8FBBD9"
FULL = "full"
# nodes of the skill in the paper's figure of a graph
GRAPH_NODES = 42
# percent; a shorter bar has its text above it
SHORT_BAR = 14


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
    """Return the concept ablation as bars; None if no variant was run (paper §5.2.2)."""
    measured = _measure(results, paper.CONCEPT)
    if all(each.row.label in _BARS for each in measured):
        return None
    places = range(len(measured))
    found = [each.sufficiency for each in measured]
    heights = [each.value for each in found]
    errors = [[each.value - each.low for each in found], [each.high - each.value for each in found]]
    colors = [_BARS.get(each.row.label, _OTHER_BAR) for each in measured]
    published = [each.row.sufficiency for each in measured]
    with drawing():
        figure = new_figure(3.4)
        axes = figure.add_subplot()
        axes.bar(places, heights, width=0.64, color=colors, label="this run")
        axes.errorbar(places, heights, errors, fmt="none", ecolor=INK, elinewidth=1, capsize=3)
        diamonds = {**PAPER_LINE, "linestyle": "none", "markeredgecolor": INK}
        axes.plot(places, published, **diamonds, label="paper")
        for place, each in enumerate(measured):
            short = each.sufficiency.low < SHORT_BAR
            color = "white" if each.row.label in _BARS and not short else INK
            height = (each.sufficiency.high if short else 0.0) + 1.5
            text = f"{each.nodes:.1f}\nnodes"
            axes.text(place, height, text, ha="center", va="bottom", size=SMALL, color=color)
        axes.set_xticks(places, [_wrap(each.row.name) for each in measured])
        axes.tick_params(axis="x", length=0, labelsize=SMALL)
        percent_axis(axes, AXIS)
        handles, names = axes.get_legend_handles_labels()
        axes.legend(handles[::-1], names[::-1], loc="upper left")
        return save(
            figure,
            name="concept-ablation",
            title="Concept nodes in the candidate pool",
            caption="Bars: this run, with 95 % bootstrap intervals over queries; in them, mean nodes of a "
            "context. Diamonds: the paper (another judge, encoder and data).",
            alt=f"Bar chart of sufficiency. {_in_words(measured)}",
        )


def _wrap(name: str) -> str:
    """Return a name with a word on each line; words in brackets stay together."""
    words, bracket, rest = name.partition(" (")
    return words.replace(" ", "\n") + (f"\n({rest}" if bracket else "")


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
        for weight, each in zip(weights, measured, strict=True):
            text, place = f"{each.nodes:.1f} nodes", (weight, each.sufficiency.low)
            look: dict[str, Any] = {"size": SMALL, "color": BLUE, "ha": "center", "va": "top"}
            axes.annotate(text, place, (0, -4), textcoords="offset points", **look)
        axes.set_xticks(weights)
        axes.set_xlabel("λ: weight of relevance against redundancy")
        axes.margins(x=0.12)
        axes.set_ylim(bottom=-6)
        axes.legend(loc="upper left")
        return save(
            figure,
            name="lambda-sweep",
            title="Sufficiency over λ",
            caption="Band: 95 % bootstrap interval over queries; labels: mean nodes in a context. At low λ "
            "the diversity penalty soon makes every candidate's value negative, and selection stops early. "
            "Dashed: the paper (another judge, encoder and data).",
            alt=f"Line chart of sufficiency over λ. {_in_words(measured)}",
        )


def node_budget_figure(results: Results) -> Picture | None:
    """Return sufficiency and token reduction over k; None if fewer than two k were run (paper §5.3.2)."""
    measured = _measure(results, paper.NODE_BUDGET)
    swept = [each for each in measured if each.row.label != FULL]
    if len(swept) < 2:
        return None
    with drawing():
        figure = new_figure(3.6)
        axes = figure.add_subplot()
        _draw_sufficiency(axes, [each.knob for each in swept], swept)
        for each in measured:
            if each.row.label == FULL:
                value, dashes = each.sufficiency.value, (0, (6, 3))
                axes.axhline(value, color=INK, linewidth=0.8, linestyle=dashes, label="full document")
        other = axes.twinx()
        _draw_reduction(other, swept)
        for each in swept:
            if each.row.label == paper.NODE_BUDGET.own:
                _mark_chosen(axes, each)
        axes.set_xticks([each.knob for each in swept])
        axes.set_xlabel("k: nodes that may be selected")
        lines = [*axes.get_lines(), *other.get_lines()]
        named = [line for line in lines if not str(line.get_label()).startswith("_")]
        figure.legend(named, [str(line.get_label()) for line in named], loc="outside upper center", ncols=3)
        return save(
            figure,
            name="k-sweep",
            title="Sufficiency and token reduction over k",
            caption="Left axis, solid: sufficiency, with the 95 % bootstrap interval over queries. Right "
            "axis, dashed: fragment token reduction. The paper's operating point k = 20 is marked. Grey: "
            "the paper (another judge, encoder and data).",
            alt=f"Line chart over k with two axes. {_in_words(swept)} "
            f"Token reductions are {', '.join(f'{each.reduction:.1f}' for each in swept)} %.",
        )


def _draw_sufficiency(axes: "Axes", knobs: Sequence[float], measured: Sequence[_Measured]) -> None:
    """Draw our line with its band, and the paper's."""
    found = [each.sufficiency for each in measured]
    lows, highs = [each.low for each in found], [each.high for each in found]
    axes.fill_between(knobs, lows, highs, color=BLUE, alpha=0.15, linewidth=0)
    axes.plot(knobs, [each.value for each in found], color=BLUE, marker="o", label="sufficiency, this run")
    published = [each.row.sufficiency for each in measured]
    axes.plot(knobs, published, **PAPER_LINE, label="sufficiency, paper")
    percent_axis(axes, AXIS)


def _draw_reduction(axes: "Axes", swept: Sequence[_Measured]) -> None:
    knobs = [each.knob for each in swept]
    reductions = [each.reduction for each in swept]
    published = [each.row.token_reduction or 0.0 for each in swept]
    theirs = {**PAPER_LINE, "marker": "s", "linestyle": (0, (1, 1.5))}
    axes.plot(knobs, reductions, color=ORANGE, marker="s", linestyle="--", label="token reduction, this run")
    axes.plot(knobs, published, **theirs, label="token reduction, paper")
    axes.set_ylim(0, 101.5)
    axes.set_ylabel("Fragment token reduction (%)")
    axes.spines["right"].set_visible(True)


def _mark_chosen(axes: "Axes", chosen: _Measured) -> None:
    knob, value = chosen.knob, chosen.sufficiency.value
    axes.axvline(knob, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)))
    ring: dict[str, Any] = {"marker": "o", "markersize": 11, "markerfacecolor": "none", "color": BLUE}
    axes.plot([knob], [value], **ring, label="_chosen")
    text = f"k = {knob:.0f}: {value:.1f} % sufficient, {chosen.reduction:.1f} % fewer tokens"
    axes.annotate(text, (knob, 94), (5, 0), textcoords="offset points", va="center", size=SMALL)


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
