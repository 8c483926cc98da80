"""One SQLite file for many threads and processes: opening, tables, transactions, damage, errors.

The kind of failure decides what happens to the file. A damaged file is moved aside and a fresh one started,
because its content can be computed again. A lock, a missing permission or a full disk is a `StoreError` and
leaves the file alone.
"""

import logging
import os
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from skillpager.errors import StoreError

logger = logging.getLogger(__name__)

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

# "SkPg" in ASCII: distinguishes our files from other programs' SQLite files.
APPLICATION_ID = 0x536B5067
# Raise it with every change of STATEMENTS; files of older versions are then emptied.
VERSION = 1
BUSY_TIMEOUT = 30.0
# size of the log after a checkpoint; 1000 pages of 4 KiB start one
WAL_BYTES = 4 * 1024 * 1024

_OWNER = "REFERENCES indexes (id) ON DELETE CASCADE"
_ROW = f"index_id INTEGER NOT NULL {_OWNER}, ordinal INTEGER NOT NULL"
_SPAN = (
    "file INTEGER NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, "
    "start_char INTEGER NOT NULL, end_char INTEGER NOT NULL"
)
_BY_ORDINAL = "PRIMARY KEY (index_id, ordinal)) WITHOUT ROWID"
# AUTOINCREMENT never uses an id twice: deleting by id cannot hit a newer index of the same key.
STATEMENTS = (
    """CREATE TABLE indexes (
        id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL, root TEXT NOT NULL, splitter TEXT NOT NULL, classifier TEXT NOT NULL,
        encoder TEXT NOT NULL, embedded_text TEXT NOT NULL, token_counter TEXT NOT NULL,
        format INTEGER NOT NULL, dim INTEGER NOT NULL, n_nodes INTEGER NOT NULL, full_tokens INTEGER NOT NULL,
        created REAL NOT NULL, used REAL NOT NULL, size INTEGER NOT NULL, checksum TEXT NOT NULL
    )""",
    "CREATE INDEX indexes_by_used ON indexes (used)",
    f"CREATE TABLE files ({_ROW}, path TEXT NOT NULL, digest TEXT NOT NULL, {_BY_ORDINAL}",
    f"CREATE TABLE headings ({_ROW}, level INTEGER NOT NULL, title TEXT NOT NULL, {_SPAN}, {_BY_ORDINAL}",
    f"""CREATE TABLE nodes (
        {_ROW}, id TEXT NOT NULL, type TEXT NOT NULL, type_confidence REAL NOT NULL, tokens INTEGER NOT NULL,
        kind TEXT NOT NULL, {_SPAN}, heading_path TEXT NOT NULL, list_position INTEGER, list_size INTEGER,
        lead_in_start_line INTEGER, lead_in_end_line INTEGER, lead_in_start_char INTEGER,
        lead_in_end_char INTEGER, {_BY_ORDINAL}""",
    f"""CREATE TABLE edges (
        {_ROW}, source INTEGER NOT NULL, target INTEGER NOT NULL, kind TEXT NOT NULL, weight REAL NOT NULL,
        {_BY_ORDINAL}""",
    f"CREATE TABLE embeddings (index_id INTEGER PRIMARY KEY {_OWNER}, data BLOB NOT NULL)",
)


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of a file.

    Attributes:
        what: What the file is, in messages.
        application_id: Distinguishes our files of this kind from all others.
        version: Version of the tables; files of older versions are emptied.
        statements: Make the tables.
    """

    what: str
    application_id: int
    version: int
    statements: tuple[str, ...]


SCHEMA = Schema("index store", APPLICATION_ID, VERSION, STATEMENTS)

_RETRY_SECONDS = 0.01
# The last three: our statements fit the tables that we made, so these are not those tables any more.
_DAMAGE = (
    *(sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB),
    *(sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH),
)
_NO_ACCESS = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN)
_REASONS = {
    sqlite3.SQLITE_BUSY: "is locked by another process: wait for it or end it",
    sqlite3.SQLITE_LOCKED: "is locked by another process: wait for it or end it",
    sqlite3.SQLITE_READONLY: "is read-only: allow writing to the file and its folder",
    sqlite3.SQLITE_PERM: "is not accessible: allow reading and writing the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: allow reading and writing the file and its folder",
    sqlite3.SQLITE_FULL: "does not fit on the disk: free some space",
    sqlite3.SQLITE_IOERR: "cannot be read or written, the disk may be full or failing: check it",
    sqlite3.SQLITE_TOOBIG: "cannot hold so large an index: use an encoder with shorter rows",
}
_OTHER_REASON = "cannot be used: move the file away to start a fresh one"


class Database:
    """A database file that is opened when first used, and again after `close` or a fork.

    Every method raises `StoreError` for a file that cannot be opened, read or (to write) written.
    """

    def __init__(self, path: Path, *, busy_timeout: float = BUSY_TIMEOUT, schema: Schema = SCHEMA) -> None:
        self.path = path
        self._schema = schema
        self._busy_timeout = busy_timeout
        self._connection: sqlite3.Connection | None = None
        self._opened: os.stat_result | None = None
        with _turn:
            _databases.add(self)

    def read(self, work: Work[T]) -> T:
        """Return the result of `work`, run on one snapshot of the database."""
        return self._run(work, begin="BEGIN")

    def write(self, work: Work[T], *, wait: bool = True) -> T:
        """Return the result of `work`, run as the only writer; all of it is stored, or nothing.

        `work` may be run twice. Without `wait` a lock of another writer is an error at once.
        """
        return self._run(work, begin="BEGIN IMMEDIATE", wait=wait)

    def check(self, *, repair: bool) -> list[str]:
        """Return the faults in the structure of the file; `repair` moves a faulty file aside."""
        with _turn:
            try:
                faults = self._run(self._faults, begin="BEGIN", repair=False)
            except StoreError as error:
                if not _is_damage(error.__cause__):
                    raise
                faults = [str(error.__cause__)]
            if faults and repair:
                self._move_aside("; ".join(faults))
            return faults

    def shrink(self) -> None:
        """Return unused pages and the log to the disk; put off when other processes are at work."""
        # Each step of the first statement frees one page, and only a script takes all of its steps.
        script = "PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)"
        try:
            # which ends the empty transaction first
            self._run(lambda connection: connection.executescript(script), begin="BEGIN", wait=False)
        except StoreError as error:
            logger.debug("Unused pages stay in the file for now: %s", error)

    @property
    def size(self) -> int:
        """Bytes on disk, log included."""
        return sum(found.st_size for path in _siblings(self.path) if (found := _status(path)))

    def delete_damaged_files(self) -> None:
        """Delete the damaged file that was moved aside, and those that earlier releases numbered."""
        for path in self.path.parent.glob(f"{self.path.name}.damaged*"):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        with _turn:
            self.disconnect()

    def disconnect(self) -> None:
        """Close the connection while no other thread can be using it."""
        # If the file at the path was replaced, SQLite notices and does not touch the log of the new file.
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _run(self, work: Work[T], *, begin: str, wait: bool = True, repair: bool = True) -> T:
        timeout = round(self._busy_timeout * 1000) if wait else 0
        with _turn:
            while True:
                try:
                    connection = self._connect()
                    connection.execute(f"PRAGMA busy_timeout = {timeout}")
                    connection.execute(begin)
                    with connection:  # commits, or undoes everything on an error
                        return work(connection)
                except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                    if not (repair and _is_damage(error)):
                        reason = _REASONS.get(_primary_code(error), _OTHER_REASON)
                        raise StoreError(
                            f"The {self._schema.what} {self.path} {reason}, or set SKILLPAGER_CACHE_DIR to "
                            f"another folder (SQLite: {error})."
                        ) from error
                    self._move_aside(str(error))
                except OSError as error:  # such as a folder that may not be entered
                    raise StoreError(
                        f"The {self._schema.what} {self.path} cannot be used ({error.strerror or error}): "
                        "allow reading and writing the file and its folder, or set SKILLPAGER_CACHE_DIR to "
                        "another folder."
                    ) from error
                repair = False

    def _connect(self) -> sqlite3.Connection:
        """Return the connection to the file that is at the path now."""
        if self._connection is None or self._is_replaced():
            self.disconnect()
            self._opened = _status(self.path)
            self._connection = _open(self.path, self._schema, busy_timeout=self._busy_timeout)
            self._opened = self._opened or _status(self.path)
        return self._connection

    def _is_replaced(self) -> bool:
        """Return True if another file, or none, is at the path of the file that was opened."""
        found = _status(self.path)
        return not (found and self._opened and os.path.samestat(found, self._opened))

    def _faults(self, connection: sqlite3.Connection) -> list[str]:
        found = connection.execute("PRAGMA integrity_check(10)").fetchall()
        faults = [str(fault) for (fault,) in found if fault != "ok"]
        with closing(sqlite3.connect(":memory:")) as fresh:
            for statement in self._schema.statements:
                fresh.execute(statement)
            if _declarations(connection) != _declarations(fresh):
                faults.append("the declarations of the tables were changed")
        return faults

    def _move_aside(self, fault: str) -> None:
        """Move the damaged file away, unless another process has done so already."""
        replaced = self._is_replaced()
        self.disconnect()
        if replaced:
            return
        # the one of an earlier time goes: a failing disk must not fill itself with copies
        target = self.path.with_name(f"{self.path.name}.damaged")
        try:
            for source, renamed in zip(_siblings(self.path), _siblings(target), strict=True):
                renamed.unlink(missing_ok=True)
                if source.exists():
                    source.rename(renamed)
        except OSError as error:
            raise StoreError(
                f"The {self._schema.what} {self.path} is damaged ({fault}) and cannot be moved aside "
                f"({error.strerror}): delete it, or set SKILLPAGER_CACHE_DIR to another folder."
            ) from error
        logger.warning(
            "The %s %s is damaged (%s): moved to %s; a fresh file replaces it, and what it held is made "
            "again when it is needed.",
            *(self._schema.what, self.path, fault, target),
        )


# Threads take turns: most of a load is Python code, which they could not run together anyway.
# Reentrant because `check` runs a transaction and then repairs.
_turn = threading.RLock()
_databases: weakref.WeakSet[Database] = weakref.WeakSet()


def _before_fork() -> None:
    # SQLite keeps in memory what its process has locked, and a forked child would take those locks for its
    # own. So every database is closed before a fork, while no thread is using it; both sides open it again.
    _turn.acquire()
    for database in _databases:
        database.disconnect()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_turn.release, after_in_child=_turn.release)


def _open(path: Path, schema: Schema, *, busy_timeout: float) -> sqlite3.Connection:
    """Return a connection to a file with our tables; a read-only one where writing is not allowed."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"The cache folder {path.parent} cannot be made ({error.strerror}: {error.filename}): "
            "set SKILLPAGER_CACHE_DIR to a folder that can be written."
        ) from error
    try:
        return _open_uri(path.as_uri(), path, schema, busy_timeout=busy_timeout)
    except sqlite3.OperationalError as error:
        log = path.with_name(f"{path.name}-wal")
        has_log = log.exists() and log.stat().st_size > 0
        if _primary_code(error) not in _NO_ACCESS or not path.is_file() or has_log:
            raise
        # A log needs shared memory beside the file even to be read. Where there is no log, the file
        # alone is the whole database, and no process that may write to it has it open.
        return _open_uri(f"{path.as_uri()}?mode=ro&immutable=1", path, schema, busy_timeout=busy_timeout)


