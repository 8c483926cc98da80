"""The catalog: what discovery read of each folder, and the indexes of the words of libraries.

It lies beside the index store. A process need not read unchanged skills again, nor count their words.
Everything in it can be computed again.
"""

import hashlib
import os
import shutil
import sqlite3
import time
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from pathlib import Path

from skillpager.files import FileStamps
from skillpager.library.discovery import FoundSkill, Reading
from skillpager.stores.connection import BUSY_TIMEOUT, Database, Schema

FILE_NAME, WORDS = "catalog.db", "words"
# "SkCt" in ASCII
APPLICATION_ID = 0x536B4374
# raise it when the table changes: the catalog is then made again
VERSION = 7
SCHEMA = Schema(
    "catalog of skills",
    APPLICATION_ID,
    VERSION,
    (
        """CREATE TABLE readings (
            path TEXT PRIMARY KEY, is_stub INTEGER NOT NULL, name TEXT NOT NULL,
            description TEXT NOT NULL, problem TEXT, digest TEXT NOT NULL, user_only INTEGER NOT NULL,
            stated_licence TEXT NOT NULL, stamps TEXT NOT NULL
        ) WITHOUT ROWID""",
    ),
)
# raise it when terms, fields or their packing change: the words of libraries are then indexed again
WORDS_VERSION = 1
# indexes of libraries that nobody has used for so long are deleted
KEPT_SECONDS = 60 * 24 * 3600.0


class Catalog:
    """A catalog file, for any number of threads and processes at once.

    The file is opened when first needed. Methods raise `StoreError` where it cannot be opened, read or (to
    change it) written.

    Args:
        folder: Folder of the file; made, for its owner alone, when first needed.
        busy_timeout: Seconds to wait for other processes before giving up.

    Attributes:
        path: The file.
        words: The folder of the indexes of words.
    """

    def __init__(self, folder: Path, *, busy_timeout: float = BUSY_TIMEOUT) -> None:
        self.path = folder.absolute() / FILE_NAME
        self.words = self.path.with_name(WORDS)
        self._database = Database(self.path, busy_timeout=busy_timeout, schema=SCHEMA)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._database.size + sum(map(_size_of, self.words.rglob("*")))

    def clear(self) -> None:
        """Delete everything in it."""

        def delete(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM readings")

        self._database.write(delete)
        shutil.rmtree(self.words, ignore_errors=True)

    def verify(self) -> list[str]:
        """Return what is damaged, by reading everything; nothing is changed."""
        from skillpager.library.routing.word_index import damaged_files  # a list of names needs none

        if faults := self._database.faults():
            return faults
        return [problem for folder in self._word_folders() for problem in damaged_files(folder)]

    def words_of(self, library: object) -> Path:
        """Return the folder of the index of a library's words, and delete those that nobody uses any more.

        Args:
            library: Says which library it is; its `repr` is the same in all processes.
        """
        digest = hashlib.sha256(f"{WORDS_VERSION} {library!r}".encode("utf-8", "replace")).hexdigest()
        folder = self.words / digest[:16]
        for each in self._word_folders():
            if each != folder and time.time() - each.stat().st_mtime > KEPT_SECONDS:
                shutil.rmtree(each, ignore_errors=True)
        return folder

    def _word_folders(self) -> list[Path]:
        return sorted(self.words.iterdir()) if self.words.is_dir() else []

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
            connection.executemany("INSERT OR REPLACE INTO readings VALUES (?,?,?,?,?,?,?,?,?)", rows)

        if rows or paths:
            self._database.write(write)


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # merged meanwhile
        return 0


def _select_readings(connection: sqlite3.Connection, *, folder: Path, above: str) -> dict[Path, Reading]:
    """Return what was read of a folder, whose path in the file is `above`, and of those below it."""
    # paths below a folder lie between `folder/` and the text that ends with the next character
    below = above.rstrip(os.sep)
    statement = "SELECT * FROM readings WHERE path = ? OR (path > ? AND path < ?)"
    found = {}
    # one row at a time: those of thousands of skills would take as much memory as what is made of them
    for row in connection.execute(statement, (above, below + os.sep, below + chr(ord(os.sep) + 1))):
        path, is_stub, name, description, problem, digest, user_only, licence, stamps = row
        place = folder / path[len(above) :].lstrip(os.sep) if len(path) > len(above) else folder
        skill = FoundSkill(name, description, place, None, problem, digest, bool(user_only), licence, folder)
        found[place] = Reading(None if is_stub else skill, digest, _read_stamps(stamps, place))
    return found


def _reading_row(path: Path, reading: Reading) -> tuple[object, ...]:
    skill = reading.found or FoundSkill("", "", path, None, None)
    return (
        *(str(path.absolute()), reading.found is None),
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
