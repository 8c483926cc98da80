"""Checks of one skill: front matter, size, links and licence; findings have place, problem and remedy."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote, unquote

from skillpager.display_text import one_line
from skillpager.errors import SkillPagerError
from skillpager.files import ENTRY_FILE
from skillpager.library.discovery import skill_faults, stated_licence
from skillpager.library.filters import UNKNOWN, read_licence
from skillpager.parsing.lines import LINE_END
from skillpager.parsing.markdown import link_targets
from skillpager.parsing.skill import (
    MAX_DESCRIPTION,
    MAX_NAME,
    NAME,
    find_front_matter,
    read_skill,
    written_name,
)
from skillpager.tokens import default_counter
from skillpager.types import Skill, SourceFile

# agentskills.io/specification: the body is loaded whole, so it should be shorter than this
MAX_BODY_LINES = 500
MAX_BODY_TOKENS = 5_000
# agentskills.io/specification
MAX_COMPATIBILITY = 500
MAX_VALUE_CHARS = 120

_FIELD = re.compile(r"([A-Za-z][\w-]*)[ \t]*:")
_PARSE_WARNING = re.compile(r".*?:(\d+): (.*)", re.DOTALL)
# targets that an author writes to show the form of a link, and addresses without a scheme
_EXAMPLE = re.compile(
    r"[*{}<>$|…]|\.\.\.|^(?:\.?/)?(?:path|your|example|some|file|url|link|image|xxx)[\w-]*(?:[/.]|$)|/path/|path/to"
    r"|^(?:www\.|[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|ai|app|gov|edu|co)(?:[/:?]|$))",
    re.IGNORECASE,
)


class Severity(StrEnum):
    """An error breaks the specification or the skill, a warning is advice."""

    ERROR = "error"
    WARNING = "warning"


class Kind(StrEnum):
    """The subject of a finding."""

    UNREADABLE = "unreadable"
    FRONT_MATTER = "front-matter"
    NAME = "name"
    FOLDER = "folder"
    DESCRIPTION = "description"
    COMPATIBILITY = "compatibility"
    DEAD_LINK = "dead-link"
    SIZE = "size"
    LICENCE = "licence"
    SAME_NAME = "same-name"
    COPY = "copy"
    OVERLAP = "overlap"


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding: what is wrong in which file and line, as a clause, and what to do, as an imperative clause.

    The line is None if it is about the whole file; `value` is the text or number that was found, or empty.
    """

    kind: Kind
    severity: Severity
    file: Path
    line: int | None
    value: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        """Return the finding on one line in the form that editors and CI systems link."""
        place = str(self.file) if self.line is None else f"{self.file}:{self.line}"
        return one_line(f"{place}: {self.severity}: {self.kind}: {self.problem}: {self.remedy}")


@dataclass(frozen=True, slots=True)
class CheckedSkill:
    """A skill, its SKILL.md, and the line of each field of its front matter, counted from 1."""

    skill: Skill
    file: Path
    lines: dict[str, int]

    def warning(self, kind: Kind, field: str, value: object, problem: str, remedy: str) -> Finding:
        """Return advice about a field of its front matter, or about the whole file."""
        return Finding(kind, Severity.WARNING, self.file, self.lines.get(field), str(value), problem, remedy)

    def error(self, kind: Kind, field: str, value: object, problem: str, remedy: str) -> Finding:
        """Return a fault of a field of its front matter, at the first line if that is missing."""
        line = self.lines.get(field, 1)
        return Finding(kind, Severity.ERROR, self.file, line, str(value), problem, remedy)


def shown_value(text: str) -> str:
    """Return a value as a message shows it: in quotes, on one line and cut."""
    return repr(one_line(text, MAX_VALUE_CHARS))


def read_for_check(path: Path) -> CheckedSkill | Finding:
    """Return the skill in a folder, or why it cannot be read."""
    file = path / ENTRY_FILE
    try:
        with skill_faults(path):
            skill = read_skill(path, scope="skill")
    except SkillPagerError as error:
        problem, _, remedy = str(error).rstrip(".").partition(": ")
        remedy = remedy or "correct the file, or move its folder away"
        return Finding(Kind.UNREADABLE, Severity.ERROR, file, None, "", problem, remedy)
    start, end = find_front_matter(skill.files[0].text)
    lines: dict[str, int] = {}
    for number, line in enumerate(LINE_END.split(skill.files[0].text[start:end]), 1):
        if match := _FIELD.match(line):
            lines.setdefault(match[1], number)
    return CheckedSkill(skill, file, lines)


def check_skill(checked: CheckedSkill) -> Iterator[Finding]:
    """Yield the findings about one skill."""
    start, end = find_front_matter(checked.skill.files[0].text)
    if start == end:
        problem = "there is no front matter, so hosts skip the skill"
        remedy = "begin the file with a block of `---` lines that holds `name:` and `description:`"
        yield checked.error(Kind.FRONT_MATTER, "", "", problem, remedy)
    else:
        yield from _front_matter_findings(checked)
    yield from _size_findings(checked)
    yield from _licence_findings(checked)
    for source in checked.skill.files:
        yield from _link_findings(source, checked.file.parent)


