"""The licence of a skill: what its front matter states, or what the licence files beside and above it say.

It is recognised, not interpreted: what is not clear is `unknown`.
"""

import json
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.display_text import one_line
from skillpager.folders.walks import entries_of
from skillpager.parsing.skill import ENTRY_FILE
from skillpager.settings import read_bounded

if TYPE_CHECKING:
    from skillpager.library.discovery import FoundSkill

UNKNOWN = "unknown"
# SPDX's form of a licence that is not on its list
PROPRIETARY = "LicenseRef-Proprietary"

# folders that are searched, the skill's own and those above: MARKETPLACE/plugins/PLUGIN/skills/SKILL is five
MAX_LEVELS = 8
# the longest common licence, the GPL 3, has 35 kB
MAX_LICENCE_BYTES = 64 * 1024
# licence files of one folder that are read
MAX_LICENCE_FILES = 8
# seconds after which the licence files of a folder are read again
KEPT_SECONDS = 60.0
# longer statements are prose, which no table can tell
MAX_STATED_CHARS = 200
# a shorter licence file is the name of a licence with a copyright line
MAX_NOTE_CHARS = 300

# what the root of a repository has, and that of a plugin; a plugin's file may state a licence
_REPOSITORY = ".git"
_PLUGIN = ".claude-plugin"
_PLUGIN_FILE = "plugin.json"

_LICENCE_FILE = re.compile(r"(?:(?:un)?licen[cs]e|copying)(?:[-_.].*)?", re.IGNORECASE)
_NAMES_FILE = re.compile(r"\b(?:licen[cs]e|copying)[\w-]*\.(?:txt|md)\b|\blicen[cs]e file\b", re.IGNORECASE)
_BARE_FILES = ("license", "licence", "copying")
_SPDX_TAG = re.compile(r"spdx-license-identifier:[ \t]*([^\r\n*]+)", re.IGNORECASE)

# in the name that somebody gives to a licence, these words reserve all rights; `unlicensed` is npm's
_RESERVED = re.compile(r"\b(?:proprietary|all rights reserved|unlicensed|confidential|internal)\b")
# and these say nothing
_FILLERS = re.compile(r"\b(?:licen[cs]ed? under|licen[cs]es?|version|the)\b|,")
# names that SPDX writes differently, as their letters and digits
_SHORT_NAMES = {
    **{"apache2": "Apache-2.0", "apachesoftware20": "Apache-2.0", "cc0": "CC0-1.0", "expat": "MIT"},
    **{"3clausebsd": "BSD-3-Clause", "newbsd": "BSD-3-Clause", "2clausebsd": "BSD-2-Clause"},
    **{"gpl2": "GPL-2.0", "gpl3": "GPL-3.0", "lgpl21": "LGPL-2.1", "lgpl3": "LGPL-3.0", "agpl3": "AGPL-3.0"},
    **{"mpl2": "MPL-2.0", "mozillapublic20": "MPL-2.0", "gnugeneralpublic3": "GPL-3.0"},
}

