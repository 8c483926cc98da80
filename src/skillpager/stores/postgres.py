"""A store for many hosts: a PostgreSQL database, with the same rows as the SQLite file.

`docs/postgres.md` says how to set it up, `docs/store-format.md` describes the tables. A save is one
transaction and a load reads one snapshot, so no reader sees half an index; every load checks the index's
checksum.
"""

import hashlib
import logging
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from skillpager.errors import StoreError, require_extra

for _package in ("psycopg", "psycopg_pool"):
    require_extra(_package, extra="postgres", purpose="A store with a postgresql:// address")

from psycopg import errors

from skillpager.stores.postgres_connection import Database, Part
from skillpager.stores.postgres_library import SKILLS, PostgresLibrary
from skillpager.stores.postgres_pool import LOCK_TIMEOUT, RETRY_SECONDS, Connection
from skillpager.stores.postgres_text import escaped, unescaped
from skillpager.stores.rows import (
    HEAD_COLUMNS,
    TABLES,
    USED_SECONDS,
    IndexRows,
    StoredIndex,
    find_damage,
    to_rows,
)
from skillpager.types import DamagedEntry, Skill, SkillIndex, StoreEntry

logger = logging.getLogger(__name__)

# longest wait for another process that builds the same index; both may then build it, and one is stored
BUILD_SECONDS = 600.0

_OWNED = "index_id bigint NOT NULL REFERENCES skillpager.indexes ON DELETE CASCADE"
_ROW = f"{_OWNED}, ordinal bigint NOT NULL"
_SPAN = (
    "file bigint NOT NULL, start_line bigint NOT NULL, end_line bigint NOT NULL, "
    "start_char bigint NOT NULL, end_char bigint NOT NULL"
)
_BY_ORDINAL = "PRIMARY KEY (index_id, ordinal))"
# Columns as in the SQLite file; whole numbers have 64 bits there as well.
INDEXES = Part(
    "indexes",
    (
        (
            """CREATE TABLE skillpager.indexes (
                id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL UNIQUE,
                name text NOT NULL, root text NOT NULL, splitter text NOT NULL, classifier text NOT NULL,
                encoder text NOT NULL, embedded_text text NOT NULL, token_counter text NOT NULL,
                format bigint NOT NULL, dim bigint NOT NULL, n_nodes bigint NOT NULL,
                full_tokens bigint NOT NULL, created double precision NOT NULL,
                used double precision NOT NULL, size bigint NOT NULL, checksum text NOT NULL
            )""",
            f"CREATE TABLE skillpager.files ({_ROW}, path text NOT NULL, digest text NOT NULL, {_BY_ORDINAL}",
            f"""CREATE TABLE skillpager.headings (
                {_ROW}, level bigint NOT NULL, title text NOT NULL, {_SPAN}, {_BY_ORDINAL}""",
            f"""CREATE TABLE skillpager.nodes (
                {_ROW}, id text NOT NULL, type text NOT NULL, type_confidence double precision NOT NULL,
                tokens bigint NOT NULL, kind text NOT NULL, {_SPAN}, heading_path text NOT NULL,
                list_position bigint, list_size bigint, lead_in_start_line bigint, lead_in_end_line bigint,
                lead_in_start_char bigint, lead_in_end_char bigint, {_BY_ORDINAL}""",
            f"""CREATE TABLE skillpager.edges (
                {_ROW}, source bigint NOT NULL, target bigint NOT NULL, kind text NOT NULL,
                weight double precision NOT NULL, {_BY_ORDINAL}""",
            f"CREATE TABLE skillpager.embeddings ({_OWNED} PRIMARY KEY, data bytea NOT NULL)",
            # embeddings are noise to a compressor, which would cost time and save nothing
            "ALTER TABLE skillpager.embeddings ALTER data SET STORAGE EXTERNAL",
            # by which routing finds the nodes of skills in folders
            "CREATE INDEX indexes_by_name ON skillpager.indexes (name)",
        ),
    ),
)

