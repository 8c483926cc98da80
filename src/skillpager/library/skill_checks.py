"""Checks of one skill: front matter, size, links and licence; findings have place, problem and remedy."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote, unquote

from skillpager.display_text import one_line
from skillpager.errors import SkillPagerError
from skillpager.library.discovery import skill_faults, stated_licence
from skillpager.library.filters import LICENCE_FILE, UNKNOWN, read_licence
from skillpager.parsing.lines import LINE_END
from skillpager.parsing.markdown import link_targets
from skillpager.parsing.skill import (
    ENTRY_FILE,
    MAX_DESCRIPTION,
    MAX_NAME,
    NAME,
    find_front_matter,
    read_skill,
)
from skillpager.tokens import default_counter
from skillpager.types import Skill, SourceFile

# agentskills.io/specification: the body is loaded whole, so it should be shorter than this
MAX_BODY_LINES = 500
MAX_BODY_TOKENS = 5_000
# agentskills.io/specification
MAX_COMPATIBILITY = 500
MAX_VALUE_CHARS = 120
ADD_OR_MEND = "add the file, or mend the path"

_FIELD = re.compile(r"([A-Za-z][\w-]*)[ \t]*:")
_PARSE_WARNING = re.compile(r".*?:(\d+): (.*)", re.DOTALL)
# the folder that only skills have, of those that the specification names for their files
_OWN_FOLDER = "references"
# a file in one of these folders, as authors write it in code and prose; not as the label of a link
_NAMED = re.compile(
    r"(?<![\w./\\$}-])(?:\./)?((?:references|scripts|assets)/[\w./-]*\w\.[A-Za-z]\w{0,4})"
    r"(?![\w/*{<-])(?![`*_]{0,3}\]\()"
)
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


# a finding about SKILL.md: kind, line, value, problem, remedy
_Fault = tuple[Kind, int | None, str, str, str]


def shown_value(text: str) -> str:
    """Return a value as a message shows it: in quotes, on one line and cut."""
    return repr(one_line(text, MAX_VALUE_CHARS))


def read_for_check(path: Path) -> Skill | Finding:
    """Return the skill in a folder, or why it cannot be read."""
    try:
        with skill_faults(path):
            return read_skill(path, scope="skill")
    except SkillPagerError as error:
        problem, _, remedy = str(error).rstrip(".").partition(": ")
        remedy = remedy or "correct the file, or move its folder away"
        return Finding(Kind.UNREADABLE, Severity.ERROR, path / ENTRY_FILE, None, "", problem, remedy)


def field_lines(text: str) -> dict[str, int]:
    """Return the line of each field of front matter, counted from 1; empty without front matter."""
    start, end = find_front_matter(text)
    found: dict[str, int] = {}
    for number, line in enumerate(LINE_END.split(text[start:end]), 1):
        if match := _FIELD.match(line):
            found.setdefault(match[1], number)
    return found


def check_skill(skill: Skill, path: Path, *, top: Path) -> Iterator[Finding]:
    """Yield the findings about one skill.

    Args:
        skill: The skill.
        path: Its folder, as the findings name it.
        top: The search folder in which it was found.
    """
    lines = field_lines(skill.files[0].text)
    faults = [(Severity.ERROR, fault) for fault in _front_matter_faults(skill, path.resolve().name, lines)]
    warnings = (*_size_faults(skill), *_licence_faults(skill, path, lines.get("license"), top))
    faults += [(Severity.WARNING, fault) for fault in warnings]
    for severity, (kind, line, value, problem, remedy) in faults:
        yield Finding(kind, severity, path / ENTRY_FILE, line, value, problem, remedy)
    if skill.root is not None:
        for source in skill.files:
            yield from _link_findings(source, path / source.path, skill.root)


def _front_matter_faults(skill: Skill, folder: str, lines: dict[str, int]) -> Iterator[_Fault]:
    start, end = find_front_matter(skill.files[0].text)
    if start == end:
        problem = "there is no front matter, so hosts skip the skill"
        remedy = "begin the file with a block of `---` lines that holds `name:` and `description:`"
        yield Kind.FRONT_MATTER, 1, "", problem, remedy
        return
    for warning in skill.warnings:
        if "front matter is not valid YAML" in warning and (match := _PARSE_WARNING.match(warning)):
            remedy = "put the value in quotes, or mend the indentation"
            # how it was read nevertheless is of no use to those who mend it
            yield Kind.FRONT_MATTER, int(match[1]), "", match[2].partition("; ")[0], remedy
    name = skill.name
    if "name" not in lines:
        yield Kind.NAME, 1, "", "the front matter has no name", f"add `name: {folder}`"
    elif len(name) > MAX_NAME or not NAME.fullmatch(name):
        problem = f"the name {shown_value(name)} is not 1 to {MAX_NAME} lower-case letters, digits, hyphens"
        allowed = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:MAX_NAME].rstrip("-") or "a-name"
        yield Kind.NAME, lines["name"], name, problem, f"write `name: {allowed}`"
    elif name != folder:
        problem = f"the name {shown_value(name)} is not that of its folder, {shown_value(folder)}"
        yield Kind.FOLDER, lines["name"], name, problem, "rename one of the two"
    length, line = len(skill.description), lines.get("description")
    if not length:
        problem = "there is no description, so hosts skip the skill"
        remedy = "say what the skill does and when to use it: hosts choose by this text"
        yield Kind.DESCRIPTION, line or 1, "", problem, remedy
    elif length > MAX_DESCRIPTION:
        problem = f"the description has {length:,} characters, over {MAX_DESCRIPTION:,}"
        remedy = "shorten it: what and when belong here, how into the body"
        yield Kind.DESCRIPTION, line, str(length), problem, remedy
    length = len(skill.metadata.get("compatibility", ""))
    if length > MAX_COMPATIBILITY:
        problem = f"compatibility has {length:,} characters, over {MAX_COMPATIBILITY}"
        yield Kind.COMPATIBILITY, lines.get("compatibility"), str(length), problem, "shorten it"


def _size_faults(skill: Skill) -> Iterator[_Fault]:
    entry = skill.files[0]
    lines = len(LINE_END.split(entry.text.rstrip()))
    tokens = default_counter().count(entry.text[entry.body_start :])
    over = [f"{lines:,} lines (over {MAX_BODY_LINES:,})"] if lines > MAX_BODY_LINES else []
    over += [f"{tokens:,} tokens (over {MAX_BODY_TOKENS:,})"] if tokens > MAX_BODY_TOKENS else []
    if over:
        problem = f"SKILL.md has {' and '.join(over)}, and hosts load it whole"
        remedy = "move parts that few tasks need into files of references/, or let agents page it"
        yield Kind.SIZE, None, str(tokens), problem, remedy


def _licence_faults(skill: Skill, path: Path, line: int | None, top: Path) -> Iterator[_Fault]:
    stated = stated_licence(skill.metadata)
    licence = read_licence(path, stated, top=top)
    if licence.expression != UNKNOWN:
        return
    if stated:
        problem = f"the licence {shown_value(stated)} is none that is known"
        remedy = "write an SPDX id such as MIT, or LicenseRef- and a name"
    elif licence.place is None:
        problem = "no licence is stated, so nobody else may use the skill"
        remedy = "state one as `license:` in the front matter, or add a LICENSE file"
    elif LICENCE_FILE.fullmatch(licence.place.name):
        return  # its text is for people to read
    else:
        problem = f"{licence.place} states no licence that is known"
        remedy = "state an SPDX id in the front matter"
    yield Kind.LICENCE, line, stated, problem, remedy


def _link_findings(source: SourceFile, file: Path, root: Path) -> Iterator[Finding]:
    """Yield the links of a file that lead to no file of the skill, each target once.

    Not reported are targets that only show the form of a link, such as `path/to/file.md`.
    """
    text = source.text[source.body_start :]
    first = source.text.count("\n", 0, source.body_start) + 1
    targets = link_targets(text, file=source.path, first_line=first)
    linked = {each for each in targets if ("." in each or "/" in each) and not _EXAMPLE.search(each)}
    for target in sorted(linked):
        line, shown = first + _line_of(text, target), shown_value(target)
        place = _place(root, source, target)
        if place is None:
            problem, remedy = f"the link leads to {shown}, which is not there", ADD_OR_MEND
            yield Finding(Kind.DEAD_LINK, Severity.ERROR, file, line, target, problem, remedy)
        elif place is not root:
            problem = f"{shown} is outside of the skill's folder, and missing where only that is installed"
            remedy = "copy the file into the skill"
            yield Finding(Kind.OUTSIDE, Severity.WARNING, file, line, target, problem, remedy)
    named: dict[str, int] = {}
    for match in _NAMED.finditer(text):
        folder, _, name = match[1].partition("/")
        # without such a folder in the skill, it is probably the project's
        is_own = folder == _OWN_FOLDER or (root / folder).is_dir()
        if is_own and not _EXAMPLE.search(match[1]) and not _EXAMPLE.search(name):
            named.setdefault(match[1], first + text.count("\n", 0, match.start()))
    for target, line in named.items():
        if target not in linked and _place(root, source, target) is not root:
            problem = f"the text names {shown_value(target)}, which is not there"
            yield Finding(Kind.DEAD_LINK, Severity.WARNING, file, line, target, problem, ADD_OR_MEND)


def _place(root: Path, source: SourceFile, target: str) -> Path | None:
    """Return `root` for a target inside the skill, its path for one outside, None for one that is missing."""
    outside = None
    for base in dict.fromkeys(((root / source.path).parent, root)):
        try:
            real = Path(os.path.realpath(base / unquote(target)))
            if not real.exists():
                continue
            if real.is_relative_to(os.path.realpath(root)):
                return root
            outside = outside or real
        except (OSError, ValueError):  # a path that cannot be
            continue
    return outside


def _line_of(text: str, target: str) -> int:
    """Return the number of line ends before the link to a target, or else before its first mention."""
    written = (target, quote(target))
    for pattern in (*(f"{before}{path}" for path in written for before in ("(", "<", ": ")), *written):
        if (at := text.find(pattern)) >= 0:
            return text.count("\n", 0, at)
    return 0
