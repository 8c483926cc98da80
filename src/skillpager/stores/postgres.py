"""A store for many hosts: indexes and published skills in a PostgreSQL database; see `docs/operating.md`.

Connections are those of psycopg's pool, which checks each before it is used and replaces what was lost.
"""

import json
import logging
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from importlib.resources import files
from typing import Any

from skillpager.errors import SettingsError, StoreError, require_extra
from skillpager.settings import hide_secrets, store_fault
from skillpager.stores.sql import BUSY_TIMEOUT, COLUMNS, Row, SqlStore
from skillpager.types import PublishedSkill

for _package in ("psycopg", "psycopg_pool"):
    require_extra(_package, extra="postgres", purpose="A store with a postgresql:// address")

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolTimeout

logger = logging.getLogger(__name__)
# what psycopg reports is in our errors; without a handler Python would print it to stderr
logging.getLogger("psycopg").addHandler(logging.NullHandler())

Connection = psycopg.Connection[Row]
# the number of a library and its version: one that was deleted and made again has another number
Version = tuple[int, int]

# connections of a process that its threads use in turns; most pages come from memory and need none
POOL_SIZE = 4
# seconds to wait for a connection: a page must not wait for a whole failover
PATIENCE = 5.0
# Where the address does not say it: a dead host is noticed within a minute.
_DEFAULTS = {
    "connect_timeout": 5,
    "fallback_application_name": "skillpager",
    "client_encoding": "UTF8",
    "keepalives_idle": 30,
    "tcp_user_timeout": 60_000,
}
# no other schema's functions are taken for the system's, and a client that was stopped in a transaction does
# not lock others out
_SESSION = """
    SELECT set_config('search_path', 'pg_catalog, skillpager, pg_temp', false),
        set_config('idle_in_transaction_session_timeout', '60s', false),
        set_config('lock_timeout', %s, false)"""

# raise it with every change of the tables
VERSION = 4
_SCHEMA = files(__package__).joinpath("postgres.sql").read_text(encoding="utf-8")
TABLES = _SCHEMA.format(version=VERSION, columns=COLUMNS)
# Its lock, held until the transaction ends, makes versions appear in their order: a reader that has seen
# version 7 has seen all that was published before.
_NEXT_VERSION = """
    INSERT INTO libraries (name, version) VALUES (?, 1)
    ON CONFLICT (name) DO UPDATE SET version = libraries.version + 1"""
_PUBLISH = """
    INSERT INTO skills (library, name, version, removed, state, about, content)
    SELECT name, ?, version, false, ?, ?, ? FROM libraries WHERE name = ?
    ON CONFLICT (library, name) DO UPDATE SET version = excluded.version, removed = false,
        state = excluded.state, about = excluded.about, content = excluded.content
    WHERE skills.removed OR skills.state <> excluded.state RETURNING name"""
_REMOVE = """
    UPDATE skills SET version = libraries.version, removed = true, state = '', about = '', content = ''
    FROM libraries WHERE libraries.name = library
        AND library = ? AND skills.name = ANY(?) AND NOT removed RETURNING skills.name"""
_CHANGES = """
    SELECT libraries.id, libraries.version, skills.version, skills.name, removed, about
    FROM libraries LEFT JOIN skills ON library = libraries.name
        AND (skills.version > ? OR libraries.id <> ? OR libraries.version < ?)
    WHERE libraries.name = ? ORDER BY skills.version"""
_CONTENTS = "SELECT name, version, content FROM skills WHERE library = ? AND name = ANY(?) AND NOT removed"

_UNREACHABLE = (
    "cannot be reached: start the server, or correct the address, the role, its password or sslmode"
)
_OTHER_TABLES = errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName
_REASONS: dict[type[BaseException], str] = {
    errors.InsufficientPrivilege: (
        "does not allow this role to do so: grant it the rights that docs/operating.md lists"
    ),
    errors.DiskFull: "is full: free some space on the server",
    errors.ReadOnlySqlTransaction: (
        "is read-only, as a standby is: name the primary, or add target_session_attrs=read-write"
    ),
    errors.LockNotAvailable: "is locked by another session: wait for it or end it",
    PoolTimeout: "is busy, all connections of this process are in use: try again",
    # our statements fit the tables that we made, so these are not those tables any more
    **dict.fromkeys(
        _OTHER_TABLES, "has other tables than this SkillPager makes: use one release on all hosts"
    ),
}


