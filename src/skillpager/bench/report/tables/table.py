"""Tables as values, and one function for each form they are written in."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from skillpager.bench.report.statistics import Interval
from skillpager.errors import require_extra

if TYPE_CHECKING:
    from jinja2 import Environment


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
Cells = Mapping[str, Cell]

TEMPLATES = Path(__file__).parents[1] / "templates"
DIGITS = 2
MISSING = "—"
MINUS = "−"
# what Markdown would read as markup; an underscore inside a word is none
_MARKUP = re.compile(r"([\\`*\[\]<>|~])|(?<!\w)(_)|(_)(?!\w)")
# headings in CSV of a cell that takes so many columns
_ENDINGS = {1: ("",), 2: (" low", " high"), 3: ("", " low", " high")}


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table.

    Attributes:
        name: Name of its file, also its anchor: lower-case letters, digits, hyphens.
        title: What it shows.
        rows: Cells by heading, the first of which names the row; None and NaN are printed as a dash.
            Neighbouring headings that begin with the same `Paper: ` stand below it as a group.
        note: What a reader must know to read it; may be empty.
        reference: Where the paper has it; empty for a table of our own.
        digits: Decimals of the numbers below a heading, where they are not two.
        strong: Names of the rows to look at.
    """

    name: str
    title: str
    rows: Sequence[Cells]
    note: str = ""
    reference: str = ""
    digits: Mapping[str, int] = field(default_factory=dict)
    strong: Collection[str] = ()

    @property
    def headings(self) -> list[str]:
        """The headings of the columns."""
        return list(self.rows[0])

    @property
    def texts(self) -> list[list[str]]:
        """The cells as people read them, row by row."""
        columns = [(heading, self.digits.get(heading, DIGITS)) for heading in self.headings]
        return [[format_cell(row[heading], digits) for heading, digits in columns] for row in self.rows]

    @property
    def is_strong(self) -> list[bool]:
        """Which rows are the ones to look at."""
        return [row[self.headings[0]] in self.strong for row in self.rows]

    @property
    def source(self) -> str:
        """The reference as a sentence, or nothing."""
        return f"Reference: {self.reference}." if self.reference else ""

    def is_number(self, heading: str) -> bool:
        """Return True if a column holds numbers, which are set flush right."""
        cells = [row[heading] for row in self.rows]
        return heading != self.headings[0] and not any(isinstance(cell, str) for cell in cells)


def format_cell(cell: Cell, digits: int) -> str:
    """Return a cell as people read it: `1,975`, `−28.81`, `78.89 [77.01, 80.61]`, or a dash."""
    match cell:
        case str():
            return cell.replace(" = ", "\u00a0=\u00a0")  # no line break in an equation
        case Interval(value, low, high):
            return MISSING if math.isnan(value) else f"{_number(value, digits)} {_bounds(low, high, digits)}"
        case Bounds(low, high):
            return _bounds(low, high, digits)
        case PValue(value):
            least = 10.0**-digits
            return f"< {least:.{digits}f}" if value < least else _number(value, digits)
        case None:
            return MISSING
        case int():
            return _number(cell, 0)
    return MISSING if math.isnan(cell) else _number(cell, digits)


def _bounds(low: float, high: float, digits: int) -> str:
    return f"[{_number(low, digits)}, {_number(high, digits)}]"


def _number(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    if float(text.replace(",", "")) == 0:
        return text.lstrip("-")
    return text.replace("-", MINUS)


# ---- forms


def to_markdown(table: Table) -> str:
    """Return a table as GitHub's Markdown: heading, rows, note and reference."""
    lines = [
        [escape_markdown(heading) for heading in table.headings],
        ["---:" if table.is_number(heading) else "---" for heading in table.headings],
    ]
    for strong, texts in zip(table.is_strong, table.texts, strict=True):
        cells = map(escape_markdown, texts)
        lines.append([f"**{cell}**" if strong and cell else cell for cell in cells])
    parts = [f"**{escape_markdown(table.title)}**", "", *(f"| {' | '.join(line)} |" for line in lines)]
    remarks = [f"\n{escape_markdown(text)}" for text in (table.note, table.source) if text]
    return "\n".join([*parts, *remarks, ""])


def to_html(table: Table) -> str:
    """Return a table as an HTML figure, everything escaped."""
    columns = [heading.rpartition(": ")[::2] for heading in table.headings]
    return render(
        "table.html",
        table=table,
        groups=[(name, len(list(group))) for name, group in groupby(columns, key=lambda column: column[0])],
        columns=[(title, table.is_number(h)) for (_, title), h in zip(columns, table.headings, strict=True)],
        rows=list(zip(table.is_strong, table.texts, strict=True)),
    )


def to_csv(table: Table) -> str:
    """Return a table as CSV: full numbers, an interval in columns of its own, empty where there is none."""
    columns: dict[str, list[str]] = {}
    for heading in table.headings:
        cells = [_values(row[heading]) for row in table.rows]
        for place, ending in enumerate(_ENDINGS[max(map(len, cells))]):
            columns[heading + ending] = [_plain(*cell[place : place + 1]) for cell in cells]
    return pd.DataFrame(columns).to_csv(index=False, lineterminator="\n")


def _values(cell: Cell) -> tuple[str | float | None, ...]:
    match cell:
        case Interval(value, low, high):
            return value, low, high
        case Bounds(low, high):
            return low, high
        case PValue(value):
            return (value,)
        case _:
            return (cell,)


def _plain(value: str | float | None = None) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return _MARKUP.sub(lambda match: f"\\{match[0]}", " ".join(text.split()))


def render(template: str, **values: object) -> str:
    """Return an HTML template filled in; every value is escaped unless the template says otherwise."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> "Environment":
    jinja2 = require_extra("jinja2", extra="bench", purpose="The benchmark's report")
    environment: Environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment
