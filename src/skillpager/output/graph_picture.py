"""A graph as a picture, drawn with Matplotlib; `graph_text.draw` checks the format and the extra.

Lengths are inches from the lower left corner, text sizes are points.
"""

import io
import logging
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.textpath import TextToPath
from matplotlib.typing import LineStyleType
from numpy.typing import ArrayLike

from skillpager.display_text import one_line
from skillpager.output.palette import EDGE_COLORS, TYPE_COLORS, own_settings, summarize
from skillpager.sections import find_sections
from skillpager.types import Edge, EdgeKind, Node, SkillIndex

WIDTH, MARGIN = 7.2, 0.15
HEAD = 0.92  # title and legends
BODY = 8.4  # room for the nodes on one page of a paper
LABELLED_NODES = 90  # a larger graph shows headings instead of the nodes' texts
TEXT_LENGTH = 150  # characters, more than a line holds
# widest arcs, beside nodes with texts and beside bars; an arc over a part of the nodes is narrower
ARC_ROOM, BAR_ARC_ROOM = 1.45, 3.2
DPI = 200
ARROW = 0.055
INK, GREY, PALE = "#222222", "#777777", "#AAAAAA"

# for characters that Matplotlib's own font lacks; those of these that are installed are used
FONTS = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Micro Hei"),
    *("PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", "Malgun Gothic", "Yu Gothic", "Arial Unicode MS"),
)
TYPE_MARKERS = dict(zip(TYPE_COLORS, "sD^vXo", strict=True))  # shapes, for print in grey
DOTS, DASHES = (0, (1, 1.3)), (0, (4, 1.6))
STYLES: dict[str, LineStyleType] = {"sequence": "-", "semantic": DOTS, "reference": "-", "condition": DASHES}
ARROW_GAPS = {"semantic": 0.0, "reference": 0.02, "condition": 0.07}  # so that no arrowhead hides another


@dataclass(frozen=True, slots=True)
class _Layout:
    """The positions of everything in the picture.

    Attributes:
        height: Height of the picture.
        pitch: Distance of two rows.
        nodes: y of each node.
        titles: y, depth and text of each heading, from top to bottom.
        labelled: Whether every node has its text beside it.
        spine: X of the nodes: arcs are to the left of it, text is to the right.
    """

    height: float
    pitch: float
    nodes: tuple[float, ...]
    titles: tuple[tuple[float, int, str], ...]
    labelled: bool
    spine: float

    @property
    def dot(self) -> float:
        """Diameter of a node, or length of its bar."""
        return min(0.1, self.pitch * 0.8) if self.labelled else 0.14

    @property
    def points(self) -> float:
        """Size of the text beside the nodes."""
        return min(self.pitch * 45, 7.5) if self.labelled else 6.0


def render(index: SkillIndex, form: str) -> bytes:
    """Return the picture of a graph as `svg` or `png`."""
    metadata = {"Date": None} if form == "svg" else {"Software": None}
    picture = io.BytesIO()
    log = logging.getLogger("matplotlib.font_manager")
    before, log.disabled = log.disabled, True  # it would warn for each text that a font has no bold letters
    try:
        with own_settings({}, extra="plot", purpose="Drawing a graph"):
            _figure(index).savefig(picture, format=form, dpi=DPI, metadata=metadata)
    finally:
        log.disabled = before
    return picture.getvalue()


