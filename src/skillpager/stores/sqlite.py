"""The default store: one SQLite file in the user's cache folder; `docs/design.md` describes it."""

import sqlite3
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from skillpager.errors import StoreError
from skillpager.stores.connection import BUSY_TIMEOUT, Database, Schema
from skillpager.stores.sql import COLUMNS, Row, SqlStore
from skillpager.types import DamagedEntry

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
        "CREATE INDEX indexes_by_digest ON indexes (digest)",
    ),
)


class SqliteStore(SqlStore):
    """Indexes in one SQLite file, for any number of threads and processes at once.

    A folder that can be read but not written still serves loads. Of two indexes that are saved under one key
    the last stays. The least recently used are deleted when all together are over `max_bytes`.

    Args:
        path: Folder of the store; made, for its owner alone, when first needed.
        max_bytes: Bytes that all indexes may take; None for no limit.
        busy_timeout: Seconds to wait for other processes before giving up.

    Attributes:
        path: The database file.
    """

    # If the clock was set back, the time of a use is just after that of the last one of any index, by the
    # least step that a Unix time as a 64-bit float can take, with room to spare.
    _now = "max(clock(), (SELECT ifnull(max(used), 0) + 1e-6 FROM indexes))"
    _conflict = """UPDATE SET name = excluded.name, root = excluded.root, nodes = excluded.nodes,
        size = excluded.size, created = excluded.created, used = excluded.used, checksum = excluded.checksum,
        data = excluded.data"""

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
        self.entries()
        folder = self.path.parent
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise StoreError(str(error)) from error
        return f"{folder} is writable"

    def clear(self) -> None:
        """Delete every entry, and a damaged file that was moved aside."""
        super().clear()
        self._database.check(repair=True)
        self._database.delete_damaged_file()

    def verify(self) -> list[DamagedEntry]:
        """Return what is damaged, by reading everything; nothing is changed.

        A damaged entry can be removed by its key. A damaged file is moved aside by the next load or save that
        meets the damage, or by `clear`.
        """
        if faults := self._database.check(repair=False):
            return [DamagedEntry("", str(self.path), fault) for fault in faults]
        return super().verify()

    def close(self) -> None:
        """Do nothing: the file is open only while it is used."""

    def _read(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        return self._database.read(lambda connection: _execute(connection, statement, values))

    def _write(self, *statements: tuple[str, Sequence[object]], wait: bool = True) -> list[Row]:
        def work(connection: sqlite3.Connection) -> list[Row]:
            return [_execute(connection, *statement) for statement in statements][-1]

        return self._database.write(work, wait=wait)

    def _delete_damaged(self, id_: int) -> None:
        # When the file itself is damaged, a rebuilt index might be lost in it again.
        if not self._database.check(repair=True):
            super()._delete_damaged(id_)


def _execute(connection: sqlite3.Connection, statement: str, values: Sequence[object]) -> list[Row]:
    connection.create_function("clock", 0, lambda: time.time())
    return connection.execute(statement, values).fetchall()
