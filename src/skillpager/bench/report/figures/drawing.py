"""The common style of all figures; `save` gives the same bytes each time."""

import io
import textwrap
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillpager.output.palette import TYPE_COLORS, own_settings
from skillpager.types import NodeType

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.2  # inches, as the pictures of graphs
DPI = 150
INK, GREY, PALE = "#222222", "#6B6B6B", "#D0D0D0"
# Okabe and Ito's colours, those of the node types
BLUE, GREEN = TYPE_COLORS[NodeType.CONCEPT], TYPE_COLORS[NodeType.STEP]
ORANGE, PURPLE = TYPE_COLORS[NodeType.PARAM], TYPE_COLORS[NodeType.EXAMPLE]
RED, SKY = TYPE_COLORS[NodeType.ERROR_HANDLING], TYPE_COLORS[NodeType.PRECONDITION]
# colour, marker and dashes of each line of a figure: the last two are for print in grey
LINES = tuple(
    zip(
        (BLUE, RED, GREEN, ORANGE, PURPLE, SKY),
        "osD^vP",
        ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)), (0, (2.5, 1)), (0, (7, 1, 1, 1, 1, 1))),
        strict=True,
    )
)
# intervals beside points
WHISKERS: dict[str, Any] = {"capsize": 2.5, "elinewidth": 0.9, "capthick": 0.9}
# the paper's values, wherever they stand beside ours
PAPER_LINE: dict[str, Any] = {
    "color": GREY,
    "marker": "d",
    "markerfacecolor": "white",
    "linestyle": (0, (2, 2)),
    "linewidth": 1,
    "label": "paper",
}
SMALL, TEXT = 7.5, 9  # points

_LOOKS = {
    "text.parse_math": False,
    "font.size": TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": "#E6E6E6",
    "legend.frameon": False,
    "legend.fontsize": SMALL,
}


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
        MissingExtraError: Matplotlib is not installed; when the context is entered.
    """
    return own_settings(_LOOKS, extra="bench", purpose="A figure of the benchmark")


def new_figure(height: float, width: float = WIDTH) -> "Figure":
    """Return an empty figure, sizes in inches; the layout makes room for labels."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", dpi=DPI)


# a warning that stands in each picture, because pictures are copied without their captions
_STAMP = ContextVar("stamp", default="")
STAMP_CHARACTERS = 110  # of a line, at `SMALL` and `WIDTH`


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


def percent_axis(axes: "Axes", label: str) -> None:
    """Scale the y axis from 0 to 100 %, and name it."""
    axes.set_ylim(0, 101.5)
    axes.set_ylabel(label)
    axes.grid(axis="y")
