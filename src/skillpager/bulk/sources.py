"""Sources of skills: folders, archives, git repositories.

A source yields its skills one after the other. Files from elsewhere are brought into a temporary folder,
which is removed when its last skill has been read. A fault of a skill or source becomes an item, and stops
no other.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from skillpager.bulk.fetching import GIT, SUFFIXES, TRANSPORTS, UNPACKING_ERRORS, fetch_git, unpack
from skillpager.errors import SkillError, SkillPagerError
from skillpager.files import ENTRY_FILE
from skillpager.library import discover, skill_faults
from skillpager.library.discovery import skill_folders, stub_of
from skillpager.parsing.skill import read_skill
from skillpager.settings import Settings, hide_secrets

if TYPE_CHECKING:
    from skillpager.types import Skill

# also one with too few slashes, or without a scheme: it may hold a password, which no message repeats
_ADDRESS = re.compile(r"(git)\+|([a-z][a-z\d+.-]+)(:/|::)|//[^/]*@", re.IGNORECASE)
_GIT_ADDRESS = re.compile(rf"git\+({'|'.join(TRANSPORTS)})://")
_KINDS = ", ".join(f"{GIT}{name}://…" for name in TRANSPORTS)


@dataclass(frozen=True, slots=True)
class Item:
    """A skill of a source, or why it cannot be read; the place is a path or address, and the path inside."""

    place: str
    skill: "Skill | SkillPagerError"


# reads the skills of a place
Source = Callable[[], Iterator[Item]]


def source_of(text: str, settings: Settings) -> Source | None:
    """Return the source that a text names if it is an address or an archive; None if it is a path or a name.

    An address is `git+` and the URL of a repository, followed by `@REF` and `#subdirectory=PATH`.
    """
    if (address := _ADDRESS.match(text.strip())) is None:
        path = Path(text).expanduser()
        if not (text.lower().endswith(SUFFIXES) and path.is_file()):
            return None
        return partial(_brought, text, partial(unpack, path, place=text), settings)
    text = text.strip()
    try:
        refuse_credentials(text)
        if text.startswith("file:///"):  # a path, with its rules
            found = sources_of([url2pathname(urlsplit(text).path)], settings)
            return lambda: chain.from_iterable(source() for source in found)
        if _GIT_ADDRESS.match(text):
            return partial(_brought, text, partial(fetch_git, text), settings)
        raise SkillError(
            f"{hide_secrets(text)} is not a source of skills. Sources are folders, archives "
            f"({', '.join(SUFFIXES)}) and {_KINDS}: download it, and name the file."
        )
    except SkillPagerError as error:
        return failed_source(f"{address[1] or address[2] or 'an'} address", error)


def refuse_credentials(address: str) -> None:
    """Raise a `SkillError`, which does not repeat them, if an address holds secrets or NUL."""
    if "\0" in unquote(address):
        raise SkillError("An address holds the character NUL (%00), which no path has: leave it out.")
    try:
        url = urlsplit(address.removeprefix(GIT))
    except ValueError:
        raise SkillError("An address is not a URL: check its host, which may be in brackets.") from None
    login = url.password is not None or (url.username is not None and url.scheme != "ssh")
    if login or url.query or not re.fullmatch("(subdirectory=[^&]*)?", url.fragment):
        raise SkillError(
            f"The address at {url.hostname} holds a user, password, query or fragment (but `subdirectory=`) "
            "that other programs could read: leave them out, and use git's credential helper or ssh."
        )


def path_source(path: Path, settings: Settings) -> Source:
    """Return the source of the one skill at a path: its folder, or a Markdown file."""
    return lambda: iter([_read(path, str(path), settings)])


def failed_source(place: str, error: SkillPagerError) -> Source:
    """Return a source that cannot be read."""
    return lambda: iter([Item(place, error)])


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
            try:
                got = bring(Path(folder))
            except UNPACKING_ERRORS as error:
                reason = error.strerror if isinstance(error, OSError) and error.strerror else error
                raise SkillError(
                    f"{place} cannot be unpacked ({reason}): check the archive, and the room for temporary "
                    "files (the variable TMPDIR names their folder), or download it again."
                ) from error
            found = [path for _, path in skill_folders([got])]
            for path in found:
                item = _read(path, place if path == got else f"{place}!{path.relative_to(got)}", settings)
                if isinstance(item.skill, SkillPagerError):
                    # the temporary folder means nothing to the user
                    yield Item(item.place, SkillError(str(item.skill).replace(str(path), item.place)))
                elif stub_of(item.skill.metadata) is None:
                    yield Item(item.place, replace(item.skill, root=None))
            if not found:
                raise SkillError(f"There is no skill in {place}: a skill is a folder with a {ENTRY_FILE}.")
    except SkillPagerError as error:
        yield Item(place, error)


def _read(path: Path, place: str, settings: Settings) -> Item:
    try:
        with skill_faults(place):
            return Item(place, read_skill(path, scope=settings.scope, max_bytes=settings.max_bytes))
    except SkillPagerError as error:
        return Item(place, error)
