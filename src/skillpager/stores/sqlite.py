"""The default store: one SQLite file for many threads and processes; `docs/design.md` describes it.

Each piece of work opens the file and closes it. A damaged file is deleted, because what it held can be
computed again. A lock, a missing permission or a full disk is a `StoreError`, and the file stays as it is.
"""

import logging
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from skillpager.errors import StoreError
from skillpager.files import make_private_folder
from skillpager.stores.sql import BUSY_TIMEOUT, COLUMNS, DamagedEntry, Row, SqlStore

logger = logging.getLogger(__name__)

FILE_NAME = "index.db"
# distinguishes our files from other programs' SQLite files: "SkPg" in ASCII
APPLICATION_ID = 0x536B5067
# raise it with every change of the tables; files of older versions are then emptied
VERSION = 3
# AUTOINCREMENT never uses an id twice: deleting by id cannot hit a newer index of the same key
TABLE = f"CREATE TABLE indexes (id INTEGER PRIMARY KEY AUTOINCREMENT, {COLUMNS}, data BLOB NOT NULL)"
# about 5,000 skills of 100 nodes at 384 dimensions
DEFAULT_MAX_BYTES = 1024**3

# The last three: our statements fit the tables that we made, so these are not those tables any more.
_DAMAGE = (
    *(sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB),
    *(sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH),
)
_REASONS = {
    sqlite3.SQLITE_BUSY: "is locked by another process: wait for it or end it",
    sqlite3.SQLITE_READONLY: "is read-only: allow writing to the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: allow reading and writing the file and its folder",
    sqlite3.SQLITE_FULL: "does not fit on the disk: free some space",
    sqlite3.SQLITE_IOERR: "cannot be read or written, the disk may be full or failing: check it",
}
_OTHER_REASON = "cannot be used: move the file away to start a fresh one"
_REMEDY = "set SKILLPAGER_CACHE_DIR to another folder"


class SqliteStore(SqlStore):
    """Indexes in one SQLite file in a folder, for any number of threads and processes at once.

    The folder is made, for its owner alone, when first needed; one that can be read but not written still
    serves loads. The oldest are deleted when all together are over `max_bytes`. Others' locks are waited for
    `busy_timeout` seconds.
    """

    def __init__(
        self, path: Path, *, max_bytes: int | None = DEFAULT_MAX_BYTES, busy_timeout: float = BUSY_TIMEOUT
    ) -> None:
        self.path = path.absolute() / FILE_NAME
        self.max_bytes = max_bytes
        self._busy_timeout = busy_timeout

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
        self._write((f"PRAGMA user_version = {VERSION}", ()))
        return f"{self.path.parent} is writable"

    def verify(self) -> list[DamagedEntry]:
        """Return what is damaged, by reading everything; nothing is changed.

        A damaged file is deleted when a load, a save or `clear` meets the damage.
        """
        try:
            rows = self._run("BEGIN", ("PRAGMA integrity_check(10)", ()), repair=False)
            faults = [str(fault) for (fault,) in rows if fault != "ok"]
        except StoreError as error:
            if not _is_damage(error.__cause__):
                raise
            faults = [str(error.__cause__)]
        return [DamagedEntry("", self.place, fault) for fault in faults] or super().verify()

    def close(self) -> None:
        """Do nothing: the file is open only while it is used."""

    def _read(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        return self._run("BEGIN", (statement, values))

    def _write(self, *statements: tuple[str, Sequence[object]]) -> list[Row]:
        return self._run("BEGIN IMMEDIATE", *statements)

    def _run(self, begin: str, *statements: tuple[str, Sequence[object]], repair: bool = True) -> list[Row]:
        """Return the rows of statements in one transaction; a damaged file is begun afresh first."""
        opened = _status(self.path)
        try:
            with closing(self._open()) as connection:
                connection.execute(begin)
                with connection:  # commits, or undoes everything on an error
                    return [row for statement in statements for row in connection.execute(*statement)]
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not (repair and _is_damage(error)):
                reason = _REASONS.get(_primary_code(error), _OTHER_REASON)
                raise StoreError(
                    f"The index store {self.path} {reason}, or {_REMEDY} (SQLite: {error})."
                ) from error
            self._discard(str(error), opened)
        return self._run(begin, *statements, repair=False)

    def _open(self) -> sqlite3.Connection:
        """Return a connection to a file with our table."""
        folder = self.path.parent
        try:
            make_private_folder(folder)
        except OSError as error:
            raise StoreError(
                f"The cache folder {folder} cannot be made ({error.strerror}: {error.filename}): "
                "set SKILLPAGER_CACHE_DIR to a folder that can be written."
            ) from error
        connection = sqlite3.connect(self.path, timeout=self._busy_timeout, isolation_level=None)
        try:
            # A flipped bit may make text undecodable; the checksum is what reports it.
            connection.text_factory = partial(str, encoding="utf-8", errors="replace")
            # A flush takes longer than the rest of a save. Without it a power failure, not a kill, may damage
            # the file: that is noticed.
            connection.execute("PRAGMA synchronous = OFF")
            if not self._has_table(connection):
                self._make_table(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _has_table(self, connection: sqlite3.Connection) -> bool:
        """Return False for a file that is empty or of an older version; refuse one that is not ours."""
        # one statement, one snapshot: another process may make the table now
        owner, version, tables = connection.execute(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
            "FROM pragma_application_id, pragma_user_version"
        ).fetchone()
        is_ours = owner == APPLICATION_ID
        if version > VERSION or (tables and not is_ours):
            raise StoreError(
                f"{self.path} is a database of another program or of a newer SkillPager (version {version}; "
                f"this one knows {VERSION}): move that file, or {_REMEDY}."
            )
        return bool(is_ours and version == VERSION)

    def _make_table(self, connection: sqlite3.Connection) -> None:
        """Make the table, in place of those of an older version."""
        connection.execute("PRAGMA auto_vacuum = FULL")  # the file shrinks when indexes are deleted
        connection.execute("PRAGMA journal_mode = DELETE")  # older versions had another
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            if self._has_table(connection):  # another process was first
                return
            tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            for (table,) in connection.execute(tables).fetchall():
                connection.execute(f'DROP TABLE "{table}"')
            connection.execute(TABLE)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")

    def _discard(self, fault: str, opened: os.stat_result | None) -> None:
        """Delete the damaged file, unless another process has done so since it was opened."""
        found = _status(self.path)
        if not (found and opened and os.path.samestat(found, opened)):
            return
        try:
            for side in ("", "-journal", "-wal", "-shm"):
                self.path.with_name(self.path.name + side).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(
                f"The index store {self.path} is damaged ({fault}) and cannot be deleted "
                f"({error.strerror}): delete it, or {_REMEDY}."
            ) from error
        logger.warning(
            "The index store %s is damaged (%s): it is deleted, and what it held is made again when it is "
            "needed.",
            *(self.path, fault),
        )


def _is_damage(error: BaseException | None) -> bool:
    """Return True if `error` means that the file is not an intact database of ours."""
    # Messages quote the damaged bytes: if those are not text, Python fails to decode the message.
    return isinstance(error, UnicodeDecodeError) or _primary_code(error) in _DAMAGE


def _primary_code(error: object) -> int:
    # Errors that Python's own binding raises carry no code; no code of SQLite is negative.
    code: int = getattr(error, "sqlite_errorcode", -1)
    return code & 0xFF if code >= 0 else code


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
