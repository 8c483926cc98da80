"""The catalog: what routing knows of skills, in one SQLite file beside the index store.

It holds what discovery read of each folder, so that a process need not read unchanged skills again, and the
words of skills in segments (`segments.py`). Everything in it can be computed again.
"""

import hashlib
import json
import logging
import os
import sqlite3
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillpager.library.discovery import FoundSkill, Reading
from skillpager.memory import FileStamps, Stamp
from skillpager.stores.connection import BUSY_TIMEOUT, Database, Schema

if TYPE_CHECKING:
    from skillpager.library.routing.segments import Segment

logger = logging.getLogger(__name__)

FILE_NAME = "catalog.db"
# "SkCt" in ASCII
APPLICATION_ID = 0x536B4374
# raise it when terms, fields or tables change: the catalog is then made again
VERSION = 4
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
# large segments, over which all are merged to one
MOST_SEGMENTS = 8
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
        weakref.finalize(self, self._database.disconnect)

    @property
    def size(self) -> int:
        """Bytes on disk, write-ahead log included."""
        return self._database.size

    def close(self) -> None:
        """Close this process's connection; using the catalog again opens another."""
        self._database.close()

    def clear(self) -> None:
        """Delete everything in it, and damaged files that were moved aside."""

        def delete(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM readings")
            connection.execute("DELETE FROM segments")

        self._database.write(delete)
        self._database.check(repair=True)
        self._database.shrink()
        self._database.delete_damaged_files()

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
            for row in self._database.read(partial(_select_readings, folder=above)):
                path, _, is_stub, name, description, problem, digest, user_only, licence, stamps = row
                place = folder / path[len(above) :].lstrip(os.sep) if len(path) > len(above) else folder
                skill = FoundSkill(name, description, place, None, problem, digest, bool(user_only), licence)
                found[place] = Reading(None if is_stub else skill, digest, _read_stamps(stamps, place))
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
        found: dict[int, Segment] = {}
        for id_ in self._database.read(_select_ids):
            try:
                segment = known.get(id_) or self._database.read(partial(_read_segment, id_=id_))
            except DamagedSegmentError as problem:
                logger.warning(
                    "A part of the catalog %s is damaged: %s. It is deleted and made again.",
                    *(self.path, problem),
                )
                self._database.write(partial(_delete_segments, ids=[id_]))
                continue
            if segment is not None:  # else another process has merged it meanwhile
                found[id_] = segment
        return found

    def add(self, segment: "Segment", known: "Mapping[int, Segment]", living: Collection[int]) -> None:
        """Add a segment, and merge it with small ones; skills that another process has added are not added.

        Merging drops the skills that are in no folder any more.

        Args:
            segment: The segment.
            known: Segments by id, which need not be read again.
            living: Keys of skills that are not dropped, even if what was read of them could not be stored.
        """

        def write(connection: sqlite3.Connection) -> bool:
            sizes = dict(connection.execute("SELECT id, skills FROM segments").fetchall())
            ids = [id_ for id_, size in sizes.items() if size < SMALL]
            if len(sizes) - len(ids) >= MOST_SEGMENTS:
                ids = list(sizes)
            parts = []
            for id_ in ids:
                try:
                    part = known.get(id_) or _read_segment(connection, id_=id_)
                except DamagedSegmentError:
                    continue  # its skills are read again
                parts += [part] if part is not None else []
            merged = type(segment).merge([*parts, segment], _living_keys(connection) | set(living))
            _insert(connection, merged)
            _delete_segments(connection, ids=ids)
            return bool(ids)

        if self._database.write(write):
            self._database.shrink()


def _insert(connection: sqlite3.Connection, segment: "Segment") -> None:
    if len(segment.keys):
        data = segment.pack()
        connection.execute(
            "INSERT INTO segments (skills, checksum, data) VALUES (?, ?, ?)",
            (len(segment.keys), hashlib.sha256(data).hexdigest(), data),
        )


def _living_keys(connection: sqlite3.Connection) -> set[int]:
    found = connection.execute("SELECT skill_key FROM readings")
    return {key + _SIGNED for (key,) in found}


def _select_ids(connection: sqlite3.Connection) -> list[int]:
    return [id_ for (id_,) in connection.execute("SELECT id FROM segments ORDER BY id")]


def _read_segment(connection: sqlite3.Connection, *, id_: int) -> "Segment | None":
    from skillpager.library.routing.segments import Segment  # arrays: a list of names needs none

    data = _read_data(connection, id_=id_)
    return None if data is None else Segment.unpack(data)


def _read_data(connection: sqlite3.Connection, *, id_: int) -> bytes | None:
    found = connection.execute("SELECT checksum, data FROM segments WHERE id = ?", (id_,)).fetchone()
    if found is None:
        return None
    checksum, data = found
    if not isinstance(data, bytes) or hashlib.sha256(data).hexdigest() != checksum:
        raise DamagedSegmentError("its checksum differs")
    return data


def _delete_segments(connection: sqlite3.Connection, *, ids: Sequence[int]) -> None:
    connection.executemany("DELETE FROM segments WHERE id = ?", ((id_,) for id_ in ids))


def _select_readings(connection: sqlite3.Connection, *, folder: str) -> list[tuple[Any, ...]]:
    # paths below a folder lie between `folder/` and the text that ends with the next character
    below = folder.rstrip(os.sep)
    statement = "SELECT * FROM readings WHERE path = ? OR (path > ? AND path < ?)"
    return connection.execute(statement, (folder, below + os.sep, below + chr(ord(os.sep) + 1))).fetchall()


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
    parts = zip(stamps.paths, stamps.stamps, strict=True)
    return "\n".join(
        f"{' '.join(map(str, stamp))} {'' if path == folder else path.name}" for path, stamp in parts
    )


def _read_stamps(text: str, folder: Path) -> FileStamps | None:
    if not text:
        return None
    paths, stamps = [], []
    for line in text.split("\n"):
        *numbers, name = line.split(" ", 5)
        stamp: Stamp = tuple(map(int, numbers))  # type: ignore[assignment]
        stamps.append(stamp)
        paths.append(folder / name if name else folder)
    return FileStamps(tuple(paths), tuple(stamps))
