"""Place the labels of points so that they do not overlap."""

from collections.abc import Iterator, Sequence
from math import cos, pi, sin
from typing import TYPE_CHECKING

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

LabelledPoint = tuple[tuple[float, float], str, bool]


def label_points(axes: "Axes", points: Sequence[LabelledPoint]) -> None:
    """Write the names of points where they cover neither points nor each other.

    A point is its place in data units, its name, and whether it is emphasized. The label is put in
    the first free place, going outwards, else in the last. The limits of the axes must be final.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.transforms import Bbox

    figure = axes.get_figure(root=True)
    if figure is None:
        raise ValueError("the axes are in no figure")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]  # settles the layout, and with it where the points are
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    radius = figure.dpi / 72 * POINT_RADIUS
    centres = [axes.transData.transform(place) for place, _, _ in points]
    taken = [Bbox.from_extents(x - radius, y - radius, x + radius, y + radius) for x, y in centres]
    for place, name, strong in points:
        taken.append(_write(axes, renderer, place, name, strong=strong, taken=taken))


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
