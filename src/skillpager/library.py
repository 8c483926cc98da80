"""Skill discovery: find skills in folders, and by name.

Folders are searched in this order: those of the settings, then `.agents/skills` and `.claude/skills` of the
project, then of the user. The first skill of a name shadows later ones.
"""

import difflib
import json
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.display_text import one_line
from skillpager.errors import SkillError, UnknownSkillError
from skillpager.json_types import SkillJson
from skillpager.parsing.skill import ENTRY_FILE, read_skill, shown_name

if TYPE_CHECKING:
    from skillpager.pager import SkillPager
    from skillpager.types import SkillIndex

SKILL_FOLDERS = (".agents/skills", ".claude/skills")
SKIPPED_FOLDERS = frozenset({".git", "node_modules", "__pycache__", ".venv"})
# front-matter field by which a stub, a small file in place of a skill, names its original
STUB_OF = "skillpager.stub-of"

# levels of folders that are searched below a search folder
MAX_DEPTH = 4
# seconds after which a library looks for new skills again
RESCAN_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class FoundSkill:
    """A skill that discovery found.

    Attributes:
        name: Its name.
        description: Its description, possibly empty.
        path: Its folder.
        shadowed_by: Folder of the skill that is used instead because it has the same name; None if there is
            none.
        problem: Why it cannot be read; None if it can.
    """

    name: str
    description: str
    path: Path
    shadowed_by: Path | None
    problem: str | None


def found_json(found: FoundSkill) -> SkillJson:
    """Return the JSON of a found skill, the same for every front end."""
    return {
        "name": found.name,
        "description": found.description,
        "path": str(found.path),
        "shadowed_by": None if found.shadowed_by is None else str(found.shadowed_by),
        "problem": found.problem,
    }


def stub_of(metadata: Mapping[str, str]) -> str | None:
    """Return the path of the original that the front matter of a stub names; None if it is not a stub.

    Args:
        metadata: Front-matter fields, as in `Skill.metadata`.
    """
    try:
        own = json.loads(metadata.get("metadata", ""))
    except json.JSONDecodeError:
        return None
    original = own.get(STUB_OF) if isinstance(own, dict) else None
    return original if isinstance(original, str) else None


def search_folders(
    extra: Sequence[Path] = (), *, project: Path | None = None, home: Path | None = None
) -> list[Path]:
    """Return the folders to search for skills, nearest first; some may not exist."""
    project = Path.cwd() if project is None else project
    home = Path.home() if home is None else home
    conventional = [base / folder for base in (project, home) for folder in SKILL_FOLDERS]
    return list(dict.fromkeys([*extra, *conventional]))


def discover(folders: Iterable[Path]) -> list[FoundSkill]:
    """Return the skills below the folders, in the order of the folders, then by path; without stubs."""
    found: list[FoundSkill] = []
    first: dict[str, Path] = {}
    seen: set[Path] = set()
    for path in (path for folder in folders for path in _skill_folders(folder)):
        if path.resolve() in seen:
            continue
        seen.add(path.resolve())
        try:
            skill = read_skill(path, scope="body")
        except SkillError as error:
            found.append(FoundSkill(shown_name(path.name), "", path, None, one_line(str(error))))
            continue
        if stub_of(skill.metadata) is not None:
            continue  # its original is the skill to page
        nearest = first.setdefault(skill.name, path)
        shadowed_by = None if nearest == path else nearest
        found.append(FoundSkill(skill.name, skill.description, path, shadowed_by, None))
    return found


class Library:
    """The skills that a server offers, by name. A name is that of a discovered skill, never a path.

    Thread-safe. New, removed and renamed skills are noticed after at most `RESCAN_SECONDS`.

    Args:
        pager: Indexes and pages the skills.
        folders: Folders to search, nearest first; default: those of the pager's settings and the
            conventional ones.
    """

    def __init__(self, pager: "SkillPager", folders: Sequence[Path] | None = None) -> None:
        self.pager = pager
        self.folders = tuple(search_folders(pager.settings.skills_dir) if folders is None else folders)
        self._lock = threading.Lock()
        self._found: list[FoundSkill] = []
        self._scanned = -RESCAN_SECONDS

    def found(self, *, fresh: bool = False) -> list[FoundSkill]:
        """Return every found skill, shadowed and unreadable ones included.

        Args:
            fresh: Search again, even if the last search is less than `RESCAN_SECONDS` ago.
        """
        with self._lock:
            if fresh or time.monotonic() - self._scanned >= RESCAN_SECONDS:
                self._found = discover(self.folders)
                self._scanned = time.monotonic()
            return list(self._found)

    def skills(self) -> list[FoundSkill]:
        """Return the skills that can be paged, sorted by name."""
        usable = [found for found in self.found() if found.problem is None and found.shadowed_by is None]
        return sorted(usable, key=lambda found: found.name)

    def skill(self, name: str) -> FoundSkill:
        """Return the skill of this name.

        Raises:
            UnknownSkillError: There is none, or it cannot be read; the message lists similar names.
        """
        for fresh in (False, True):  # an unknown name may be that of a new skill
            for found in self.found(fresh=fresh):
                if found.name == name and found.shadowed_by is None and found.problem is None:
                    return found
        for found in self.found():
            if found.name == name and found.problem:
                raise UnknownSkillError(f"The skill {name!r} cannot be read: {found.problem}")
        known = [found.name for found in self.skills()]
        hint = _hint(name, known) or "ask for the list of skills."
        raise UnknownSkillError(f"There is no skill named {name!r} among {len(known)}: {hint}")

    def index(self, name: str, *, scope: str | None = None) -> "SkillIndex":
        """Return the index of the skill of this name.

        Raises:
            UnknownSkillError: As for `skill`.
            SkillPagerError: As for `SkillPager.index`.
        """
        return self.pager.index(self.skill(name).path, scope=scope)


def locate(skill: str, folders: Sequence[Path]) -> Path:
    """Return `skill` as a path if it exists or looks like one, else the path of the skill of this name.

    Raises:
        SkillError: There is no skill of this name; similar names are listed.
    """
    path = Path(skill).expanduser()
    if path.exists() or os.sep in skill or path.suffix.lower() in (".md", ".markdown"):
        return path
    skills = [found for found in discover(folders) if found.problem is None]
    for found in skills:
        if found.name == skill and found.shadowed_by is None:
            return found.path
    hint = _hint(skill, [found.name for found in skills]) or "`skillpager list` shows the known ones."
    raise SkillError(f"There is no file, folder or known skill {skill!r}: {hint}")


def _hint(name: str, known: Iterable[str]) -> str:
    """Return a question with similar known names; empty if there are none."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names) or [each for each in names if name.lower() in each.lower()]
    return f"did you mean {', '.join(close)}?" if close else ""


def _skill_folders(folder: Path) -> Iterator[Path]:
    """Yield the folders with a SKILL.md at or below `folder`; folders inside a skill are not searched."""
    for parent, folders, files in os.walk(folder, followlinks=True):
        depth = len(Path(parent).relative_to(folder).parts)
        if ENTRY_FILE in files:
            yield Path(parent)
            folders.clear()
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS) if depth < MAX_DEPTH else []
