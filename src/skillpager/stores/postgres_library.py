"""The skills that teams share: libraries in a PostgreSQL database, with versions that count their changes.

Names, descriptions and words lie in rows, so that a process reads those alone that have changed since the
version that it knows. `docs/postgres.md` describes the tables.
"""

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import Any

from skillpager.stores.postgres_connection import Database, Part
from skillpager.stores.postgres_pool import Connection
from skillpager.stores.postgres_text import escaped, unescaped
from skillpager.types import PublishedSkill

SKILLS = Part(
    "skills",
    (
        (
            """CREATE TABLE skillpager.libraries (
                id bigint GENERATED ALWAYS AS IDENTITY, name text PRIMARY KEY, version bigint NOT NULL
            )""",
            # the row of a removed skill stays, without its text, so that readers learn that it is gone
            """CREATE TABLE skillpager.skills (
                library text NOT NULL REFERENCES skillpager.libraries ON DELETE CASCADE, name text NOT NULL,
                version bigint NOT NULL, removed boolean NOT NULL,
                digest text NOT NULL, description text NOT NULL, user_only boolean NOT NULL,
                stated_licence text NOT NULL, licence text NOT NULL, key text NOT NULL, state text NOT NULL,
                words bytea NOT NULL, content bytea NOT NULL, PRIMARY KEY (library, name)
            )""",
            "CREATE INDEX skills_by_version ON skillpager.skills (library, version)",
            # hashes are noise to a compressor, and the content is compressed
            """ALTER TABLE skillpager.skills
                ALTER words SET STORAGE EXTERNAL, ALTER content SET STORAGE EXTERNAL""",
        ),
    ),
)
CHANNEL = "skillpager_skills"

# Its lock, held until the transaction ends, makes versions appear in their order: a reader that has seen
# version 7 has seen all that was published before.
_NEXT_VERSION = """
    INSERT INTO skillpager.libraries (name, version) VALUES (%s, 1)
    ON CONFLICT (name) DO UPDATE SET version = libraries.version + 1 RETURNING version"""
_COLUMNS = "name, digest, description, user_only, stated_licence, licence, key, state"
_PUBLISH = f"""
    INSERT INTO skillpager.skills (library, version, removed, {_COLUMNS}, words, content)
    VALUES (%s, %s, false, %s, %s, %s, %s, %s, %s, %s, %s, %b, %b)
    ON CONFLICT (library, name) DO UPDATE SET
        version = excluded.version, removed = false, digest = excluded.digest,
        description = excluded.description, user_only = excluded.user_only,
        stated_licence = excluded.stated_licence, licence = excluded.licence, key = excluded.key,
        state = excluded.state, words = excluded.words, content = excluded.content
    WHERE skills.removed OR skills.state <> excluded.state RETURNING version"""
_REMOVE = """
    UPDATE skillpager.skills SET version = %s, removed = true, state = '', description = '', words = '',
        content = '' WHERE library = %s AND name = ANY(%s) AND NOT removed RETURNING name"""
_NOTIFY = f"SELECT pg_notify('{CHANNEL}', %s)"
_VERSION = "SELECT id, version FROM skillpager.libraries WHERE name = %s"
_CHANGES = f"""
    SELECT version, removed, {_COLUMNS} FROM skillpager.skills WHERE library = %s AND version > %s
    ORDER BY version"""
_WORDS = """
    SELECT name, digest, words FROM skillpager.skills WHERE library = %s AND name = ANY(%s) AND NOT removed"""
_CONTENT = """
    SELECT version, content FROM skillpager.skills WHERE library = %s AND name = %s AND NOT removed"""
# a library that was deleted and made again has another number: all of it is new
Version = tuple[int, int]
NEVER: Version = (0, 0)


class PostgresLibrary:
    """One library of a database. Methods raise `StoreError` where that cannot be reached, read or written.

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

    def publish(self, skill: PublishedSkill, words: bytes, content: bytes) -> bool:
        """Store a skill under its name, in place of another; return whether that changed anything.

        Args:
            skill: The skill.
            words: Its words, for routing.
            content: Its text.
        """
        values = [escaped(value) for value in astuple(skill)]

        def work(connection: Connection) -> bool:
            version = self._next_version(connection)
            statement = [self.name, version, *values, words, content]
            changed = connection.execute(_PUBLISH, statement).fetchone() is not None
            if changed:
                connection.execute(_NOTIFY, [f"{self.name} {version}"])
            return changed

        return self._database.write(work)

    def remove(self, names: Sequence[str]) -> list[str]:
        """Take skills out of the library; return the names of those that were there, in order."""

        def work(connection: Connection) -> list[str]:
            version = self._next_version(connection)
            wanted = [escaped(name) for name in names]
            removed = connection.execute(_REMOVE, [version, self.name, wanted]).fetchall()
            if removed:
                connection.execute(_NOTIFY, [f"{self.name} {version}"])
            return sorted(unescaped(name) for (name,) in removed)

        return self._database.write(work)

    def changes(self, since: Version = NEVER) -> tuple[Version, list[tuple[int, PublishedSkill | str]]]:
        """Return the version of the library, and what has changed since an earlier one.

        That is the version of each new or changed skill with the skill itself, and of each removed one with
        its name. If the library was deleted, or put back to an earlier state, all of it is new: then its
        version is not greater than `since`.
        """
        for known in (since, NEVER):
            found = self._database.read((_VERSION, (self.name,)), (_CHANGES, (self.name, known[1])))
            if not found or not found[0]:
                return NEVER, []
            ((id_, version),), rows = found
            if known[0] in (id_, 0) and version >= known[1]:
                break
        return (id_, version), [_change(row) for row in rows]

    def words(self, names: Sequence[str]) -> dict[str, tuple[str, bytes]]:
        """Return digest and words of the skills of some names, by name."""
        found = self._database.read((_WORDS, (self.name, [escaped(name) for name in names])))
        return {unescaped(name): (digest, words) for name, digest, words in found[0]} if found else {}

    def content(self, name: str) -> tuple[int, bytes] | None:
        """Return version and content of a skill; None if there is none of this name."""
        found = self._database.read((_CONTENT, (self.name, escaped(name))))
        return (found[0][0][0], found[0][0][1]) if found and found[0] else None

    def heard(self, seconds: float) -> Iterator[None]:
        """Yield once at the beginning, then after each change that the server tells of, or after `seconds`.

        The connection is the caller's alone until the iterator is closed.
        """
        with self._database.session() as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            while True:
                yield
                for _ in connection.notifies(timeout=seconds, stop_after=1):
                    pass

    def _next_version(self, connection: Connection) -> int:
        row = connection.execute(_NEXT_VERSION, [self.name]).fetchone()
        assert row is not None
        return int(row[0])


def _change(row: tuple[Any, ...]) -> tuple[int, PublishedSkill | str]:
    version, removed, *values = row
    values = [unescaped(value) for value in values]
    return version, values[0] if removed else PublishedSkill(*values)
