"""Filters of skills by licence and by trusted folder, and the licence of a skill.

A licence is an SPDX expression, as the front matter or the manifest of a plugin or package states it. Other
names and texts of licences are `unknown`.
"""

import json
import os
import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from skillpager.display_text import one_line
from skillpager.errors import SettingsError
from skillpager.files import read_bounded
from skillpager.library.discovery import MAX_STATED_CHARS, FoundSkill
from skillpager.settings import Settings

UNKNOWN = "unknown"

# the skill's folder and those above: MARKETPLACE/plugins/PLUGIN/skills/SKILL is five
MAX_LEVELS = 8
MAX_MANIFEST_BYTES = 64 * 1024
MAX_SHOWN_CHARS = 40
# what names of licences have beside the parts of SPDX ids
_FILLERS = re.compile(r",|\b(?:the|licen[cs]e|version)\b|\bv(?=\d)", re.IGNORECASE)
# files that state a licence as `license`
_MANIFESTS = (".claude-plugin/plugin.json", "package.json")
_LICENCE_FILES = [
    f"{name}{suffix}" for name in ("LICENSE", "LICENCE", "COPYING") for suffix in ("", ".md", ".txt")
]


def licence_of(found: FoundSkill) -> str:
    """Return the SPDX expression of a skill's licence; of a published one as its publisher read it."""
    if found.published is not None:
        return found.published.licence
    return read_licence(found.path, found.stated_licence)


def read_licence(folder: Path, stated: str = "") -> str:
    """Return the licence of a skill: an SPDX expression such as `MIT OR Apache-2.0`, or `unknown`.

    Without one that its front matter states, the nearest manifest decides: in the skill's folder, or one
    above it, up to the root of the repository. The text of a licence file that is nearer is not read: what it
    says is unknown.
    """
    if stated:
        return recognise_name(stated)
    real = Path(os.path.realpath(folder))
    for place in (real, *real.parents)[:MAX_LEVELS]:
        if place in (Path.home(), Path(place.anchor)):
            break  # whose files say nothing about all that is below
        for manifest in _MANIFESTS:
            if stated := _stated_by(place / manifest):
                return recognise_name(stated)
        if any((place / name).exists() for name in (".git", *_LICENCE_FILES)):
            break
    return UNKNOWN


def _stated_by(manifest: Path) -> str:
    """Return the licence that a manifest states; empty if it states none or cannot be read."""
    try:
        stated = json.loads(read_bounded(manifest, MAX_MANIFEST_BYTES))["license"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ""
    return one_line(stated, MAX_STATED_CHARS) if isinstance(stated, str) else ""


@lru_cache(10_000)
def recognise_name(text: str) -> str:
    """Return a stated licence as an SPDX expression, also `Apache License, Version 2.0`; else `unknown`."""
    # its import takes 7 ms, and many skills state no licence
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    for form in (text, "-".join(_FILLERS.sub(" ", text).split())):
        with suppress(InvalidLicenseExpression):
            return canonicalize_license_expression(form)
    return UNKNOWN


def permits(expression: str, allowed: Collection[str]) -> bool:
    """Return whether all of `A AND B`, or one of `A OR B`, is allowed; what stands in parentheses is not."""
    return any(all(each in allowed for each in choice.split(" AND ")) for choice in expression.split(" OR "))


@dataclass(frozen=True, slots=True)
class SkillFilter:
    """Passes the skills under some licences, or in some folders; without arguments every skill.

    Attributes:
        licences: SPDX ids of licences that pass, or `unknown`; empty for all. See `permits`.
        trusted: Folders whose skills pass; empty for all. A skill is in a folder if its path leads through
            it, or if its files lie below it, whatever links lead there.

    Raises:
        SettingsError: A licence is not known.
    """

    licences: Collection[str] = ()
    trusted: Collection[Path] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "licences", tuple(sorted(set(map(_licence_id, self.licences)))))
        places = (place for folder in self.trusted for place in _places(Path(folder).expanduser()))
        object.__setattr__(self, "trusted", tuple(dict.fromkeys(places)))

    def __call__(self, found: FoundSkill) -> bool:
        """Return whether a skill passes."""
        if self.trusted:
            places = () if found.published is not None else _places(found.path)
            if not any(place.is_relative_to(folder) for place in places for folder in self.trusted):
                return False
        return not self.licences or permits(licence_of(found), self.licences)


def settings_filter(settings: Settings) -> SkillFilter | None:
    """Return the filter of skills that the settings ask for; None if they ask for none."""
    return SkillFilter(settings.licences, settings.trusted) if settings.trusted or settings.licences else None


def _places(path: Path) -> tuple[Path, Path]:
    """Return a path as it is written, and where links lead it; both without `..`."""
    return Path(os.path.normpath(path.absolute())), Path(os.path.realpath(path))


def _licence_id(name: str) -> str:
    expression = recognise_name(name)
    if " " in expression or (expression == UNKNOWN and name != UNKNOWN):
        raise SettingsError(
            f"{name[:MAX_SHOWN_CHARS]!r} is not a known licence: name an SPDX id such as MIT or Apache-2.0, "
            f"or {UNKNOWN}."
        )
    return expression
