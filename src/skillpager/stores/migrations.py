"""The tables of the store, as numbered migrations, and the step that brings a file up to date.

`MIGRATIONS[i]` takes a file from version `i` to version `i + 1`; the version stands in the file's
`user_version`. A change of the tables is one more entry at the end; an entry that was released is
never edited. What the tables mean is told in `docs/store-format.md`.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from skillpager.errors import StoreError
from skillpager.stores.transaction import transaction

# "SkPg" in ASCII: tells our files from other programs' SQLite files.
APPLICATION_ID = 0x536B5067

_DECLARATIONS = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        f"PRAGMA application_id = {APPLICATION_ID}",
        # AUTOINCREMENT never uses an id twice: deleting by id cannot hit a newer index of the same key.
        """
        CREATE TABLE indexes (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            key TEXT NOT NULL UNIQUE,
            name TEXT NOT NULL,
            root TEXT NOT NULL,
            splitter TEXT NOT NULL,
            classifier TEXT NOT NULL,
            encoder TEXT NOT NULL,
            embedded_text TEXT NOT NULL,
            token_counter TEXT NOT NULL,
            format INTEGER NOT NULL,
            dim INTEGER NOT NULL,
            n_nodes INTEGER NOT NULL,
            full_tokens INTEGER NOT NULL,
            created REAL NOT NULL,
            used REAL NOT NULL,
            size INTEGER NOT NULL,
            checksum TEXT NOT NULL
        )
        """,
        "CREATE INDEX indexes_by_used ON indexes (used)",
        """
        CREATE TABLE files (
            index_id INTEGER NOT NULL REFERENCES indexes (id) ON DELETE CASCADE,
            ordinal INTEGER NOT NULL,
            path TEXT NOT NULL,
            digest TEXT NOT NULL,
            PRIMARY KEY (index_id, ordinal)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE headings (
            index_id INTEGER NOT NULL REFERENCES indexes (id) ON DELETE CASCADE,
            ordinal INTEGER NOT NULL,
            level INTEGER NOT NULL,
            title TEXT NOT NULL,
            file INTEGER NOT NULL,
            start_line INTEGER NOT NULL,
            end_line INTEGER NOT NULL,
            start_char INTEGER NOT NULL,
            end_char INTEGER NOT NULL,
            PRIMARY KEY (index_id, ordinal)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE nodes (
            index_id INTEGER NOT NULL REFERENCES indexes (id) ON DELETE CASCADE,
            ordinal INTEGER NOT NULL,
            id TEXT NOT NULL,
            type TEXT NOT NULL,
            type_confidence REAL NOT NULL,
            tokens INTEGER NOT NULL,
            kind TEXT NOT NULL,
            file INTEGER NOT NULL,
            start_line INTEGER NOT NULL,
            end_line INTEGER NOT NULL,
            start_char INTEGER NOT NULL,
            end_char INTEGER NOT NULL,
            heading_path TEXT NOT NULL,
            list_position INTEGER,
            list_size INTEGER,
            lead_in_start_line INTEGER,
            lead_in_end_line INTEGER,
            lead_in_start_char INTEGER,
            lead_in_end_char INTEGER,
            PRIMARY KEY (index_id, ordinal)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE edges (
            index_id INTEGER NOT NULL REFERENCES indexes (id) ON DELETE CASCADE,
            ordinal INTEGER NOT NULL,
            source INTEGER NOT NULL,
            target INTEGER NOT NULL,
            kind TEXT NOT NULL,
            weight REAL NOT NULL,
            PRIMARY KEY (index_id, ordinal)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE embeddings (
            index_id INTEGER PRIMARY KEY REFERENCES indexes (id) ON DELETE CASCADE,
            data BLOB NOT NULL
        )
        """,
    ),
)


def migrate(
    connection: sqlite3.Connection, path: Path, migrations: Sequence[Sequence[str]] = MIGRATIONS
) -> None:
    """Bring the tables of a database up to date, in one transaction.

    Several processes may do so at once: whoever is second finds nothing left to do.

    Args:
        connection: In autocommit mode.
        path: The database file, for messages.
        migrations: All migrations, oldest first.

    Raises:
        StoreError: The file was written by a newer version, or belongs to another program.
        sqlite3.Error: The file is locked, read-only, damaged, or the disk is full.
    """
    newest = len(migrations)
    with transaction(connection, "BEGIN"):
        if _version(connection, path, newest=newest) == newest:
            return
    with transaction(connection, "BEGIN IMMEDIATE"):
        version = _version(connection, path, newest=newest)
        for statement in (statement for step in migrations[version:] for statement in step):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {newest}")


def check_tables(connection: sqlite3.Connection) -> list[str]:
    """Return what is wrong with the declarations of the tables: nothing, or one sentence."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        migrate(fresh, Path(":memory:"))
        expected = fresh.execute(_DECLARATIONS).fetchall()
    if connection.execute(_DECLARATIONS).fetchall() == expected:
        return []
    return ["the declarations of the tables were changed"]


def _version(connection: sqlite3.Connection, path: Path, *, newest: int) -> int:
    """Return the version of the tables, 0 for an empty file; refuse what must be left alone."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    if owner != APPLICATION_ID and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise StoreError(
            f"{path} is a SQLite database of another program, so no index can be kept in it: "
            "move that file, or set SKILLPAGER_CACHE_DIR to another folder."
        )
    if version > newest:
        raise StoreError(
            f"{path} was written by a newer SkillPager (version {version} of the tables, this one knows "
            f"{newest}): upgrade SkillPager, or set SKILLPAGER_CACHE_DIR to another folder."
        )
    return version
