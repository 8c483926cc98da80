"""One SQLite file for many threads and processes: opening, transactions, damage, errors.

What is wrong with the file decides what happens: a damaged file is moved aside and a fresh one
begun, for what it held can be made again; a lock, missing permission or full disk is a `StoreError`
and leaves the file alone.
"""

import logging
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TypeVar

from skillpager.errors import StoreError
from skillpager.stores.connection import is_damage, open_connection, store_error
from skillpager.stores.migrations import check_tables
from skillpager.stores.transaction import transaction

logger = logging.getLogger(__name__)

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

BUSY_TIMEOUT = 30.0
DAMAGED_KEPT = 3

_SIDES = ("", "-wal", "-shm")


class Database:
    """A database file that is opened when first used, and again after `close` or a fork."""

    def __init__(self, path: Path, *, busy_timeout: float = BUSY_TIMEOUT) -> None:
        self.path = path
        self._busy_timeout = busy_timeout
        # Threads take turns: most of a load is Python code, which they could not run together anyway.
        # Reentrant because `mend` checks first, and a garbage collection may close a store at any moment.
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        with _registry:
            _databases.add(self)

    def read(self, work: Work[T]) -> T:
        """Return the result of `work`, run on one snapshot of the database.

        Raises:
            StoreError: The file cannot be opened or read.
        """
        return self._run(work, begin="BEGIN")

    def write(self, work: Work[T], *, wait: bool = True) -> T:
        """Return the result of `work`, run as the only writer; all of it is kept, or nothing.

        Args:
            work: What to do; it may be run twice.
            wait: Whether to wait for other writers.

        Raises:
            StoreError: The file is locked, read-only or cannot be written, or the disk is full.
        """
        return self._run(work, begin="BEGIN IMMEDIATE", wait=wait)

    def check(self) -> list[str]:
        """Return what SQLite finds wrong with the structure of the file; it is not moved aside.

        Raises:
            StoreError: The file cannot be opened or read.
        """
        try:
            return self._run(_problems, begin="BEGIN", mend=False)
        except StoreError as error:
            if isinstance(error.__cause__, Exception) and is_damage(error.__cause__):
                return [str(error.__cause__)]
            raise

    def mend(self) -> bool:
        """Begin afresh when SQLite finds something wrong with the file; return whether it did.

        Raises:
            StoreError: The file cannot be opened, read or moved aside.
        """
        with self._lock:
            problems = self.check()
            if problems:
                self._set_aside("; ".join(problems))
            return bool(problems)

    def shrink(self) -> None:
        """Give unused pages and the log back to the disk; put off when other processes are at work."""
        try:
            self._run(_shrink, begin=None, wait=False)
        except StoreError as error:
            logger.debug("Unused pages stay in the file for now: %s", error)

    @property
    def size(self) -> int:
        """Bytes on disk, log included."""
        return sum(_file_size(path) for path in _siblings(self.path))

    def drop_damaged(self) -> None:
        """Delete the damaged files that were moved aside."""
        for paths in _damaged(self.path).values():
            _unlink(paths)

    def close(self, *, wait: bool = True) -> None:
        """Close the connection; the next use opens another.

        Args:
            wait: Whether to wait for threads that are using it, rather than leave it open.
        """
        if self._lock.acquire(blocking=wait):
            try:
                self._disconnect()
            finally:
                self._lock.release()

    def _run(self, work: Work[T], *, begin: str | None, wait: bool = True, mend: bool = True) -> T:
        with self._lock:
            while True:
                try:
                    return self._transact(work, begin=begin, wait=wait)
                except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                    if not (mend and is_damage(error)):
                        raise store_error(error, self.path) from error
                    self._set_aside(str(error))
                mend = False

    def _transact(self, work: Work[T], *, begin: str | None, wait: bool) -> T:
        connection = self._connect()
        if not wait:
            connection.execute("PRAGMA busy_timeout = 0")
        try:
            with transaction(connection, begin) if begin else nullcontext():
                return work(connection)
        finally:
            if not wait:
                connection.execute(f"PRAGMA busy_timeout = {round(self._busy_timeout * 1000)}")

    def _connect(self) -> sqlite3.Connection:
        """Return the connection to the file that is at the path now."""
        if self._connection is not None:
            if self._identity == _identity(self.path):
                return self._connection
            self._disconnect()
        self._identity = _identity(self.path)
        self._connection = open_connection(self.path, busy_timeout=self._busy_timeout)
        self._identity = self._identity or _identity(self.path)
        return self._connection

    def _disconnect(self) -> None:
        # When the file is no longer at the path, SQLite notices, and leaves the log of its successor alone.
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _set_aside(self, problem: str) -> None:
        """Move the damaged file away, unless another process has done so already."""
        replaced = self._identity != _identity(self.path)
        self._disconnect()
        if replaced:
            return
        number = max(_damaged(self.path), default=0) + 1
        damaged = self.path.with_name(f"{self.path.name}.damaged-{number}")
        try:
            for source, target in zip(_siblings(self.path), _siblings(damaged), strict=True):
                if source.exists():
                    source.rename(target)
        except OSError as failure:
            raise StoreError(
                f"The index store {self.path} is damaged ({problem}) and cannot be moved aside "
                f"({failure.strerror}): delete it, or set SKILLPAGER_CACHE_DIR to another folder."
            ) from failure
        logger.warning(
            "The index store %s is damaged (%s): moved to %s and begun afresh; its indexes are rebuilt "
            "when they are needed.",
            *(self.path, problem, damaged),
        )
        # A failing disk must not fill itself with copies.
        for old, paths in _damaged(self.path).items():
            if old <= number - DAMAGED_KEPT:
                _unlink(paths)


# ---- forks

# SQLite keeps in memory what its process has locked, and a forked child would take those locks for its
# own. So every database is closed before a fork, when nobody is at work with it; both sides open it again.
_registry = threading.RLock()
_databases: weakref.WeakSet[Database] = weakref.WeakSet()
_held: list[Database] = []


def _before_fork() -> None:
    _registry.acquire()
    for database in _databases:
        database._lock.acquire()
        _held.append(database)
        database._disconnect()


def _after_fork() -> None:
    while _held:
        _held.pop()._lock.release()
    _registry.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


# ---- files


def _siblings(path: Path) -> list[Path]:
    return [path.with_name(path.name + side) for side in _SIDES]


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _damaged(path: Path) -> dict[int, list[Path]]:
    """Return the files that were moved aside, by number."""
    files: dict[int, list[Path]] = {}
    for found in path.parent.glob(f"{path.name}.damaged-*"):
        number = found.name.rpartition(".damaged-")[2].partition("-")[0]
        if number.isdecimal():
            files.setdefault(int(number), []).append(found)
    return files


def _unlink(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _shrink(connection: sqlite3.Connection) -> None:
    # Each step of the first statement frees one page, and only a script takes all of its steps.
    connection.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")


def _problems(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute("PRAGMA integrity_check(10)").fetchall()
    return [str(problem) for (problem,) in found if problem != "ok"] + check_tables(connection)