_HEAD = ", ".join(HEAD_COLUMNS)
_ID = "(SELECT id FROM skillpager.indexes WHERE key = %s)"
_NOW = "extract(epoch FROM clock_timestamp())::double precision"
# an index by its key: the statements that are sent together
_SELECTION = (
    f"SELECT id, {_NOW} - used, checksum, {_HEAD} FROM skillpager.indexes WHERE key = %s",
    *(f"SELECT * FROM skillpager.{table} WHERE index_id = {_ID} ORDER BY ordinal" for table in TABLES),
    f"SELECT data FROM skillpager.embeddings WHERE index_id = {_ID}",
)
_INSERTION = (
    f"INSERT INTO skillpager.indexes ({_HEAD}, used, size, checksum) "
    f"VALUES ({', '.join(['%s'] * len(HEAD_COLUMNS))}, {_NOW}, %s, %s) "
    "ON CONFLICT (key) DO NOTHING RETURNING id"
)
_NOTE_USE = f"UPDATE skillpager.indexes SET used = {_NOW} WHERE id = %s"
_ENTRIES = (
    "SELECT key, name, root, n_nodes, size, created, used FROM skillpager.indexes ORDER BY used DESC, id DESC"
)
_BY_KEY_OR_NAME = """
    SELECT indexes.id, key, name, digest FROM skillpager.indexes
    JOIN skillpager.files ON index_id = indexes.id AND ordinal = 0
    WHERE encoder = %s AND (key = ANY(%s::text[]) OR name = ANY(%s::text[])) ORDER BY indexes.id"""
_EMBEDDINGS = """
    SELECT id, dim, data FROM skillpager.indexes JOIN skillpager.embeddings ON index_id = id
    WHERE id = ANY(%s::bigint[])"""
_HEADING_PATHS = """
    SELECT index_id, heading_path FROM skillpager.nodes
    WHERE (index_id, ordinal) IN (SELECT * FROM unnest(%s::bigint[], %s::bigint[]))"""
_EVICTION = """
    DELETE FROM skillpager.indexes WHERE id IN (
        SELECT id FROM (
            SELECT id, sum(size) OVER (ORDER BY used DESC, id DESC) AS kept FROM skillpager.indexes
        ) AS entries WHERE kept > %s
    ) RETURNING used, id, key"""


