"""The skills that teams share: libraries in a PostgreSQL database, with versions that count their changes.

Names, descriptions and words lie in rows, so that a process reads those alone that have changed since the
version that it knows. `docs/postgres.md` describes the tables.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from skillpager.stores.postgres_connection import Database, Part
from skillpager.stores.postgres_pool import Connection
from skillpager.stores.postgres_text import escaped, unescaped
from skillpager.types import PublishedSkill, SkillTerms

# of the trained vectors of terms
CODE_BITS = 192
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
        (
            # what approximate routing needs: how many skills hold a term, and which
            """ALTER TABLE skillpager.libraries ADD UNIQUE (id), ADD skills bigint NOT NULL DEFAULT 0,
                ADD lengths bigint[] NOT NULL DEFAULT '{}', ADD searchable boolean NOT NULL DEFAULT false""",
            # small numbers, for there are hundreds of them in each answer
            "ALTER TABLE skillpager.skills ADD id integer GENERATED ALWAYS AS IDENTITY UNIQUE",
            # rows are short but for the lexemes, which lie elsewhere: a search visits many rows
            """CREATE TABLE skillpager.skill_terms (
                skill integer PRIMARY KEY REFERENCES skillpager.skills (id) ON DELETE CASCADE,
                lengths integer[] NOT NULL, lexemes tsvector NOT NULL
            )""",
            "ALTER TABLE skillpager.skill_terms ALTER lexemes SET STORAGE EXTERNAL",
            # Hundreds of these are read for a query. In rows that fill pages that takes a third of the time
            # that it takes where words lie elsewhere.
            """CREATE TABLE skillpager.skill_words (
                skill integer PRIMARY KEY REFERENCES skillpager.skills (id) ON DELETE CASCADE,
                words bytea NOT NULL, vectors bytea
            ) WITH (toast_tuple_target = 8160)""",
            "ALTER TABLE skillpager.skill_words ALTER words SET STORAGE EXTERNAL",
            "INSERT INTO skillpager.skill_words SELECT id, words FROM skillpager.skills WHERE NOT removed",
            "ALTER TABLE skillpager.skills DROP words",
            # the codes of all skills of a library are compared with that of each query: rows are short
            f"""CREATE TABLE skillpager.skill_codes (
                skill integer PRIMARY KEY REFERENCES skillpager.skills (id) ON DELETE CASCADE,
                library bigint NOT NULL, code bit({CODE_BITS}) NOT NULL
            )""",
            "CREATE INDEX skill_codes_by_library ON skillpager.skill_codes (library)",
            # a list of what is pending would be read once for each lexeme of a query
            """CREATE INDEX skill_terms_by_lexeme ON skillpager.skill_terms USING gin (lexemes)
                WITH (fastupdate = off)""",
            # a row is changed where it lies if its page has room
            """CREATE TABLE skillpager.lexemes (
                library bigint NOT NULL REFERENCES skillpager.libraries (id) ON DELETE CASCADE,
                lexeme text COLLATE "C" NOT NULL, holders integer NOT NULL, PRIMARY KEY (library, lexeme)
            ) WITH (fillfactor = 70)""",
        ),
    ),
)
CHANNEL = "skillpager_skills"

# Its lock, held until the transaction ends, makes versions appear in their order: a reader that has seen
# version 7 has seen all that was published before.
_NEXT_VERSION = """
    INSERT INTO skillpager.libraries (name, version, searchable) VALUES (%s, 1, true)
    ON CONFLICT (name) DO UPDATE SET version = libraries.version + 1 RETURNING version, id"""
_COLUMNS = "name, digest, description, user_only, stated_licence, licence, key, state"
_PUBLISH = f"""
    INSERT INTO skillpager.skills (library, version, removed, {_COLUMNS}, content)
    VALUES (%s, %s, false, %s, %s, %s, %s, %s, %s, %s, %s, %b)
    ON CONFLICT (library, name) DO UPDATE SET
        version = excluded.version, removed = false, digest = excluded.digest,
        description = excluded.description, user_only = excluded.user_only,
        stated_licence = excluded.stated_licence, licence = excluded.licence, key = excluded.key,
        state = excluded.state, content = excluded.content
    WHERE skills.removed OR skills.state <> excluded.state RETURNING id"""
_REMOVE = """
    UPDATE skillpager.skills SET version = %s, removed = true, state = '', description = '', content = ''
    WHERE library = %s AND name = ANY(%s) AND NOT removed RETURNING name, id"""
# Terms of skills, and how many hold each: the lock on the library's row orders these changes as well. In the
# lexemes of skills the library's number stands first, so that no search visits the skills of another.
_ADD_TERMS = """
    INSERT INTO skillpager.skill_terms (skill, lengths, lexemes)
    VALUES (%s, %s, array_to_tsvector(%s::text[]))"""
_ADD_CODE = f"INSERT INTO skillpager.skill_codes (skill, library, code) VALUES (%s, %s, %s::bit({CODE_BITS}))"
_DROP_CODES = "DELETE FROM skillpager.skill_codes WHERE skill = ANY(%s::integer[])"
_ADD_WORDS = "INSERT INTO skillpager.skill_words (skill, words, vectors) VALUES (%s, %b, %b)"
_SET_VECTORS = "UPDATE skillpager.skill_words SET vectors = %b WHERE skill = %s"
_DROP_WORDS = "DELETE FROM skillpager.skill_words WHERE skill = ANY(%s::integer[])"
_COUNT_TERMS = """
    INSERT INTO skillpager.lexemes (library, lexeme, holders)
    SELECT %s, lexeme, 1 FROM unnest(%s::text[]) AS lexeme
    ON CONFLICT (library, lexeme) DO UPDATE SET holders = lexemes.holders + 1"""
_DISCOUNT_TERMS = """
    WITH gone AS (
        SELECT substr(lexeme, %s) COLLATE "C" AS lexeme, count(*)::integer AS skills
        FROM skillpager.skill_terms, unnest(tsvector_to_array(lexemes)) AS lexeme
        WHERE skill = ANY(%s::integer[]) GROUP BY 1
    ), counted AS (
        UPDATE skillpager.lexemes SET holders = holders - gone.skills FROM gone
        WHERE library = %s AND lexemes.lexeme = gone.lexeme RETURNING lexemes.lexeme, holders
    ) SELECT lexeme FROM counted WHERE holders = 0"""
_DROP_TERMS = "DELETE FROM skillpager.skill_terms WHERE skill = ANY(%s::integer[]) RETURNING lengths"
_DROP_UNHELD = """
    DELETE FROM skillpager.lexemes WHERE library = %s AND lexeme = ANY(%s::text[]) AND holders = 0"""
_COUNT_SKILLS = """
    UPDATE skillpager.libraries SET skills = skills + %s, lengths = (
        SELECT array_agg(coalesce(old, 0) + coalesce(new, 0) ORDER BY place)
        FROM unnest(lengths, %s::bigint[]) WITH ORDINALITY AS pairs (old, new, place)
    ) WHERE id = %s"""
_WITHOUT_TERMS = """
    SELECT id, words FROM skillpager.skills JOIN skillpager.skill_words ON skill = id
    WHERE library = %s AND NOT EXISTS (SELECT FROM skillpager.skill_terms WHERE skill = id) LIMIT %s"""
_LOCK = "SELECT id FROM skillpager.libraries WHERE name = %s FOR UPDATE"
_IS_SEARCHABLE = "SELECT searchable FROM skillpager.libraries WHERE name = %s"
_SET_SEARCHABLE = "UPDATE skillpager.libraries SET searchable = true WHERE id = %s"
_COUNTS = """
    SELECT id, version, skills, lengths, searchable, (
        SELECT extnamespace::regnamespace::text FROM pg_extension
        WHERE extname = 'vector' AND to_regclass('skillpager.skill_codes_nearest') IS NOT NULL
    ) FROM skillpager.libraries WHERE name = %s"""
_HOLDERS = """
    SELECT found.lexeme, found.holders FROM unnest(%s::text[]) AS term, LATERAL (
        SELECT lexeme, holders FROM skillpager.lexemes
        WHERE library = (SELECT id FROM skillpager.libraries WHERE name = %s)
            AND lexeme >= term AND lexeme < term || '~'
    ) AS found"""
# whatever the planner believes of the lexemes: to read those of all skills would take seconds
_BY_INDEX = "SELECT set_config('enable_seqscan', 'off', true)"
_POSTINGS = """
    SELECT (SELECT string_agg(int4send(skill), ''::bytea) FROM skillpager.skill_terms
        WHERE lexemes @@ asked.lexeme::tsquery)
    FROM unnest(%s::text[]) WITH ORDINALITY AS asked (lexeme, place) ORDER BY place"""
_CHANGED = "SELECT id FROM skillpager.skills WHERE library = %s AND version > %s LIMIT %s"
_NEAREST = f"""
    WITH found AS (
        SELECT skill, bit_count(code # %s::bit({CODE_BITS})) AS digits FROM skillpager.skill_codes
        WHERE library = %s ORDER BY digits FETCH FIRST %s ROWS WITH TIES
    ) SELECT skill, digits, name, vectors FROM found
    JOIN skillpager.skill_words USING (skill) JOIN skillpager.skills ON id = skill"""
# The same by the HNSW index of pgvector, which an administrator makes for large libraries. With lists of 800
# it found 99.8 % of the 200 nearest of 60,000.
_NEARLY_NEAREST = f"""
    WITH found AS (
        SELECT skill, code OPERATOR({{}}.<~>) %s::bit({CODE_BITS}) AS digits FROM skillpager.skill_codes
        WHERE library = %s ORDER BY digits LIMIT %s
    ) SELECT skill, digits, name, vectors FROM found
    JOIN skillpager.skill_words USING (skill) JOIN skillpager.skills ON id = skill"""
_BY_NEAREST = """
    SELECT set_config('hnsw.ef_search', '800', true),
        set_config('hnsw.iterative_scan', 'strict_order', true)"""
_NOW_THERE = "SELECT id, version FROM skillpager.skills WHERE id = ANY(%s::integer[]) AND NOT removed"
_SKILLS = f"""
    SELECT id, version, words, vectors, {_COLUMNS} FROM skillpager.skills
    JOIN skillpager.skill_words ON skill = id WHERE id = ANY(%s::integer[])"""
# to compare with the codes of so many takes 10 ms
SCANNED_CODES = 50_000
# skills whose terms are stored in one transaction
_TERMS_BATCH = 200
_NOTIFY = f"SELECT pg_notify('{CHANNEL}', %s)"
_VERSION = "SELECT id, version FROM skillpager.libraries WHERE name = %s"
_CHANGES = f"""
    SELECT version, removed, {_COLUMNS} FROM skillpager.skills WHERE library = %s AND version > %s
    ORDER BY version"""
_WORDS = """
    SELECT name, digest, words FROM skillpager.skills JOIN skillpager.skill_words ON skill = id
    WHERE library = %s AND name = ANY(%s)"""
_CONTENT = """
    SELECT version, content FROM skillpager.skills WHERE library = %s AND name = %s AND NOT removed"""
# a library that was deleted and made again has another number: all of it is new
Version = tuple[int, int]
NEVER: Version = (0, 0)


@dataclass(frozen=True, slots=True)
class LibraryCounts:
    """What a library holds in all, and how many of its skills hold some terms.

    Attributes:
        id: Number of the library, which stands before the lexemes of its skills.
        version: Its version.
        skills: Number of its skills.
        lengths: The terms of all skills together in each field, repetitions included; empty without skills.
        searchable: Whether the terms of all skills are stored.
        vector_schema: Where pgvector is, if there is an index of the nearest codes; else None.
        holders: Number of skills that hold each of the lexemes that begin with a term asked for.
    """

    id: int
    version: int
    skills: int
    lengths: tuple[int, ...]
    searchable: bool
    vector_schema: str | None
    holders: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class StoredSkill:
    """A skill of a library with what routing knows of it.

    Attributes:
        version: Version of the library that brought it.
        skill: The skill.
        words: Its words.
        vectors: Its vectors.
    """

    version: int
    skill: PublishedSkill
    words: bytes
    vectors: bytes


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

    def publish(self, skill: PublishedSkill, words: bytes, content: bytes, terms: SkillTerms) -> bool:
        """Store a skill under its name, in place of another; return whether that changed anything.

        Args:
            skill: The skill.
            words: Its words, for routing.
            content: Its text.
            terms: Its terms, for approximate routing.
        """
        values = [escaped(value) for value in astuple(skill)]

        def work(connection: Connection) -> bool:
            version, library = self._next_version(connection)
            row = connection.execute(_PUBLISH, [self.name, version, *values, content]).fetchone()
            if row is not None:
                unheld = _discount(connection, library, [row[0]])
                connection.execute(_ADD_WORDS, [row[0], words, terms.vectors])
                _count(connection, library, row[0], terms)
                connection.execute(_DROP_UNHELD, [library, unheld])
                connection.execute(_NOTIFY, [f"{self.name} {version}"])
            return row is not None

        return self._database.write(work)

    def remove(self, names: Sequence[str]) -> list[str]:
        """Take skills out of the library; return the names of those that were there, in order."""

        def work(connection: Connection) -> list[str]:
            version, library = self._next_version(connection)
            wanted = [escaped(name) for name in names]
            removed = connection.execute(_REMOVE, [version, self.name, wanted]).fetchall()
            if removed:
                unheld = _discount(connection, library, [id_ for _, id_ in removed])
                connection.execute(_DROP_UNHELD, [library, unheld])
                connection.execute(_NOTIFY, [f"{self.name} {version}"])
            return sorted(unescaped(name) for name, _ in removed)

        return self._database.write(work)

    def make_searchable(self, skill_terms: Callable[[bytes], SkillTerms]) -> None:
        """Store the terms of skills that an older release has published, if there are any.

        Args:
            skill_terms: Returns the terms that words hold.
        """
        found = self._database.read((_IS_SEARCHABLE, (self.name,)))
        if found is not None and found[0] in ([], [(True,)]):
            return

        def store_some(connection: Connection) -> bool:
            row = connection.execute(_LOCK, [self.name]).fetchone()
            if row is None:
                return False
            (library,) = row
            rows = connection.execute(_WITHOUT_TERMS, [self.name, _TERMS_BATCH], binary=True).fetchall()
            for skill, words in rows:
                terms = skill_terms(words)
                connection.execute(_SET_VECTORS, [terms.vectors, skill])
                _count(connection, library, skill, terms)
            if len(rows) < _TERMS_BATCH:
                connection.execute(_SET_SEARCHABLE, [library])
            return len(rows) == _TERMS_BATCH

        while self._database.write(store_some):
            pass

    def counts(self, terms: Sequence[str]) -> LibraryCounts | None:
        """Return how many skills hold lexemes that begin with some terms; None without such a library."""
        found = self._database.read((_COUNTS, (self.name,)), (_HOLDERS, (list(terms), self.name)))
        if not found or not found[0]:
            return None
        ((id_, version, skills, lengths, searchable, schema),), holders = found
        return LibraryCounts(id_, version, skills, tuple(lengths), searchable, schema, dict(holders))

    def changed(self, since: int, most: int) -> list[int]:
        """Return the ids of skills that are new, changed or removed since a version; `most` at most."""
        found = self._database.read((_CHANGED, (self.name, since, most)))
        return [id_ for (id_,) in found[0]] if found else []

    def postings(self, library: int, lexemes: Sequence[str]) -> list[bytes]:
        """Return which skills hold each lexeme: their ids, in four bytes each, big-endian.

        Args:
            library: Number of the library.
            lexemes: The lexemes.
        """
        asked = [f"{library}{lexeme}" for lexeme in lexemes]
        found = self._database.read((_BY_INDEX, ()), (_POSTINGS, (asked,)))
        return [ids or b"" for (ids,) in found[1]] if found else []

    def nearest(self, counts: LibraryCounts, code: str, most: int) -> list[tuple[int, bytes]]:
        """Return the ids and vectors of the skills whose codes differ from another in the fewest digits.

        In a library of `SCANNED_CODES` skills or more they come from the HNSW index, if there is one, which
        may miss some.

        Args:
            counts: Of the library.
            code: The other code.
            most: So many skills at most; of equally near ones those whose names come first.
        """
        asked = (code, counts.id, most)
        if counts.vector_schema is not None and counts.skills >= SCANNED_CODES:
            statement = _NEARLY_NEAREST.format(counts.vector_schema)
            found = self._database.read((_BY_NEAREST, ()), (statement, asked))
        else:
            found = self._database.read((_NEAREST, asked))
        rows = found[-1] if found else []
        rows = sorted(rows, key=lambda row: (row[1], unescaped(row[2])))
        return [(int(id_), bytes(vectors)) for id_, _, _, vectors in rows[:most]]

    def skills(self, ids: Sequence[int], known: Mapping[int, StoredSkill]) -> dict[int, StoredSkill]:
        """Return the skills of some ids; those that are known are read only if they have changed."""
        unknown = [id_ for id_ in ids if id_ not in known]
        while True:
            found = self._database.read((_NOW_THERE, (list(ids),)), (_SKILLS, (unknown,)))
            if not found:
                return {}
            versions: dict[int, int] = dict(found[0])
            read = {id_: _stored(*row) for id_, *row in found[1]}
            held = {
                id_: known[id_]
                for id_, version in versions.items()
                if id_ in known and known[id_].version == version
            }
            changed = [id_ for id_ in versions if id_ not in held and id_ not in read]
            if not changed:
                return held | read
            unknown += changed

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

    def _next_version(self, connection: Connection) -> tuple[int, int]:
        """Lock the library for this transaction; return its next version, and its number."""
        row = connection.execute(_NEXT_VERSION, [self.name]).fetchone()
        assert row is not None
        return row[0], row[1]


def _count(connection: Connection, library: int, skill: int, terms: SkillTerms) -> None:
    """Store the terms of a skill that has none stored."""
    lexemes = [f"{library}{lexeme}" for lexeme in (*terms.counted, *terms.uncounted)]
    with connection.pipeline():
        connection.execute(_ADD_TERMS, [skill, list(terms.lengths), lexemes])
        connection.execute(_ADD_CODE, [skill, library, terms.code])
        connection.execute(_COUNT_TERMS, [library, list(terms.counted)])
        connection.execute(_COUNT_SKILLS, [1, list(terms.lengths), library])


def _discount(connection: Connection, library: int, skills: Sequence[int]) -> list[str]:
    """Take out the terms of skills, if any are stored; return the lexemes that no skill holds any more."""
    behind_library = len(str(library)) + 1
    unheld = connection.execute(_DISCOUNT_TERMS, [behind_library, list(skills), library]).fetchall()
    for statement in (_DROP_CODES, _DROP_WORDS):
        connection.execute(statement, [list(skills)])
    gone = connection.execute(_DROP_TERMS, [list(skills)]).fetchall()
    if gone:
        less = [-sum(lengths) for lengths in zip(*(row[0] for row in gone), strict=True)]
        connection.execute(_COUNT_SKILLS, [-len(gone), less, library])
    return [lexeme for (lexeme,) in unheld]


def _stored(version: int, words: bytes, vectors: bytes, *values: Any) -> StoredSkill:
    return StoredSkill(version, PublishedSkill(*(unescaped(value) for value in values)), words, vectors)


def _change(row: tuple[Any, ...]) -> tuple[int, PublishedSkill | str]:
    version, removed, *values = row
    values = [unescaped(value) for value in values]
    return version, values[0] if removed else PublishedSkill(*values)
