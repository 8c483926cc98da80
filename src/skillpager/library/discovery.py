"""Skill discovery: find skills in folders, and by name.

The folders of the settings are searched first, then those in which agents look: the project's, the user's,
those of Claude Code's plugins. The first skill of a name shadows later ones; copies are passed over.
"""

import difflib
import json
import logging
import os
import tomllib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path

from skillpager.display_text import one_line
from skillpager.errors import SkillError, SkillPagerError, is_panic
from skillpager.files import (
    ENTRY_FILE,
    MAX_COMPARED_CHARS,
    SKIPPED_FOLDERS,
    FileStamps,
    entries_of,
    identity_of,
    near_path,
    read_bounded,
    take_stamps,
    warn_of_size,
)
from skillpager.json_types import HIDDEN
from skillpager.parsing.skill import read_skill, safe_name
from skillpager.settings import MAX_SKILL_BYTES
from skillpager.types import Skill

logger = logging.getLogger(__name__)

# front-matter field by which a stub, a small file in place of a skill, names its original
STUB_OF = "skillpager.stub-of"
# front-matter field that keeps models from starting a skill: only its user may
USER_ONLY = "disable-model-invocation"

# levels of folders that are searched below a search folder: in clones of public repositories four levels miss
# every fourth skill
MAX_DEPTH = 10
# folders without a skill that are searched below a search folder, beside one for each skill
MAX_FOLDERS = 20_000
MAX_FAULT_CHARS = 200
# longer statements of a licence are prose, which no table can tell
MAX_STATED_CHARS = 200

# where agents look for skills, in a project and in a user's folders
_FOLDERS = tomllib.loads(files(__package__).joinpath("folders.toml").read_text(encoding="utf-8"))
PROJECT_FOLDERS, USER_FOLDERS = tuple(_FOLDERS["project"]), tuple(_FOLDERS["user"])
# Claude Code lists its plugins in this file of their folder
PLUGINS_FILE = "installed_plugins.json"
MAX_PLUGINS_BYTES = 1_000_000
# folders that a message names, of those that were searched in vain
MAX_SHOWN_FOLDERS = 4


@dataclass(frozen=True, slots=True)
class FoundSkill:
    """A skill that discovery found.

    Attributes:
        description: Its description, possibly empty.
        path: Its folder; of a published skill no place on the disk.
        shadowed_by: Folder of the skill of the same name that is used instead; None if there is none.
        problem: Why it cannot be read; None if it can.
        digest: That of its SKILL.md; empty if it cannot be read.
        user_only: Whether its front matter says that only the user may start it, no model.
        stated_licence: The licence that its front matter states, as text; empty if it states none.
        folder: The search folder in which it was found.
        published: Its origin if that is a shared store.
    """

    name: str
    description: str
    path: Path
    shadowed_by: Path | None
    problem: str | None
    digest: str = field(default="", metadata=HIDDEN)
    user_only: bool = False
    stated_licence: str = field(default="", metadata=HIDDEN)
    folder: Path | None = field(default=None, metadata=HIDDEN)
    published: "Published | None" = field(default=None, metadata=HIDDEN)

    def source(self, scope: str) -> Path | Skill:
        """Return what a pager makes an index of: the folder, or the skill itself if it is in a store."""
        return self.path if self.published is None else self.published.read(scope)

    def read(self, *, scope: str, max_bytes: int = MAX_SKILL_BYTES) -> Skill:
        """Return the skill with its text; a `SkillError` or `StoreError` says why it cannot be read."""
        source = self.source(scope)
        return source if isinstance(source, Skill) else read_skill(source, scope=scope, max_bytes=max_bytes)


@dataclass(frozen=True, slots=True)
class Published:
    """The origin of a skill of a shared store: the version of the library that brought it, and its licence.

    `read` returns it with its text, in a scope as for `read_skill`.
    """

    version: int
    licence: str
    read: Callable[[str], Skill] = field(compare=False, repr=False)


Keep = Callable[[FoundSkill], bool]
# called with the number of skills that were read, and of all
Progress = Callable[[int, int], None]


