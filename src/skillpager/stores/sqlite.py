"""The default store: one SQLite file in the user's cache folder.

The tables are told in `docs/store-format.md`. A save is one transaction and a load reads one
snapshot, so nobody sees half an index; every load checks the index's checksum.
"""

import logging
import sqlite3
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from skillpager.errors import StoreError
from skillpager.stores import tables
from skillpager.stores.database import BUSY_TIMEOUT, Database
from skillpager.stores.rows import (
    HEAD_COLUMNS,
    DamagedRowsError,
    IndexRows,
    check_rows,
    checksum,
    from_rows,
    to_rows,
)
from skillpager.stores.tables import StoredIndex
from skillpager.types import Skill, SkillIndex, StoreEntry

logger = logging.getLogger(__name__)

FILE_NAME = "index.db"
# about 4,000 skills of 100 nodes at 384 dimensions
DEFAULT_MAX_BYTES = 1024**3
# a load notes its time only when the last note is older: most loads write nothing
USED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class DamagedEntry:
    """One thing that `SqliteStore.verify` found wrong.

    Attributes:
        key: Cache key of the entry; empty when the database file itself is damaged.
        name: Name of the skill; the path of the file when that is damaged.
        problem: What is wrong.
    """

    key: str
    name: str
    problem: str


class SqliteStore:
    """Indexes in one SQLite file, for any number of threads and processes at once.

    The file is opened when first needed. A folder that can be read but not written still serves
    loads. Entries that were not used for longest go when the file grows over `max_bytes`.

    Args:
        path: Folder of the store; made, for its owner alone, when first needed.
        max_bytes: Size to keep the database under; None for no limit.
        busy_timeout: Seconds to wait for other processes before giving up.

    Attributes:
        path: The database file.
        max_bytes: As given.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int | None = DEFAULT_MAX_BYTES,
        busy_timeout: float = BUSY_TIMEOUT,
    ) -> None:
        self.path = path.absolute() / FILE_NAME
        self.max_bytes = max_bytes
        self._database = Database(self.path, busy_timeout=busy_timeout)
        # Without waiting: a garbage collection comes at any moment, also while a lock is held.
        weakref.finalize(self, self._database.close, wait=False)

    @property
    def size(self) -> int:
        """Bytes on disk, write-ahead log included."""
        return self._database.size

    def load(self, key: str, skill: Skill) -> SkillIndex | None:
        """Return the index of `skill` stored under `key`, or None.

        A damaged entry is logged and deleted, and None returned.

        Args:
            key: Cache key.
            skill: The skill whose file digests went into `key`.

        Raises:
            StoreError: The store cannot be opened or read.
        """
        stored = self._database.read(partial(tables.select, key=key))
        if stored is None:
            return None
        try:
            check_rows(stored.rows, stored.checksum)
            index = from_rows(stored.rows, skill)
        except DamagedRowsError as problem:
            self._drop_damaged(stored, key=key, problem=problem)
            return None
        self._note_use(stored)
        return index

    def save(self, index: SkillIndex) -> None:
        """Write `index` atomically, replacing one of the same key; then evict down to `max_bytes`.

        An index that alone is larger than `max_bytes` is not stored, which is logged.

        Raises:
            StoreError: The store is read-only, locked for too long, or the disk is full.
            ValueError: `index` breaks its own contract.
        """
        now = time.time()
        rows = to_rows(index, created=now)
        digest, size = checksum(rows)
        if self.max_bytes is not None and size > self.max_bytes:
            logger.warning(
                'The index of "%s" is not stored: its %d bytes are more than the %d that %s may hold.',
                *(index.skill.name, size, self.max_bytes, self.path),
            )
            return
        if self._database.write(partial(self._replace, rows=rows, used=now, size=size, digest=digest)):
            self._database.shrink()

    def entries(self) -> list[StoreEntry]:
        """Return every entry, most recently used first.

        Raises:
            StoreError: The store cannot be opened or read.
        """
        return self._database.read(tables.entries)

    def remove(self, keys: Sequence[str]) -> int:
        """Delete entries; return how many there were.

        Raises:
            StoreError: The store cannot be opened or written.
        """
        removed = self._database.write(partial(tables.remove, keys=keys))
        self._database.shrink()
        return removed

    def evict(self, max_bytes: int) -> list[str]:
        """Delete the entries that were not used for longest until the database is no larger than `max_bytes`.

        Returns:
            The keys of the deleted entries, least recently used first.

        Raises:
            StoreError: The store cannot be opened or written.
        """
        removed = self._database.write(partial(tables.evict, max_bytes=max_bytes))
        self._database.shrink()
        return removed

    def clear(self) -> None:
        """Delete every entry, and damaged files that were moved aside.

        Raises:
            StoreError: The store cannot be opened or written.
        """
        self._database.write(partial(tables.evict, max_bytes=0))
        self._database.mend()
        self._database.shrink()
        self._database.drop_damaged()

    def verify(self) -> list[DamagedEntry]:
        """Return what is damaged, by reading everything; nothing is changed.

        Entries are mended by removing them. A damaged file is moved aside when a load or save comes
        upon the damage, or by `clear`.

        Raises:
            StoreError: The store cannot be opened or read.
        """
        problems = self._database.check()
        if problems:
            return [DamagedEntry("", str(self.path), problem) for problem in problems]
        damaged = []
        for entry in self.entries():
            stored = self._database.read(partial(tables.select, key=entry.key))
            try:
                if stored is not None:
                    check_rows(stored.rows, stored.checksum)
            except DamagedRowsError as problem:
                damaged.append(DamagedEntry(entry.key, entry.name, str(problem)))
        return damaged

    def close(self) -> None:
        """Close this process's connection; using the store again opens another."""
        self._database.close()

    def _replace(
        self, connection: sqlite3.Connection, *, rows: IndexRows, used: float, size: int, digest: str
    ) -> list[str]:
        """Insert an index; return the keys of those that had to make room."""
        tables.replace(connection, rows=rows, used=used, size=size, digest=digest)
        return [] if self.max_bytes is None else tables.evict(connection, max_bytes=self.max_bytes)

    def _drop_damaged(self, stored: StoredIndex, *, key: str, problem: DamagedRowsError) -> None:
        name = stored.rows.head[HEAD_COLUMNS.index("name")]
        logger.warning(
            'The index of "%s" (%s) in %s is damaged: %s. It is deleted and will be rebuilt.',
            *(name, key, self.path, problem),
        )
        try:
            # When the file itself is damaged, what is rebuilt might be lost in it again.
            if not self._database.mend():
                self._database.write(partial(tables.remove_id, id_=stored.id))
        except StoreError as error:
            logger.warning("The damaged index cannot be deleted: %s", error)

    def _note_use(self, stored: StoredIndex) -> None:
        now = time.time()
        if abs(now - stored.used) < USED_SECONDS:
            return
        try:
            self._database.write(partial(tables.set_used, id_=stored.id, used=now), wait=False)
        except StoreError as error:
            # Only the order of eviction depends on it: not worth waiting for, or failing.
            logger.debug("The use of an index is not noted: %s", error)
