"""The default store: one SQLite file in the user's cache folder.

`docs/store-format.md` describes the tables. A save is one transaction and a load reads one snapshot, so
no reader sees half an index; every load checks the index's checksum.
"""

import logging
import sqlite3
import tempfile
import time
import weakref
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from skillpager.errors import StoreError
from skillpager.stores.connection import BUSY_TIMEOUT, Database
from skillpager.stores.rows import TABLES, USED_SECONDS, IndexRows, StoredIndex, find_damage, to_rows
from skillpager.types import DamagedEntry, Skill, SkillIndex, StoreEntry

logger = logging.getLogger(__name__)

FILE_NAME = "index.db"
# about 4,000 skills of 100 nodes at 384 dimensions
DEFAULT_MAX_BYTES = 1024**3
# the least step that a Unix time as a 64-bit float can take, with room to spare
_NEXT = 1e-6

# the time of last use; the checksum leaves it out, so damage to it is found by nobody and must do no harm
_USED = "ifnull(CAST(used AS REAL), 0)"
_ENTRIES = "SELECT key, name, root, n_nodes, size, created, used FROM indexes ORDER BY used DESC, id DESC"


class SqliteStore:
    """Indexes in one SQLite file, for any number of threads and processes at once.

    The file is opened when first needed. A folder that can be read but not written still serves loads.
    The least recently used entries are deleted when the file grows over `max_bytes`. Methods raise
    `StoreError` where the file cannot be opened, read or (to save or delete) written.

    Args:
        path: Folder of the store; made, for its owner alone, when first needed.
        max_bytes: Upper limit of the database's size; None for no limit.
        busy_timeout: Seconds to wait for other processes before giving up.

    Attributes:
        path: The database file.
    """

    def __init__(
        self, path: Path, *, max_bytes: int | None = DEFAULT_MAX_BYTES, busy_timeout: float = BUSY_TIMEOUT
    ) -> None:
        self.path = path.absolute() / FILE_NAME
        self.max_bytes = max_bytes
        self._database = Database(self.path, busy_timeout=busy_timeout)
        weakref.finalize(self, self._database.disconnect)

    @property
    def place(self) -> str:
        """The path of the database file."""
        return str(self.path)

    @property
    def size(self) -> int:
        """Bytes on disk, write-ahead log included."""
        return self._database.size

    def exists(self) -> bool:
        """Return False if there is no cache yet: to look for one must not make its folder."""
        nearest = next(place for place in (self.path, *self.path.parents) if place.exists())
        # a file in the place of the folder is an error that the first use reports
        return nearest == self.path or not nearest.is_dir()

    def probe(self) -> str:
        """Return that the folder can be written; it is made if it is missing."""
        self.entries()
        folder = self.path.parent
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise StoreError(str(error)) from error
        return f"{folder} is writable"

    def load(self, key: str, skill: Skill) -> SkillIndex | None:
        """Return the index of `skill` stored under `key`, or None; a damaged one is logged and deleted."""
        stored = self._database.read(partial(_select, key=key))
        if stored is None:
            return None
        index = stored.decode(skill, self.place)
        if index is None:
            try:
                # When the file itself is damaged, a rebuilt index might be lost in it again.
                if not self._database.check(repair=True):
                    # by id: another may have been stored under the key since
                    self._database.write(lambda connection: _delete(connection, "id", [stored.id]))
            except StoreError as error:
                logger.warning("The damaged index cannot be deleted: %s", error)
            return None
        if stored.idle >= USED_SECONDS:

            def note_use(connection: sqlite3.Connection) -> None:
                note = "UPDATE indexes SET used = ? WHERE id = ?"
                connection.execute(note, (_time_of_use(connection, time.time()), stored.id))

            try:
                self._database.write(note_use, wait=False)
            except StoreError as error:
                # Only the order of eviction depends on it: no reason to wait, or to fail.
                logger.debug("The use of an index is not noted: %s", error)
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
        digest, size = rows.checksum()
        max_bytes = self.max_bytes
        if max_bytes is not None and size > max_bytes:
            logger.warning(
                'The index of "%s" is not stored: its %d bytes are more than the %d that %s may hold.',
                *(index.skill.name, size, max_bytes, self.path),
            )
            return

        def replace(connection: sqlite3.Connection) -> list[str]:
            _delete(connection, "key", [index.key])
            head = (*rows.head, _time_of_use(connection, now), size, digest)
            id_ = connection.execute(_insertion("indexes", 1 + len(head)), (None, *head)).lastrowid
            for table, listed in rows.tables.items():
                if listed:
                    own = ((id_, *row) for row in listed)
                    connection.executemany(_insertion(table, 1 + len(listed[0])), own)
            connection.execute(_insertion("embeddings", 2), (id_, rows.embeddings))
            return [] if max_bytes is None else _evict(connection, max_bytes)

        if self._database.write(replace):
            self._database.shrink()

    def entries(self) -> list[StoreEntry]:
        """Return every entry, most recently used first."""
        rows = self._database.read(lambda connection: connection.execute(_ENTRIES).fetchall())
        return [StoreEntry(*row) for row in rows]

    def read(self, statement: str, parameters: Sequence[object] = ()) -> list[Any]:
        """Return the rows of a SELECT over the tables of docs/store-format.md."""
        return self._database.read(lambda connection: connection.execute(statement, parameters).fetchall())

    def remove(self, keys: Sequence[str]) -> int:
        """Delete entries; return how many there were."""
        removed = self._database.write(lambda connection: _delete(connection, "key", keys))
        self._database.shrink()
        return removed

    def evict(self, max_bytes: int) -> list[str]:
        """Delete least recently used entries until `max_bytes` suffice; return their keys in that order."""
        removed = self._database.write(lambda connection: _evict(connection, max_bytes))
        self._database.shrink()
        return removed

    def clear(self) -> None:
        """Delete every entry, and damaged files that were moved aside."""
        self._database.write(lambda connection: _evict(connection, 0))
        self._database.check(repair=True)
        self._database.shrink()
        self._database.delete_damaged_files()

    def verify(self) -> list[DamagedEntry]:
        """Return what is damaged, by reading everything; nothing is changed.

        A damaged entry can be removed by its key. A damaged file is moved aside by the next load or save that
        meets the damage, or by `clear`.
        """
        if faults := self._database.check(repair=False):
            return [DamagedEntry("", str(self.path), fault) for fault in faults]
        return find_damage(self.entries(), lambda key: self._database.read(partial(_select, key=key)))

    def close(self) -> None:
        """Close this process's connection; using the store again opens another."""
        self._database.close()