_MIT = (
    "permission is hereby granted free of charge to any person obtaining a copy of this software and "
    "associated documentation files the software to deal in the software without restriction"
)
_MIT_NOTICE = "permission notice shall be included in all copies"
_ISC = (
    r"permission to use copy modify and(?: or)? distribute this software for any purpose with or without fee"
)
_BSD = "redistribution and use in source and binary forms with or without modification are permitted"
# A sentence or title by which the text of each licence is told, in words; a file may hold several licences.
_TEXTS = (
    ("MIT", rf"{_MIT}(?=.{{0,900}}{_MIT_NOTICE})"),
    ("MIT-0", rf"{_MIT}(?!.{{0,900}}{_MIT_NOTICE})"),
    ("Apache-2.0", r"apache license version 2 0 january 2004|under the apache license version 2 0\b"),
    ("BSD-4-Clause", rf"{_BSD}(?=.{{0,1200}}all advertising materials)"),
    ("BSD-3-Clause", rf"{_BSD}(?!.{{0,1200}}all advertising materials)(?=.{{0,1200}}endorse or promote)"),
    ("BSD-2-Clause", rf"{_BSD}(?!.{{0,1200}}(?:all advertising materials|endorse or promote))"),
    ("ISC", rf"{_ISC} is hereby granted provided"),
    ("0BSD", rf"{_ISC} is hereby granted(?! provided)"),
    ("Unlicense", r"this is free and unencumbered software released into the public domain"),
    ("Zlib", r"altered source versions must be plainly marked as such"),
    ("BSL-1.0", r"boost software license version 1 0"),
    ("MPL-2.0", r"mozilla public license v(?:ersion)? 2 0"),
    ("PSF-2.0", r"python software foundation license version 2|psf license agreement for python"),
    ("BlueOak-1.0.0", r"blue oak model license version 1 0 0"),
    ("OFL-1.1", r"sil open font license version 1 1"),
    ("EPL-2.0", r"eclipse public license v(?:ersion)? 2 0"),
    ("GPL-2.0", r"gnu general public license version 2 june 1991"),
    ("GPL-3.0", r"gnu general public license version 3 29 june 2007"),
    ("LGPL-2.0", r"gnu library general public license version 2 june 1991"),
    ("LGPL-2.1", r"gnu lesser general public license version 2 1 february 1999"),
    ("LGPL-3.0", r"gnu lesser general public license version 3 29 june 2007"),
    ("AGPL-3.0", r"gnu affero general public license version 3 19 november 2007"),
    ("CC0-1.0", r"\bcc0 1 0 universal"),
    ("BUSL-1.1", r"business source license 1 1"),
    ("Elastic-2.0", r"elastic license 2 0"),
    ("SSPL-1.0", r"server side public license version 1\b"),
    ("PolyForm-Noncommercial-1.0.0", r"polyform noncommercial license 1 0 0"),
)
_CREATIVE_COMMONS = re.compile(
    r"\b(?:attribution|cc by)(?P<nc> non ?commercial| nc)?"
    r"(?:(?P<sa> share ?alike| sa)|(?P<nd> no ?deriv\w+| nd))? (?P<version>[234] [05])\b"
)
# all rights are reserved in most licences, too, which then go on to give some
_GIVES = re.compile(r"\bhereby grant|\bpermission (?:is|to)\b|\bpermitted\b")
# what is added to a licence and takes back what it gives
_TAKEN_BACK = re.compile(r"\bcommons clause\b|\bfor non ?commercial (?:use|purposes) only\b")

_OPERATORS = re.compile(r"[()]|[^\s()]+")


@dataclass(frozen=True, slots=True)
class Licence:
    """The licence of a skill.

    Attributes:
        expression: An SPDX id, such as `MIT`, or expression, such as `Apache-2.0 AND CC-BY-4.0`;
            `LicenseRef-Proprietary` if all rights are reserved; `unknown`.
        place: The file that says so; None if none says anything.
    """

    expression: str
    place: Path | None


@dataclass(frozen=True, slots=True)
class _Folder:
    """What one folder says of licences, and whether it is the root of a plugin or of a repository."""

    read: float
    licence: Licence | None
    is_plugin: bool = False
    is_repository: bool = False


