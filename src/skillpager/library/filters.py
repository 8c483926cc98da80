"""Filters of skills: by licence, by trusted folder, and by who may change their files.

A filter is a function of a found skill. It also gives the reason why a skill is left out, because front ends
show it.
"""

import difflib
import os
import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from skillpager.errors import SettingsError
from skillpager.library.discovery import FoundSkill
from skillpager.library.licences import UNKNOWN, Licences, licence_family, permits, recognise_name
from skillpager.parsing.folder import own_files
from skillpager.parsing.skill import ENTRY_FILE
from skillpager.settings import Settings

# licences that an unknown name is compared with
_COMMON = (
    *("MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MPL-2.0", "CC0-1.0", "CC-BY-4.0"),
    *("GPL-2.0", "GPL-3.0", "LGPL-3.0", "AGPL-3.0", "Unlicense", UNKNOWN, "proprietary"),
)
MAX_SHOWN_CHARS = 40


@dataclass(frozen=True, slots=True)
class SkillFilter:
    """Passes the skills that a user wants to be offered; without arguments every skill.

    Skills come from marketplaces and cloned projects, and an agent does what they say. So a user may want
    only those under some licences, in some folders, or whose files nobody else can change.

    Attributes:
        licences: Names of licences that pass, such as `MIT`, `unknown` or `proprietary`; empty for all. Of a
            skill under several licences each must be named. `GPL-3.0` includes `GPL-3.0-or-later`.
        trusted: Folders whose skills pass; empty for all. A skill is in a folder if its path leads through
            it, or if its files lie below it, whatever links lead there.
        unshared: Only skills whose files, and all folders above them, belong to the user or the system and
            can be changed by nobody else.
        reader: Reads the licences.

    Raises:
        SettingsError: A licence is not known, or this system does not tell who may change a file.
    """

    licences: Collection[str] = ()
    trusted: Collection[Path] = ()
    unshared: bool = False
    reader: Licences = field(default_factory=Licences, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Bring licences and folders into the form in which they are compared."""
        object.__setattr__(self, "licences", tuple(sorted(set(map(_licence_id, self.licences)))))
        places = (place for folder in self.trusted for place in _places(Path(folder).expanduser()))
        object.__setattr__(self, "trusted", tuple(dict.fromkeys(places)))
        if self.unshared and not hasattr(os, "getuid"):
            raise SettingsError(
                "This system does not tell who may change a file: name trusted folders, not `unshared`."
            )

    def __call__(self, found: FoundSkill) -> bool:
        """Return whether a skill passes."""
        return self.reason(found) is None

    def reason(self, found: FoundSkill) -> str | None:
        """Return why a skill is left out, as the end of a sentence about it; None if it passes."""
        if self.trusted and (found.published is not None or not self._is_trusted(found.path)):
            return "is in no trusted folder"
        if self.licences:
            licence = self.reader.of(found)
            if not permits(licence, self.licences):
                return f"has the licence {licence}, which was not asked for"
        if self.unshared and found.published is not None:
            return "can be changed by others: it is in a shared store"
        if self.unshared and (place := changeable_by_others(found.path)):
            return f"can be changed by others: {place}"
        return None

    def _is_trusted(self, path: Path) -> bool:
        return any(place.is_relative_to(folder) for place in _places(path) for folder in self.trusted)


def settings_filter(settings: Settings) -> SkillFilter | None:
    """Return the filter of skills that the settings ask for; None if they ask for none."""
    is_filtered = bool(settings.trusted or settings.licences)
    return SkillFilter(settings.licences, settings.trusted) if is_filtered else None


def _places(path: Path) -> tuple[Path, Path]:
    """Return a path as it is written, and where links lead it; both without `..`."""
    return Path(os.path.normpath(path.absolute())), Path(os.path.realpath(path))


def _licence_id(name: str) -> str:
    """Return the id of a licence that a user names, as `permits` compares it.

    Raises:
        SettingsError: It is not known, or an expression.
    """
    if name.strip().lower() == UNKNOWN:
        return UNKNOWN
    expression = recognise_name(name)
    if expression != UNKNOWN and " " not in expression:
        return licence_family(expression)
    close = difflib.get_close_matches(name[:MAX_SHOWN_CHARS], _COMMON, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]}?" if close else f"name SPDX ids such as {', '.join(_COMMON[:3])}."
    raise SettingsError(f"{name[:MAX_SHOWN_CHARS]!r} is not a known licence: {hint}")


def changeable_by_others(folder: Path) -> Path | None:
    """Return a file or folder by which others than the user and the system can change a skill, or None.

    Looked at are the skill's files, its folders, and those above them, as `ssh` does with its keys.
    """
    real = Path(os.path.realpath(folder))
    files = [Path(os.path.realpath(real / ENTRY_FILE)), *(real / path for path in own_files(real))]
    folders = dict.fromkeys(above for file in files for above in file.parents)
    for place in (*files, *folders):
        try:
            status = place.stat()
        except OSError:
            return place  # nobody can say
        if _is_shared(status, is_above=not place.is_relative_to(real)):
            return place
    return None


def _is_shared(status: os.stat_result, *, is_above: bool) -> bool:
    """Return whether others can write a file or folder; in a sticky folder above, only what is their own."""
    if status.st_uid not in (0, os.getuid()):
        return True
    if is_above and status.st_mode & stat.S_ISVTX:
        return False
    # the group that only the user has, of many systems, is no other
    by_group = bool(status.st_mode & stat.S_IWGRP) and status.st_gid not in (0, os.getgid())
    return by_group or bool(status.st_mode & stat.S_IWOTH)
