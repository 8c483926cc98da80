"""A store for many hosts: indexes and published skills in a PostgreSQL database; see `docs/operating.md`."""

import json
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

from skillpager.errors import StoreError
from skillpager.stores.postgres_database import (
    LOCK_TIMEOUT,
    PATIENCE,
    Connection,
    Database,
    is_refusal,
)
from skillpager.stores.sql import Row, SqlStore
from skillpager.types import PublishedSkill

# longest wait for another process that builds the same index; both may then build it, and one is stored
BUILD_SECONDS = 600.0
# Its lock, held until the transaction ends, makes versions appear in their order: a reader that has seen
# version 7 has seen all that was published before.
_NEXT_VERSION = """
    INSERT INTO libraries (name, version) VALUES (%s, 1)
    ON CONFLICT (name) DO UPDATE SET version = libraries.version + 1 RETURNING version"""
_PUBLISH = """
    INSERT INTO skills (library, name, version, removed, state, about, content)
    VALUES (%s, %s, %s, false, %s, %s, %b)
    ON CONFLICT (library, name) DO UPDATE SET version = excluded.version, removed = false,
        state = excluded.state, about = excluded.about, content = excluded.content
    WHERE skills.removed OR skills.state <> excluded.state"""
_REMOVE = """
    UPDATE skills SET version = %s, removed = true, state = '', about = '', content = ''
    WHERE library = %s AND name = ANY(%s) AND NOT removed RETURNING name"""
_CHANGES = """
    SELECT libraries.id, libraries.version, skills.version, skills.name, removed, about
    FROM libraries LEFT JOIN skills ON library = libraries.name
        AND (skills.version > %s OR libraries.id <> %s OR libraries.version < %s)
    WHERE libraries.name = %s ORDER BY skills.version"""
_CONTENTS = """
    SELECT name, version, content FROM skills
    WHERE library = %s AND name = ANY(%s) AND NOT removed"""

# the number of a library and its version: one that was deleted and made again has another number
Version = tuple[int, int]
NEVER: Version = (0, 0)


