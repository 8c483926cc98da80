"""Tables: a DataFrame with title and notes, shown as Markdown and HTML and written as CSV.

A table is what a function makes of rows of results: a DataFrame whose first column names the row, and a
caption. Columns `X low` and `X high` hold the ends of the interval of column `X`, and are shown in it. A
column whose heading begins with `p, ` holds p values. Neighbouring headings that begin with the same words
and a colon (`Paper: `) are put below them as a group.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from pathlib import Path

import jinja2
import pandas as pd

from skillpager.bench.report.statistics import Interval

Cell = str | int | float | None

TEMPLATES = Path(__file__).parent / "templates"
DIGITS = 2
MISSING = "—"
LOW, HIGH = " low", " high"
# characters that Markdown would read as markup; not an underscore inside a word
_MARKUP = re.compile(r"([\\`*\[\]<>|~])|(?<!\w)(_)|(_)(?!\w)")


def with_ends(heading: str, found: "Interval | Cell") -> dict[str, Cell]:
    """Return the cells of an estimate and of the ends of its interval; a number without one has no ends."""
    if isinstance(found, Interval):
        return {heading: found.value, heading + LOW: found.low, heading + HIGH: found.high}
    return {heading: found, heading + LOW: None, heading + HIGH: None}


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of results; None and NaN are shown as a dash.

    Attributes:
        name: The name of its file, also its anchor: lower-case letters, digits, hyphens.
        title: Its title.
        rows: Its cells: strings, whole numbers and floats.
        note: How to read it.
        reference: Where the paper has it.
        digits: Decimals by heading, where they are not two.
        strong: Names of the rows to emphasize.
    """

    name: str
    title: str
    rows: pd.DataFrame
    note: str = ""
    reference: str = ""
    digits: Mapping[str, int] = field(default_factory=dict)
    strong: Collection[str] = ()

    @property
    def texts(self) -> pd.DataFrame:
        """The cells as people read them, an interval in one column with its estimate."""
        shown: dict[str, list[str]] = {}
        for heading in dict.fromkeys(re.sub(f"({LOW}|{HIGH})$", "", str(name)) for name in self.rows):
            digits = self.digits.get(heading, DIGITS)
            texts = [""] * len(self.rows)
            if heading in self.rows:
                is_p = heading.startswith("p, ")
                texts = [format_cell(cell, digits, is_p=is_p) for cell in self.rows[heading]]
            if heading + LOW in self.rows:
                ends = zip(self.rows[heading + LOW], self.rows[heading + HIGH], strict=True)
                texts = [
                    text if pd.isna(low) else f"{text} {_bounds(low, high, digits)}".lstrip()
                    for text, (low, high) in zip(texts, ends, strict=True)
                ]
            shown[heading] = texts
        return pd.DataFrame(shown)

    @property
    def is_strong(self) -> list[bool]:
        """Which rows are emphasized."""
        return [name in self.strong for name in self.rows.iloc[:, 0]]

    @property
    def are_numbers(self) -> list[bool]:
        """Which columns of `texts` hold numbers; these are set flush right."""
        columns = list(self.texts)
        holds_text = [
            name in self.rows and any(isinstance(c, str) for c in self.rows[name]) for name in columns
        ]
        return [place > 0 and not text for place, text in enumerate(holds_text)]

    @property
    def source(self) -> str:
        """The reference as a sentence, or nothing."""
        return f"Reference: {self.reference}." if self.reference else ""

    def to_markdown(self) -> str:
        """Return the table as GitHub's Markdown: title, rows, note and reference."""
        texts = self.texts
        rows = [
            [f"**{cell}**" if strong and cell else cell for cell in map(escape_markdown, row)]
            for strong, row in zip(self.is_strong, texts.itertuples(index=False), strict=True)
        ]
        grid = markdown_grid([escape_markdown(str(heading)) for heading in texts], rows, self.are_numbers)
        remarks = [f"\n{escape_markdown(text)}" for text in (self.note, self.source) if text]
        return "\n".join([f"**{escape_markdown(self.title)}**", "", grid, *remarks, ""])

    def to_html(self) -> str:
        """Return the table as an HTML figure, everything escaped."""
        columns = [str(heading).rpartition(": ")[::2] for heading in self.texts]
        return render(
            "table.html",
            table=self,
            groups=[
                (name, len(list(group))) for name, group in groupby(columns, key=lambda column: column[0])
            ],
            columns=list(zip((title for _, title in columns), self.are_numbers, strict=True)),
            rows=list(zip(self.is_strong, self.texts.to_numpy().tolist(), strict=True)),
        )

    def to_csv(self) -> str:
        """Return the table as CSV: numbers with six digits, empty cells where there is no number."""
        return self.rows.map(_plain).to_csv(index=False, lineterminator="\n")


def frame(rows: Iterable[Mapping[str, Cell]]) -> pd.DataFrame:
    """Return rows as a DataFrame whose whole numbers stay whole beside fractions and missing cells."""
    return pd.DataFrame(list(rows), dtype=object)


def format_cell(cell: Cell | Interval, digits: int, *, is_p: bool = False) -> str:
    """Return a cell as people read it: `1,975`, `−28.81`, `78.89 [77.01, 80.61]`, `< 0.0001` or a dash."""
    if isinstance(cell, Interval):
        value = format_cell(cell.value, digits)
        return value if value == MISSING else f"{value} {_bounds(cell.low, cell.high, digits)}"
    if isinstance(cell, str):
        return cell.replace(" = ", "\u00a0=\u00a0")  # no line break in an equation
    if cell is None or pd.isna(cell):
        return MISSING
    if is_p and cell < 10.0**-digits:
        return f"< {10.0**-digits:.{digits}f}"
    text = f"{cell:,.{0 if isinstance(cell, int) else digits}f}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0 else text.replace("-", "−")


def _bounds(low: float, high: float, digits: int) -> str:
    return f"[{format_cell(float(low), digits)}, {format_cell(float(high), digits)}]"


def _plain(cell: Cell) -> str:
    if cell is None or (isinstance(cell, float) and pd.isna(cell)):
        return ""
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def markdown_grid(headings: Sequence[str], rows: Iterable[Sequence[str]], are_numbers: Sequence[bool]) -> str:
    """Return escaped cells as the lines of a Markdown table, columns of numbers flush right."""
    rule = ["---:" if number else "---" for number in are_numbers]
    return "\n".join(f"| {' | '.join(line)} |" for line in (headings, rule, *rows))


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return _MARKUP.sub(lambda match: f"\\{match[0]}", " ".join(text.split()))


def render(template: str, **values: object) -> str:
    """Return a template filled in; in HTML every value is escaped unless the template says otherwise."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["md"] = escape_markdown
    return environment
