"""The files in a skill's folder, such as those of `scripts/` and `assets/`: their paths, and their text."""

import difflib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby, islice
from pathlib import Path, PurePosixPath

from skillpager.display_text import is_plain, one_line
from skillpager.errors import SkillError
from skillpager.files import ENTRY_NAMES, MAX_PATH_CHARS, Entry, decode, read_bounded, walk
from skillpager.parsing.mentions import files_meant
from skillpager.settings import NOTES_FILE
from skillpager.types import SKILL_DIR, Node, Skill

# largest file that is read; scripts and references are smaller, data sets are for programs
MAX_FILE_BYTES = 1_000_000
MAX_NAMED = 12  # paths that an error names
MAX_SEARCHED = 1_000  # files that a page looks for in its text, which takes a millisecond or two


def own_folder(skill: Skill) -> Path | None:
    """Return the folder of a skill that needs it: it has other files there, or its text names the folder.

    None for a skill whose files are all read, from a string, or a Markdown file in a folder of others.
    """
    if skill.root is None or skill.files[0].path not in ENTRY_NAMES:
        return None
    if any(SKILL_DIR in file.text for file in skill.files):
        return skill.root
    return skill.root if any(_others(skill, skill.root)) else None


def _others(skill: Skill, root: Path) -> Iterator[Entry]:
    """Yield the files in a skill's folder that are not read, and the skills there, to which it may lead."""
    read = {NOTES_FILE, *(file.path for file in skill.files)}
    return (each for each in walk(root) if each.kind in ("file", "skill") and each.path not in read)


def mentioned_files(skill: Skill, nodes: Iterable[Node]) -> list[tuple[str, int]]:
    """Return path and size of the files that nodes mention and pages do not show, the largest first."""
    if skill.root is None:
        return []
    paths = [each.path for each in islice(_others(skill, skill.root), MAX_SEARCHED) if each.kind == "file"]
    meant, sizes = set[str](), list[tuple[str, int]]()
    for file, run in groupby(nodes, key=lambda node: node.span.file):
        meant |= files_meant("\n".join(node.text for node in run), paths, file.rpartition("/")[0])
    for path in sorted(path for path in meant if is_plain(path) and len(path) <= MAX_PATH_CHARS):
        with suppress(OSError):  # it is gone meanwhile
            sizes.append((path, os.lstat(skill.root / path).st_size))
    return sorted(sizes, key=lambda each: -each[1])


def read_own_file(root: Path, path: str) -> str:
    """Return the text of a file in a skill's folder, by its path with `/` between the parts.

    Raises:
        SkillError: The path leads out of the folder, to no file or a hidden one, or to one that is too large
            or not UTF-8 text; the message says what to do instead.
    """
    named = repr(one_line(path, MAX_PATH_CHARS))
    parts = PurePosixPath(path.removeprefix("./")).parts
    try:
        file = Path(os.path.realpath(root.joinpath(*parts)))  # unlike `resolve`, it raises nothing for a loop
        inside = file.relative_to(os.path.realpath(root)).parts
        is_file = file.is_file()
    except ValueError as error:  # outside, or a null character
        raise SkillError(f"{named} leads out of the skill's folder: name a file inside of it.") from error
    except OSError as error:  # such as a name that is too long
        raise SkillError(f"{named} cannot be read: {error.strerror or error}.") from error
    if any(part.startswith(".") for part in (*parts, *inside)):
        raise SkillError(f"{named} is hidden or leads upwards: name a file that the skill's text names.")
    if not is_file:
        raise SkillError(f"The skill has no file {named}: {_hint(root, path)}")
    try:
        data = read_bounded(file, MAX_FILE_BYTES)
    except OSError as error:
        raise SkillError(f"{named} cannot be read: {error.strerror or error}.") from error
    if len(data) > MAX_FILE_BYTES:
        raise SkillError(
            f"{named} has more than {MAX_FILE_BYTES:,} bytes, which is too large to read here: work on it "
            "with a program."
        )
    return decode(data, one_line(path, MAX_PATH_CHARS))


def _hint(root: Path, path: str) -> str:
    """Return which files there are: those like `path`, those in the folder of that name, or the first."""
    files = [each.path for each in walk(root) if each.kind == "file" and is_plain(each.path)]
    below = [file for file in files if file.startswith(f"{path.rstrip('/')}/")]
    shown = below or difflib.get_close_matches(path[:MAX_PATH_CHARS], files, MAX_NAMED) or files
    named = [one_line(file, MAX_PATH_CHARS) for file in shown[:MAX_NAMED]]
    more = len(shown) - len(named)
    return f"there are {', '.join(named)}{f' and {more} more' if more else ''}." if named else "it has none."