def _front_matter_findings(checked: CheckedSkill) -> Iterator[Finding]:
    skill, folder = checked.skill, checked.file.parent.resolve().name
    for warning in skill.warnings:
        if "front matter is not valid YAML" in warning and (match := _PARSE_WARNING.match(warning)):
            # how it was read nevertheless is of no use to those who mend it
            problem, remedy = match[2].partition("; ")[0], "put the value in quotes, or mend the indentation"
            kind, severity = Kind.FRONT_MATTER, Severity.ERROR
            yield Finding(kind, severity, checked.file, int(match[1]), "", problem, remedy)
    name = written_name(skill.files[0].text)
    if "name" not in checked.lines:
        yield checked.error(Kind.NAME, "", "", "the front matter has no name", f"add `name: {folder}`")
    elif len(name) > MAX_NAME or not NAME.fullmatch(name):
        problem = f"the name {shown_value(name)} is not 1 to {MAX_NAME} lower-case letters, digits, hyphens"
        allowed = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:MAX_NAME].rstrip("-") or "a-name"
        yield checked.error(Kind.NAME, "name", name, problem, f"write `name: {allowed}`")
    elif name != folder:
        problem = f"the name {shown_value(name)} is not that of its folder, {shown_value(folder)}"
        # registries add an owner or a version to the folder
        renamed = re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", folder.lower())
        report = checked.warning if renamed else checked.error
        yield report(Kind.FOLDER, "name", name, problem, "rename one of the two")
    if not skill.description:
        problem = "there is no description, so hosts skip the skill"
        remedy = "say what the skill does and when to use it: hosts choose by this text"
        yield checked.error(Kind.DESCRIPTION, "description", "", problem, remedy)
    compatibility = skill.metadata.get("compatibility", "")
    for kind, text, most in (
        (Kind.DESCRIPTION, skill.description, MAX_DESCRIPTION),
        (Kind.COMPATIBILITY, compatibility, MAX_COMPATIBILITY),
    ):
        if len(text) > most:
            problem = f"the {kind} has {len(text):,} characters, over {most:,}"
            yield checked.error(kind, kind, len(text), problem, "shorten it: details belong into the body")


def _size_findings(checked: CheckedSkill) -> Iterator[Finding]:
    entry = checked.skill.files[0]
    lines = len(LINE_END.split(entry.text.rstrip()))
    tokens = default_counter().count(entry.text[entry.body_start :])
    over = [f"{lines:,} lines (over {MAX_BODY_LINES:,})"] if lines > MAX_BODY_LINES else []
    over += [f"{tokens:,} tokens (over {MAX_BODY_TOKENS:,})"] if tokens > MAX_BODY_TOKENS else []
    if over:
        problem = f"SKILL.md has {' and '.join(over)}, and hosts load it whole"
        remedy = "move parts that few tasks need into files of references/, or let agents page it"
        yield checked.warning(Kind.SIZE, "", tokens, problem, remedy)


def _licence_findings(checked: CheckedSkill) -> Iterator[Finding]:
    stated = stated_licence(checked.skill.metadata)
    if read_licence(checked.file.parent, stated) != UNKNOWN:
        return
    problem = "it is not known under which licence others may use the skill"
    if stated:
        problem = f"the licence {shown_value(stated)} is none that is known"
    remedy = "write `license:` with an SPDX id such as MIT, or LicenseRef- and a name"
    yield checked.warning(Kind.LICENCE, "license", stated, problem, remedy)


def _link_findings(source: SourceFile, root: Path) -> Iterator[Finding]:
    """Yield the links of a file that lead to no file of the skill, each target once."""
    file, text = root / source.path, source.text[source.body_start :]
    first = source.text.count("\n", 0, source.body_start) + 1
    targets = link_targets(text, file=source.path, first_line=first)
    linked = {each for each in targets if ("." in each or "/" in each) and not _EXAMPLE.search(each)}
    for target in sorted(linked):
        line, shown = first + _line_of(text, target), shown_value(target)
        if not any(_is_in_skill(base / unquote(target), root) for base in (file.parent, root)):
            problem = f"the link leads to {shown}, which is not there in the skill's folder"
            remedy = "add the file, or mend the path"
            yield Finding(Kind.DEAD_LINK, Severity.ERROR, file, line, target, problem, remedy)


def _is_in_skill(path: Path, root: Path) -> bool:
    try:
        real = path.resolve(strict=True)
    except (OSError, ValueError, RuntimeError):  # missing, or a path that cannot be
        return False
    return real.is_relative_to(root.resolve())


def _line_of(text: str, target: str) -> int:
    """Return the number of line ends before the link to a target, or else before its first mention."""
    written = (target, quote(target))
    for pattern in (*(f"{before}{path}" for path in written for before in ("(", "<", ": ")), *written):
        if (at := text.find(pattern)) >= 0:
            return text.count("\n", 0, at)
    return 0
