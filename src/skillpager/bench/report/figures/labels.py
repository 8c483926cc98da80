"""Place the labels of points and lines so that they cover nothing and do not overlap."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import cos, hypot, inf, pi, sin
from statistics import fmean
from typing import TYPE_CHECKING, Any

from skillpager.bench.report.figures.drawing import BLUE, GREY, INK, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

# possible places of a label: distances in points, nearest first, and directions, right of the point first
DISTANCES = (6, 11, 17, 24, 32, 42, 54)
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
    the first free place, going outwards, else in the last; without a line that leads to it, it is nearer to
    its point than to any other. The limits of the axes must be final.

    Args:
        axes: Where to write.
        points: What to name.
        lines: Corners of a line whose parts are level or upright, in data units.
    """
    from matplotlib.transforms import Bbox

    renderer = _settle(axes)
    radius = _point(axes) * POINT_RADIUS
    centres = [(float(x), float(y)) for x, y in (axes.transData.transform(place) for place, _, _ in points)]
    taken = [Bbox.from_extents(x - radius, y - radius, x + radius, y + radius) for x, y in centres]
    corners = [axes.transData.transform(place) for place in lines]
    # a line has no area, and such boxes overlap nothing
    taken += [Bbox([start, end]).padded(1) for start, end in pairwise(corners)]
    labels: list[Bbox] = []
    for number, (place, name, strong) in enumerate(points):
        around: dict[str, Any] = {"taken": taken, "labels": labels, "own": taken[number]}
        others = centres[:number] + centres[number + 1 :]
        box = _write(axes, renderer, place, name, strong=strong, others=others, **around)
        labels.append(box.padded(radius / 2))


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


def _point(axes: "Axes") -> float:
    """Return the length of a point in pixels."""
    return axes.get_figure(root=True).dpi / 72  # type: ignore[union-attr]


def label_ends(axes: "Axes", ends: Sequence[tuple[float, str, str]]) -> None:
    """Write the names of lines to the right of the axes, as near to the heights of their ends as fits.

    An end is its height in data units, a name and a colour. The limits of the axes must be final.
    """
    box = axes.get_window_extent(_settle(axes))
    gap = LINE_SPACING * SMALL * _point(axes) / box.height
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
    labels: Sequence["Bbox"],
    own: "Bbox",
    others: Sequence[Place],
) -> "Bbox":
    """Write one name and return the box it takes, in pixels.

    It covers neither what is `taken` nor other `labels`, and if possible its line crosses none of them.
    `own` is the box of its point, `others` are the centres of the other points, in pixels.
    """
    from matplotlib.path import Path
    from matplotlib.patheffects import withStroke

    size, weight = (SMALL + 1, "bold") if strong else (SMALL, "normal")
    color = BLUE if strong else INK
    text = axes.annotate(
        name, place, (0, 0), textcoords="offset points", size=size, weight=weight, color=color
    )
    text.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
    inside, pixels = axes.get_window_extent(renderer), _point(axes)
    centre = _middle(own)
    # points in the same place are in the way of every line
    crossed = [*labels, *(box for box in taken if _distance(own, *_middle(box)) > 0)]
    spare = None
    for distance, x, y in _places():
        box = _place(text, renderer, x, y)
        if box.x0 < inside.x0 or box.x1 > inside.x1 or any(map(box.overlaps, (*taken, *labels))):
            continue
        spare = spare or (distance, x, y)
        if distance > LEADER:
            line = Path([centre, (centre[0] + x * pixels, centre[1] + y * pixels)])
            if not any(line.intersects_bbox(other, filled=False) for other in crossed):
                break
        elif _distance(box, *centre) < min((_distance(box, *other) for other in others), default=inf):
            break
    else:
        distance, x, y = spare or (distance, x, y)
        box = _place(text, renderer, x, y)
    if distance > LEADER:
        leader = {"arrowstyle": "-", "color": GREY, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}
        axes.annotate("", place, (x, y), textcoords="offset points", arrowprops=leader)
    return box


def _place(text: "Annotation", renderer: "RendererBase", x: float, y: float) -> "Bbox":
    """Move a label to an offset from its point, in points; return its box."""
    steep = hypot(x, y) / 2
    text.xyann = (x, y)
    text.set_horizontalalignment("left" if x > 1 else "right" if x < -1 else "center")
    text.set_verticalalignment("bottom" if y > steep else "top" if y < -steep else "center")
    return text.get_window_extent(renderer)


def _middle(box: "Bbox") -> Place:
    """Return the middle of a box."""
    return (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2


def _distance(box: "Bbox", x: float, y: float) -> float:
    """Return the distance of a point from a box."""
    return hypot(max(box.x0 - x, 0, x - box.x1), max(box.y0 - y, 0, y - box.y1))


def _places() -> Iterator[tuple[float, float, float]]:
    """Yield the possible places of a label: distance, x and y offset from the point, in points."""
    for distance in DISTANCES:
        for step in range(DIRECTIONS):
            turn = (step + 1) // 2 * (1 if step % 2 else -1) * 2 * pi / DIRECTIONS
            yield distance, distance * cos(turn), distance * sin(turn)