class Licences:
    """Reads the licences of skills, and keeps what a folder says for `KEPT_SECONDS`: many skills share one.

    Many threads may use it at once; two may then read the same folder.
    """

    def __init__(self) -> None:
        self._folders: dict[Path, _Folder] = {}
        self._skills: dict[tuple[Path, str, Path | None], tuple[float, Licence]] = {}

    def of(self, found: "FoundSkill") -> str:
        """Return the SPDX expression of a skill's licence; of a published one as its publisher read it."""
        if found.published is not None:
            return found.published.licence
        return self.read(found.path, found.stated_licence, top=found.folder).expression

    def read(self, folder: Path, stated: str = "", *, top: Path | None = None) -> Licence:
        """Return the licence of the skill in a folder.

        What its front matter states comes first. Else, or if that refers to a file, the nearest folder with
        licence files decides: the skill's own, or one above it, up to `top` or the root of the plugin or
        repository.

        Args:
            folder: The skill's folder.
            stated: The licence that its front matter states (`stated_licence`).
            top: The search folder in which the skill was found.
        """
        kept = self._skills.get((folder, stated, top))
        if kept is None or time.monotonic() - kept[0] > KEPT_SECONDS:
            kept = (time.monotonic(), self._read(folder, stated, top))
            self._skills[folder, stated, top] = kept
        return kept[1]

    def _read(self, folder: Path, stated: str, top: Path | None) -> Licence:
        named = recognise_name(stated)
        if named != UNKNOWN or (stated and not refers_to_file(stated)):
            return Licence(named, folder / ENTRY_FILE)
        real = Path(os.path.realpath(folder))
        above = None if top is None else Path(os.path.realpath(top))
        nearest = None
        for place in (real, *real.parents)[:MAX_LEVELS]:
            if place in (Path.home(), Path(place.anchor)) and place != above:
                break  # whose files say nothing of all that is below
            said = self._folder(place)
            nearest = nearest or said.licence
            is_root = said.is_plugin or said.is_repository or place in (real, above)
            if is_root and nearest:
                return nearest
            if said.is_repository:
                break
        return Licence(UNKNOWN, folder / ENTRY_FILE if stated else None)

    def beside(self, folder: Path) -> Licence | None:
        """Return what the licence files in a folder say; None if there are none."""
        return self._folder(Path(os.path.realpath(folder))).licence

    def _folder(self, folder: Path) -> _Folder:
        kept = self._folders.get(folder)
        if kept is None or time.monotonic() - kept.read > KEPT_SECONDS:
            kept = _read_folder(folder)
            self._folders[folder] = kept
        return kept


def stated_licence(metadata: Mapping[str, str]) -> str:
    """Return the licence that front matter states as `license` or `metadata.license`; empty if it does not.

    Args:
        metadata: Front-matter fields, as in `Skill.metadata`.
    """
    nested = _json_object(metadata.get("metadata", ""))
    fields = [metadata.get("license"), metadata.get("licence"), nested.get("license"), nested.get("licence")]
    return next((line for text in fields if text and (line := one_line(str(text), MAX_STATED_CHARS))), "")


def recognise_name(text: str) -> str:
    """Return the SPDX expression for a licence as a person names it, such as `MIT License` or `GPLv3`."""
    # its import takes 7 ms, and many skills state no licence
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    for candidate in _candidates(text[:MAX_STATED_CHARS]):
        try:
            return canonicalize_license_expression(candidate)
        except InvalidLicenseExpression:
            continue
    return PROPRIETARY if _RESERVED.search(_words(text)) else UNKNOWN


def _candidates(text: str) -> Iterator[str]:
    """Yield what may be an SPDX expression for the name of a licence: the name itself, then forms of it."""
    yield text.strip()
    # each once: `MIT License (MIT)`
    words = dict.fromkeys(re.findall(r"[\w.]+", _FILLERS.sub(" ", text.lower())))
    yield "-".join(words)
    short = re.sub(r"v(?=\d)|[._]", "", "".join(words)).removesuffix("0") or "none"
    yield _SHORT_NAMES.get(short, _SHORT_NAMES.get(f"{short}0", short))


def refers_to_file(stated: str) -> bool:
    """Return whether front matter names a licence file instead of a licence."""
    return bool(_NAMES_FILE.search(stated)) or stated.lower() in _BARE_FILES


