"""The licence of a skill: the SPDX name in its front matter, or in the manifest of its plugin or package.

Names are recognised, texts of licences are not read: what is not clear is `unknown`.
"""

import json
import os
import re
import time
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from skillpager.display_text import one_line
from skillpager.files import entries_of, read_bounded
from skillpager.library.discovery import MAX_STATED_CHARS, FoundSkill
from skillpager.parsing.skill import ENTRY_FILE

UNKNOWN = "unknown"
# SPDX's form of a licence that is not on its list
PROPRIETARY = "LicenseRef-Proprietary"

# folders that are searched, the skill's own and those above: MARKETPLACE/plugins/PLUGIN/skills/SKILL is five
MAX_LEVELS = 8
MAX_MANIFEST_BYTES = 64 * 1024
# seconds after which the manifests of a folder are read again
KEPT_SECONDS = 60.0

_PLUGIN, _REPOSITORY = ".claude-plugin", ".git"
# files that state a licence as `license`, in a TOML file below `project`
_MANIFESTS = (f"{_PLUGIN}/plugin.json", "package.json", "pyproject.toml")
LICENCE_FILE = re.compile(r"(?:(?:un)?licen[cs]e|copying)(?:[-_.].*)?", re.IGNORECASE)

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


@dataclass(frozen=True, slots=True)
class Licence:
    """The licence of a skill.

    Attributes:
        expression: An SPDX id, such as `MIT`, or expression, such as `MIT OR Apache-2.0`;
            `LicenseRef-Proprietary` if all rights are reserved; `unknown`.
        place: The file that states it, or a licence file, whose text is not read; None if there is neither.
    """

    expression: str
    place: Path | None


@dataclass(frozen=True, slots=True)
class _Folder:
    """The licence of one folder, and whether it is the root of a plugin, and of a repository."""

    read: float
    licence: Licence | None = None
    is_plugin: bool = False
    is_repository: bool = False


class Licences:
    """Reads the licences of skills, and caches those of folders for `KEPT_SECONDS`: many skills share one.

    Many threads may use it at once; two may then read the same folder.
    """

    def __init__(self) -> None:
        self._folders: dict[Path, _Folder] = {}

    def of(self, found: FoundSkill) -> str:
        """Return the SPDX expression of a skill's licence; of a published one as its publisher read it."""
        if found.published is not None:
            return found.published.licence
        return self.read(found.path, found.stated_licence, top=found.folder).expression

    def read(self, folder: Path, stated: str = "", *, top: Path | None = None) -> Licence:
        """Return the licence of the skill in a folder.

        Args:
            folder: The skill's folder.
            stated: The licence that its front matter states (`discovery.stated_licence`). Without one, the
                nearest folder with a manifest or licence file decides: the skill's own, or one above it, up
                to `top` or the root of the plugin or repository.
            top: The search folder in which the skill was found.
        """
        if stated:
            return Licence(recognise_name(stated), folder / ENTRY_FILE)
        real = Path(os.path.realpath(folder))
        above = None if top is None else Path(os.path.realpath(top))
        nearest = None
        for place in (real, *real.parents)[:MAX_LEVELS]:
            if place in (Path.home(), Path(place.anchor)) and place != above:
                break  # whose files say nothing of all that is below
            here = self._folders.get(place)
            if here is None or time.monotonic() - here.read > KEPT_SECONDS:
                here = self._folders[place] = _read_folder(place)
            nearest = nearest or here.licence
            if nearest and (here.is_plugin or here.is_repository or place in (real, above)):
                return nearest
            if here.is_repository:
                break
        return Licence(UNKNOWN, None)


def _read_folder(folder: Path) -> _Folder:
    """Return what the manifests of a folder state; else its licence file, as an unknown licence."""
    now = time.monotonic()
    try:
        entries = entries_of(folder)
    except OSError:  # as if it were empty
        return _Folder(now)
    licence = None
    for manifest in _MANIFESTS:
        if manifest.partition("/")[0] in entries and (stated := _stated_by(folder / manifest)):
            licence = Licence(recognise_name(stated), folder / manifest)
            break
    else:
        files = sorted(name for name, is_folder in entries.items() if not is_folder)
        if file := next(filter(LICENCE_FILE.fullmatch, files), None):
            licence = Licence(UNKNOWN, folder / file)
    return _Folder(now, licence, entries.get(_PLUGIN) is True, _REPOSITORY in entries)


def _stated_by(manifest: Path) -> str:
    """Return the licence that a manifest states; empty if it states none or cannot be read."""
    try:
        text = read_bounded(manifest, MAX_MANIFEST_BYTES).decode(errors="replace")
        fields = tomllib.loads(text)["project"] if manifest.suffix == ".toml" else json.loads(text)
        stated = fields["license"]
        if isinstance(stated, dict):  # older forms of npm and Python
            stated = stated.get("type") or stated.get("text")
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ""
    return one_line(stated, MAX_STATED_CHARS) if isinstance(stated, str) else ""


@lru_cache(10_000)
def recognise_name(text: str) -> str:
    """Return the SPDX expression for a licence as a person names it, such as `MIT License` or `GPLv3`."""
    # its import takes 7 ms, and many skills state no licence
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    for candidate in _candidates(text[:MAX_STATED_CHARS]):
        try:
            return canonicalize_license_expression(candidate)
        except InvalidLicenseExpression:
            continue
    words = re.sub(r"[\W_]+", " ", text.lower())
    return PROPRIETARY if _RESERVED.search(words) else UNKNOWN


def _candidates(text: str) -> Iterator[str]:
    """Yield what may be an SPDX expression for the name of a licence: the name itself, then forms of it."""
    yield text.strip()
    # each once: `MIT License (MIT)`
    words = dict.fromkeys(re.findall(r"[\w.]+", _FILLERS.sub(" ", text.lower())))
    yield "-".join(words)
    short = re.sub(r"v(?=\d)|[._]", "", "".join(words)).removesuffix("0") or "none"
    yield _SHORT_NAMES.get(short, _SHORT_NAMES.get(f"{short}0", short))


def permits(expression: str, allowed: Collection[str]) -> bool:
    """Return whether a licence is among the allowed ones: all of `A AND B`, one of `A OR B`.

    Args:
        expression: As in `Licence`.
        allowed: Ids as `licence_family` returns them.
    """
    # an exception only gives more
    tokens = re.findall(r"[()]|[^\s()]+", re.sub(r" WITH [^\s()]+", "", expression))

    def chain(operator: str, part: Callable[[], bool], join: Callable[[Iterable[bool]], bool]) -> bool:
        values = [part()]
        while tokens[:1] == [operator]:
            del tokens[0]
            values.append(part())
        return join(values)

    def choice() -> bool:
        return chain("OR", lambda: chain("AND", one, all), any)

    def one() -> bool:
        first = tokens.pop(0)
        if first != "(":
            return licence_family(first) in allowed
        value = choice()
        del tokens[0]
        return value

    return choice()


def licence_family(spdx: str) -> str:
    """Return an SPDX id without what tells later versions, so that `GPL-3.0` includes `GPL-3.0-or-later`."""
    return re.sub(r"(?:-only|-or-later|\+)$", "", spdx)
