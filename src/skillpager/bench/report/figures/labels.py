"""Place the labels of points and lines so that they cover nothing and do not overlap."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import cos, pi, sin
from statistics import fmean
from typing import TYPE_CHECKING, Any

from skillpager.bench.report.figures.drawing import BLUE, GREY, INK, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase
    from matplotlib.transforms import Bbox

# possible places of a label: distances in points, nearest first, and directions, right of the point first
DISTANCES = (6, 11, 17, 24, 32, 42)
DIRECTIONS = 16
# a line leads to labels that are further away
LEADER = 12
POINT_RADIUS = 4.5

# of the labels at the ends of lines, in sizes of their letters
LINE_SPACING = 1.35

Place = tuple[float, float]
LabelledPoint = tuple[Place, str, bool]


def label_points(axes: "Axes", points: Sequence[LabelledPoint], *, lines: Sequence[Place] = ()) -> None:
    """Write the names of points where they cover neither points nor each other, nor a line.

    A point is its place in data units, its name, and whether it is emphasized. The label is put in
    the first free place, going outwards, else in the last. The limits of the axes must be final.

    Args:
        axes: Where to write.
        points: What to name.
        lines: Corners of a line whose parts are level or upright, in data units.
    """
    from matplotlib.transforms import Bbox

    renderer = _settle(axes)
    radius = axes.get_figure(root=True).dpi / 72 * POINT_RADIUS  # type: ignore[union-attr]
    centres = [axes.transData.transform(place) for place, _, _ in points]
    taken = [Bbox.from_extents(x - radius, y - radius, x + radius, y + radius) for x, y in centres]
    corners = [axes.transData.transform(place) for place in lines]
    # a line has no area, and such boxes overlap nothing
    taken += [Bbox([start, end]).padded(1) for start, end in pairwise(corners)]
    for place, name, strong in points:
        taken.append(_write(axes, renderer, place, name, strong=strong, taken=taken))


def _settle(axes: "Axes") -> "RendererBase":
    """Return the renderer of a figure whose layout, and with it the place of everything, is final."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = axes.get_figure(root=True)
    if figure is None:
        raise ValueError("the axes are in no figure")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    renderer: RendererBase = canvas.get_renderer()  # type: ignore[no-untyped-call]
    return renderer


def label_ends(axes: "Axes", ends: Sequence[tuple[float, str, str]]) -> None:
    """Write the names of lines to the right of the axes, as near to the heights of their ends as fits.

    An end is its height in data units, a name and a colour. The limits of the axes must be final.
    """
    box = axes.get_window_extent(_settle(axes))
    gap = LINE_SPACING * SMALL * axes.get_figure(root=True).dpi / 72 / box.height  # type: ignore[union-attr]
    ordered = sorted(ends)
    heights = [float(axes.transLimits.transform((0, height))[1]) for height, *_ in ordered]
    for height, (_, name, color) in zip(spread(heights, gap), ordered, strict=True):
        look: dict[str, Any] = {"size": SMALL, "color": color, "va": "center", "annotation_clip": False}
        axes.annotate(name, (1, height), (5, 0), xycoords="axes fraction", textcoords="offset points", **look)


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Return ascending heights moved apart to `gap` or more; heights that touch stay around their middle."""
    groups: list[list[float]] = []
    for height in heights:
        group = [height]
        # a group stands around the mean of its heights; groups that overlap become one
        while groups and fmean(group) - fmean(groups[-1]) < gap * (len(group) + len(groups[-1])) / 2:
            group = groups.pop() + group
        groups.append(group)
    return [
        fmean(group) + gap * (place - (len(group) - 1) / 2) for group in groups for place in range(len(group))
    ]


def _write(
    axes: "Axes",
    renderer: "RendererBase",
    place: tuple[float, float],
    name: str,
    *,
    strong: bool,
    taken: Sequence["Bbox"],
) -> "Bbox":
    """Write one name and return the box it takes, in pixels."""
    from matplotlib.patheffects import withStroke

    size, weight = (SMALL + 1, "bold") if strong else (SMALL, "normal")
    color = BLUE if strong else INK
    text = axes.annotate(
        name, place, (0, 0), textcoords="offset points", size=size, weight=weight, color=color
    )
    text.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
    inside = axes.get_window_extent(renderer)
    for distance, x, y in _places():
        text.xyann = (x, y)
        text.set_horizontalalignment("left" if x > 1 else "right" if x < -1 else "center")
        text.set_verticalalignment("bottom" if y > distance / 2 else "top" if y < -distance / 2 else "center")
        box = text.get_window_extent(renderer)
        if inside.x0 <= box.x0 and box.x1 <= inside.x1 and not any(box.overlaps(other) for other in taken):
            break
    if distance > LEADER:
        line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}
        axes.annotate("", place, (x, y), textcoords="offset points", arrowprops=line)
    return box


def _places() -> Iterator[tuple[float, float, float]]:
    """Yield the possible places of a label: distance, x and y offset from the point, in points."""
    for distance in DISTANCES:
        for step in range(DIRECTIONS):
            turn = (step + 1) // 2 * (1 if step % 2 else -1) * 2 * pi / DIRECTIONS
            yield distance, distance * cos(turn), distance * sin(turn)
