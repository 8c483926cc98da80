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
from skillpager.library.copies import NEAR_COPY, Sketch, sketch_of
from skillpager.library.discovery import skill_faults, stated_licence
from skillpager.library.licences import LICENCE_FILE, UNKNOWN, Licences
from skillpager.parsing.folder import own_files
from skillpager.parsing.frontmatter import find_front_matter
from skillpager.parsing.lines import LINE_END
from skillpager.parsing.skill import (
    ENTRY_FILE,
    ENTRY_NAMES,
    MAX_DESCRIPTION,
    MAX_NAME,
    NAME,
    read_skill,
)
from skillpager.tokens import default_counter
from skillpager.types import Skill, SourceFile

# agentskills.io/specification: the body is loaded whole, so it should be shorter than this
MAX_BODY_LINES = 500
MAX_BODY_TOKENS = 5_000
# agentskills.io/specification
MAX_COMPATIBILITY = 500
# Cosine of two descriptions from which they overlap if their words do not tell them apart: 36 of 38 such
# pairs of public skills take each other's queries (docs/library-check.md)
OVERLAP = 0.80
MAX_VALUE_CHARS = 120

_FIELD = re.compile(r"([A-Za-z][\w-]*)[ \t]*:")
_PARSE_WARNING = re.compile(r".*?:(\d+): (.*)", re.DOTALL)
# the folder that only skills have, of those that the specification names for their files
_OWN_FOLDER = "references"
# a file in one of these folders, as authors write it in code and prose; not as the label of a link
_NAMED = re.compile(
    r"(?<![\w./\\$}-])(?:\./)?((?:references|scripts|assets)/[\w./-]*\w\.[A-Za-z]\w{0,4})"
    r"(?![\w/*{<-])(?![`*_]{0,3}\]\()"
)
# targets of links to files of the skill, roughly: without scheme, anchor or place in the file system, with
# a dot or slash, unlike the `url` of an example
_MAY_BE_TARGET = re.compile(
    r"\](?:\(|:)\s*<?(?![a-z][\w+.-]*:|[/#?{$])(?=[^\s()<>#?]*[./])([^\s()<>#?]+)", re.IGNORECASE
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


def shown_value(text: str) -> str:
    """Return a value as a message shows it: in quotes, on one line and cut."""
    return repr(one_line(text, MAX_VALUE_CHARS))


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes and likenesses from which on something is a finding.

    Attributes:
        description: Most characters of a description.
        body_lines: Most lines of a SKILL.md.
        body_tokens: Most tokens of its body.
        near_copy: Likeness of the texts of near-copies, 0 to 1.
        overlap: Cosine of the descriptions of skills that take each other's queries, 0 to 1.
    """

    description: int = MAX_DESCRIPTION
    body_lines: int = MAX_BODY_LINES
    body_tokens: int = MAX_BODY_TOKENS
    near_copy: float = NEAR_COPY
    overlap: float = OVERLAP


@dataclass(frozen=True, slots=True)
class CheckedSkill:
    """The parts of a skill that the checks of a library keep; not its text, for there may be thousands.

    Attributes:
        file: Its SKILL.md.
        name: Its name.
        description: Its description.
        when_to_use: A field of Claude Code's; empty if there is none.
        digest: That of its SKILL.md.
        sketch: Of its text without front matter.
        lines: Line of each field of its front matter, counted from 1.
    """

    file: Path
    name: str
    description: str
    when_to_use: str
    digest: str
    sketch: Sketch
    lines: dict[str, int]

    @classmethod
    def of(cls, skill: Skill, path: Path) -> "CheckedSkill":
        """Return what is kept of the skill in the folder `path`."""
        entry, when = skill.files[0], skill.metadata.get("when_to_use", "")
        sketch, lines = sketch_of(entry.text[entry.body_start :]), field_lines(entry.text)
        return cls(path / ENTRY_FILE, skill.name, skill.description, when, entry.digest, sketch, lines)


def read_for_check(path: Path) -> Skill | Finding:
    """Return the skill in a folder, or why it cannot be read."""
    try:
        with skill_faults(path):
            # a skill without further Markdown files is not parsed for links to them
            others = (file.lower() for file in own_files(path) if file not in ENTRY_NAMES)
            has_more = any(file.endswith((".md", ".markdown")) for file in others)
            return read_skill(path, scope="skill" if has_more else "body")
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


def check_skill(
    skill: Skill, path: Path, *, top: Path, limits: Limits, licences: Licences
) -> Iterator[Finding]:
    """Yield the findings about one skill.

    Args:
        skill: The skill.
        path: Its folder, as the findings name it.
        top: The search folder in which it was found.
        limits: Sizes from which on something is a finding.
        licences: Reads its licence.
    """
    lines = field_lines(skill.files[0].text)
    yield from _front_matter_findings(skill, path, lines, limits)
    yield from _size_findings(skill, path, limits)
    yield from _link_findings(skill, path)
    yield from _licence_findings(skill, path, lines.get("license"), top, licences)


def _front_matter_findings(
    skill: Skill, path: Path, lines: dict[str, int], limits: Limits
) -> Iterator[Finding]:
    def error(kind: Kind, line: int | None, value: str, problem: str, remedy: str) -> Finding:
        return Finding(kind, Severity.ERROR, path / ENTRY_FILE, line, value, problem, remedy)

    start, end = find_front_matter(skill.files[0].text)
    if start == end:
        remedy = "begin the file with a block of `---` lines that holds `name:` and `description:`"
        yield error(Kind.FRONT_MATTER, 1, "", "there is no front matter, so hosts skip the skill", remedy)
        return
    for warning in skill.warnings:
        if "front matter is not valid YAML" in warning and (match := _PARSE_WARNING.match(warning)):
            remedy = "put the value in quotes, or mend the indentation"
            # how it was read nevertheless is of no use to those who mend it
            yield error(Kind.FRONT_MATTER, int(match[1]), "", match[2].partition("; ")[0], remedy)
    name, folder = skill.name, path.resolve().name
    if "name" not in lines:
        yield error(Kind.NAME, 1, "", "the front matter has no name", f"add `name: {folder}`")
    elif len(name) > MAX_NAME or not NAME.fullmatch(name):
        problem = f"the name {shown_value(name)} is not 1 to {MAX_NAME} lower-case letters, digits, hyphens"
        allowed = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:MAX_NAME].rstrip("-") or "a-name"
        yield error(Kind.NAME, lines["name"], name, problem, f"write `name: {allowed}`")
    elif name != folder:
        problem = f"the name {shown_value(name)} is not that of its folder, {shown_value(folder)}"
        yield error(Kind.FOLDER, lines["name"], name, problem, "rename one of the two")
    length = len(skill.description)
    if not length:
        remedy = "say what the skill does and when to use it: hosts choose by this text"
        line = lines.get("description", 1)
        yield error(Kind.DESCRIPTION, line, "", "there is no description, so hosts skip the skill", remedy)
    elif length > limits.description:
        problem = f"the description has {length:,} characters, over {limits.description:,}"
        remedy = "shorten it: what and when belong here, how into the body"
        yield error(Kind.DESCRIPTION, lines.get("description"), str(length), problem, remedy)
    needs = skill.metadata.get("compatibility", "")
    if len(needs) > MAX_COMPATIBILITY:
        problem = f"compatibility has {len(needs):,} characters, over {MAX_COMPATIBILITY}"
        yield error(Kind.COMPATIBILITY, lines.get("compatibility"), str(len(needs)), problem, "shorten it")


def _size_findings(skill: Skill, path: Path, limits: Limits) -> Iterator[Finding]:
    entry = skill.files[0]
    lines = len(LINE_END.split(entry.text.rstrip()))
    tokens = default_counter().count(entry.text[entry.body_start :])
    over = [f"{lines:,} lines (over {limits.body_lines:,})"] if lines > limits.body_lines else []
    over += [f"{tokens:,} tokens (over {limits.body_tokens:,})"] if tokens > limits.body_tokens else []
    if over:
        remedy = "move parts that few tasks need into files of references/, or let agents page it"
        problem = f"SKILL.md has {' and '.join(over)}, and hosts load it whole"
        yield Finding(Kind.SIZE, Severity.WARNING, path / ENTRY_FILE, None, str(tokens), problem, remedy)


def _link_findings(skill: Skill, path: Path) -> Iterator[Finding]:
    """Yield the links of a skill's files that lead to no file of the skill, each target once in a file.

    Not reported are targets that only show the form of a link, such as `path/to/file.md`.
    """
    root = skill.root
    if root is None:
        return
    for source in skill.files:
        file, text = path / source.path, source.text[source.body_start :]
        first = source.text.count("\n", 0, source.body_start) + 1
        linked: set[str] = set()
        if any(_place(root, source, target) is not root for target in set(_MAY_BE_TARGET.findall(text))):
            # its import takes 25 ms, which libraries without dead links need not wait for
            from skillpager.parsing.markdown import link_targets

            linked = {
                target
                for target in link_targets(text, file=source.path, first_line=first)
                if ("." in target or "/" in target) and not _EXAMPLE.search(target)
            }
        for target in sorted(linked):
            if (place := _place(root, source, target)) is None:
                yield _dead_link(file, first + _line_of(text, target), target, Severity.ERROR)
            elif place is not root:
                problem = (
                    f"{shown_value(target)} is outside of the skill's folder, and missing where only that is "
                    "installed"
                )
                line, remedy = first + _line_of(text, target), "copy the file into the skill"
                yield Finding(Kind.OUTSIDE, Severity.WARNING, file, line, target, problem, remedy)
        for target, at in _named_files(text, root).items():
            if target not in linked and _place(root, source, target) is not root:
                yield _dead_link(file, first + text.count("\n", 0, at), target, Severity.WARNING)


def _dead_link(file: Path, line: int, target: str, severity: Severity) -> Finding:
    what = "the link leads to" if severity is Severity.ERROR else "the text names"
    problem = f"{what} {shown_value(target)}, which is not there"
    return Finding(Kind.DEAD_LINK, severity, file, line, target, problem, "add the file, or mend the path")


def _named_files(text: str, root: Path) -> dict[str, int]:
    """Return the files in a skill's own folders that text or code names, and the offset of each."""
    found: dict[str, int] = {}
    for match in _NAMED.finditer(text):
        folder, _, name = match[1].partition("/")
        # without such a folder in the skill, it is probably the project's
        is_own = folder == _OWN_FOLDER or (root / folder).is_dir()
        if is_own and not _EXAMPLE.search(match[1]) and not _EXAMPLE.search(name):
            found.setdefault(match[1], match.start())
    return found


def _place(root: Path, source: SourceFile, target: str) -> Path | None:
    """Return `root` for a target inside the skill, its path for one outside, None for one that is missing."""
    path = unquote(target)
    outside = None
    for base in dict.fromkeys(((root / source.path).parent, root)):
        try:
            real = Path(os.path.realpath(base / path))
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


def _licence_findings(
    skill: Skill, path: Path, line: int | None, top: Path, licences: Licences
) -> Iterator[Finding]:
    stated = stated_licence(skill.metadata)
    licence = licences.read(path, stated, top=top)
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
    yield Finding(Kind.LICENCE, Severity.WARNING, path / ENTRY_FILE, line, stated, problem, remedy)