def _open_uri(uri: str, path: Path, schema: Schema, *, busy_timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri, uri=True, timeout=busy_timeout, isolation_level=None, check_same_thread=False
    )
    try:
        # A flipped bit may make text undecodable; the checksum is what reports it.
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        connection.execute("PRAGMA synchronous = NORMAL")
        if connection.execute("PRAGMA page_count").fetchone() == (0,):
            # Lets the file shrink later; a file that is not empty would be written to for nothing.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
        deadline = time.monotonic() + busy_timeout
        while True:
            try:
                # Write-ahead logging lets readers and a writer work at the same time.
                connection.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                # SQLite does not wait by itself when several processes switch a fresh file.
                if _primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(_RETRY_SECONDS)
        _make_tables(connection, path, schema)
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _make_tables(connection: sqlite3.Connection, path: Path, schema: Schema) -> None:
    """Make the tables of an empty file; those of an older version are replaced."""
    connection.execute("BEGIN")
    with connection:
        if _version(connection, path, schema) == schema.version:
            return
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        if _version(connection, path, schema) == schema.version:  # another process was first
            return
        tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        for (table,) in connection.execute(tables).fetchall():
            connection.execute(f'DROP TABLE "{table}"')
        for statement in schema.statements:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {schema.application_id}")
        connection.execute(f"PRAGMA user_version = {schema.version}")


