"""The default store: one SQLite file in the user's cache folder; `docs/design.md` describes it."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from skillpager.stores.connection import BUSY_TIMEOUT, Database, Schema
from skillpager.stores.sql import COLUMNS, DamagedEntry, Row, SqlStore

FILE_NAME = "index.db"
# about 5,000 skills of 100 nodes at 384 dimensions
DEFAULT_MAX_BYTES = 1024**3
SCHEMA = Schema(
    "index store",
    0x536B5067,  # "SkPg" in ASCII: distinguishes our files from other programs' SQLite files
    2,  # raise it with every change of the tables; files of older versions are then emptied
    (
        # AUTOINCREMENT never uses an id twice: deleting by id cannot hit a newer index of the same key
        f"CREATE TABLE indexes (id INTEGER PRIMARY KEY AUTOINCREMENT, {COLUMNS}, data BLOB NOT NULL)",
        "CREATE INDEX indexes_by_used ON indexes (used)",
    ),
)


class SqliteStore(SqlStore):
    """Indexes in one SQLite file, for any number of threads and processes at once.

    A folder that can be read but not written still serves loads. The least recently used are deleted when all
    together are over `max_bytes`.

    Args:
        path: Folder of the store; made, for its owner alone, when first needed.
        max_bytes: Bytes that all indexes may take; None for no limit.
        busy_timeout: Seconds to wait for other processes before giving up.

    Attributes:
        path: The database file.
    """

    def __init__(
        self, path: Path, *, max_bytes: int | None = DEFAULT_MAX_BYTES, busy_timeout: float = BUSY_TIMEOUT
    ) -> None:
        self.path = path.absolute() / FILE_NAME
        self.max_bytes = max_bytes
        self._database = Database(self.path, schema=SCHEMA, busy_timeout=busy_timeout)

    @property
    def place(self) -> str:
        """The path of the database file."""
        return str(self.path)

    def exists(self) -> bool:
        """Return False if there is no cache yet: to look for one must not make its folder."""
        nearest = next(place for place in (self.path, *self.path.parents) if place.exists())
        # a file in the place of the folder is an error that the first use reports
        return nearest == self.path or not nearest.is_dir()

    def probe(self) -> str:
        """Return that the folder can be written; it is made if it is missing."""
        self._write((f"PRAGMA user_version = {SCHEMA.version}", ()))
        return f"{self.path.parent} is writable"

    def verify(self) -> list[DamagedEntry]:
        """Return what is damaged, by reading everything; nothing is changed.

        A damaged file is deleted when a load, a save or `clear` meets the damage.
        """
        if faults := self._database.faults():
            return [DamagedEntry("", str(self.path), fault) for fault in faults]
        return super().verify()

    def close(self) -> None:
        """Do nothing: the file is open only while it is used."""

    def _read(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        return self._database.read(lambda connection: connection.execute(statement, values).fetchall())

    def _write(self, *statements: tuple[str, Sequence[object]], wait: bool = True) -> list[Row]:
        def work(connection: sqlite3.Connection) -> list[Row]:
            return [row for statement in statements for row in connection.execute(*statement)]

        return self._database.write(work, wait=wait)
