"""Links of a skill to files: those that are missing, and those outside of its folder."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from skillpager.parsing.skill import MAY_BE_TARGET
from skillpager.types import Skill, SourceFile

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


@dataclass(frozen=True, slots=True)
class Fault:
    """A link that leads to no file of the skill.

    Attributes:
        file: The file with the link, relative to the skill's folder.
        line: Its line, counted from 1.
        target: The path as the author wrote it.
        outside: The file or folder outside of the skill that it leads to; None if there is none.
        is_link: Whether it is a Markdown link or image; False for a path in text or code.
    """

    file: str
    line: int
    target: str
    outside: Path | None
    is_link: bool


def link_faults(skill: Skill) -> Iterator[Fault]:
    """Yield the links of a skill's files that lead to no file of the skill, each target once in a file.

    Not reported are targets that only show the form of a link, such as `path/to/file.md`.
    """
    root = skill.root
    if root is None:
        return
    for source in skill.files:
        lines = source.text[source.body_start :]
        first = source.text.count("\n", 0, source.body_start) + 1
        suspects = {
            target for target in MAY_BE_TARGET.findall(lines) if _place(root, source, target) is not root
        }
        confirmed: set[str] = set()
        if suspects:
            # its import takes 25 ms, which libraries without dead links need not wait for
            from skillpager.parsing.markdown import link_targets

            confirmed = {
                target
                for target in link_targets(lines, file=source.path, first_line=first)
                if ("." in target or "/" in target) and not _EXAMPLE.search(target)
            }
        for target in sorted(confirmed):
            if (place := _place(root, source, target)) is not root:
                line = first + _line_of(lines, target)
                yield Fault(source.path, line, target, place, is_link=True)
        yield from _named_faults(root, source, lines, first, confirmed)


def _named_faults(root: Path, source: SourceFile, text: str, first: int, linked: set[str]) -> Iterator[Fault]:
    """Yield the files in a skill's own folders that text or code names and that are missing."""
    seen = set(linked)
    for match in _NAMED.finditer(text):
        target = match[1]
        folder = target.partition("/")[0]
        # without such a folder in the skill, it is probably the project's
        is_own = folder == _OWN_FOLDER or (root / folder).is_dir()
        if (
            target in seen
            or not is_own
            or _EXAMPLE.search(target)
            or _EXAMPLE.search(target.partition("/")[2])
        ):
            continue
        seen.add(target)
        if _place(root, source, target) is not root:
            yield Fault(source.path, first + text.count("\n", 0, match.start()), target, None, is_link=False)


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