def recognise_text(text: str) -> str:
    """Return the SPDX expression for the text of a licence file.

    Several licences are joined with `AND`, because nothing says that one of them may be chosen.
    """
    if tag := _SPDX_TAG.search(text, 0, MAX_NOTE_CHARS):
        return recognise_name(tag[1])
    words = _words(text)
    found = {spdx for spdx, pattern in _TEXTS if re.search(pattern, words)}
    found |= {_creative_commons(match) for match in _CREATIVE_COMMONS.finditer(words)}
    if _TAKEN_BACK.search(words):
        return UNKNOWN
    if found:
        return " AND ".join(sorted(found))
    if _GIVES.search(words):  # but nothing is known of what
        return UNKNOWN
    if len(text) <= MAX_NOTE_CHARS:
        first = next((line for line in text.splitlines() if line.strip()), "")
        if (named := recognise_name(first.lstrip("# "))) != UNKNOWN:
            return named
    return PROPRIETARY if "all rights reserved" in words else UNKNOWN


def _creative_commons(match: re.Match[str]) -> str:
    parts = [name.upper() for name in ("nc", "sa", "nd") if match[name]]
    return "-".join(["CC", "BY", *parts, match["version"].replace(" ", ".")])


def permits(expression: str, allowed: Collection[str]) -> bool:
    """Return whether a licence is among the allowed ones: all of `A AND B`, one of `A OR B`.

    Args:
        expression: As in `Licence`.
        allowed: Ids as `licence_family` returns them.
    """
    tokens = _OPERATORS.findall(expression)

    def any_of() -> bool:
        value = all_of()
        while tokens[:1] == ["OR"]:
            tokens.pop(0)
            value = all_of() or value
        return value

    def all_of() -> bool:
        value = one()
        while tokens[:1] == ["AND"]:
            tokens.pop(0)
            value = one() and value
        return value

    def one() -> bool:
        if tokens[0] == "(":
            tokens.pop(0)
            value = any_of()
            tokens.pop(0)
        else:
            value = licence_family(tokens.pop(0)) in allowed
            if tokens[:1] == ["WITH"]:  # an exception only gives more
                del tokens[:2]
        return value

    return any_of()


def licence_family(spdx: str) -> str:
    """Return an SPDX id without what tells later versions: the text of the GPL 3 does not say `or later`."""
    return re.sub(r"(?:-only|-or-later|\+)$", "", spdx)


def _read_folder(folder: Path) -> _Folder:
    """Read what one folder says of licences."""
    now = time.monotonic()
    try:
        entries = entries_of(folder)
    except OSError:  # as if it were empty
        return _Folder(now, None)
    names = sorted(
        name for name, is_folder in entries.items() if not is_folder and _LICENCE_FILE.fullmatch(name)
    )
    # a file that holds no known licence is an answer, too: no folder above decides for this one
    said = {folder / name: recognise_text(_read(folder / name)) for name in names[:MAX_LICENCE_FILES]}
    is_plugin = entries.get(_PLUGIN) is True
    if is_plugin and not said:
        file = folder / _PLUGIN / _PLUGIN_FILE
        stated = stated_licence(_json_object(_read(file)))
        said = {file: recognise_name(stated)} if stated else {}
    licence = None
    if said:
        known = sorted({expression for expression in said.values() if expression != UNKNOWN})
        place = next(file for file, expression in said.items() if not known or expression == known[0])
        licence = Licence(" AND ".join(known) or UNKNOWN, place)
    return _Folder(now, licence, is_plugin, _REPOSITORY in entries)


def _read(file: Path) -> str:
    """Return the beginning of a file as text; empty if it cannot be read."""
    try:
        return read_bounded(file, MAX_LICENCE_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _json_object(text: str) -> dict[str, str]:
    """Return the object that a JSON text is, with its values as text; empty if it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {str(key): str(each) for key, each in value.items()} if isinstance(value, dict) else {}


def _words(text: str) -> str:
    """Return a text as words of lower case with a blank between them."""
    return re.sub(r"[\W_]+", " ", text.lower()).strip()
