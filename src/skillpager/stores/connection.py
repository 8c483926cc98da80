"""Opening a SQLite file, and what its errors mean to a user."""

import sqlite3
import time
from functools import partial
from pathlib import Path

from skillpager.errors import StoreError
from skillpager.stores.migrations import migrate

# what is kept of the log after a checkpoint; 1000 pages of 4 KiB start one
WAL_BYTES = 4 * 1024 * 1024

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
_OTHER_REASON = "cannot be used: move the file away to begin a fresh one"


def is_damage(error: Exception) -> bool:
    """Return whether `error` says that the file is no sound database of ours."""
    # Messages quote what they stumble over: when that is no text, Python fails to decode the message.
    return isinstance(error, UnicodeDecodeError) or _primary_code(error) in _DAMAGE


def store_error(error: Exception, path: Path) -> StoreError:
    """Return the error to raise for `error`, which the database at `path` gave."""
    reason = _REASONS.get(_primary_code(error), _OTHER_REASON)
    return StoreError(
        f"The index store {path} {reason}, or set SKILLPAGER_CACHE_DIR to another folder (SQLite: {error})."
    )


def _primary_code(error: Exception) -> int:
    # Errors that Python's own binding raises carry no code; no code of SQLite is negative.
    code: int = getattr(error, "sqlite_errorcode", -1)
    return code & 0xFF if code >= 0 else code


def open_connection(path: Path, *, busy_timeout: float) -> sqlite3.Connection:
    """Return a connection with the tables up to date; a read-only one where writing is not allowed."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"The cache folder {path.parent} cannot be made ({error.strerror}: {error.filename}): "
            "set SKILLPAGER_CACHE_DIR to a folder that can be written."
        ) from error
    try:
        return _connect(path.as_uri(), path, busy_timeout=busy_timeout)
    except sqlite3.OperationalError as error:
        if _primary_code(error) not in _NO_ACCESS or not path.is_file() or _has_log(path):
            raise
        # A log needs shared memory beside the file even to be read. Where there is no log, the file
        # alone is the whole database, and nobody who could write to it is at work.
        return _connect(f"{path.as_uri()}?mode=ro&immutable=1", path, busy_timeout=busy_timeout)


def _connect(uri: str, path: Path, *, busy_timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri, uri=True, timeout=busy_timeout, isolation_level=None, check_same_thread=False
    )
    try:
        # A flipped bit may make text undecodable; the checksum is what reports it.
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = NORMAL")
        if connection.execute("PRAGMA page_count").fetchone() == (0,):
            # Lets the file shrink later; a file that is not empty would be written to for nothing.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
        _use_log(connection, deadline=time.monotonic() + busy_timeout)
        migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def _use_log(connection: sqlite3.Connection, *, deadline: float) -> None:
    """Switch to write-ahead logging, which lets readers and a writer work at the same time."""
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # SQLite does not wait by itself when several processes switch a fresh file.
            if _primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_SECONDS)
