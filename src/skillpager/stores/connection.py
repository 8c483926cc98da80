"""One SQLite file for many threads and processes: tables, transactions, damage, errors.

Each piece of work opens the file and closes it: nothing is held between two, so a file may be replaced, and
a process may fork, at any time. The kind of failure decides what happens to the file. A damaged file is moved
aside and a fresh one started, because its content can be computed again. A lock, a missing permission or a
full disk is a `StoreError` and leaves the file alone.
"""

import logging
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from skillpager.errors import StoreError
from skillpager.files import make_private_folder

logger = logging.getLogger(__name__)

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

BUSY_TIMEOUT = 30.0

# The last three: our statements fit the tables that we made, so these are not those tables any more.
_DAMAGE = (
    *(sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB),
    *(sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH),
)
_LOCKED = "is locked by another process: wait for it or end it"
_REASONS = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_READONLY: "is read-only: allow writing to the file and its folder",
    sqlite3.SQLITE_PERM: "is not accessible: allow reading and writing the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: allow reading and writing the file and its folder",
    sqlite3.SQLITE_FULL: "does not fit on the disk: free some space",
    sqlite3.SQLITE_IOERR: "cannot be read or written, the disk may be full or failing: check it",
    sqlite3.SQLITE_TOOBIG: "cannot hold so large an index: use an encoder with shorter rows",
}
_OTHER_REASON = "cannot be used: move the file away to start a fresh one"
# a fork waits until no thread is at work: SQLite keeps in memory what its process has locked, and a forked
# child would take those locks for its own; reentrant because `check` runs a transaction and then repairs
_turn = threading.RLock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_turn.acquire, after_in_parent=_turn.release, after_in_child=_turn.release)


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


class Database:
    """A database file that is opened for each piece of work.

    Every method raises `StoreError` for a file that cannot be opened, read or (to write) written.
    """

    def __init__(self, path: Path, *, schema: Schema, busy_timeout: float = BUSY_TIMEOUT) -> None:
        self.path = path
        self._schema = schema
        self._busy_timeout = busy_timeout

    def read(self, work: Work[T]) -> T:
        """Return the result of `work`, run on one snapshot of the database."""
        return self._run(work, begin="BEGIN")

    def write(self, work: Work[T], *, wait: bool = True) -> T:
        """Return the result of `work`, run as the only writer; all of it is stored, or nothing.

        `work` may be run twice. Without `wait` a lock of another process is an error at once.
        """
        return self._run(work, begin="BEGIN IMMEDIATE", wait=wait)

    def check(self, *, repair: bool) -> list[str]:
        """Return the faults in the structure of the file; `repair` moves a faulty file aside."""

        def find(connection: sqlite3.Connection) -> list[str]:
            found = connection.execute("PRAGMA integrity_check(10)").fetchall()
            return [str(fault) for (fault,) in found if fault != "ok"]

        with _turn:
            opened = _status(self.path)
            try:
                faults = self._run(find, begin="BEGIN", repair=False)
            except StoreError as error:
                if not _is_damage(error.__cause__):
                    raise
                faults = [str(error.__cause__)]
            if faults and repair:
                self._move_aside("; ".join(faults), opened)
            return faults

    @property
    def size(self) -> int:
        """Bytes on disk."""
        found = _status(self.path)
        return found.st_size if found else 0

    def delete_damaged_file(self) -> None:
        """Delete the damaged file that was moved aside, if there is one."""
        _aside(self.path).unlink(missing_ok=True)

    def _run(self, work: Work[T], *, begin: str, wait: bool = True, repair: bool = True) -> T:
        with _turn:
            while True:
                opened = _status(self.path)
                try:
                    with closing(self._open(self._busy_timeout if wait else 0)) as connection:
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
                    self._move_aside(str(error), opened)
                except OSError as error:  # such as a folder that may not be entered
                    raise StoreError(
                        f"The {self._schema.what} {self.path} cannot be used ({error.strerror or error}): "
                        "allow reading and writing the file and its folder, or set SKILLPAGER_CACHE_DIR to "
                        "another folder."
                    ) from error
                repair = False

    def _open(self, timeout: float) -> sqlite3.Connection:
        """Return a connection to a file with our tables."""
        folder = self.path.parent
        try:
            make_private_folder(folder)
        except OSError as error:
            raise StoreError(
                f"The cache folder {folder} cannot be made ({error.strerror}: {error.filename}): "
                "set SKILLPAGER_CACHE_DIR to a folder that can be written."
            ) from error
        connection = sqlite3.connect(self.path, timeout=timeout, isolation_level=None)
        try:
            # A flipped bit may make text undecodable; the checksum is what reports it.
            connection.text_factory = partial(str, encoding="utf-8", errors="replace")
            # A flush takes longer than the rest of a save. Without it a power failure, not a kill, may damage
            # the file: that is noticed, and everything in it can be computed again.
            connection.execute("PRAGMA synchronous = OFF")
            if self._version(connection) != self._schema.version:
                self._make_tables(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        """Make the tables of an empty file; those of an older version are replaced."""
        connection.execute("PRAGMA auto_vacuum = FULL")  # the file shrinks when indexes are deleted
        connection.execute("PRAGMA journal_mode = DELETE")  # older versions had another
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            if self._version(connection) == self._schema.version:  # another process was first
                return
            tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            for (table,) in connection.execute(tables).fetchall():
                connection.execute(f'DROP TABLE "{table}"')
            for statement in self._schema.statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {self._schema.application_id}")
            connection.execute(f"PRAGMA user_version = {self._schema.version}")

    def _version(self, connection: sqlite3.Connection) -> int:
        """Return the version of the tables, 0 for an empty file; refuse files that must be left alone."""
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        ours = owner == self._schema.application_id
        if not ours and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise StoreError(
                f"{self.path} is a SQLite database of another program, so no index can be stored in it: "
                "move that file, or set SKILLPAGER_CACHE_DIR to another folder."
            )
        if version > self._schema.version:
            raise StoreError(
                f"{self.path} was written by a newer SkillPager (version {version} of the tables, this one "
                f"knows {self._schema.version}): upgrade SkillPager, or set SKILLPAGER_CACHE_DIR to another "
                "folder."
            )
        return version

    def _move_aside(self, fault: str, opened: os.stat_result | None) -> None:
        """Move the damaged file away, unless another process has done so since it was opened."""
        found = _status(self.path)
        if not (found and opened and os.path.samestat(found, opened)):
            return
        # the one of an earlier time goes: a failing disk must not fill itself with copies
        target = _aside(self.path)
        try:
            self.path.replace(target)
            for side in ("-journal", "-wal", "-shm"):
                self.path.with_name(self.path.name + side).unlink(missing_ok=True)
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


def _is_damage(error: BaseException | None) -> bool:
    """Return True if `error` means that the file is not an intact database of ours."""
    # Messages quote the damaged bytes: if those are not text, Python fails to decode the message.
    return isinstance(error, UnicodeDecodeError) or _primary_code(error) in _DAMAGE


def _primary_code(error: object) -> int:
    # Errors that Python's own binding raises carry no code; no code of SQLite is negative.
    code: int = getattr(error, "sqlite_errorcode", -1)
    return code & 0xFF if code >= 0 else code


def _aside(path: Path) -> Path:
    return path.with_name(f"{path.name}.damaged")


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
