"""The catalog: what discovery read of each folder, and the indexes of the words of libraries.

It lies beside the index store. A process need not read unchanged skills again, nor count their words.
Everything in it can be computed again.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from skillpager.files import FileStamps
from skillpager.library.discovery import FoundSkill, Reading
from skillpager.parsing.walk import ENTRY_FILE
from skillpager.stores.sqlite import Database, Schema

SCHEMA = Schema(
    "catalog of skills",
    0x536B4374,  # "SkCt" in ASCII
    10,  # raise it when the table changes: the catalog is then made again
    ("CREATE TABLE readings (path BLOB PRIMARY KEY, reading TEXT NOT NULL) WITHOUT ROWID",),
)
# raise it when terms, fields or their packing change: the words of libraries are then indexed again
WORDS_VERSION = 2
# indexes of libraries that nobody has used for so long are deleted
KEPT_SECONDS = 60 * 24 * 3600.0


class Catalog:
    """A catalog file, for any number of threads and processes; methods raise `StoreError` if it fails.

    Args:
        folder: Folder of the file; made, for its owner alone, when first needed.

    Attributes:
        path: The file.
        words: The folder of the indexes of words.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder.absolute() / "catalog.db"
        self.words = self.path.with_name("words")
        self._database = Database(self.path, schema=SCHEMA)

    def clear(self) -> None:
        """Delete everything in it."""
        self._database.write(lambda connection: connection.execute("DELETE FROM readings"))
        shutil.rmtree(self.words, ignore_errors=True)

    def faults(self) -> list[str]:
        """Return what is damaged in the file; nothing is changed."""
        return self._database.faults()

    def words_of(self, library: object) -> Path:
        """Return the folder of the words of a library with this `repr`, and delete those that nobody uses."""
        digest = hashlib.sha256(f"{WORDS_VERSION} {library!r}".encode("utf-8", "replace")).hexdigest()
        folder = self.words / digest[:16]
        for each in self.words.iterdir() if self.words.is_dir() else ():
            if each != folder and time.time() - each.stat().st_mtime > KEPT_SECONDS:
                shutil.rmtree(each, ignore_errors=True)
        return folder

    def readings(self) -> dict[Path, Reading]:
        """Return what was read of all folders, by absolute path."""
        rows = self._database.read(lambda connection: connection.execute("SELECT * FROM readings").fetchall())
        found = {}
        for path, text in rows:
            place = Path(os.fsdecode(path))
            with suppress(ValueError, LookupError, TypeError):  # a damaged one is read again
                found[place] = _from_text(text, place)
        return found

    def save_readings(self, changed: Mapping[Path, Reading], gone: Collection[Path]) -> None:
        """Write what was read of some folders, and forget others."""
        rows = [(os.fsencode(path), _as_text(each)) for path, each in changed.items()]
        self._database.write(
            lambda connection: (
                connection.executemany(
                    "DELETE FROM readings WHERE path = ?", [(os.fsencode(path),) for path in gone]
                ),
                connection.executemany("INSERT OR REPLACE INTO readings VALUES (?, ?)", rows),
            )
        )


def _as_text(reading: Reading) -> str:
    skill, stamps = reading.found, reading.stamps
    about = skill and (
        *(skill.name, skill.description, skill.problem),
        *(skill.digest, skill.user_only, skill.stated_licence),
    )
    return json.dumps({"skill": about, "state": stamps and stamps.state})


def _from_text(text: str, place: Path) -> Reading:
    form = json.loads(text)
    about, state = form["skill"], form["state"]
    stamps = FileStamps((os.fspath(place / ENTRY_FILE), os.fspath(place)), state) if state else None
    if about is None:
        return Reading(None, stamps)
    name, description, *others = about
    return Reading(FoundSkill(name, description, place, None, *others), stamps)
