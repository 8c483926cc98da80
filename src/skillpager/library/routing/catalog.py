"""The catalog: what routing knows of skills, in one SQLite file beside the index store.

It holds what discovery read of each folder, so that a process need not read unchanged skills again, and the
words of skills in segments (`segments.py`). Everything in it can be computed again.
"""

import hashlib
import json
import logging
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from skillpager.files import FileStamps
from skillpager.library.discovery import FoundSkill, Reading
from skillpager.stores.connection import BUSY_TIMEOUT, Database, Schema

if TYPE_CHECKING:
    from skillpager.library.routing.segments import KeyArray, Segment

logger = logging.getLogger(__name__)

Part = TypeVar("Part")

FILE_NAME = "catalog.db"
# "SkCt" in ASCII
APPLICATION_ID = 0x536B4374
# raise it when terms, fields, their vectors or tables change: the catalog is then made again
VERSION = 6
SCHEMA = Schema(
    "catalog of skills",
    APPLICATION_ID,
    VERSION,
    (
        """CREATE TABLE readings (
            path TEXT PRIMARY KEY, skill_key INTEGER NOT NULL, is_stub INTEGER NOT NULL, name TEXT NOT NULL,
            description TEXT NOT NULL, problem TEXT, digest TEXT NOT NULL, user_only INTEGER NOT NULL,
            stated_licence TEXT NOT NULL, stamps TEXT NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE segments (
            id INTEGER PRIMARY KEY AUTOINCREMENT, skills INTEGER NOT NULL, checksum TEXT NOT NULL,
            data BLOB NOT NULL
        )""",
    ),
)
# a segment with fewer skills is merged with the next new one: adding a skill writes so many at most
SMALL = 1_000
# so many segments of about one size are merged to one of the next size: each skill is written anew a few
# times, and a search looks into a dozen segments at most
TIER = 4
# no larger segment is made by merging, which needs twice as much memory; 30,000 skills
LARGEST_BYTES = 100_000_000
# bytes that are read or written at once, so that memory holds a segment once
CHUNK_BYTES = 1 << 20
# of a segment: its first line at most, which names the arrays, and a key
HEAD_BYTES, KEY_BYTES = 1 << 14, 8
_SIGNED = 1 << 63


class DamagedSegmentError(ValueError):
    """The bytes of a segment are not what was written."""


def key_of(name: str, digest: str) -> int:
    """Return the key of a skill: 64 bits of a hash of its name and of the digest of its SKILL.md."""
    content = json.dumps([name, digest]).encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