class PostgresStore:
    """Indexes in a PostgreSQL database, for any number of threads, processes and hosts at once.

    The database is connected to when first needed; the first save makes the tables. A role that may only
    read, and a standby, still serve loads. An index never changes: of two that are saved under one key, the
    first stays. Nothing is deleted for its age, except by `evict`. Methods raise `StoreError` where the
    database cannot be reached, read or (to save or delete) written.

    Args:
        address: `postgresql://` address, with options of libpq such as `sslmode` behind a question mark. What
            it leaves out, such as the password, libpq takes from its variables and files.
        busy_timeout: Seconds to wait for locks of other sessions before giving up.
        patience: Seconds in which a lost connection is tried again.

    Raises:
        SettingsError: The address is not valid.
    """

    max_bytes: int | None = None

    def __init__(
        self, address: str, *, busy_timeout: float = LOCK_TIMEOUT, patience: float = RETRY_SECONDS
    ) -> None:
        self._arguments = (address, busy_timeout, patience)
        self._database = Database(address, INDEXES, SKILLS, lock_timeout=busy_timeout, patience=patience)
        self._notes_uses = True
        weakref.finalize(self, self._database.close)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the address, its password included; the copy connects anew."""
        return _reopen, self._arguments

    def __repr__(self) -> str:
        """Return the store as text, without its password."""
        return f"PostgresStore({self.place!r})"

    @property
    def place(self) -> str:
        """The address, without user and password."""
        return self._database.place

    @property
    def size(self) -> int:
        """Bytes of the values of all entries; the tables and indexes of the server take more."""
        found = self._database.read(("SELECT coalesce(sum(size), 0)::bigint FROM skillpager.indexes", ()))
        return int(found[0][0][0]) if found else 0

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

    def library(self, name: str) -> PostgresLibrary:
        """Return the library of this name in the same database."""
        return PostgresLibrary(self._database, name)

    def load(self, key: str, skill: Skill) -> SkillIndex | None:
        """Return the index of `skill` stored under `key`, or None; a damaged one is logged and deleted."""
        stored = self._select(key)
        if stored is None:
            return None
        index = stored.decode(skill, self.place)
        if index is None:
            try:
                # by id: another may have been stored under the key since
                self._delete("id", [stored.id])
            except StoreError as error:
                logger.warning("The damaged index cannot be deleted: %s", error)
            return None
        if stored.idle >= USED_SECONDS and self._notes_uses:
            try:
                self._database.execute_at_once(_NOTE_USE, [stored.id])
            except StoreError as error:
                # Only the order of eviction depends on it. A role that may only read need not try again.
                self._notes_uses = not isinstance(
                    error.__cause__, errors.InsufficientPrivilege | errors.ReadOnlySqlTransaction
                )
                logger.debug("The use of an index is not noted: %s", error)
        return index

    def save(self, index: SkillIndex) -> None:
        """Write `index` atomically, unless one is stored under its key.

        Raises:
            StoreError: The role may not write, the disk is full, or the server is away.
            ValueError: `index` breaks its own contract.
        """
        rows = to_rows(index, created=time.time())
        digest, size = rows.checksum()
        head = [escaped(value) for value in rows.head]

        def insert(connection: Connection) -> None:
            # waits for the transaction of another that is saving this key
            inserted = connection.execute(_INSERTION, [*head, size, digest]).fetchone()
            if inserted is None:
                return
            (id_,) = inserted
            with connection.cursor() as cursor:
                for table, listed in rows.tables.items():
                    if not listed:
                        continue
                    with cursor.copy(f"COPY skillpager.{table} FROM STDIN") as copy:
                        for row in listed:
                            copy.write_row((id_, *map(escaped, row)))
            connection.execute("INSERT INTO skillpager.embeddings VALUES (%s, %b)", [id_, rows.embeddings])

        self._database.write(insert)

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
        with self._database.session() as connection:
            connection.execute("SELECT set_config('lock_timeout', %s, false)", [f"{BUILD_SECONDS:.0f}s"])
            try:
                connection.execute("SELECT pg_advisory_lock(%s)", [_lock_number(key)])
            except errors.LockNotAvailable:
                logger.info("Another process builds %s for long: it is built here as well.", key)
            yield

    def entries(self) -> list[StoreEntry]:
        """Return every entry, most recently used first."""
        found = self._database.read((_ENTRIES, ()))
        return [StoreEntry(*map(unescaped, row)) for row in found[0]] if found else []

    def remove(self, keys: Sequence[str]) -> int:
        """Delete entries; return how many there were."""
        return self._delete("key", list(keys))

    def evict(self, max_bytes: int) -> list[str]:
        """Delete least recently used entries until `max_bytes` suffice; return their keys in that order."""
        removed = self._database.write(
            lambda connection: connection.execute(_EVICTION, [max_bytes]).fetchall()
        )
        return [key for _, _, key in sorted(removed)]

    def clear(self) -> None:
        """Delete every entry."""
        self._database.write(lambda connection: connection.execute("DELETE FROM skillpager.indexes"))

    def verify(self) -> list[DamagedEntry]:
        """Return what is damaged, by reading everything; nothing is changed."""
        return find_damage(self.entries(), self._select)

    def find_indexes(
        self, keys: Sequence[str], names: Sequence[str], encoder: str
    ) -> list[tuple[int, str, str, str]]:
        """Return number, key, name and digest of SKILL.md of indexes with a key or a name, oldest first."""
        values = (encoder, list(keys), [escaped(name) for name in names])
        found = self._database.read((_BY_KEY_OR_NAME, values))
        return [(id_, key, unescaped(name), digest) for id_, key, name, digest in found[0]] if found else []

    def embeddings(self, ids: Sequence[int]) -> dict[int, tuple[int, bytes]]:
        """Return for indexes, by number, the width of their embeddings and the bytes of these."""
        found = self._database.read((_EMBEDDINGS, (list(ids),)))
        return {id_: (dim, data) for id_, dim, data in found[0]} if found else {}

    def heading_paths(self, nodes: Mapping[int, int]) -> dict[int, str]:
        """Return the heading path, as JSON, of one node of each index: both by number."""
        found = self._database.read((_HEADING_PATHS, (list(nodes), list(nodes.values()))))
        return dict(found[0]) if found else {}

    def close(self) -> None:
        """Close this process's connections; using the store again opens others."""
        self._database.close()

    def _select(self, key: str) -> StoredIndex | None:
        """Return the index under `key`, unchecked."""
        found = self._database.read(*((statement, (key,)) for statement in _SELECTION))
        if not found or not found[0]:
            return None
        id_, idle, digest, *head = found[0][0]
        tables = {
            table: [tuple(map(unescaped, row[1:])) if table in _ESCAPED else row[1:] for row in rows]
            for table, rows in zip(TABLES, found[1:-1], strict=True)
        }
        data = found[-1][0][0] if found[-1] else b""
        return StoredIndex(id_, idle, digest, IndexRows(tuple(map(unescaped, head)), tables, data))

    def _delete(self, column: str, values: Sequence[object]) -> int:
        statement = f"DELETE FROM skillpager.indexes WHERE {column} = ANY(%s)"
        return self._database.write(lambda connection: connection.execute(statement, [values]).rowcount)


# the tables with texts of a skill; those of the others are ids, names of ours and JSON
_ESCAPED = ("files", "headings")


def _reopen(address: str, busy_timeout: float, patience: float) -> PostgresStore:
    return PostgresStore(address, busy_timeout=busy_timeout, patience=patience)


def _lock_number(key: str) -> int:
    """Return the number of the advisory lock of a key, 64 bits with a sign."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), signed=True)