class PostgresStore(SqlStore):
    """Indexes in a PostgreSQL database, for any number of threads, processes and hosts at once.

    The database is connected to when first needed; the first save makes the tables. A role that may only
    read, and a standby, still serve loads. An index never changes: of two that are saved under one key, the
    first stays. Nothing is deleted for its age, except by `evict`.

    Args:
        address: `postgresql://` address, with options of libpq such as `sslmode` behind a question mark. What
            it leaves out, such as the password, libpq takes from its variables and files.
        busy_timeout: Seconds to wait for locks of other sessions before giving up.
        patience: Seconds to wait for a connection.

    Raises:
        SettingsError: The address is not valid.
    """

    max_bytes: int | None = None
    _now = "extract(epoch FROM clock_timestamp())::double precision"
    _conflict = "NOTHING"

    def __init__(
        self, address: str, *, busy_timeout: float = LOCK_TIMEOUT, patience: float = PATIENCE
    ) -> None:
        self._arguments = (address, busy_timeout, patience)
        self._database = Database(address, lock_timeout=busy_timeout, patience=patience)
        self._notes_uses = True
        weakref.finalize(self, self._database.close)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the address, its password included; the copy has connections of its own."""
        return _reopen, self._arguments

    def __repr__(self) -> str:
        """Return the store as text, without its password."""
        return f"PostgresStore({self.place!r})"

    @property
    def place(self) -> str:
        """The address, without user and password."""
        return self._database.place

    def exists(self) -> bool:
        """Return True: to look into a database makes nothing in it."""
        return True

    def probe(self) -> str:
        """Return what the role may do, and how the server is reached; tables are made if they are missing."""
        may_write = self._database.may_write()
        if may_write:
            self._database.write(lambda _: None)
        self.entries()
        access = "allows reading and saving" if may_write else "allows reading only"
        return f"{self.place} ({self._database.describe_connection()}) {access}"

    def library(self, name: str) -> "PostgresLibrary":
        """Return the library of this name in the same database."""
        return PostgresLibrary(self._database, name)

    @contextmanager
    def building(self, key: str) -> Iterator[None]:
        """Wait until no other process builds the index of `key`; others wait until the context ends.

        The turn is a lock of a connection: when its process or host dies, the next one has it. Where the role
        may not save, nobody waits.

        Raises:
            StoreError: The database cannot be reached, or the server ends the wait.
        """
        if not self._database.may_write():
            yield
            return
        with self._database.turn(key, BUILD_SECONDS):
            yield

    def close(self) -> None:
        """Close this process's connections; using the store again opens others."""
        self._database.close()

    def _read(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        return self._database.rows(statement.replace("?", "%s"), *values)

    def _write(self, *statements: tuple[str, Sequence[object]], wait: bool = True) -> list[Row]:
        if not (wait or self._notes_uses):
            return []

        def work(connection: Connection) -> list[Row]:
            if not wait:
                connection.execute("SET LOCAL lock_timeout = '1ms'")
            for statement, values in statements:
                cursor = connection.execute(statement.replace("?", "%s"), values)
            return cursor.fetchall() if cursor.description else []

        try:
            return self._database.write(work)
        except StoreError as error:
            # a role that may only read need not try again to note uses
            self._notes_uses = self._notes_uses and (wait or not is_refusal(error))
            raise


def _reopen(address: str, busy_timeout: float, patience: float) -> PostgresStore:
    return PostgresStore(address, busy_timeout=busy_timeout, patience=patience)


class PostgresLibrary:
    """The skills that a team shares: one library of a database, with a version that counts its changes.

    Methods raise `StoreError` where the database cannot be reached, read or written.

    Args:
        database: The database.
        name: Name of the library; made when first published to.
    """

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self.name = name

    @property
    def place(self) -> str:
        """Name and address of the library, without user and password."""
        return f"{self.name} of {self._database.place}"

    def publish(self, skill: PublishedSkill, content: bytes) -> bool:
        """Store a skill and its text under its name, in place of another; return True if that changed it."""
        about = json.dumps(asdict(skill))

        def work(connection: Connection) -> bool:
            version = self._next_version(connection)
            values = (self.name, skill.name, version, skill.state, about, content)
            return connection.execute(_PUBLISH, values).rowcount > 0

        return self._database.write(work)

    def remove(self, names: Sequence[str]) -> list[str]:
        """Take skills out of the library; return the names of those that were there, in order."""

        def work(connection: Connection) -> list[str]:
            version = self._next_version(connection)
            removed = connection.execute(_REMOVE, [version, self.name, list(names)]).fetchall()
            return sorted(name for (name,) in removed)

        return self._database.write(work)

    def changes(self, since: Version = NEVER) -> tuple[Version, list[tuple[int, PublishedSkill | str]]]:
        """Return the version of the library, and what has changed since an earlier one.

        That is the version of each new or changed skill with the skill itself, and of each removed one with
        its name. If the library was deleted, or put back to an earlier state, all of it is new: then its
        number is another, or its version is less than before.
        """
        id_, version = since
        rows = self._database.rows(_CHANGES, version, id_, version, self.name)
        if not rows:
            return NEVER, []
        changed: list[tuple[int, PublishedSkill | str]] = [
            (number, name if removed else PublishedSkill(**json.loads(about)))
            for _, _, number, name, removed, about in rows
            if name is not None
        ]
        return (rows[0][0], rows[0][1]), changed

    def contents(self, names: Sequence[str]) -> dict[str, tuple[int, bytes]]:
        """Return version and text of the skills of some names, by name."""
        rows = self._database.rows(_CONTENTS, self.name, list(names))
        return {name: (version, content) for name, version, content in rows}

    def _next_version(self, connection: Connection) -> int:
        """Lock the library for this transaction; return its next version."""
        row = connection.execute(_NEXT_VERSION, [self.name]).fetchone()
        assert row is not None
        return int(row[0])
