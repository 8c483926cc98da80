"""Results of a section of the benchmarks: tables, checks against targets, notes; to and from JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

Cell = str | int | float


@dataclass(frozen=True, slots=True)
class Table:
    """Measurements of one kind.

    Attributes:
        title: What was measured.
        columns: Heads, with units.
        rows: One cell per column.
        note: How to read it.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A number with a target.

    Attributes:
        what: What the number is.
        measured: Its value.
        limit: The target.
        unit: Unit of both.
        at_most: Whether the target is a ceiling; else a floor.
    """

    what: str
    measured: float
    limit: float
    unit: str
    at_most: bool = True

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.measured <= self.limit if self.at_most else self.measured >= self.limit


@dataclass(frozen=True, slots=True)
class Report:
    """What one section measured.

    Attributes:
        title: Head of the section.
        tables: Its measurements.
        checks: Its numbers with targets.
        note: What holds for all its tables.
    """

    title: str
    tables: Sequence[Table]
    checks: Sequence[Check] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A report and the circumstances it was made in.

    Attributes:
        report: The report.
        date: When, UTC, ISO 8601.
        command: The command, folders named by their last part.
        quick: Whether it was a quick run, whose numbers are only a smoke test.
        seconds: How long the section took.
        load: One-minute load averages of the machine before and after.
        machine: Description of the machine, line by line.
    """

    report: Report
    date: str
    command: str
    quick: bool
    seconds: float
    load: tuple[float, float]
    machine: Mapping[str, str]


def save(entries: Mapping[str, Entry], path: Path) -> None:
    """Write entries as JSON, numbers unrounded."""
    plain = {name: asdict(entry) for name, entry in entries.items()}
    path.write_text(json.dumps(plain, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def load(path: Path) -> dict[str, Entry]:
    """Return the entries that were saved to `path`; none when it is not there."""
    if not path.exists():
        return {}
    entries = {}
    for name, raw in json.loads(path.read_text(encoding="utf-8")).items():
        report = raw.pop("report")
        tables = [Table(**table) for table in report.pop("tables")]
        checks = [Check(**check) for check in report.pop("checks")]
        entries[name] = Entry(report=Report(tables=tables, checks=checks, **report), **raw)
    return entries
