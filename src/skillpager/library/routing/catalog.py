"""The catalog: what discovery read of each folder, and the indexes of the words of libraries.

It lies beside the index store. A process need not read unchanged skills again, nor count their words.
Everything in it can be computed again.
"""

import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from skillpager.files import ENTRY_FILE, FileStamps, make_private_folder, write_file
from skillpager.library.discovery import FoundSkill, Reading

logger = logging.getLogger(__name__)

# raise it when the fields of a reading change: the file is then made again
VERSION = 1
# raise it when terms, fields or their packing change: the words of libraries are then indexed again
WORDS_VERSION = 2
# indexes of libraries that nobody has used for so long are deleted
KEPT_SECONDS = 60 * 24 * 3600.0


class Catalog:
    """A catalog in a folder, made for its owner alone when first needed, for any number of processes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder.absolute() / "catalog.json"
        self.words = self.path.with_name("words")

    def clear(self) -> None:
        """Delete everything in it."""
        self.path.unlink(missing_ok=True)
        shutil.rmtree(self.words, ignore_errors=True)

    def words_of(self, library: object) -> Path:
        """Return the folder of the words of a library with this `repr`, and delete those that nobody uses."""
        digest = hashlib.sha256(f"{WORDS_VERSION} {library!r}".encode("utf-8", "replace")).hexdigest()
        folder = self.words / digest[:16]
        for each in self.words.iterdir() if self.words.is_dir() else ():
            if each != folder and time.time() - each.stat().st_mtime > KEPT_SECONDS:
                shutil.rmtree(each, ignore_errors=True)
        return folder

    def readings(self) -> dict[Path, Reading]:
        """Return what was read of all folders, by absolute path; nothing of a damaged file (a warning)."""
        try:
            version, readings = json.loads(self.path.read_bytes())
            if version == VERSION:
                return {Path(place): _reading(Path(place), *values) for place, values in readings.items()}
        except OSError:  # it is not there, or to write it will fail, too, and warn
            return {}
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            logger.warning("%s is damaged (%s), and all skills are read again", self.path, error)
        return {}

    def save_readings(self, changed: Mapping[Path, Reading], gone: Collection[Path]) -> None:
        """Write what was read of some folders, and forget others.

        Of two processes that save at the same moment the later wins; what is lost is read again. An `OSError`
        says that the file cannot be written.
        """
        known = {**self.readings(), **changed}
        readings = {str(place): _values(each) for place, each in known.items() if place not in gone}
        make_private_folder(self.path.parent)
        write_file(self.path, json.dumps([VERSION, readings]))


def _values(reading: Reading) -> list[object]:
    state, skill = reading.stamps and reading.stamps.state, reading.found
    if skill is None:
        return [state]
    about = skill.name, skill.description, skill.problem, skill.digest, skill.user_only, skill.stated_licence
    return [state, *about]


def _reading(place: Path, state: str | None, *about: Any) -> Reading:
    stamps = FileStamps((os.fspath(place / ENTRY_FILE), os.fspath(place)), state) if state else None
    if not about:
        return Reading(None, stamps)
    name, description, *others = about
    return Reading(FoundSkill(name, description, place, None, *others), stamps)
