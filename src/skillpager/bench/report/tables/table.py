"""Tables as values, and functions that write them as Markdown, HTML and CSV."""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, is_dataclass
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
    """The ends of an interval whose value is in another cell of the row."""

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
# characters that Markdown would read as markup; not an underscore inside a word
_MARKUP = re.compile(r"([\\`*\[\]<>|~])|(?<!\w)(_)|(_)(?!\w)")
# headings in CSV of a cell that takes so many columns
_ENDINGS = {1: ("",), 2: (" low", " high"), 3: ("", " low", " high")}


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table: rows of cells by heading, the first of which names the row.

    None and NaN are printed as a dash. Neighbouring headings that begin with the same `Paper: ` are put below
    it as a group.
    """

    name: str  # of its file, also its anchor: lower-case letters, digits, hyphens
    title: str
    rows: Sequence[Cells]
    note: str = ""  # how to read it
    reference: str = ""  # where the paper has it
    digits: Mapping[str, int] = field(default_factory=dict)  # decimals by heading, where they are not two
    strong: Collection[str] = ()  # names of the rows to emphasize

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
        """Which rows are emphasized."""
        return [row[self.headings[0]] in self.strong for row in self.rows]

    @property
    def source(self) -> str:
        """The reference as a sentence, or nothing."""
        return f"Reference: {self.reference}." if self.reference else ""

    @property
    def are_numbers(self) -> list[bool]:
        """Which columns hold numbers; these are set flush right."""
        columns = [[row[heading] for row in self.rows] for heading in self.headings]
        return [
            place > 0 and not any(isinstance(cell, str) for cell in column)
            for place, column in enumerate(columns)
        ]


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
    texts = [list(map(escape_markdown, row)) for row in table.texts]
    rows = [
        [f"**{cell}**" if strong and cell else cell for cell in row]
        for strong, row in zip(table.is_strong, texts, strict=True)
    ]
    parts = [f"**{escape_markdown(table.title)}**", ""]
    parts.append(markdown_grid(list(map(escape_markdown, table.headings)), rows, table.are_numbers))
    remarks = [f"\n{escape_markdown(text)}" for text in (table.note, table.source) if text]
    return "\n".join([*parts, *remarks, ""])


def markdown_grid(headings: Sequence[str], rows: Iterable[Sequence[str]], are_numbers: Sequence[bool]) -> str:
    """Return escaped cells as the lines of a Markdown table, columns of numbers flush right."""
    rule = ["---:" if number else "---" for number in are_numbers]
    return "\n".join(f"| {' | '.join(line)} |" for line in (headings, rule, *rows))


def to_html(table: Table) -> str:
    """Return a table as an HTML figure, everything escaped."""
    columns = [heading.rpartition(": ")[::2] for heading in table.headings]
    return render(
        "table.html",
        table=table,
        groups=[(name, len(list(group))) for name, group in groupby(columns, key=lambda column: column[0])],
        columns=list(zip((title for _, title in columns), table.are_numbers, strict=True)),
        rows=list(zip(table.is_strong, table.texts, strict=True)),
    )


def to_csv(table: Table) -> str:
    """Return a table as CSV: full numbers, an interval in columns of its own, empty where there is none."""
    columns: dict[str, list[str]] = {}
    for heading in table.headings:
        cells = [
            astuple(cell) if is_dataclass(cell) else (cell,) for cell in (row[heading] for row in table.rows)
        ]
        for place, ending in enumerate(_ENDINGS[max(map(len, cells))]):
            columns[heading + ending] = [_plain(*cell[place : place + 1]) for cell in cells]
    return pd.DataFrame(columns).to_csv(index=False, lineterminator="\n")


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
