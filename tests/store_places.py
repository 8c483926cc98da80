"""Where the stores of tests are: a folder for SQLite, or a database of a real PostgreSQL server."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from skillpager.factories import make_store
from skillpager.settings import Settings
from skillpager.stores.sql import SqlStore
from skillpager.stores.sqlite import FILE_NAME, SqliteStore

Address: TypeAlias = Path | str


def open_store(address: Address, **options: Any) -> SqlStore:
    """Return the store at a folder or an address."""
    if isinstance(address, Path):
        return SqliteStore(address, **options)
    if not options:
        return make_store(Settings(), address)
    from skillpager.stores.postgres import PostgresStore

    return PostgresStore(address, **options)


@dataclass(frozen=True)
class Place:
    """Where a store is.

    Attributes:
        address: A folder, or the address of a database.
    """

    address: Address

    def open(self, **options: Any) -> SqlStore:
        """Return the store here."""
        return open_store(self.address, **options)

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Execute a statement behind the back of the store, and return its rows."""
        with self._connected() as connection:
            found = connection.execute(self._translated(statement), values)
            return found.fetchall() if found.description else []

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let a writer work here that lets others read, and does not end."""
        with self._connected() as connection:
            if isinstance(self.address, Path):
                connection.execute("BEGIN IMMEDIATE")
            else:
                connection.execute("BEGIN")
                connection.execute("LOCK TABLE skillpager.indexes IN EXCLUSIVE MODE")
            yield

    def _translated(self, statement: str) -> str:
        return statement if isinstance(self.address, Path) else statement.replace("?", "%s")

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        if isinstance(self.address, Path):
            with closing(sqlite3.connect(self.address / FILE_NAME, isolation_level=None)) as connection:
                yield connection
        else:
            import psycopg

            with psycopg.connect(self.address, autocommit=True) as other:
                other.execute("SET search_path = skillpager")
                yield other