def no_progress(done: int, total: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The skill in a folder, None for a stub; stamps of folder and SKILL.md, None if too new to trust."""

    found: FoundSkill | None
    stamps: FileStamps | None


def stub_of(metadata: Mapping[str, str]) -> str | None:
    """Return the path of the original that the front matter of a stub names; None if it is not a stub."""
    try:
        original = json.loads(metadata.get("metadata", "")).get(STUB_OF)
    except (ValueError, RecursionError, AttributeError):
        return None
    return original if isinstance(original, str) else None


def is_user_only(metadata: Mapping[str, str]) -> bool:
    """Return whether front matter says that only the user may start a skill."""
    return metadata.get(USER_ONLY, "").strip().lower() in ("true", "yes", "on")


def stated_licence(metadata: Mapping[str, str]) -> str:
    """Return the licence that front matter states as `license`; empty if none."""
    return one_line(metadata.get("license", ""), MAX_STATED_CHARS)


@contextmanager
def skill_faults(path: Path | str) -> Iterator[None]:
    """Raise an unexpected exception, which a skill may intend, as a `SkillError` that names its path."""
    try:
        yield
    except SkillPagerError:
        raise
    except BaseException as fault:
        if not isinstance(fault, Exception) and not is_panic(fault):
            raise
        logger.debug("%s", path, exc_info=True)
        text = " ".join(str(fault).split())[:MAX_FAULT_CHARS]
        raise SkillError(
            f"{path} cannot be used: it causes an unexpected {type(fault).__name__} ({text}). This is a "
            "fault of SkillPager: please report it with the skill."
        ) from fault


def search_folders(
    extra: Sequence[Path] = (), *, project: Path | None = None, with_project: bool = True
) -> list[Path]:
    """Return the folders to search for skills, nearest first, `extra` before all; some may not exist.

    `project` is the current folder by default; its folders a stranger may have filled.
    """
    project = Path.cwd() if project is None else project
    places = {"home": Path.home(), **moved_folders(Path.home(), os.environ)}
    own = [project / folder for folder in PROJECT_FOLDERS] if with_project else []
    users = [Path(folder.format(**places)) for folder in USER_FOLDERS]
    return list(dict.fromkeys([*extra, *own, *users, *plugin_folders(places["claude"] / "plugins")]))


def moved_folders(home: Path, environ: Mapping[str, str]) -> dict[str, Path]:
    """Return the folders that a variable may have moved, by the name that templates have for each."""
    return {
        "claude": Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude"),
        "codex": Path(environ.get("CODEX_HOME") or home / ".codex"),
        "copilot": Path(environ.get("COPILOT_HOME") or home / ".copilot"),
        "config": Path(environ.get("XDG_CONFIG_HOME") or home / ".config"),
    }


def plugin_folders(root: Path) -> list[Path]:
    """Return the folders of skills in the installed plugins of Claude Code, which a file in `root` lists."""
    try:
        listed = json.loads(read_bounded(root / PLUGINS_FILE, MAX_PLUGINS_BYTES))["plugins"]
        versions = [version for found in listed.values() for version in found]
        return [Path(version["installPath"]) / "skills" for version in versions]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return []


def check_folders(named: Sequence[Path]) -> Sequence[Path]:
    """Return what a user named as folders of skills; a `SkillError` names one that is none."""
    for folder in named:
        if not folder.is_dir():
            hint = near_path(folder) or "name folders that contain skills."
            raise SkillError(f"{folder} is not a folder: {hint}")
    return named


def shown_folders(folders: Sequence[Path]) -> str:
    """Return the first folders of a search as text, and the number of the others."""
    others = len(folders) - MAX_SHOWN_FOLDERS
    text = ", ".join(map(str, folders[:MAX_SHOWN_FOLDERS]))
    return f"{text} and {others} more (`skillpager list --help`)" if others > 0 else text


def discover(folders: Iterable[Path], *, keep: Keep | None = None) -> list[FoundSkill]:
    """Return the wanted skills below some folders, by folder and path, without stubs and copies."""
    return sort_out(read_folders(folders, {}), keep)


def read_folders(folders: Iterable[Path], readings: dict[Path, Reading]) -> Iterator[FoundSkill]:
    """Yield the skills below some folders, without stubs; one that cannot be read has a problem.

    `readings` are those of searches before, by absolute path: only what has changed is read, and noted there.
    """
    before = dict(readings)
    readings.clear()
    for top, path in skill_folders(folders):
        place = path.absolute()
        known = before.get(place)
        is_same = known is not None and known.stamps is not None and not known.stamps.changed()
        readings[place] = reading = known if known is not None and is_same else _read(path)
        if reading.found is not None:  # else a stub: its original is the skill to page
            yield replace(reading.found, path=path, folder=top)


def sort_out(skills: Iterable[FoundSkill], keep: Keep | None = None) -> list[FoundSkill]:
    """Return the skills that `keep` wants; the first of a name shadows the others, of copies only it is left.

    Copies have the same name and SKILL.md: people have a skill in the folders of several agents.
    """
    found: list[FoundSkill] = []
    first: dict[str, Path] = {}
    texts: set[tuple[str, str]] = set()
    for skill in skills:
        if (keep is not None and not keep(skill)) or (skill.name, skill.digest) in texts:
            continue
        if skill.problem is None:
            texts.add((skill.name, skill.digest))
            if (nearest := first.setdefault(skill.name, skill.path)) != skill.path:
                skill = replace(skill, shadowed_by=nearest)
        found.append(skill)
    return found


def _read(path: Path) -> Reading:
    try:
        with skill_faults(path):
            skill = read_skill(path, scope="body")
            about = skill.files[0].digest, is_user_only(skill.metadata), stated_licence(skill.metadata)
            found = FoundSkill(skill.name, skill.description, path, None, None, *about)
            is_stub = stub_of(skill.metadata) is not None
            return Reading(None if is_stub else found, _stamps_of(path))
    except SkillPagerError as error:
        broken = FoundSkill(safe_name(path.name, path.name), "", path, None, one_line(str(error)))
        # the system may allow tomorrow what it refuses now
        passing = isinstance(error.__cause__, (OSError, MemoryError))
        return Reading(broken, None if passing else _stamps_of(path))


def _stamps_of(path: Path) -> FileStamps | None:
    return take_stamps([path.absolute() / ENTRY_FILE, path.absolute()])


def locate(skill: str, folders: Callable[[], Sequence[Path]]) -> Path:
    """Return `skill` as a path if it exists or looks like one, else the path of the skill of this name.

    `folders` is not called for a path. A name that no skill has is a `SkillError` with similar names.
    """
    if not skill.strip():
        raise SkillError(
            "The name of the skill is empty: name a skill folder, a Markdown file, or a skill that "
            "`skillpager list` shows."
        )
    try:
        path = Path(skill).expanduser()
        # a link to nothing and a path of another system are not there, but no names of skills either
        looks_like_path = "/" in skill or "\\" in skill or path.suffix.lower() in (".md", ".markdown")
        if looks_like_path or os.path.lexists(path):
            return path
    except (OSError, RuntimeError):  # no access, a name that is too long, or `~somebody` without a home
        return Path(skill)  # reading it says why
    skills = [found for found in discover(folders()) if found.problem is None]
    for found in skills:
        if found.name == skill and found.shadowed_by is None:
            return found.path
    hint = similar_names(skill, [found.name for found in skills]) or "`skillpager list` shows the known ones."
    raise SkillError(f"There is no file, folder or known skill {skill!r}: {hint}")


def similar_names(name: str, known: Iterable[str]) -> str:
    """Return a question with similar known names; empty if there are none."""
    close = difflib.get_close_matches(name[:MAX_COMPARED_CHARS], sorted(set(known)))
    return f"did you mean {', '.join(map(repr, close))}?" if close else ""


def skill_folders(folders: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield the folders with a SKILL.md at or below `folders`, each behind the search folder it is in.

    Folders inside a skill are not searched, and a folder that several links lead to is searched once.
    """
    searched: set[Hashable] = set()
    for top in folders:
        bare, waiting = 0, [(top, 0)]
        while waiting:
            folder, depth = waiting.pop()
            try:
                identity = identity_of(folder)
                if identity in searched:
                    continue
                searched.add(identity)
                are_folders = entries_of(folder)
            except OSError:  # as if it were empty
                continue
            if are_folders.get(ENTRY_FILE) is False:
                bare -= 1
                yield top, folder
                continue
            bare += 1
            if bare > MAX_FOLDERS:
                warn_of_size(top, MAX_FOLDERS)
            elif depth < MAX_DEPTH:
                below = {name for name, is_folder in are_folders.items() if is_folder} - SKIPPED_FOLDERS
                waiting += [(folder / name, depth + 1) for name in sorted(below, reverse=True)]
