"""One PostgreSQL database for many hosts: its tables and their versions, snapshots and transactions.

The tables lie in the schema `skillpager`. Those that change together are one part with a version of its own,
so that further parts can join the database. Tables are made by the first write of a role that may make them.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from skillpager.errors import StoreError
from skillpager.stores.postgres_errors import OTHER_TABLES
from skillpager.stores.postgres_pool import LOCK_TIMEOUT, RETRY_SECONDS, Connection, Pool

T = TypeVar("T")
Statement = tuple[str, Sequence[object]]
Rows = list[tuple[Any, ...]]

# an advisory lock while tables are made or changed: "SkPg" in ASCII, as in SQLite files
_MIGRATION_LOCK = 0x536B5067
_VERSIONS = "SELECT part, version FROM skillpager.versions"
_MAY_WRITE = """
    SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off' AND CASE
        WHEN to_regclass('skillpager.indexes') IS NOT NULL
            THEN has_table_privilege('skillpager.indexes', 'INSERT')
        WHEN to_regnamespace('skillpager') IS NOT NULL THEN has_schema_privilege('skillpager', 'CREATE')
        ELSE has_database_privilege(current_database(), 'CREATE')
    END"""


@dataclass(frozen=True, slots=True)
class Part:
    """Tables that change together.

    Attributes:
        name: Name of the part.
        migrations: For each version of the tables, the statements that make it from the one before.
    """

    name: str
    migrations: tuple[tuple[str, ...], ...]


class Database:
    """A database with the tables of some parts.

    Every method raises `StoreError` where the database cannot be reached, read or (to write) written.

    Args:
        address: `postgresql://` address; what it leaves out is taken from the variables and files of libpq.
        parts: The parts that this program reads and writes.
        lock_timeout: Seconds to wait for a lock of another session.
        patience: Seconds in which a lost connection is tried again.

    Attributes:
        place: The address without user and password, as it may be shown.

    Raises:
        SettingsError: The address is not valid.
    """

    def __init__(
        self,
        address: str,
        *parts: Part,
        lock_timeout: float = LOCK_TIMEOUT,
        patience: float = RETRY_SECONDS,
    ) -> None:
        self._pool = Pool(address, lock_timeout=lock_timeout, patience=patience)
        self.place = self._pool.place
        self._parts = parts

    def read(self, *statements: Statement) -> list[Rows] | None:
        """Return the rows of each statement, all from one snapshot; None while there are no tables.

        The statements are sent together: however many they are, they take one round trip.
        """

        def select(connection: Connection) -> list[Rows]:
            try:
                with connection.pipeline():
                    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    cursors = [
                        connection.execute(statement, values, binary=True, prepare=True)
                        for statement, values in ((_VERSIONS, ()), *statements)
                    ]
                    connection.execute("COMMIT")
                return [cursor.fetchall() for cursor in cursors]
            except psycopg.Error:
                if not connection.closed:
                    connection.rollback()  # which the pool would do as well, with a warning
                raise

        def work(connection: Connection) -> list[Rows] | None:
            try:
                versions, *found = select(connection)
                return found if self._are_current(versions) else None
            except OTHER_TABLES:
                # There are none, or those of another version; another process may have made ours just now.
                return select(connection)[1:] if self._find_tables(connection) else None

        return self._pool.run(work)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Return the result of `work`, run in a transaction: all of it is stored, or nothing.

        Tables are made, or changed to this version, before. `work` may be run more than once.
        """

        def in_transaction(connection: Connection) -> T:
            if not self._find_tables(connection):
                self._migrate(connection)
            with connection.transaction():
                return work(connection)

        return self._pool.run(in_transaction)

    def execute_at_once(self, statement: str, values: Sequence[object]) -> None:
        """Execute one statement; a lock of another session is an error at once."""

        def execute(connection: Connection) -> None:
            with connection.pipeline(), connection.transaction():
                connection.execute("SET LOCAL lock_timeout = '1ms'")
                connection.execute(statement, values)

        self._pool.run(execute)

    def session(self) -> AbstractContextManager[Connection]:
        """Return a connection for the caller alone; whatever it has locked is released with it."""
        return self._pool.session()

    def may_write(self) -> bool:
        """Return whether the role may save here, and the server is no standby."""
        return self._pool.run(lambda connection: bool(_one(connection, _MAY_WRITE)))

    def describe_connection(self) -> str:
        """Return the version of the server, and whether the connection is encrypted."""

        def describe(connection: Connection) -> str:
            number = connection.info.server_version
            tls = "TLS" if connection.pgconn.ssl_in_use else "not encrypted"
            return f"PostgreSQL {number // 10_000}.{number % 10_000}, {tls}"

        return self._pool.run(describe)

    def close(self) -> None:
        """Close the connections; the next use opens others."""
        self._pool.close()

    def _find_tables(self, connection: Connection) -> bool:
        """Return whether the tables of all parts are there in the version of this program."""
        try:
            versions = connection.execute(_VERSIONS).fetchall()
        except OTHER_TABLES:
            return False
        return self._are_current(versions)

    def _are_current(self, versions: Rows) -> bool:
        """Return whether the tables of all parts are of the version of this program; refuse newer ones."""
        found: dict[str, int] = {part: version for part, version in versions}  # noqa: C416 - for mypy
        for part in self._parts:
            if found.get(part.name, 0) > len(part.migrations):
                raise StoreError(
                    f"The index store {self.place} was made by a newer SkillPager (version "
                    f"{found[part.name]} of the tables, this one knows {len(part.migrations)}): upgrade "
                    "SkillPager."
                )
        return all(found.get(part.name, 0) == len(part.migrations) for part in self._parts)

    def _migrate(self, connection: Connection) -> None:
        """Make the tables, or bring them to this version; one process at a time does so, the others wait."""
        try:
            with connection.transaction():
                self._make_tables(connection)
        except errors.InsufficientPrivilege as error:
            raise StoreError(
                f"The index store {self.place} has no tables of this version, and this role may not make "
                "them: run `skillpager doctor` once as the owner of the database (PostgreSQL: "
                f"{error.diag.message_primary})."
            ) from error

    def _make_tables(self, connection: Connection) -> None:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_MIGRATION_LOCK])
        if (encoding := _one(connection, "SHOW server_encoding")) != "UTF8":
            raise StoreError(
                f"The database of the index store {self.place} holds text as {encoding}: make one with "
                "`createdb --encoding=UTF8 --template=template0`."
            )
        # a role may be allowed to make tables in this schema, and no schemas
        if _one(connection, "SELECT to_regnamespace('skillpager')") is None:
            connection.execute("CREATE SCHEMA skillpager")
        if _one(connection, "SELECT to_regclass('skillpager.versions')") is None:
            connection.execute(
                "CREATE TABLE skillpager.versions (part text PRIMARY KEY, version integer NOT NULL)"
            )
        versions = connection.execute(_VERSIONS).fetchall()
        self._are_current(versions)  # another process may have been first, and be newer
        found: dict[str, int] = dict(versions)
        for part in self._parts:
            for statements in part.migrations[found.get(part.name, 0) :]:
                for statement in statements:
                    connection.execute(statement)
            connection.execute(
                "INSERT INTO skillpager.versions VALUES (%s, %s) "
                "ON CONFLICT (part) DO UPDATE SET version = excluded.version",
                [part.name, len(part.migrations)],
            )


def _one(connection: Connection, statement: str) -> Any:
    """Return the only value of a statement."""
    row = connection.execute(statement).fetchone()
    return row and row[0]
