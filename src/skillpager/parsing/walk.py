"""What is in a skill's folder, found without following links and without going into other skills."""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from skillpager.display_text import is_plain, one_line
from skillpager.files import SKIPPED_FOLDERS, FileStamps, take_stamps
from skillpager.types import Skill

ENTRY_FILE = "SKILL.md"
ENTRY_NAMES = (ENTRY_FILE, ENTRY_FILE.lower())

# levels of folders, and names of all folders together, that are looked at
MAX_DEPTH, MAX_ENTRIES = 10, 20_000
MAX_PATH_CHARS = 100  # of a path in a message

_ASIDE = re.compile(  # Markdown about the folder, which is no part of the skill's text
    r"(?:copying|licen[cs]es?|(?:third[-_ ]?party[-_ ]?)?notices?|change[-_ ]?log|changes|release[-_ ]?notes)"
    r"(?:[-_.](?:mit|apache|bsd|gpl|lgpl|mpl|cc|v?\d)[\w.-]*)?",
    re.IGNORECASE,
)


class Entry(NamedTuple):
    """A thing in a skill's folder: its path from there, and what it is; `skill` is another skill's folder."""

    path: str
    kind: Literal["file", "folder", "skill", "link", "fault"]
    problem: str = ""  # why a fault is left out, as the end of a sentence


def walk(root: Path) -> Iterator[Entry]:
    """Yield what is in a skill's folder: files of a folder before those of its folders, in order of names.

    Each folder comes before what is in it; that of the skill is the first, its path is empty. Hidden files
    and folders, and folders that programs make, are left out. Links are not followed, and folders with a
    SKILL.md of their own are not searched.
    """
    waiting, seen = [""], 0
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(root / folder) as found:
                shown = sorted((each for each in found if each.name[0] != "."), key=lambda each: each.name)
        except OSError as error:
            yield Entry(folder, "fault", f"cannot be read: {error.strerror or error}")
            continue
        seen += len(shown)
        if folder and any(each.name in ENTRY_NAMES for each in shown):
            yield Entry(folder, "skill")
        elif folder.count("/") >= MAX_DEPTH or seen > MAX_ENTRIES:
            limits = f"{MAX_DEPTH} levels and {MAX_ENTRIES:,} files"
            yield Entry(folder, "fault", f"is not searched: the skill's folder has more than {limits}")
        elif not is_plain(folder):
            shown_path = repr(one_line(folder, MAX_PATH_CHARS))
            yield Entry(
                shown_path, "fault", "has control, hidden or broken characters in its name: rename it"
            )
        else:
            yield Entry(folder, "folder")
            below = []
            for each in shown:
                path = f"{folder}/{each.name}".lstrip("/")
                if each.is_symlink():
                    yield Entry(path, "link")
                elif not each.is_dir(follow_symlinks=False):
                    yield Entry(path, "file")
                elif each.name not in SKIPPED_FOLDERS:
                    below.append(path)
            waiting += reversed(below)


def belongs_to_skill(path: str) -> bool:
    """Return whether a file is Markdown and neither a licence nor a list of changes."""
    return is_markdown(path) and not _ASIDE.fullmatch(PurePosixPath(path).stem)


def is_markdown(path: str) -> bool:
    """Return whether a file's name is that of Markdown, whatever it is about."""
    return path.lower().endswith((".md", ".markdown"))


def stamp_skill(skill: Skill, path: Path) -> FileStamps | None:
    """Return the stamps of all Markdown and all folders of a skill that was just read at `path`.

    The path is one of them: it may be a link, and lead to another skill later. Files that could not be read
    are stamped, too, so that a repaired one is noticed.
    """
    root = skill.root
    if root is None:
        return None
    found = [root / file.path for file in skill.files]
    if skill.files[0].path in ENTRY_NAMES:
        entries = (each for each in walk(root) if each.kind == "folder" or belongs_to_skill(each.path))
        found += [root / each.path for each in entries if each.kind != "fault"]
    return take_stamps([path, root, *found])
