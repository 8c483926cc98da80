"""The catalog: what discovery read of each folder, and the indexes of the words of libraries.

It lies beside the index store. A process need not read unchanged skills again, nor count their words.
Everything in it can be computed again.
"""

import hashlib
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from skillpager.files import FileStamps
from skillpager.library.discovery import FoundSkill, Reading
from skillpager.stores.sqlite import Database, Schema

FILE_NAME, WORDS = "catalog.db", "words"
SEPARATOR = os.fsencode(os.sep)
AFTER_SEPARATOR = bytes([SEPARATOR[0] + 1])
# "SkCt" in ASCII
APPLICATION_ID = 0x536B4374
# raise it when the table changes: the catalog is then made again
VERSION = 8
SCHEMA = Schema(
    "catalog of skills",
    APPLICATION_ID,
    VERSION,
    ("CREATE TABLE readings (path BLOB PRIMARY KEY, reading TEXT NOT NULL) WITHOUT ROWID",),
)
# raise it when terms, fields or their packing change: the words of libraries are then indexed again
WORDS_VERSION = 2
# indexes of libraries that nobody has used for so long are deleted
KEPT_SECONDS = 60 * 24 * 3600.0


class Catalog:
    """A catalog file, for any number of threads and processes at once.

    The file is opened when first needed. Methods raise `StoreError` where it cannot be opened, read or (to
    change it) written.

    Args:
        folder: Folder of the file; made, for its owner alone, when first needed.

    Attributes:
        path: The file.
        words: The folder of the indexes of words.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder.absolute() / FILE_NAME
        self.words = self.path.with_name(WORDS)
        self._database = Database(self.path, schema=SCHEMA)

    def clear(self) -> None:
        """Delete everything in it."""
        self._database.write(lambda connection: connection.execute("DELETE FROM readings"))
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

        def select(connection: sqlite3.Connection) -> dict[Path, Reading]:
            found = {}
            # paths below a folder lie between `folder/` and the bytes that end with the next character; one
            # row at a time: those of thousands of skills would take as much memory as what is made of them
            statement = "SELECT * FROM readings WHERE path = ? OR (path > ? AND path < ?)"
            for folder in folders:
                above = os.fsencode(folder.absolute())
                below = above.rstrip(SEPARATOR) + SEPARATOR
                for path, text in connection.execute(statement, (above, below, below[:-1] + AFTER_SEPARATOR)):
                    place = folder / os.fsdecode(path[len(below) :])
                    with suppress(ValueError, KeyError, TypeError):  # a damaged one is read again
                        found[place] = _from_text(text, place, folder)
            return found

        return self._database.read(select)

    def save_readings(self, changed: Mapping[Path, Reading], gone: Collection[Path]) -> None:
        """Write what was read of some folders, and forget others."""
        rows = [(os.fsencode(path.absolute()), _as_text(path, each)) for path, each in changed.items()]
        paths = [(os.fsencode(path.absolute()),) for path in gone]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM readings WHERE path = ?", paths)
            connection.executemany("INSERT OR REPLACE INTO readings VALUES (?, ?)", rows)

        self._database.write(write)


def _as_text(path: Path, reading: Reading) -> str:
    """Return a reading as JSON, in which the paths of stamps are relative to the skill's folder."""
    skill = reading.found or FoundSkill("", "", path, None, None)
    stamps = reading.stamps
    return json.dumps(
        {
            "is_stub": reading.found is None,
            "skill": [skill.name, skill.description, skill.problem, skill.user_only, skill.stated_licence],
            "digest": reading.digest,
            "stamps": stamps and [stamps.state, *(os.path.relpath(each, path) for each in stamps.paths)],
        }
    )


def _from_text(text: str, place: Path, folder: Path) -> Reading:
    form = json.loads(text)
    name, description, problem, user_only, licence = form["skill"]
    digest, stamps = form["digest"], form["stamps"]
    if stamps is not None:
        state, *paths = stamps
        stamps = FileStamps(tuple(os.fspath(place / each) for each in paths), state)
    skill = FoundSkill(name, description, place, None, problem, digest, user_only, licence, folder)
    return Reading(None if form["is_stub"] else skill, digest, stamps)
