"""One PostgreSQL database for many hosts: its tables, the connections of a process, failures as clear errors.

Connections are those of psycopg's pool, which checks each before it is used and replaces what was lost.
"""

import hashlib
import logging
import os
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from skillpager.errors import SettingsError, StoreError, require_extra
from skillpager.settings import hide_secrets, store_fault
from skillpager.stores.sql import COLUMNS

for _package in ("psycopg", "psycopg_pool"):
    require_extra(_package, extra="postgres", purpose="A store with a postgresql:// address")

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolTimeout

logger = logging.getLogger(__name__)
# what psycopg reports is in our errors; without a handler Python would print it to stderr
logging.getLogger("psycopg").addHandler(logging.NullHandler())

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]

# connections of a process that its threads use in turns; most pages come from memory and need none
POOL_SIZE = 4
# seconds to wait for a lock of another session
LOCK_TIMEOUT = 30.0
# seconds to wait for a connection: a page must not wait for a whole failover
PATIENCE = 5.0
# Where the address does not say it: a dead host is noticed within a minute, by client and by server.
_DEFAULTS = {
    "connect_timeout": 5,
    "fallback_application_name": "skillpager",
    "client_encoding": "UTF8",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
_SESSION = {
    # no other schema's functions or operators are taken for the system's
    "search_path": "pg_catalog, skillpager, pg_temp",
    # a client that was stopped in a transaction must not lock others out
    "idle_in_transaction_session_timeout": "60s",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}

# raise it with every change of the tables
VERSION = 3
# an advisory lock while tables are made: "SkPg" in ASCII, as in SQLite files
_TABLES_LOCK = 0x536B5067
TABLES = (
    "CREATE SCHEMA skillpager",
    "CREATE TABLE skillpager.versions (version integer NOT NULL)",
    f"INSERT INTO skillpager.versions VALUES ({VERSION})",
    f"""CREATE TABLE skillpager.indexes (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, {COLUMNS}, data bytea NOT NULL
    )""",
    # embeddings are noise to a compressor, which would cost time and save nothing
    "ALTER TABLE skillpager.indexes ALTER data SET STORAGE EXTERNAL",
    "CREATE INDEX indexes_by_digest ON skillpager.indexes (digest)",
    # the number tells a library from a deleted one of its name
    """CREATE TABLE skillpager.libraries (
        name text PRIMARY KEY, id bigint GENERATED ALWAYS AS IDENTITY, version bigint NOT NULL
    )""",
    # the row of a removed skill stays, without its text, so that readers learn that it is gone
    """CREATE TABLE skillpager.skills (
        library text NOT NULL REFERENCES skillpager.libraries ON DELETE CASCADE, name text NOT NULL,
        version bigint NOT NULL, removed boolean NOT NULL, state text NOT NULL, about text NOT NULL,
        content bytea NOT NULL, PRIMARY KEY (library, name)
    )""",
    "CREATE INDEX skills_by_version ON skillpager.skills (library, version)",
    # it is compressed
    "ALTER TABLE skillpager.skills ALTER content SET STORAGE EXTERNAL",
)
_MAY_WRITE = """
    SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off' AND CASE
        WHEN to_regclass('skillpager.indexes') IS NOT NULL
            THEN has_table_privilege('skillpager.indexes', 'INSERT')
        WHEN to_regnamespace('skillpager') IS NOT NULL THEN has_schema_privilege('skillpager', 'CREATE')
        ELSE has_database_privilege(current_database(), 'CREATE')
    END"""

# our statements fit the tables that we made, so these are not those tables any more; the last is what a
# prepared statement gives when a table has got another column
_OTHER_TABLES = (
    *(errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName),
    errors.FeatureNotSupported,
)
_TOO_MANY = "has too many connections: raise max_connections on the server, or use fewer processes"
_REASONS: tuple[tuple[tuple[type[psycopg.Error], ...], str], ...] = (
    (
        (errors.InsufficientPrivilege,),
        "does not allow this role to do so: grant it the rights that docs/operating.md lists",
    ),
    ((errors.DiskFull, errors.ConfigurationLimitExceeded), "is full: free some space on the server"),
    ((errors.OutOfMemory,), "has too little memory: give the server more"),
    (
        (errors.ReadOnlySqlTransaction,),
        "is read-only, as a standby is: name the primary, or add target_session_attrs=read-write",
    ),
    ((errors.LockNotAvailable,), "is locked by another session: wait for it or end it"),
    ((errors.QueryCanceled,), "takes too long: raise the statement_timeout of this role, or try again"),
    ((errors.DataCorrupted, errors.IndexCorrupted), "is damaged on the disk of its server: restore it"),
    (_OTHER_TABLES, "has other tables than this SkillPager makes: use one release on all hosts"),
    ((errors.TooManyConnections,), _TOO_MANY),
    ((PoolTimeout,), "is busy, all connections of this process are in use: try again"),
)
# of a failure to connect libpq gives no code, only the words of the server
_REFUSALS = (
    (
        r"authentication failed|no password supplied|no pg_hba\.conf entry|role .* (?:does not exist|is not)",
        "refuses this role or its password: correct them",
    ),
    (r"permission denied for database", "does not allow this role to connect: grant it CONNECT"),
    (r"database .* does not exist", "is not on this server: make it with `createdb`, or correct its name"),
    (r"SSL|TLS|certificate", "cannot be reached in the way that sslmode asks for: set up TLS, or correct it"),
    (r"invalid .*(?:option|value)", "has an option that is not valid: correct the address"),
    (r"too many clients|too many connections|connection slots", _TOO_MANY),
    (r"", "cannot be reached: start the server, or correct the address"),
)


class Database:
    """A database with our tables, and the connections of this process; made when first used.

    Every method raises `StoreError` where the database cannot be reached, read or (to write) written.

    Args:
        address: `postgresql://` address; what it leaves out is taken from the variables and files of libpq.
        lock_timeout: Seconds to wait for a lock of another session.
        patience: Seconds to wait for a connection.

    Attributes:
        place: The address without user and password, as it may be shown.

    Raises:
        SettingsError: The address is not valid.
    """

    def __init__(self, address: str, *, lock_timeout: float, patience: float) -> None:
        self.place = hide_secrets(address)
        self._options, self._secrets = _read_address(address)
        self._session = {**_SESSION, "lock_timeout": f"{round(lock_timeout * 1000)}ms"}
        self._patience = patience
        self._turn = threading.Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._has_tables = False
        _databases.add(self)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Return a connection of the pool, which checks it and replaces those that were lost."""
        try:
            with self._opened().connection() as connection:
                yield connection
        except PoolTimeout as error:
            # The pool only reports that no connection came in time; an attempt of our own has the reason.
            try:
                self._connect().close()
            except psycopg.Error as reason:
                self.close()  # which ends the attempts of the pool
                raise self._explain(reason) from reason
            raise self._explain(error) from error
        except psycopg.Error as error:
            raise self._explain(error) from error

    @contextmanager
    def turn(self, key: str, seconds: float) -> Iterator[None]:
        """Hold the lock of a key, on a connection of its own; wait at most some seconds for others."""
        number = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), signed=True)
        try:
            with self._connect() as connection:
                self._configure(connection)
                connection.execute("SELECT set_config('lock_timeout', %s, false)", [f"{seconds:.0f}s"])
                try:
                    connection.execute("SELECT pg_advisory_lock(%s)", [number])
                except errors.LockNotAvailable:
                    logger.info("Another process has the turn of %s for long: it is not waited for.", key)
                yield
        except psycopg.Error as error:
            raise self._explain(error) from error

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; none while there are no tables."""
        found = self._run(
            lambda connection: connection.execute(statement, values, binary=True).fetchall(), make=False
        )
        return found or []

    def write(self, work: Callable[[Connection], T]) -> T:
        """Return the result of `work`, run in a transaction: all of it is stored, or nothing.

        Tables are made before if there are none. `work` may be run twice.
        """

        def in_transaction(connection: Connection) -> tuple[T]:
            with connection.transaction():
                return (work(connection),)

        done = self._run(in_transaction, make=True)
        assert done is not None
        return done[0]

    def may_write(self) -> bool:
        """Return True if the role may save here, and the server is not a standby."""
        with self.connection() as connection:
            return bool(_one(connection, _MAY_WRITE))

    def describe_connection(self) -> str:
        """Return the version of the server, and whether the connection is encrypted."""
        with self.connection() as connection:
            number = connection.info.server_version
            tls = "TLS" if connection.pgconn.ssl_in_use else "not encrypted"
            return f"PostgreSQL {number // 10_000}.{number % 10_000}, {tls}"

    def close(self) -> None:
        """Close the connections; the next use opens others."""
        with self._turn:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def forget(self) -> None:
        """Leave the connections to the process that this one was forked from."""
        _inherited.append(self._pool)
        self._pool, self._turn = None, threading.Lock()

    def _opened(self) -> "ConnectionPool[Connection]":
        with self._turn:
            if self._pool is None:
                self._connect().close()  # what cannot be reached, or refuses us, is an error at once
                self._pool = ConnectionPool(
                    kwargs=self._options,
                    min_size=0,
                    max_size=POOL_SIZE,
                    open=True,
                    configure=self._configure,
                    check=ConnectionPool.check_connection,
                    name="skillpager",
                    timeout=self._patience,
                    reconnect_timeout=self._patience,
                    num_workers=1,
                )
            return self._pool

    def _connect(self) -> Connection:
        return psycopg.connect(**self._options)

    def _configure(self, connection: Connection) -> None:
        settings = ", ".join(["set_config(%s, %s, false)"] * len(self._session))
        connection.execute(f"SELECT {settings}", [text for pair in self._session.items() for text in pair])

    def _run(self, work: Callable[[Connection], T], *, make: bool) -> T | None:
        """Return the result of `work`; None if there are no tables, and they are not to be made."""
        with self.connection() as connection:
            try:
                if self._has_tables:
                    return work(connection)
            except _OTHER_TABLES:  # they were dropped, or are those of another version by now
                self._has_tables = False
            self._has_tables = self._find_tables(connection)
            if not self._has_tables and make:
                self._make_tables(connection)
                self._has_tables = True
            return work(connection) if self._has_tables else None

    def _find_tables(self, connection: Connection) -> bool:
        """Return True if our tables are there; refuse those of another version."""
        try:
            version = _one(connection, "SELECT max(version) FROM skillpager.versions")
        except (errors.UndefinedTable, errors.InvalidSchemaName):
            return False
        if version > VERSION:
            raise StoreError(
                f"The index store {self.place} was made by a newer SkillPager (version {version} of the "
                f"tables, this one knows {VERSION}): upgrade SkillPager."
            )
        if version < VERSION:
            raise StoreError(
                f"The index store {self.place} was made by an older SkillPager (version {version} of the "
                f"tables, this one needs {VERSION}): as the owner of the database run DROP SCHEMA skillpager "
                "CASCADE, then `skillpager doctor`, and index and publish the skills again."
            )
        return True

    def _make_tables(self, connection: Connection) -> None:
        """Make the tables; one process at a time does so, the others wait."""
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", [_TABLES_LOCK])
                if _one(connection, "SELECT to_regclass('skillpager.versions')") is not None:
                    return  # another process was first
                if (encoding := _one(connection, "SHOW server_encoding")) != "UTF8":
                    raise StoreError(
                        f"The database of the index store {self.place} holds text as {encoding}: make one "
                        "with `createdb --encoding=UTF8 --template=template0`."
                    )
                # a role may be allowed to make tables in this schema, and no schemas
                has_schema = _one(connection, "SELECT to_regnamespace('skillpager')") is not None
                for statement in TABLES[has_schema:]:
                    connection.execute(statement)
        except errors.InsufficientPrivilege as error:
            raise StoreError(
                f"The index store {self.place} has no tables, and this role may not make them: run "
                "`skillpager doctor` once as the owner of the database (PostgreSQL: "
                f"{error.diag.message_primary})."
            ) from error

    def _explain(self, error: psycopg.Error) -> StoreError:
        """Return the error that says what is wrong with the store, and what to do; without secrets."""
        said = error.diag.message_primary or str(error)
        for secret in self._secrets:
            said = said.replace(secret, "…")
        said = " ".join(said.split()).rstrip(".")
        reason = next((reason for kinds, reason in _REASONS if isinstance(error, kinds)), "")
        if not reason and error.sqlstate is None:
            reason = next(reason for pattern, reason in _REFUSALS if re.search(pattern, said))
        reason = reason or "cannot be used: see the log of the server"
        return StoreError(f"The index store {self.place} {reason} (PostgreSQL: {said}).")


def is_refusal(error: StoreError) -> bool:
    """Return True if this role may not write, now or later."""
    return isinstance(error.__cause__, errors.InsufficientPrivilege | errors.ReadOnlySqlTransaction)


def _read_address(address: str) -> tuple[dict[str, Any], list[str]]:
    """Return what an address says as options of a connection, with our defaults, and the secrets in it.

    Raises:
        SettingsError: It is not valid. The words of libpq are left out: they repeat it with its password.
    """
    if fault := store_fault(address):
        raise SettingsError(f"The address of the store {fault}.")
    try:
        said = conninfo_to_dict(address)
    except psycopg.Error:
        raise SettingsError(
            f"The address of the store is {hide_secrets(address)}, which is not valid: write "
            "postgresql://USER@HOST:PORT/DATABASE, with options of libpq behind a question mark."
        ) from None
    secrets = [str(said[name]) for name in ("password", "sslpassword") if said.get(name)]
    defaults = dict(_DEFAULTS)
    if "PGCONNECT_TIMEOUT" in os.environ:
        del defaults["connect_timeout"]
    return {**defaults, **said, "autocommit": True}, secrets


def _one(connection: Connection, statement: str) -> Any:
    """Return the only value of a statement."""
    row = connection.execute(statement).fetchone()
    return row and row[0]


# A connection is a dialogue with one process: a forked child leaves those of its parent alone, and keeps them
# to the end, lest their deletion ends the dialogue.
_databases: "weakref.WeakSet[Database]" = weakref.WeakSet()
_inherited: list[object] = []


def _after_fork() -> None:
    for database in list(_databases):
        database.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
