"""Results of a section of the benchmarks: tables, checks against targets, notes; to and from JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

Cell = str | int | float


@dataclass(frozen=True, slots=True)
class Table:
    """Measurements of one kind."""

    title: str
    columns: Sequence[str]  # heads, with units
    rows: Sequence[Sequence[Cell]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A number with a target."""

    what: str
    measured: float
    limit: float
    unit: str
    at_most: bool = True  # the target is a ceiling, else a floor

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.measured <= self.limit if self.at_most else self.measured >= self.limit


@dataclass(frozen=True, slots=True)
class Report:
    """The measurements of one section."""

    title: str
    tables: Sequence[Table]
    checks: Sequence[Check] = ()
    note: str = ""  # on all its tables


@dataclass(frozen=True, slots=True)
class Entry:
    """A report and the circumstances it was made in."""

    report: Report
    date: str  # UTC, ISO 8601
    command: str  # folders named by their last part
    quick: bool  # a smoke test
    seconds: float
    load: tuple[float, float]  # one-minute load averages of the machine, before and after
    machine: Mapping[str, str]  # its description, line by line


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