def _figure(index: SkillIndex) -> Figure:
    layout = _lay_out(index.nodes, index.edges)
    figure = Figure(figsize=(WIDTH, layout.height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(0, layout.height))
    axes.set_axis_off()
    _draw_edges(axes, index.edges, layout)
    _draw_nodes(axes, index.nodes, layout)
    _draw_titles(axes, layout)
    _draw_head(axes, index, layout)
    return figure


def _lay_out(nodes: Sequence[Node], edges: Sequence[Edge]) -> _Layout:
    """Return a layout with a row per node and, while there is room for text, a row per heading.

    The nodes stand as far left as the arcs allow.
    """
    labelled = len(nodes) <= LABELLED_NODES
    # depth and text of the headings directly before each node; files count only if there are several
    outermost = 0 if len({node.span.file for node in nodes}) > 1 else 1
    opened: list[list[tuple[int, str]]] = [[] for _ in nodes]
    for section in find_sections(nodes):
        depth = len(section.trail) - 1 - outermost
        if depth >= 0:
            opened[section.first].append((depth, section.trail[-1]))
    rows, count = [], 0
    for group in opened:
        rows.append(count + len(group) * labelled)
        count = rows[-1] + 1
    # rows fill the page, within limits that keep text legible and the picture small enough
    least, most = (0.125, 0.19) if labelled else (min(0.024, 40 / max(count, 1)), 0.1)
    pitch = min(max(BODY / max(count, 1), least), most)
    bottom = HEAD + pitch * (count + 0.5)
    heights = tuple(bottom + MARGIN - HEAD - pitch * (row + 0.5) for row in rows)
    titles = tuple(
        (y + pitch * labelled * (len(group) - place), depth, text)
        for y, group in zip(heights, opened, strict=True)
        for place, (depth, text) in enumerate(group)
    )
    spans = [abs(heights[e.source] - heights[e.target]) for e in edges if e.kind is not EdgeKind.SEQUENCE]
    longest = max(spans, default=0.0)
    share = longest / (heights[0] - heights[-1]) if longest else 0.0
    # no wider than a half circle, nearly
    reach = min((ARC_ROOM if labelled else BAR_ARC_ROOM) * share**0.6, longest)
    return _Layout(bottom + MARGIN, pitch, heights, titles, labelled, 3 * MARGIN + reach)


def _draw_edges(axes: Axes, edges: Sequence[Edge], layout: _Layout) -> None:
    width = 0.9 if layout.labelled else 0.6
    longest = max((abs(layout.nodes[e.source] - layout.nodes[e.target]) for e in edges), default=1.0)
    for kind, color in EDGE_COLORS.items():
        paths = [_path(edge, layout, longest) for edge in edges if edge.kind is kind]
        alpha = 1.0 if kind is EdgeKind.SEQUENCE else min(max(40 / max(len(paths), 1), 0.35), 0.9)
        curves = PathCollection(paths, facecolors="none", edgecolors=color, linewidths=width)
        curves.set(linestyle=[STYLES[kind]], alpha=alpha, zorder=1)
        axes.add_collection(curves, autolim=False)
        if kind is not EdgeKind.SEQUENCE:
            tips = np.array([np.asarray(path.vertices)[-1] for path in paths]).reshape(-1, 2)
            _stamp(axes, tips[:, 0], tips[:, 1], ">", color, ARROW)


def _path(edge: Edge, layout: _Layout, longest: float) -> Path:
    """Return an edge as a line along the spine, or as half an ellipse to its left."""
    spine, source, target = layout.spine, layout.nodes[edge.source], layout.nodes[edge.target]
    if edge.kind is EdgeKind.SEQUENCE:
        return Path([(spine, source), (spine, target)])
    tip = spine - layout.dot * 0.8 - ARROW_GAPS[edge.kind]
    reach = (spine - 3 * MARGIN) * (abs(target - source) / longest) ** 0.6
    middle, bend = (source + target) / 2, 0.5523  # of a quarter circle as a Bézier curve
    left, bulge, rise = spine - reach, reach * (1 - bend), (target - source) / 2 * bend
    points = [(spine, source), (left + bulge, source), (left, middle - rise), (left, middle)]
    points += [(left, middle + rise), (left + bulge, target), (tip, target)]
    return Path(points, [Path.MOVETO, *[Path.CURVE4] * 6])


def _stamp(axes: Axes, x: ArrayLike, y: ArrayLike, marker: str, color: str, size: float) -> None:
    """Draw markers with the diameter `size` above the edges."""
    axes.scatter(x, y, s=(72 * size) ** 2, marker=marker, color=color, linewidths=0, zorder=3)


def _draw_nodes(axes: Axes, nodes: Sequence[Node], layout: _Layout) -> None:
    for kind, color in TYPE_COLORS.items():
        heights = [y for y, node in zip(layout.nodes, nodes, strict=True) if node.type is kind]
        if layout.labelled:
            _stamp(axes, [layout.spine] * len(heights), heights, TYPE_MARKERS[kind], color, layout.dot)
        else:
            left, right = layout.spine - layout.dot / 2, layout.spine + layout.dot / 2
            bars = LineCollection([[(left, y), (right, y)] for y in heights], colors=color)
            bars.set(linewidth=65 * layout.pitch, capstyle="butt", zorder=3)
            axes.add_collection(bars, autolim=False)
    if layout.labelled:
        for node, y in zip(nodes, layout.nodes, strict=True):
            x = layout.spine + 0.18
            _write(axes, x, y, node.id, layout.points, color=GREY)
            _write(axes, x + 0.045 * layout.points, y, summarize(node, TEXT_LENGTH), layout.points)


def _draw_titles(axes: Axes, layout: _Layout) -> None:
    """Write the headings; beside bars only those for which there is room, the outer ones first."""
    room = 0 if layout.labelled else layout.points / 72 * 1.35
    written: list[float] = []
    for y, depth, text in sorted(layout.titles, key=lambda title: (title[1], -title[0])):
        if all(abs(y - other) >= room for other in written):
            written.append(y)
            weight = "bold" if layout.labelled or depth < 2 else "normal"
            _write(axes, layout.spine + 0.18 + 0.12 * depth, y, text, layout.points, weight=weight)


def _draw_head(axes: Axes, index: SkillIndex, layout: _Layout) -> None:
    """Write the title, and the legends of node types and edge kinds with their counts."""
    top = layout.height - MARGIN
    end = _write(axes, MARGIN, top - 0.08, index.skill.name, 10, weight="bold", right=WIDTH - 2)
    counts = f"{len(index.nodes)} nodes, {len(index.edges)} edges"
    _write(axes, end + 0.12, top - 0.08, counts, 8, color=GREY)
    types = Counter(node.type for node in index.nodes)
    kinds = Counter(edge.kind for edge in index.edges)

    def write_count(x: float, y: float, name: str, count: int) -> float:
        """Write an entry of a legend, pale if the count is 0; return its right end."""
        text, color = f"{name.replace('_', ' ')} {count}", INK if count else PALE
        return _write(axes, x, y, text, 7.5, color=color)

    x, y = MARGIN, top - 0.35
    for kind, color in TYPE_COLORS.items():
        _stamp(axes, x + 0.06, y, TYPE_MARKERS[kind] if layout.labelled else "s", color, 0.09)
        x = 0.2 + write_count(x + 0.17, y, kind, types[kind])
    x, y = MARGIN, top - 0.57
    for link, color in EDGE_COLORS.items():
        axes.add_line(Line2D([x, x + 0.3], [y, y], color=color, linestyle=STYLES[link], linewidth=1.2))
        x = 0.2 + write_count(x + 0.37, y, link, kinds[link])


def _write(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    points: float,
    *,
    color: str = INK,
    weight: str = "normal",
    right: float = WIDTH - MARGIN,
) -> float:
    """Write `text` from `x` on, shortened to end before `right`; return its right end."""
    font = FontProperties(family=_families(), size=points, weight=weight)
    # letters that no installed font has become boxes; other such characters are left out
    drawn = (c if ord(c) in _characters() else "▯" if c.isalnum() else "" for c in one_line(text))
    fitted = full = "".join(drawn).strip()
    if _width(full, font) > right - x:
        sizes = range(len(full))
        fitting = bisect_right(sizes, right - x, key=lambda size: _width(f"{full[:size]}…", font))
        fitted = f"{full[: max(fitting - 1, 0)].rstrip()}…"
    axes.text(x, y, fitted, fontproperties=font, color=color, va="center_baseline", parse_math=False)
    return x + _width(fitted, font)


def _width(text: str, font: FontProperties) -> float:
    return float(TextToPath().get_text_width_height_descent(text, font, ismath=False)[0]) / 72


@cache
def _families() -> tuple[str, ...]:
    installed = {font.name for font in fontManager.ttflist}
    return ("DejaVu Sans", *(name for name in FONTS if name in installed))


@cache
def _characters() -> frozenset[int]:
    files = [findfont(FontProperties(family=family)) for family in _families()]
    return frozenset().union(*(get_font(file).get_charmap() for file in files))
