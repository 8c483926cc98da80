"""Tables as values, and one function for each form they are written in."""

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillpager.bench.report.pages import render
from skillpager.bench.report.statistics import Interval


@dataclass(frozen=True, slots=True)
class Bounds:
    """The ends of an interval whose value stands elsewhere in the row."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PValue:
    """A p value; the smallest are printed as being below what the column can show."""

    value: float


Cell = str | int | float | Interval | Bounds | PValue | None

MISSING = "—"
MINUS = "−"
# what Markdown would read as markup; an underscore inside a word is none
_MARKUP = re.compile(r"([\\`*\[\]<>|~])|(?<!\w)(_)|(_)(?!\w)")


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        title: Its heading, with the unit.
        group: Heading above those of neighbouring columns of the same group, or empty.
        digits: Decimals of its numbers.
    """

    title: str
    group: str = ""
    digits: int = 2


@dataclass(frozen=True, slots=True)
class Row:
    """A row.

    Attributes:
        cells: One a column; the first names the row. None and NaN are printed as a dash.
        strong: Whether it is the row to look at.
    """

    cells: tuple[Cell, ...]
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: Name of its file, also its anchor: lower-case letters, digits, hyphens.
        title: What it shows.
        columns: Headings.
        rows: Contents.
        note: What a reader must know to read it; may be empty.
        reference: Where the paper has it; empty for a table of our own.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""
    reference: str = ""

    def __post_init__(self) -> None:
        """Check the shape.

        Raises:
            ValueError: A row has more or fewer cells than there are columns.
        """
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise ValueError(
                    f"{self.name}: {len(row.cells)} cells for {len(self.columns)} columns: {row}"
                )

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The groups and how many columns each spans, in order."""
        groups: list[tuple[str, int]] = []
        for column in self.columns:
            if groups and groups[-1][0] == column.group:
                groups[-1] = (column.group, groups[-1][1] + 1)
            else:
                groups.append((column.group, 1))
        return groups

    @property
    def grouped(self) -> bool:
        """Whether any column is in a group."""
        return any(column.group for column in self.columns)

    def is_number(self, place: int) -> bool:
        """Tell whether a column holds numbers, which are set flush right."""
        return place > 0 and not any(isinstance(row.cells[place], str) for row in self.rows)


def format_cell(cell: Cell, digits: int) -> str:
    """Return a cell as people read it: `1,975`, `−28.81`, `78.89 [77.01, 80.61]`, or a dash."""
    if isinstance(cell, str):
        return cell.replace(" = ", "\u00a0=\u00a0")  # no line break in an equation
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return MISSING
    if isinstance(cell, Interval):
        bounds = format_cell(Bounds(cell.low, cell.high), digits)
        return MISSING if math.isnan(cell.value) else f"{_number(cell.value, digits)} {bounds}"
    if isinstance(cell, Bounds):
        return f"[{_number(cell.low, digits)}, {_number(cell.high, digits)}]"
    if isinstance(cell, PValue):
        least = 10.0**-digits
        return f"< {least:.{digits}f}" if cell.value < least else _number(cell.value, digits)
    return _number(cell, 0 if isinstance(cell, int) else digits)


def _number(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    if float(text.replace(",", "")) == 0:
        return text.lstrip("-")
    return text.replace("-", MINUS)


# ---- forms


def to_markdown(table: Table) -> str:
    """Return a table as GitHub's Markdown: heading, rows, note and reference."""
    titles = [f"{column.group}: {column.title}" if column.group else column.title for column in table.columns]
    rules = ["---:" if table.is_number(place) else "---" for place in range(len(titles))]
    lines = [_markdown_row(map(escape_markdown, titles)), _markdown_row(rules)]
    lines += [_markdown_row(_markdown_cells(row, table.columns)) for row in table.rows]
    remarks = [escape_markdown(text) for text in (table.note, _reference(table)) if text]
    return "\n".join(
        [f"**{escape_markdown(table.title)}**", "", *lines, *(f"\n{text}" for text in remarks), ""]
    )


def to_html(table: Table) -> str:
    """Return a table as an HTML figure, everything escaped."""
    return render("table.html", table=table, cells=_formatted(table), reference=_reference(table))


def to_csv(table: Table) -> str:
    """Return a table as CSV: full numbers, an interval in columns of its own, empty where there is none."""
    widths = [
        max((len(_values(row.cells[place])) for row in table.rows), default=1)
        for place in range(len(table.columns))
    ]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        heading
        for column, width in zip(table.columns, widths, strict=True)
        for heading in _csv_headings(column, width)
    )
    for row in table.rows:
        writer.writerow(
            text for cell, width in zip(row.cells, widths, strict=True) for text in _csv_cells(cell, width)
        )
    return out.getvalue()


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return _MARKUP.sub(lambda match: f"\\{match[0]}", " ".join(text.split()))


def _reference(table: Table) -> str:
    return f"Reference: {table.reference}." if table.reference else ""


def _formatted(table: Table) -> list[list[str]]:
    return [
        [format_cell(cell, column.digits) for cell, column in zip(row.cells, table.columns, strict=True)]
        for row in table.rows
    ]


def _markdown_cells(row: Row, columns: Sequence[Column]) -> Iterator[str]:
    for cell, column in zip(row.cells, columns, strict=True):
        text = escape_markdown(format_cell(cell, column.digits))
        yield f"**{text}**" if row.strong and text else text


def _markdown_row(cells: Iterator[str] | Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _csv_headings(column: Column, width: int) -> list[str]:
    heading = f"{column.group}: {column.title}" if column.group else column.title
    return [f"{heading}{ending}" for ending in _ENDINGS[width]]


# of the headings of a cell that takes so many columns
_ENDINGS = {1: ("",), 2: (" low", " high"), 3: ("", " low", " high")}


def _csv_cells(cell: Cell, width: int) -> list[str]:
    texts = [_plain(value) for value in _values(cell)]
    return texts + [""] * (width - len(texts))


def _values(cell: Cell) -> list[str | float | None]:
    match cell:
        case Interval(value, low, high):
            return [value, low, high]
        case Bounds(low, high):
            return [low, high]
        case PValue(value):
            return [value]
        case _:
            return [cell]


def _plain(value: str | float | None) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