class PostgresStore(SqlStore):
    """Indexes in a PostgreSQL database, for any number of threads, processes and hosts at once.

    The database is connected to when first needed, which must be after a fork; the first save makes the
    tables. A role that may only read, and a standby, still serve loads. Only `evict` deletes for age. What
    the address leaves out, such as the password, libpq takes from its variables and files. Others' locks are
    waited for `busy_timeout` seconds, a connection `patience` seconds.

    Raises:
        SettingsError: The address is not valid.
    """

    max_bytes: int | None = None

    def __init__(
        self, address: str, *, busy_timeout: float = BUSY_TIMEOUT, patience: float = PATIENCE
    ) -> None:
        self._address, self._busy_timeout, self._patience = address, busy_timeout, patience
        self._options = _read_address(address)
        self._lock = threading.Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._has_tables = False

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the address, its password included; the copy has connections of its own."""
        copy = partial(PostgresStore, busy_timeout=self._busy_timeout, patience=self._patience)
        return copy, (self._address,)

    @property
    def place(self) -> str:
        """The address, without user and password."""
        return hide_secrets(self._address)

    def probe(self) -> str:
        """Return what the role may do, and how the server is reached; tables are made if they are missing."""
        try:
            self._write(("DELETE FROM indexes WHERE false", ()))
            access = "reading and saving"
        except StoreError as error:
            if not isinstance(error.__cause__, errors.InsufficientPrivilege | errors.ReadOnlySqlTransaction):
                raise
            access = "reading only"
        with self._connection() as connection:
            number = connection.info.server_version
            tls = "TLS" if connection.pgconn.ssl_in_use else "not encrypted"
        return f"{self.place} (PostgreSQL {number // 10_000}.{number % 10_000}, {tls}) allows {access}"

    def library(self, name: str) -> "PostgresLibrary":
        """Return the library of this name in the same database."""
        return PostgresLibrary(self, name)

    def close(self) -> None:
        """Close this process's connections; using the store again opens others."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _read(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        with self._connection() as connection:
            if not self._find_tables(connection):
                return []
            return connection.execute(statement.replace("?", "%s"), values, binary=True).fetchall()

    def _write(self, *statements: tuple[str, Sequence[object]]) -> list[Row]:
        rows: list[Row] = []
        with self._connection() as connection:
            if not self._find_tables(connection):
                # of processes that make them at the same time, all but the first wait and then fail
                with suppress(errors.DuplicateSchema, errors.UniqueViolation), connection.transaction():
                    connection.execute(TABLES)
            with connection.transaction():
                for statement, values in statements:
                    done = connection.execute(statement.replace("?", "%s"), values)
                    rows += done.fetchall() if done.description else []
        return rows

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """Return a connection of the pool, and raise its failures as errors that say what to do."""
        try:
            with self._opened().connection() as connection:
                yield connection
        except PoolTimeout as error:
            # The pool only reports that no connection came in time; an attempt of our own has the reason.
            try:
                psycopg.connect(**self._options).close()
            except psycopg.Error as reason:
                self.close()  # which ends the attempts of the pool
                raise self._explain(reason) from reason
            raise self._explain(error) from error
        except psycopg.Error as error:
            self._has_tables = False  # somebody may have dropped them
            raise self._explain(error) from error

    def _opened(self) -> "ConnectionPool[Connection]":
        with self._lock:
            if self._pool is None:
                psycopg.connect(**self._options).close()  # a refusal is an error at once
                self._pool = ConnectionPool(
                    kwargs=self._options,
                    min_size=0,
                    max_size=POOL_SIZE,
                    open=True,
                    configure=partial(_configure, lock_timeout=self._busy_timeout),
                    check=ConnectionPool.check_connection,
                    timeout=self._patience,
                    reconnect_timeout=self._patience,
                )
                # left to itself it may go in one of its own threads, which cannot wait for itself
                weakref.finalize(self, self._pool.close)
            return self._pool

    def _find_tables(self, connection: Connection) -> bool:
        """Return True if our tables are there; refuse those of another version."""
        if self._has_tables:
            return True
        if _one(connection, "SELECT to_regclass('skillpager.versions')") is None:
            return False
        version = _one(connection, "SELECT version FROM skillpager.versions")
        if version != VERSION:
            raise StoreError(
                f"The index store {self.place} has version {version} of the tables, this SkillPager needs "
                f"{VERSION}: use one release on all hosts. Older tables the owner of the database deletes by "
                "DROP SCHEMA skillpager CASCADE; then index and publish the skills again."
            )
        self._has_tables = True
        return True

    def _explain(self, error: psycopg.Error) -> StoreError:
        """Return the error that says what is wrong with the store, and what to do; without secrets."""
        said = " ".join((error.diag.message_primary or str(error)).split()).rstrip(".")
        # of a failure to connect libpq gives no code, only the words of the server
        other = _UNREACHABLE if error.sqlstate is None else "cannot be used: see the log of the server"
        reason = _REASONS.get(type(error), other)
        return StoreError(f"The index store {self.place} {reason} (PostgreSQL: {said}).")