class Catalog:
    """A catalog file, for any number of threads and processes at once.

    The file is opened when first needed. Methods raise `StoreError` where it cannot be opened, read or (to
    change it) written.

    Args:
        folder: Folder of the file; made, for its owner alone, when first needed.
        busy_timeout: Seconds to wait for other processes before giving up.

    Attributes:
        path: The file.
    """

    def __init__(self, folder: Path, *, busy_timeout: float = BUSY_TIMEOUT) -> None:
        self.path = folder.absolute() / FILE_NAME
        self._database = Database(self.path, busy_timeout=busy_timeout, schema=SCHEMA)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._database.size

    def clear(self) -> None:
        """Delete everything in it, and damaged files that were moved aside."""

        def delete(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM readings")
            connection.execute("DELETE FROM segments")

        self._database.write(delete)
        self._database.check(repair=True)
        self._database.delete_damaged_file()

    def verify(self) -> list[str]:
        """Return what is damaged, by reading everything; nothing is changed."""
        if faults := self._database.check(repair=False):
            return faults
        damaged = []
        for id_ in self._database.read(_select_ids):
            try:
                self._database.read(partial(_read_data, id_=id_))
            except DamagedSegmentError as problem:
                damaged.append(f"segment {id_}: {problem}")
        return damaged

    def readings(self, folders: Iterable[Path]) -> dict[Path, Reading]:
        """Return what was read of the folders at and below `folders`, by folder."""
        found: dict[Path, Reading] = {}
        for folder in folders:
            # the file has whole paths: other processes work in other folders
            above = str(folder.absolute())
            if not _is_text(above):
                continue
            found |= self._database.read(partial(_select_readings, folder=folder, above=above))
        return found

    def save_readings(self, changed: Mapping[Path, Reading], gone: Collection[Path]) -> None:
        """Write what was read of some folders, and forget others."""
        rows = [_reading_row(path, reading) for path, reading in changed.items()]
        rows = [row for row in rows if all(map(_is_text, row))]
        paths = [(str(path.absolute()),) for path in gone if _is_text(path)]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM readings WHERE path = ?", paths)
            connection.executemany("INSERT OR REPLACE INTO readings VALUES (?,?,?,?,?,?,?,?,?,?)", rows)

        if rows or paths:
            self._database.write(write)

    def segments(self, known: "Mapping[int, Segment]") -> "dict[int, Segment]":
        """Return the segments by id, in the order of ids; those of `known` are not read again.

        A damaged one is logged and deleted: its skills are read again.
        """
        return self._found(known, _read_segment)

    def keys(self, known: "Mapping[int, KeyArray]") -> "dict[int, KeyArray]":
        """Return the keys of the skills of each segment, as `segments` does; a damaged one is deleted."""
        return self._found(known, _read_keys)

    def _found(self, known: Mapping[int, Part], read: Callable[..., Part | None]) -> dict[int, Part]:
        found: dict[int, Part] = {}
        for id_ in self._database.read(_select_ids):
            try:
                part = known[id_] if id_ in known else self._database.read(partial(read, id_=id_))
            except DamagedSegmentError as problem:
                logger.warning(
                    "A part of the catalog %s is damaged: %s. It is deleted and made again.",
                    *(self.path, problem),
                )
                self._database.write(partial(_delete_segments, ids=[id_]))
                continue
            if part is not None:  # else another process has merged it meanwhile
                found[id_] = part
        return found

    def add(self, segment: "Segment", living: Collection[int]) -> None:
        """Add a segment, and merge it with others; skills that another process has added are not added.

        Merging drops the skills that are in no folder any more.

        Args:
            segment: The segment.
            living: Keys of skills that are not dropped, even if what was read of them could not be stored.
        """

        def write(connection: sqlite3.Connection) -> bool:
            alive = _living_keys(connection) | set(living)
            ids = _choose_merged(connection, segment, alive)
            parts = []
            for id_ in ids:
                try:
                    part = _read_segment(connection, id_=id_)
                except DamagedSegmentError:
                    continue  # its skills are read again
                parts += [part] if part is not None else []
            merged = type(segment).merge([*parts, segment], alive)
            parts.clear()
            _insert(connection, merged)
            _delete_segments(connection, ids=ids)
            return bool(ids)

        self._database.write(write)


def _choose_merged(connection: sqlite3.Connection, segment: "Segment", alive: Collection[int]) -> list[int]:
    """Return the ids of the segments that a new one is merged with, in their order.

    These are the small ones, those of which half the skills are gone, and, as long as it comes to a few of
    one size, those of the size of all these together.
    """
    rows = connection.execute("SELECT id, skills, length(data) FROM segments ORDER BY id").fetchall()
    sizes = {id_: (skills, length) for id_, skills, length in rows}
    chosen = {id_ for id_, (skills, _) in sizes.items() if skills < SMALL}
    for id_ in sizes.keys() - chosen:
        keys = _read_keys(connection, id_=id_, check=False)
        if keys is not None and 2 * sum(key in alive for key in keys.tolist()) < len(keys):
            chosen.add(id_)
    while True:
        total = len(segment.keys) + sum(sizes[id_][0] for id_ in chosen)
        of_size = [id_ for id_ in sizes if id_ not in chosen and _tier(sizes[id_][0]) == _tier(total)]
        length = sum(sizes[id_][1] for id_ in (*chosen, *of_size))
        if len(of_size) + 1 < TIER or length > LARGEST_BYTES:
            return sorted(chosen)
        chosen.update(of_size)


def _tier(skills: int) -> int:
    """Return the class of a segment's size; each is `TIER` times the one before, and 0 has the small ones."""
    tier = 0
    while skills >= SMALL * TIER**tier:
        tier += 1
    return tier


def _insert(connection: sqlite3.Connection, segment: "Segment") -> None:
    """Write a segment block by block: bound as one value, it would be in memory three times."""
    if not len(segment.keys):
        return
    blocks = segment.pack()
    checksum = hashlib.sha256()
    for block in blocks:
        checksum.update(block)
    cursor = connection.execute(
        "INSERT INTO segments (skills, checksum, data) VALUES (?, ?, zeroblob(?))",
        (len(segment.keys), checksum.hexdigest(), sum(len(block) for block in blocks)),
    )
    with connection.blobopen("segments", "data", cast(int, cursor.lastrowid)) as blob:
        for block in blocks:
            for start in range(0, len(block), CHUNK_BYTES):
                blob.write(block[start : start + CHUNK_BYTES])


def _living_keys(connection: sqlite3.Connection) -> set[int]:
    found = connection.execute("SELECT skill_key FROM readings")
    return {key + _SIGNED for (key,) in found}


def _select_ids(connection: sqlite3.Connection) -> list[int]:
    return [id_ for (id_,) in connection.execute("SELECT id FROM segments ORDER BY id")]


def _read_segment(connection: sqlite3.Connection, *, id_: int) -> "Segment | None":
    from skillpager.library.routing.segments import Segment  # arrays: a list of names needs none

    data = _read_data(connection, id_=id_)
    return None if data is None else Segment.unpack(data)


def _read_keys(connection: sqlite3.Connection, *, id_: int, check: bool = True) -> "KeyArray | None":
    """Return the keys of a segment, which it begins with; `check` reads the rest, too, for the checksum."""
    from skillpager.library.routing.segments import unpack_keys

    row = _row_of(connection, id_)
    if row is None:
        return None
    skills, checksum = row
    begin, found = b"", hashlib.sha256()
    for chunk in _chunks(connection, id_):
        begin += chunk if len(begin) < HEAD_BYTES + KEY_BYTES * skills else b""
        if not check and len(begin) >= HEAD_BYTES + KEY_BYTES * skills:
            break
        found.update(chunk)
    keys = unpack_keys(begin)
    if check and (found.hexdigest() != checksum or len(keys) != skills):
        raise DamagedSegmentError("its checksum differs")
    return keys


def _read_data(connection: sqlite3.Connection, *, id_: int) -> bytearray | None:
    row = _row_of(connection, id_)
    if row is None:
        return None
    with connection.blobopen("segments", "data", id_, readonly=True) as blob:
        data = bytearray(len(blob))
        for start in range(0, len(data), CHUNK_BYTES):
            chunk = blob.read(CHUNK_BYTES)
            data[start : start + len(chunk)] = chunk
    if hashlib.sha256(data).hexdigest() != row[1]:
        raise DamagedSegmentError("its checksum differs")
    return data


def _row_of(connection: sqlite3.Connection, id_: int) -> tuple[int, str] | None:
    """Return the number of skills of a segment and its checksum; None if it is not there."""
    found = connection.execute("SELECT skills, checksum FROM segments WHERE id = ?", (id_,)).fetchone()
    return found and (int(found[0]), str(found[1]))


def _chunks(connection: sqlite3.Connection, id_: int) -> Iterator[bytes]:
    with connection.blobopen("segments", "data", id_, readonly=True) as blob:
        while chunk := blob.read(CHUNK_BYTES):
            yield chunk


def _delete_segments(connection: sqlite3.Connection, *, ids: Sequence[int]) -> None:
    connection.executemany("DELETE FROM segments WHERE id = ?", ((id_,) for id_ in ids))


def _select_readings(connection: sqlite3.Connection, *, folder: Path, above: str) -> dict[Path, Reading]:
    """Return what was read of a folder, whose path in the file is `above`, and of those below it."""
    # paths below a folder lie between `folder/` and the text that ends with the next character
    below = above.rstrip(os.sep)
    statement = "SELECT * FROM readings WHERE path = ? OR (path > ? AND path < ?)"
    found = {}
    # one row at a time: those of thousands of skills would take as much memory as what is made of them
    for row in connection.execute(statement, (above, below + os.sep, below + chr(ord(os.sep) + 1))):
        path, _, is_stub, name, description, problem, digest, user_only, licence, stamps = row
        place = folder / path[len(above) :].lstrip(os.sep) if len(path) > len(above) else folder
        skill = FoundSkill(name, description, place, None, problem, digest, bool(user_only), licence, folder)
        found[place] = Reading(None if is_stub else skill, digest, _read_stamps(stamps, place))
    return found


def _reading_row(path: Path, reading: Reading) -> tuple[object, ...]:
    skill = reading.found or FoundSkill("", "", path, None, None)
    return (
        *(str(path.absolute()), key_of(skill.name, reading.digest) - _SIGNED, reading.found is None),
        *(skill.name, skill.description, skill.problem, reading.digest, skill.user_only),
        *(skill.stated_licence, _write_stamps(reading.stamps, path)),
    )


def _is_text(value: object) -> bool:
    """Return whether a value can be stored; a name of a file may hold bytes that are no text."""
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def _write_stamps(stamps: FileStamps | None, folder: Path) -> str:
    """Return stamps as text: for each the name in the folder and its five numbers; empty for None."""
    if stamps is None:
        return ""
    whole = os.fspath(folder)
    parts = zip(stamps.paths, stamps.state.split("\n"), strict=True)
    return "\n".join(f"{state} {'' if path == whole else Path(path).name}" for path, state in parts)


def _read_stamps(text: str, folder: Path) -> FileStamps | None:
    if not text:
        return None
    paths, states = [], []
    for line in text.split("\n"):
        *numbers, name = line.split(" ", 5)
        states.append(" ".join(numbers))
        paths.append(os.fspath(folder / name if name else folder))
    return FileStamps(tuple(paths), "\n".join(states))