def _time_of_use(connection: sqlite3.Connection, now: float) -> float:
    """Return `now`, or a time just after the last use of any index if the clock was set back since."""
    return max(now, _newest_use(connection) + _NEXT)


def _newest_use(connection: sqlite3.Connection) -> float:
    return float(connection.execute(f"SELECT max({_USED}) FROM indexes").fetchone()[0] or 0)  # noqa: S608 - a constant


def _select(connection: sqlite3.Connection, *, key: str) -> StoredIndex | None:
    """Return the index under `key`, unchecked."""
    statement = f"SELECT *, {_USED} FROM indexes WHERE key = ?"  # noqa: S608 - a constant
    found = connection.execute(statement, (key,)).fetchone()
    if found is None:
        return None
    id_, *head, _, _, digest, used = found
    tables = {}
    for table in TABLES:
        statement = f"SELECT * FROM {table} WHERE index_id = ? ORDER BY ordinal"  # noqa: S608 - a constant
        tables[table] = [row[1:] for row in connection.execute(statement, (id_,))]
    data = connection.execute("SELECT data FROM embeddings WHERE index_id = ?", (id_,)).fetchone()
    # if the clock was set back since, the newest use of any index is the better clock
    idle = max(time.time(), _newest_use(connection)) - used
    return StoredIndex(id_, idle, digest, IndexRows(tuple(head), tables, data[0] if data else b""))


def _insertion(table: str, columns: int) -> str:
    return f"INSERT INTO {table} VALUES ({', '.join('?' * columns)})"  # noqa: S608 - the table is a constant


def _delete(connection: sqlite3.Connection, column: str, values: Sequence[object]) -> int:
    """Delete the indexes that have one of `values` in `column`; return how many there were."""
    statement = f"DELETE FROM indexes WHERE {column} = ?"  # noqa: S608 - a constant
    return connection.executemany(statement, ((value,) for value in values)).rowcount


def _evict(connection: sqlite3.Connection, max_bytes: int) -> list[str]:
    """Delete indexes until the database fits, least recently used first; return their keys in that order."""

    def bytes_in_use() -> int:
        pages, free, page_size = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * page_size

    removed: list[str] = []
    if bytes_in_use() > max_bytes:
        for id_, key in connection.execute("SELECT id, key FROM indexes ORDER BY used, id").fetchall():
            _delete(connection, "id", [id_])
            removed.append(key)
            if bytes_in_use() <= max_bytes:
                break
    return removed
