"""Findings: what is wrong with a skill or a library, where, and what to do about it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from skillpager.display_text import one_line

MAX_VALUE_CHARS = 120


class Severity(StrEnum):
    """How bad a finding is: an error breaks the specification or the skill, a warning is advice."""

    ERROR = "error"
    WARNING = "warning"


class Kind(StrEnum):
    """What a finding is about."""

    UNREADABLE = "unreadable"
    FRONT_MATTER = "front-matter"
    NAME = "name"
    FOLDER = "folder"
    DESCRIPTION = "description"
    COMPATIBILITY = "compatibility"
    DEAD_LINK = "dead-link"
    OUTSIDE = "outside"
    SIZE = "size"
    LICENCE = "licence"
    SAME_NAME = "same-name"
    COPY = "copy"
    NEAR_COPY = "near-copy"
    OVERLAP = "overlap"
    LISTING = "listing"


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding.

    Attributes:
        kind: What it is about.
        severity: How bad it is.
        file: The file, or folder, that is to be changed.
        line: Its line, counted from 1; None if it is about the whole file.
        value: The text or number that was found; possibly empty.
        problem: What is wrong, as a clause with the value.
        remedy: What to do, as an imperative clause.
    """

    kind: Kind
    severity: Severity
    file: Path
    line: int | None
    value: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        """Return the finding on one line, in the form that editors and CI systems link: `FILE:LINE: …`."""
        place = str(self.file) if self.line is None else f"{self.file}:{self.line}"
        return one_line(f"{place}: {self.severity}: {self.kind}: {self.problem}: {self.remedy}")


@dataclass(frozen=True, slots=True)
class LibraryCheck:
    """The result of a check.

    Attributes:
        skills: Number of skills that were checked.
        findings: By file and line; those about the whole library last.
    """

    skills: int
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> int:
        """Number of findings that are errors."""
        return sum(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def warnings(self) -> int:
        """Number of findings that are warnings."""
        return len(self.findings) - self.errors

    @property
    def counts(self) -> dict[str, int]:
        """Number of findings by kind, those with most first."""
        return {
            str(kind): count for kind, count in Counter(each.kind for each in self.findings).most_common()
        }


def shown_value(text: str) -> str:
    """Return a value as a message shows it: in quotes, on one line and cut."""
    return repr(one_line(text, MAX_VALUE_CHARS))


def in_order(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings by file and line; those about the whole library last."""
    return tuple(
        sorted(
            findings,
            key=lambda each: (
                each.kind is Kind.LISTING,
                str(each.file),
                each.line or 0,
                each.kind,
                each.problem,
            ),
        )
    )
