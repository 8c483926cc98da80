"""Tables of results: a DataFrame with title and notes, formatted for reports and written as CSV."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby

import pandas as pd

from skillpager.bench.report.statistics import Interval

Cell = str | int | float | Interval | None
Row = dict[str, Cell]

DIGITS = 2
MISSING = "—"


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of results; None and NaN are shown as a dash.

    Neighbouring headings that begin with the same words and a colon (`Paper: `) are shown as a group. A
    column whose heading begins with `p, ` holds p values.

    Attributes:
        name: The name of its file, also its anchor: lower-case letters, digits, hyphens.
        title: Its title.
        rows: Its cells; the first column names the row.
        note: How to read it.
        reference: Where the paper has it.
        digits: Decimals by heading, where they are not two.
    """

    name: str
    title: str
    rows: pd.DataFrame
    note: str = ""
    reference: str = ""
    digits: Mapping[str, int] = field(default_factory=dict)

    @property
    def texts(self) -> pd.DataFrame:
        """The cells as people read them."""
        shown = {}
        for name, cells in self.rows.items():
            heading = str(name)
            digits, is_p = self.digits.get(heading, DIGITS), heading.startswith("p, ")
            shown[heading] = [format_cell(cell, digits, is_p=is_p) for cell in cells]
        return pd.DataFrame(shown)

    @property
    def columns(self) -> list[tuple[str, str, bool]]:
        """Group, title and whether it holds numbers, of each column."""
        names = [str(heading).rpartition(": ")[::2] for heading in self.rows]
        numbers = [not any(isinstance(cell, str) for cell in self.rows[heading]) for heading in self.rows]
        return [(group, title, is_number) for (group, title), is_number in zip(names, numbers, strict=True)]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Title and number of columns of each group; the title is empty for columns without one."""
        return [(group, len(list(columns))) for group, columns in groupby(each[0] for each in self.columns)]

    def to_csv(self) -> str:
        """Return the table as CSV: six digits, an interval in three columns, empty where there is nothing."""
        columns: dict[str, list[object]] = {}
        for name, cells in self.rows.items():
            if any(isinstance(cell, Interval) for cell in cells):
                columns[str(name)] = [getattr(cell, "value", cell) for cell in cells]
                for end in ("low", "high"):
                    columns[f"{name} {end}"] = [getattr(cell, end, None) for cell in cells]
            else:
                columns[str(name)] = list(cells)
        return pd.DataFrame(columns).to_csv(index=False, lineterminator="\n", float_format="%.6g")


def frame(rows: Iterable[Mapping[str, Cell]]) -> pd.DataFrame:
    """Return rows as a DataFrame whose whole numbers stay whole beside fractions and missing cells."""
    return pd.DataFrame(list(rows), dtype=object)


def format_cell(cell: Cell, digits: int, *, is_p: bool = False) -> str:
    """Return a cell as people read it: `1,975`, `−28.81`, `78.89 [77.01, 80.61]`, `< 0.0001` or a dash."""
    if isinstance(cell, str):
        return cell.replace(" = ", "\u00a0=\u00a0")  # no line break in an equation
    if isinstance(cell, Interval):
        value, low, high = (format_cell(number, digits) for number in (cell.value, cell.low, cell.high))
        return MISSING if value == MISSING else f"{value} [{low}, {high}]"
    if cell is None or math.isnan(cell):
        return MISSING
    if is_p and cell < 10.0**-digits:
        return f"< {10.0**-digits:.{digits}f}"
    text = f"{cell:,.{0 if isinstance(cell, int) else digits}f}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0 else text.replace("-", "−")
