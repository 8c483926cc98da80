"""What is done inside one transaction: the statements on the tables of `migrations`."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from skillpager.stores.rows import HEAD_COLUMNS, TABLE_COLUMNS, IndexRows
from skillpager.types import StoreEntry


def _select(table: str, columns: Sequence[str]) -> str:
    return f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608 - names are constants


def _insert(table: str, columns: Sequence[str]) -> str:
    values = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608 - names are constants


_SELECT_HEAD = f"{_select('indexes', ('id', 'used', 'checksum', *HEAD_COLUMNS))} WHERE key = ?"
_SELECT_ROWS = {
    table: f"{_select(table, columns)} WHERE index_id = ? ORDER BY ordinal"
    for table, columns in TABLE_COLUMNS.items()
}
_SELECT_ENTRIES = (
    "SELECT key, name, root, n_nodes, size, created, used FROM indexes ORDER BY used DESC, id DESC"
)
_INSERT_HEAD = _insert("indexes", (*HEAD_COLUMNS, "used", "size", "checksum"))
_INSERT_ROWS = {table: _insert(table, ("index_id", *columns)) for table, columns in TABLE_COLUMNS.items()}


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """What the database holds of one index."""

    id: int
    used: float
    checksum: str
    rows: IndexRows


def select(connection: sqlite3.Connection, *, key: str) -> StoredIndex | None:
    """Return what is stored under `key`, unchecked."""
    head = connection.execute(_SELECT_HEAD, (key,)).fetchone()
    if head is None:
        return None
    id_, used, digest, *columns = head
    tables = {table: connection.execute(sql, (id_,)).fetchall() for table, sql in _SELECT_ROWS.items()}
    data = connection.execute("SELECT data FROM embeddings WHERE index_id = ?", (id_,)).fetchone()
    return StoredIndex(id_, used, digest, IndexRows(tuple(columns), tables, data[0] if data else b""))


def entries(connection: sqlite3.Connection) -> list[StoreEntry]:
    """Return every entry, most recently used first."""
    return [StoreEntry(*row) for row in connection.execute(_SELECT_ENTRIES)]


def replace(connection: sqlite3.Connection, *, rows: IndexRows, used: float, size: int, digest: str) -> None:
    """Insert an index in place of the one of the same key."""
    connection.execute("DELETE FROM indexes WHERE key = ?", rows.head[:1])
    id_ = connection.execute(_INSERT_HEAD, (*rows.head, used, size, digest)).lastrowid
    for table, statement in _INSERT_ROWS.items():
        connection.executemany(statement, ((id_, *row) for row in rows.tables[table]))
    connection.execute("INSERT INTO embeddings (index_id, data) VALUES (?, ?)", (id_, rows.embeddings))


def set_used(connection: sqlite3.Connection, *, id_: int, used: float) -> None:
    """Note when an index was last used."""
    connection.execute("UPDATE indexes SET used = ? WHERE id = ?", (used, id_))


def remove_id(connection: sqlite3.Connection, *, id_: int) -> None:
    """Delete one index, and not another that was stored under its key since."""
    connection.execute("DELETE FROM indexes WHERE id = ?", (id_,))


def remove(connection: sqlite3.Connection, *, keys: Sequence[str]) -> int:
    """Delete indexes by key; return how many there were."""
    return connection.executemany("DELETE FROM indexes WHERE key = ?", ((key,) for key in keys)).rowcount


def evict(connection: sqlite3.Connection, *, max_bytes: int) -> list[str]:
    """Delete indexes until the database fits, longest unused first; return their keys in that order."""
    removed: list[str] = []
    if _bytes_in_use(connection) <= max_bytes:
        return removed
    for id_, key in connection.execute("SELECT id, key FROM indexes ORDER BY used, id").fetchall():
        remove_id(connection, id_=id_)
        removed.append(key)
        if _bytes_in_use(connection) <= max_bytes:
            break
    return removed


def _bytes_in_use(connection: sqlite3.Connection) -> int:
    pages, free, page_size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * page_size