class PostgresLibrary:
    """The skills that a team shares: one library of a store, with a version that counts its changes.

    It is made when first published to. Methods raise `StoreError` where the database cannot be reached, read
    or written.
    """

    def __init__(self, store: PostgresStore, name: str) -> None:
        self._store, self.name = store, name
        self.place = f"{name} of {store.place}"  # without user and password

    def publish(self, skill: PublishedSkill, content: bytes) -> bool:
        """Store a skill and its text under its name, in place of another; return True if that changed it."""
        values = (skill.name, skill.state, json.dumps(asdict(skill)), content, self.name)
        return bool(self._store._write((_NEXT_VERSION, (self.name,)), (_PUBLISH, values)))

    def remove(self, names: Sequence[str]) -> list[str]:
        """Take skills out of the library; return the names of those that were there, in order."""
        removal = _REMOVE, (self.name, list(names))
        return sorted(name for (name,) in self._store._write((_NEXT_VERSION, (self.name,)), removal))

    def changes(self, since: Version = (0, 0)) -> tuple[Version, list[tuple[int, PublishedSkill | str]]]:
        """Return the version of the library, and what has changed since an earlier one.

        That is the version of each new or changed skill with the skill itself, and of each removed one with
        its name. If the library was deleted, or put back to an earlier state, all of it is new: then its
        number is another, or its version is less than before.
        """
        id_, version = since
        rows = self._store._read(_CHANGES, (version, id_, version, self.name))
        if not rows:
            return (0, 0), []
        changed: list[tuple[int, PublishedSkill | str]] = [
            (number, name if removed else PublishedSkill(**json.loads(about)))
            for _, _, number, name, removed, about in rows
            if name is not None
        ]
        return rows[0][:2], changed

    def contents(self, names: Sequence[str]) -> dict[str, tuple[int, bytes]]:
        """Return version and text of the skills of some names, by name."""
        rows = self._store._read(_CONTENTS, (self.name, list(names)))
        return {name: (version, content) for name, version, content in rows}


def _configure(connection: Connection, *, lock_timeout: float) -> None:
    connection.execute(_SESSION, [f"{round(lock_timeout * 1000)}ms"])


def _read_address(address: str) -> dict[str, Any]:
    """Return what an address says as options of a connection, with our defaults.

    Errors leave out the words of libpq, which repeat the address with its password.
    """
    if fault := store_fault(address):
        raise SettingsError(f"The address of the store {fault}.")
    try:
        return {**_DEFAULTS, **conninfo_to_dict(address), "autocommit": True}
    except psycopg.Error:
        raise SettingsError(
            f"The address of the store is {hide_secrets(address)}, which is not valid: write "
            "postgresql://USER@HOST:PORT/DATABASE, with options of libpq behind a question mark."
        ) from None


def _one(connection: Connection, statement: str) -> Any:
    row = connection.execute(statement).fetchone()
    return row and row[0]
