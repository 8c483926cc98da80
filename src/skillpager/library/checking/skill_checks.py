"""Checks of one skill: its front matter, size, links and licence."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from skillpager.errors import SkillPagerError
from skillpager.library.checking.findings import Finding, Kind, Severity, shown_value
from skillpager.library.checking.links import link_faults
from skillpager.library.copies import Sketch, sketch_of
from skillpager.library.discovery import skill_faults
from skillpager.library.licences import (
    UNKNOWN,
    Licence,
    Licences,
    recognise_name,
    refers_to_file,
    stated_licence,
)
from skillpager.parsing.folder import own_files
from skillpager.parsing.frontmatter import find_front_matter
from skillpager.parsing.lines import LINE_END
from skillpager.parsing.skill import ENTRY_FILE, ENTRY_NAMES, MAX_NAME, NAME, read_skill
from skillpager.tokens import default_counter
from skillpager.types import Skill

# agentskills.io/specification: the body is loaded whole, so it should be shorter than this
MAX_BODY_LINES = 500
MAX_BODY_TOKENS = 5_000
# agentskills.io/specification
MAX_COMPATIBILITY = 500

_FIELD = re.compile(r"([A-Za-z][\w-]*)[ \t]*:")
_PARSE_WARNING = re.compile(r".*?:(\d+): (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Limits:
    """From which sizes and likenesses on something is a finding.

    Attributes:
        description: Most characters of a description.
        body_lines: Most lines of a SKILL.md.
        body_tokens: Most tokens of its body.
        near_copy: Likeness of the texts of near-copies, 0 to 1.
        overlap: Cosine of the descriptions of skills that take each other's queries, 0 to 1.
    """

    description: int
    body_lines: int
    body_tokens: int
    near_copy: float
    overlap: float


@dataclass(frozen=True, slots=True)
class CheckedSkill:
    """What the checks of a library keep of a skill; its text is not, because a library may have thousands.

    Attributes:
        file: Its SKILL.md.
        name: Its name.
        description: Its description.
        when_to_use: A field of Claude Code's; empty if there is none.
        digest: That of its SKILL.md.
        sketch: Of its text without front matter.
        name_line: Line of its name; None if it has none.
        description_line: Line of its description; None if it has none.
    """

    file: Path
    name: str
    description: str
    when_to_use: str
    digest: str
    sketch: Sketch
    name_line: int | None
    description_line: int | None


def read_for_check(path: Path) -> Skill | Finding:
    """Return the skill in a folder, or why it cannot be read."""
    try:
        with skill_faults(path):
            # a skill without further Markdown files is not parsed for links to them
            has_more = any(file.lower().endswith((".md", ".markdown")) for file in _other_files(path))
            return read_skill(path, scope="skill" if has_more else "body")
    except SkillPagerError as error:
        problem, _, remedy = str(error).rstrip(".").partition(": ")
        remedy = remedy or "correct the file, or move its folder away"
        return Finding(Kind.UNREADABLE, Severity.ERROR, path / ENTRY_FILE, None, "", problem, remedy)


def _other_files(path: Path) -> Iterator[str]:
    return (file for file in own_files(path) if file not in ENTRY_NAMES)


def checked_skill(skill: Skill, path: Path) -> CheckedSkill:
    """Return what the checks of a library keep of a skill."""
    entry = skill.files[0]
    lines = field_lines(entry.text)
    return CheckedSkill(
        file=path / ENTRY_FILE,
        name=skill.name,
        description=skill.description,
        when_to_use=skill.metadata.get("when_to_use", ""),
        digest=entry.digest,
        sketch=sketch_of(entry.text[entry.body_start :]),
        name_line=lines.get("name"),
        description_line=lines.get("description"),
    )


def field_lines(text: str) -> dict[str, int]:
    """Return the line of each field of front matter, counted from 1; empty without front matter."""
    start, end = find_front_matter(text)
    lines = LINE_END.split(text[start:end])
    found: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
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
    file = path / ENTRY_FILE

    def error(kind: Kind, line: int | None, value: str, problem: str, remedy: str) -> Finding:
        return Finding(kind, Severity.ERROR, file, line, value, problem, remedy)

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
        remedy = f"add `name: {folder}`"
        yield error(Kind.NAME, 1, "", "the front matter has no name", remedy)
    elif len(name) > MAX_NAME or not NAME.fullmatch(name):
        problem = f"the name {shown_value(name)} is not 1 to {MAX_NAME} lower-case letters, digits, hyphens"
        yield error(Kind.NAME, lines["name"], name, problem, f"write `name: {_allowed_name(name)}`")
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


def _allowed_name(name: str) -> str:
    """Return a name of the form that the specification asks for."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:MAX_NAME].rstrip("-") or "a-name"


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
    for fault in link_faults(skill):
        file, shown = path / fault.file, shown_value(fault.target)
        if fault.outside is not None:
            problem = f"{shown} is outside of the skill's folder, and missing where only that is installed"
            yield Finding(
                Kind.OUTSIDE,
                Severity.WARNING,
                file,
                fault.line,
                fault.target,
                problem,
                "copy the file into the skill",
            )
        else:
            severity = Severity.ERROR if fault.is_link else Severity.WARNING
            what = "the link leads to" if fault.is_link else "the text names"
            problem = f"{what} {shown}, which is not there"
            yield Finding(
                Kind.DEAD_LINK,
                severity,
                file,
                fault.line,
                fault.target,
                problem,
                "add the file, or mend the path",
            )


def _licence_findings(
    skill: Skill, path: Path, line: int | None, top: Path, licences: Licences
) -> Iterator[Finding]:
    stated = stated_licence(skill.metadata)
    licence = licences.read(path, stated, top=top)
    beside = licences.beside(path)
    named = recognise_name(stated)
    problem = remedy = ""
    if conflict := _conflict(named, beside):
        problem, remedy = conflict, "let the two say the same"
    elif licence.expression == UNKNOWN and stated and refers_to_file(stated):
        problem = f"the front matter refers to a licence file ({shown_value(stated)}), and none is known"
        remedy = "add the file it names, or write an SPDX id such as MIT"
    elif licence.expression == UNKNOWN and stated:
        problem = f"the licence {shown_value(stated)} is none that is known"
        remedy = "write an SPDX id such as MIT, or LicenseRef- and a name"
    elif licence.expression == UNKNOWN and licence.place:
        problem, remedy = (
            f"{licence.place} holds no licence that is known",
            "state an SPDX id in the front matter",
        )
    elif licence.expression == UNKNOWN:
        problem = "no licence is stated, so nobody else may use the skill"
        remedy = "state one as `license:` in the front matter, or add a LICENSE file"
    if problem:
        yield Finding(Kind.LICENCE, Severity.WARNING, path / ENTRY_FILE, line, stated, problem, remedy)


def _conflict(named: str, beside: Licence | None) -> str:
    """Return how front matter and the licence file beside it contradict each other; empty if they do not."""
    if beside is None or UNKNOWN in (named, beside.expression) or named == beside.expression:
        return ""
    common = set(re.findall(r"[\w.+-]+", named)) & set(re.findall(r"[\w.+-]+", beside.expression))
    if common - {"AND", "OR", "WITH"}:
        return ""
    place = beside.place.name if beside.place else "the licence file"
    return f"the front matter states {named}, but {place} is {beside.expression}"
