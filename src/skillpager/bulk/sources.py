"""Sources of skills: folders, archives, tables of addresses, git repositories, object storage, the web.

A source gives its skills one after the other. What is not a folder of this machine is brought into a
temporary one, which is gone when its last skill is read. A fault of a skill or source is an item, and stops
no other.
"""

import csv
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from skillpager.bulk.archives import is_archive, unpack
from skillpager.bulk.fetching import fetch_git, fetch_http, fetch_objects, shown_git
from skillpager.errors import SkillError, SkillPagerError
from skillpager.folders.walks import SKIPPED_FOLDERS
from skillpager.library import discover, skill_faults
from skillpager.library.discovery import stub_of
from skillpager.parsing.skill import ENTRY_FILE, read_skill
from skillpager.settings import Settings, hide_secrets

if TYPE_CHECKING:
    from skillpager.types import Skill

TABLES = (".csv", ".jsonl")
# a line of a table with an address takes about 100 bytes
MAX_TABLE_BYTES = 256 * 1024**2
# column of a table with the address, and the optional one with the branch, tag or commit of a git repository
URL, REF = "url", "ref"
GIT = "git+"
_SCHEME = re.compile(r"([a-z][a-z\d+.-]+)://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Item:
    """A skill of a source, or why it cannot be read.

    Attributes:
        place: Where it is, for people: a path or address, and the path inside.
        skill: The skill; None if it cannot be read.
        error: Why not.
        name: What it is called if it cannot be read.
    """

    place: str
    skill: "Skill | None" = None
    error: SkillPagerError | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """Where skills are.

    Attributes:
        place: Path or address, without secrets.
        items: Reads its skills.
        name: What it is called in a table of failures.
        single: Whether it is a single skill.
    """

    place: str
    items: Callable[[], Iterator[Item]]
    name: str = ""
    single: bool = False


def source_of(text: str, settings: Settings) -> Source | None:
    """Return the source that a text names if it is an address, an archive or a table; else None.

    Args:
        text: A path, a URL, or `git+` and the URL or path of a repository, `@REF` and `#subdirectory=PATH`.
        settings: The limit on the size of a skill, and the scope.
    """
    is_git = text.startswith(GIT)
    place = GIT + shown_git(text.removeprefix(GIT)) if is_git else hide_secrets(text)
    if (scheme := _SCHEME.match(text)) or is_git:
        return Source(place, partial(_fetched, text, place, settings, scheme[1] if scheme else ""), place)
    path = Path(text).expanduser()
    lower = text.lower()
    if not (is_archive(lower) or lower.endswith(TABLES)) or not path.is_file():
        return None
    if is_archive(lower):
        return Source(text, partial(_unpacked, path, text, settings), path.name)
    return Source(text, partial(_listed, path, settings), path.name)


def path_source(path: Path, settings: Settings) -> Source:
    """Return the source of the one skill at a path: its folder, or a Markdown file."""

    def items() -> Iterator[Item]:
        yield _read(path, str(path), settings)

    return Source(str(path), items, path.name, single=True)


def sources_of(places: Sequence[str | Path], settings: Settings) -> list[Source]:
    """Return the sources that paths and addresses name; a folder of skills gives one for each of them."""
    sources: list[Source] = []
    for place in places:
        if found := source_of(os.fspath(place), settings):
            sources.append(found)
        else:
            below = [skill.path for skill in discover([Path(place)])] or [Path(place)]
            sources += [path_source(path, settings) for path in below]
    return sources


def failed_source(place: str, name: str, error: SkillPagerError) -> Source:
    """Return a source that cannot be read."""
    return Source(place, lambda: iter([Item(place, error=error, name=name)]), name, single=True)


@contextmanager
def _scratch(place: str) -> Iterator[Path]:
    """Yield a folder that is gone afterwards; a full disk is an error of the place."""
    try:
        with TemporaryDirectory(prefix="skillpager-", ignore_cleanup_errors=True) as name:
            yield Path(name)
    except OSError as error:
        raise SkillError(
            f"{place} cannot be read ({error.strerror or error}): it is unpacked in a temporary folder, "
            "which the variable TMPDIR can name."
        ) from error


def _guarded(place: str, items: Callable[[], Iterator[Item]]) -> Iterator[Item]:
    """Yield the items of a source; an error of the source itself is the last of them."""
    try:
        with skill_faults(place):
            yield from items()
    except SkillPagerError as error:
        yield Item(place, error=error, name=place)


def _unpacked(archive: Path, place: str, settings: Settings) -> Iterator[Item]:
    def items() -> Iterator[Item]:
        with _scratch(place) as folder:
            unpack(archive, folder, place=place)
            yield from _below(folder, place, settings)

    return _guarded(place, items)


def _fetched(text: str, place: str, settings: Settings, scheme: str) -> Iterator[Item]:
    """Yield the skills at an address, whose files are brought here first."""

    def items() -> Iterator[Item]:
        with _scratch(place) as folder:
            if text.startswith(GIT):
                got = fetch_git(text.removeprefix(GIT), folder)
            elif scheme.lower() in ("http", "https"):
                got = fetch_http(text, folder)
            else:
                got = fetch_objects(text, folder)
            if got.is_file() and is_archive(got.name):
                inside = folder / "unpacked"
                inside.mkdir()
                unpack(got, inside, place=place)
                yield from _below(inside, place, settings)
            elif got.is_file() and got.name != ENTRY_FILE:
                yield _read(got, place, settings, local=False)
            else:
                yield from _below(got.parent if got.is_file() else got, place, settings)

    return _guarded(place, items)


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
        if item.skill is None or stub_of(item.skill.metadata) is None:
            yield item
    if empty:
        raise SkillError(f"There is no skill in {place}: a skill is a folder with a {ENTRY_FILE}.")


def _read(path: Path, place: str, settings: Settings, *, local: bool = True) -> Item:
    """Return the skill at a path; one that is not `local` forgets its folder, which goes away."""
    try:
        with skill_faults(place):
            skill = read_skill(path, scope=settings.scope, max_bytes=settings.max_bytes)
    except SkillPagerError as error:
        if not local:  # the user has never heard of the temporary folder
            error = SkillError(str(error).replace(str(path), place))
        return Item(place, error=error, name=path.name)
    return Item(place, skill if local else replace(skill, root=None))


def _listed(table: Path, settings: Settings) -> Iterator[Item]:
    """Yield the skills at the addresses of a table."""

    def items() -> Iterator[Item]:
        for line, row in _rows(table):
            place = f"{table}:{line}"
            url = str(row.get(URL) or "").strip()
            ref = str(row.get(REF) or "").strip()
            if ref and url.startswith(GIT):
                address, hash_sign, part = url.partition("#")
                url = f"{address}@{ref}{hash_sign}{part}"
            if not (_SCHEME.match(url) or url.startswith(GIT)):
                fault = SkillError(
                    f"{place}: {url!r} is no address: write one such as https://…/skills.zip, s3://…, or "
                    f"git+https://….git in the column {URL!r}."
                )
                yield Item(place, error=fault, name=place)
            elif source := source_of(url, settings):
                yield from source.items()

    return _guarded(str(table), items)


def _rows(table: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield line number and fields of each row of a CSV file with a header, or of a JSON object a line."""
    if table.stat().st_size > MAX_TABLE_BYTES:
        raise SkillError(f"{table} has more than {MAX_TABLE_BYTES:,} bytes: split it.")
    number = 0
    try:
        with table.open(encoding="utf-8-sig", newline="") as lines:
            if table.suffix.lower() == ".csv":
                reader = csv.DictReader(lines)
                if URL not in (reader.fieldnames or ()):
                    raise SkillError(f"{table} has no column {URL!r}: its first line must name the columns.")
                for fields in reader:
                    yield reader.line_num, dict(fields)
                    number = reader.line_num + 1
                return
            for number, line in enumerate(lines, 1):
                if line.strip():
                    row = json.loads(line)
                    if not isinstance(row, dict):
                        raise SkillError(
                            f'{table}:{number} is no JSON object such as {{"{URL}": "https://…"}}.'
                        )
                    yield number, row
    except (ValueError, csv.Error) as error:
        raise SkillError(f"{table}:{number or 1} cannot be read ({error}): it must be UTF-8 text.") from error