def _version(connection: sqlite3.Connection, path: Path, schema: Schema) -> int:
    """Return the version of the tables, 0 for an empty file; refuse files that must be left alone."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    if owner != schema.application_id and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise StoreError(
            f"{path} is a SQLite database of another program, so no index can be stored in it: "
            "move that file, or set SKILLPAGER_CACHE_DIR to another folder."
        )
    if version > schema.version:
        raise StoreError(
            f"{path} was written by a newer SkillPager (version {version} of the tables, this one knows "
            f"{schema.version}): upgrade SkillPager, or set SKILLPAGER_CACHE_DIR to another folder."
        )
    return version


def _declarations(connection: sqlite3.Connection) -> list[list[str]]:
    # without white space, because releases differ in where they break the lines of a declaration
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")
    return [[re.sub(r"\s", "", str(value)) for value in row] for row in rows]


def _is_damage(error: BaseException | None) -> bool:
    """Return True if `error` means that the file is not an intact database of ours."""
    # Messages quote the damaged bytes: if those are not text, Python fails to decode the message.
    return isinstance(error, UnicodeDecodeError) or _primary_code(error) in _DAMAGE


def _primary_code(error: object) -> int:
    # Errors that Python's own binding raises carry no code; no code of SQLite is negative.
    code: int = getattr(error, "sqlite_errorcode", -1)
    return code & 0xFF if code >= 0 else code


def _siblings(path: Path) -> list[Path]:
    return [path.with_name(path.name + side) for side in ("", "-wal", "-shm")]


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
