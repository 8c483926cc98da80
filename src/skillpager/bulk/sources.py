"""Sources of skills: folders, archives, git repositories, object storage.

A source yields its skills one after the other. Files from elsewhere are brought into a temporary folder,
which is removed when its last skill has been read. A fault of a skill or source becomes an item, and stops
no other.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from skillpager.bulk.fetching import (
    GIT,
    STORAGES,
    SUFFIXES,
    fetch_git,
    fetch_objects,
    is_archive,
    refuse_credentials,
    unpack,
)
from skillpager.errors import SkillError, SkillPagerError
from skillpager.files import SKIPPED_FOLDERS
from skillpager.library import discover, skill_faults
from skillpager.library.discovery import stub_of
from skillpager.parsing.skill import ENTRY_FILE, read_skill
from skillpager.settings import Settings

if TYPE_CHECKING:
    from skillpager.types import Skill

_SCHEME = re.compile(r"([a-z][a-z\d+.-]+)(://|::)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Item:
    """A skill of a source, or why it cannot be read.

    Attributes:
        place: Where it is, for people: a path or address, and the path inside.
        skill: The skill, or why it cannot be read.
    """

    place: str
    skill: "Skill | SkillPagerError"


@dataclass(frozen=True, slots=True)
class Source:
    """Where skills are: `items` reads those at `place`, a path or address."""

    place: str
    items: Callable[[], Iterator[Item]]


def source_of(text: str, settings: Settings) -> Source | None:
    """Return the source that a text names if it is an address or an archive; None if it is a path or a name.

    Args:
        text: A path, an address of object storage, or `git+` and the URL or path of a repository, followed
            by `@REF` and `#subdirectory=PATH`.
        settings: The limit on the size of a skill, and the scope.
    """
    scheme, path = _SCHEME.match(text), Path(text).expanduser()
    bring: Callable[[Path], Path]
    try:
        if scheme or text.startswith(GIT):
            refuse_credentials(text)
        if text.startswith(GIT):
            bring = partial(fetch_git, text.removeprefix(GIT))
        elif scheme and scheme[1] in STORAGES and "::" not in text:
            bring = partial(fetch_objects, text)
        elif scheme:
            raise SkillError(
                f"{text} is not a source of skills. Sources are folders, archives ({', '.join(SUFFIXES)}), "
                f"git+https://…, git+ssh://…, git+file://… and "
                f"{', '.join(f'{name}://…' for name in STORAGES)}: download it, and name the file."
            )
        elif is_archive(text) and path.is_file():
            bring = partial(unpack, path, place=text)
        else:
            return None
    except SkillPagerError as error:
        return failed_source(f"{scheme[1] if scheme else 'git'} address", error)
    return Source(text, partial(_brought, text, bring, settings))


def path_source(path: Path, settings: Settings) -> Source:
    """Return the source of the one skill at a path: its folder, or a Markdown file."""
    return Source(str(path), lambda: iter([_read(path, str(path), settings)]))


def failed_source(place: str, error: SkillPagerError) -> Source:
    """Return a source that cannot be read."""
    return Source(place, lambda: iter([Item(place, error)]))


def sources_of(places: Sequence[str | Path], settings: Settings) -> list[Source]:
    """Return the sources that paths and addresses name; a folder of skills yields one for each of them."""
    sources: list[Source] = []
    for text in map(str, places):
        if found := source_of(text, settings):
            sources.append(found)
        else:
            below = [skill.path for skill in discover([Path(text)])] or [Path(text)]
            sources += [path_source(path, settings) for path in below]
    return sources


def _brought(place: str, bring: Callable[[Path], Path], settings: Settings) -> Iterator[Item]:
    """Yield the skills of files that `bring` puts into a temporary folder; an error is the last item."""
    try:
        with (
            skill_faults(place),
            TemporaryDirectory(prefix="skillpager-", ignore_cleanup_errors=True) as folder,
        ):
            got = bring(Path(folder))
            if got.is_file() and is_archive(got.name):
                got = unpack(got, Path(folder), place=place)
            if got.is_file() and got.name != ENTRY_FILE:
                yield _read(got, place, settings, local=False)
            else:
                yield from _below(got.parent if got.is_file() else got, place, settings)
    except SkillPagerError as error:
        yield Item(place, error)


def _below(folder: Path, place: str, settings: Settings) -> Iterator[Item]:
    """Yield the skills at or below a temporary folder, by path; stubs are left out."""
    empty = True
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
        if ENTRY_FILE not in names:
            continue
        folders.clear()  # folders inside a skill are its own
        empty = False
        inside = Path(parent).relative_to(folder).as_posix()
        item = _read(Path(parent), place if inside == "." else f"{place}!{inside}", settings, local=False)
        if isinstance(item.skill, SkillPagerError) or stub_of(item.skill.metadata) is None:
            yield item
    if empty:
        raise SkillError(f"There is no skill in {place}: a skill is a folder with a {ENTRY_FILE}.")


def _read(path: Path, place: str, settings: Settings, *, local: bool = True) -> Item:
    """Return the skill at a path; one that is not `local` forgets its folder, which goes away."""
    try:
        with skill_faults(place):
            skill = read_skill(path, scope=settings.scope, max_bytes=settings.max_bytes)
    except SkillPagerError as error:
        if not local:  # the temporary folder means nothing to the user
            error = SkillError(str(error).replace(str(path), place))
        return Item(place, error)
    return Item(place, skill if local else replace(skill, root=None))
