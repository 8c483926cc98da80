"""Approximate routing: routes, statistics and migrations of libraries in PostgreSQL whose words no process holds."""

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from cli_process import environment, invoke
from conftest import SAMPLES
from postgres_server import PostgresServer
from skillpager import SkillPager
from skillpager.errors import SettingsError, StoreError
from skillpager.library import Library, SkillFilter
from skillpager.library.publishing import Publisher
from skillpager.library.routing import approximate
from skillpager.library.routing.approximate import skill_terms
from skillpager.library.routing.fields import FIELDS
from skillpager.library.routing.routes import Route
from skillpager.library.routing.vectors import load_vectors
from skillpager.library.routing.words import words_of
from skillpager.parsing.skill import read_skill
from skillpager.settings import Settings, load_settings
from skillpager.stores import postgres_library
from skillpager.stores.postgres import INDEXES, PostgresStore
from skillpager.stores.postgres_connection import Database, Part
from skillpager.stores.postgres_library import CODE_BITS, SKILLS, PostgresLibrary
from store_places import Place
from test_postgres_library import WORDS, made_skill, publish

DOCUMENT = Path(__file__).parents[2] / "docs" / "postgres.md"
QUERIES = [
    "find the commit that broke the tests",
    "a pod that never starts",
    "restore one table from a dump, then write release notes. Do not vacuum.",
    "unheard-of",
    *(f"{WORDS[n]} {WORDS[n + 3]} and {WORDS[(n * 7) % len(WORDS)]}" for n in range(0, 40, 2)),
    " ".join(WORDS),
]


@pytest.fixture
def store(database: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(database)) as opened:
        yield opened


Make = Callable[..., Library]


@pytest.fixture
def library(database: str, tmp_path: Path) -> Iterator[Make]:
    """A function that returns a library of the database, as a process on another host has it."""
    with ExitStack() as stack:
        made = iter(range(100))

        def make(routing: str = "approximate", *folders: Path, **options: object) -> Library:
            settings = Settings(cache_dir=tmp_path / "cache", store=database, routing=routing)
            pager = SkillPager(settings=settings, encoder="hashing")
            cache = tmp_path / f"catalog-{next(made)}"
            shared = Library(pager, folders, cache=cache, published="default", **options)  # type: ignore[arg-type]
            return stack.enter_context(closing(shared))

        yield make


def told(route: Route) -> list[object]:
    """Return all that a route says, but for where skills lie."""
    return [
        route.fits,
        route.searched,
        *((each.skill.name, each.chance, each.features, each.terms, each.licence) for each in route.skills),
    ]


def counted(database: str) -> tuple[Counter[str], int, list[int]]:
    """Return what a database counts of its only library: holders of lexemes, skills, and lengths."""
    place = Place(database)
    ((skills, lengths),) = place.execute("SELECT skills, lengths FROM libraries")
    return Counter(dict(place.execute("SELECT lexeme, holders FROM lexemes"))), skills, lengths


def recounted(database: str) -> tuple[Counter[str], int, list[int]]:
    """Return the same, counted anew from the words of its skills."""
    rows = Place(database).execute("SELECT words FROM skill_words")
    terms = [skill_terms(words) for (words,) in rows]
    holders = Counter(lexeme for each in terms for lexeme in each.counted)
    return holders, len(terms), [sum(each.lengths[field] for each in terms) for field in range(len(FIELDS))]


def test_routes_are_those_of_exact_routing(store: PostgresStore, library: Make, tmp_path: Path) -> None:
    """In a library in which the bounds leave nothing out; chances and features to the last digit."""
    folder = tmp_path / "skills"
    shutil.copytree(SAMPLES, folder)
    paths = [*(path.parent for path in folder.glob("*/SKILL.md"))]
    paths += [made_skill(folder, number) for number in range(300)]
    publish(store, paths)
    publish(
        store, [made_skill(folder, number, says="a pod that never starts") for number in range(0, 300, 50)]
    )
    store.library("default").remove(["skill-0007"])
    exact, found = library("exact"), library()
    for query in QUERIES:
        assert told(found.route(query, k=20)) == told(exact.route(query, k=20)), query
        again = found.route(query, k=20, for_model=True)
        assert told(again) == told(exact.route(query, k=20, for_model=True)), query
    assert found.page(QUERIES[0], max_tokens=800).text == exact.page(QUERIES[0], max_tokens=800).text


def test_lists_within_the_bounds_find_nearly_the_same(
    store: PostgresStore, library: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approximate, "MOST_POSTINGS", 1_500)
    publish(store, [made_skill(tmp_path / "skills", number) for number in range(600)])
    exact, found = library("exact"), library()
    shares = []
    for query in QUERIES[4:]:
        names = [{each.skill.name for each in one.route(query).skills} for one in (exact, found)]
        shares.append(len(names[0] & names[1]) / len(names[0]))
    assert sum(shares) / len(shares) > 0.9


def test_no_list_of_all_skills_is_read(store: PostgresStore, library: Make, tmp_path: Path) -> None:
    publish(store, [made_skill(tmp_path / "skills", number) for number in range(5)])
    found = library()
    assert found.has_skills()
    found.prepare()
    route = found.route("backup")
    assert route.searched == 5
    assert found._published is not None
    assert found._published._skills is None
    name = route.skills[0].skill.name
    assert route.skills[0].skill.read(scope="body").name == name


def test_a_change_is_found_by_the_next_route(store: PostgresStore, library: Make, tmp_path: Path) -> None:
    """Though the words of the skill as it was are in memory."""
    publish(store, [made_skill(tmp_path, number) for number in range(20)])
    found = library()
    assert found.route("vacuum", k=20).skills
    publish(store, [made_skill(tmp_path, 3, says="xylophone")])
    assert [each.skill.name for each in found.route("xylophone").skills] == ["skill-0003"]
    store.library("default").remove(["skill-0003"])
    assert found.route("xylophone").skills == ()


def test_lists_are_kept_until_many_skills_change(
    store: PostgresStore, library: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approximate, "MOST_CHANGED", 3)
    publish(store, [made_skill(tmp_path, number) for number in range(30)])
    found = library()
    read: list[int] = []
    postings = PostgresLibrary.postings

    def counting(self: PostgresLibrary, number: int, lexemes: Sequence[str]) -> list[bytes]:
        read.append(len(lexemes))
        return postings(self, number, lexemes)

    monkeypatch.setattr(PostgresLibrary, "postings", counting)
    query = " ".join(WORDS)
    found.route(query)
    pairs, lists = read
    assert lists > 10
    found.route(query)
    assert read == [pairs, lists, pairs]
    read.clear()
    for changed in range(1, 6):
        publish(store, [made_skill(tmp_path, changed, says="of another kind")])
        assert told(found.route(query, k=40)) == told(library("exact").route(query, k=40))
    # but for the lists of new lexemes all are kept, until the fourth change
    assert read.count(pairs) == 5
    assert sum(number > lists / 2 for number in read if number != pairs) == 1
    store.library("default").remove([f"skill-{number:04}" for number in range(10, 20)])
    assert told(found.route(query, k=40)) == told(library("exact").route(query, k=40))


def test_nearest_skills_come_from_an_index_of_pgvector(
    store: PostgresStore,
    server: PostgresServer,
    library: Make,
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the statements that the document gives an administrator."""
    publish(store, [made_skill(tmp_path, number) for number in range(300)])
    text = DOCUMENT.read_text(encoding="utf-8")
    for statement in re.findall(r"^CREATE (?:EXTENSION|INDEX) .*;$", text, re.MULTILINE):
        server.sql(statement, database.rpartition("/")[2])
    counts = store.library("default").counts([])
    assert counts is not None
    assert counts.vector_schema == "public"
    codes = Place(database).execute("SELECT code::text FROM skill_codes ORDER BY skill LIMIT 20")
    scanned = [store.library("default").nearest(counts, code, 30) for (code,) in codes]
    monkeypatch.setattr(postgres_library, "SCANNED_CODES", 1)
    indexed = [store.library("default").nearest(counts, code, 30) for (code,) in codes]
    same = [len({*one} & {*other}) / 30 for one, other in zip(scanned, indexed, strict=True)]
    assert [each[0] for each in indexed] == [each[0] for each in scanned]
    assert sum(same) / len(same) > 0.9  # of equally near ones others may come first
    assert library().route(QUERIES[4]).skills


def test_codes_have_the_digits_of_the_vectors() -> None:
    assert load_vectors().dim == CODE_BITS


def test_folders_are_searched_beside_the_store(store: PostgresStore, library: Make, tmp_path: Path) -> None:
    """A skill in a folder wins over a published one of its name, and counts beside the others."""
    publish(store, [made_skill(tmp_path / "published", number) for number in range(40)])
    own = tmp_path / "own"
    made_skill(own, 1, says="of our own")
    made_skill(own, 99)
    exact, found = library("exact", own), library("approximate", own)
    for query in QUERIES:
        names = [{each.skill.name for each in one.route(query).skills} for one in (exact, found)]
        # what a skill in a folder shadows is counted in the store: routes may differ in some places
        assert len(names[0] & names[1]) >= 0.7 * len(names[0])
    first = next(each for each in found.route("of our own").skills if each.skill.name == "skill-0001")
    assert first.skill.path == own / "skill-0001"
    assert [each.skill.name for each in found.route(" ".join(WORDS), k=50).skills].count("skill-0001") == 1


def test_filters_hold_for_published_skills(store: PostgresStore, library: Make, tmp_path: Path) -> None:
    path = made_skill(tmp_path, 1)
    publish(store, [path, made_skill(tmp_path, 2)])
    text = (path / "SKILL.md").read_text().replace("---\nname", "---\nlicense: MIT\nname", 1)
    (path / "SKILL.md").write_text(text)
    publish(store, [path])
    found = library(keep=SkillFilter(("MIT",), ()))
    assert [each.skill.name for each in found.route(" ".join(WORDS)).skills] == ["skill-0001"]


def test_counts_are_those_of_a_recount(store: PostgresStore, database: str, tmp_path: Path) -> None:
    """After publishing, a change, a removal, and publishing anew; what no skill holds is not kept."""
    paths = [made_skill(tmp_path, number) for number in range(12)]
    publish(store, paths)
    assert counted(database) == recounted(database)
    publish(store, [made_skill(tmp_path, 3, says="xylophone xylophone"), *paths[:2]])
    assert counted(database) == recounted(database)
    store.library("default").remove(["skill-0003", "skill-0004", "nobody"])
    assert counted(database) == recounted(database)
    assert 0 not in counted(database)[0].values()
    publish(store, paths)
    assert counted(database) == recounted(database)
    assert counted(database)[1] == 12
    store.library("default").remove([path.name for path in paths])
    assert counted(database) == (Counter(), 0, [0] * len(FIELDS))


def test_counts_are_true_whoever_writes_at_once(store: PostgresStore, database: str, tmp_path: Path) -> None:
    """Six writers publish, change and remove the same skills."""
    publish(store, [made_skill(tmp_path, 0)])

    def write(writer: int) -> None:
        with closing(PostgresStore(database)) as mine:
            for turn in range(4):
                folder = tmp_path / f"{writer}-{turn}"
                paths = [
                    made_skill(folder, number, says=f"turn {turn}") for number in range(writer, writer + 8)
                ]
                publish(mine, paths)
                mine.library("default").remove([f"skill-{writer + turn:04}"])

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(write, writer) for writer in range(6)]:
            done.result()
    assert counted(database) == recounted(database)


@pytest.mark.parametrize(("fewest", "most"), [(10, 3 * 30), (200, 200)])
def test_the_lists_that_a_query_reads_are_bounded(
    store: PostgresStore,
    library: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fewest: int,
    most: int,
) -> None:
    """By a number, or by the number of skills if that allows more; rare terms come first."""
    publish(store, [made_skill(tmp_path, number) for number in range(30)])
    monkeypatch.setattr(approximate, "MOST_POSTINGS", fewest)
    propose, entries = approximate._propose, list[int]()

    def counting(lists: object, postings: Sequence[Sequence[int]], *rest: object) -> object:
        entries.append(sum(map(len, postings)))
        return propose(lists, postings, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(approximate, "_propose", counting)
    assert len(library().route(" ".join(WORDS), k=10).skills) == 10
    assert most / 2 < entries[0] <= most


def test_libraries_count_their_own_skills(store: PostgresStore, database: str, tmp_path: Path) -> None:
    publish(store, [made_skill(tmp_path / "one", number) for number in range(3)], "team-a")
    publish(store, [made_skill(tmp_path / "other", number) for number in range(5)], "team-b")
    for name, size in (("team-a", 3), ("team-b", 5), ("team-c", 0)):
        settings = Settings(cache_dir=tmp_path / name, store=database, routing="approximate")
        with closing(Library(SkillPager(settings=settings, encoder="hashing"), [], published=name)) as shared:
            assert shared.route(" ".join(WORDS), k=10).searched == size
            assert len(shared.route(" ".join(WORDS), k=10).skills) == size
            assert shared.has_skills() is (size > 0)
    Place(database).execute("DELETE FROM libraries WHERE name = 'team-a'")
    assert Place(database).execute("SELECT count(*) FROM skill_terms") == [(5,)]
    assert counted(database) == recounted(database)


def test_a_library_of_an_older_release_is_made_searchable(
    database: str, library: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables of version 1, with skills in them; the next publisher stores their terms."""
    monkeypatch.setattr("skillpager.stores.postgres_library._TERMS_BATCH", 3)
    old = Database(database, INDEXES, Part("skills", SKILLS.migrations[:1]))
    paths = [made_skill(tmp_path, number) for number in range(8)]
    with closing(old):
        old.write(
            lambda connection: connection.execute(
                "INSERT INTO skillpager.libraries (name, version) VALUES ('default', 7)"
            )
        )
        for path in paths:
            skill = read_skill(path)
            body = skill.files[0].text[skill.files[0].body_start :]
            words = words_of(skill.name, skill.description, body)
            row = ["default", skill.name, skill.files[0].digest, skill.description, words]
            old.write(
                lambda connection, row=row: connection.execute(  # type: ignore[misc]
                    "INSERT INTO skillpager.skills VALUES (%s, %s, 7, false, %s, %s, false, '', '', '', '', %b, '')",
                    row,
                )
            )
    with closing(PostgresStore(database)) as store:
        store.probe()
        assert Place(database).execute("SELECT version FROM versions WHERE part = 'skills'") == [(2,)]
        found = library()
        with pytest.raises(StoreError, match=r"run `skillpager index` once"):
            found.route("backup")
        assert len(library("exact").route("backup", k=8).skills) == len(
            library("exact").route("backup").skills
        )
        Publisher(store.library("default"))
        assert counted(database) == recounted(database)
        assert counted(database)[1] == 8
        for query in QUERIES:
            assert told(found.route(query)) == told(library("exact").route(query))


def test_a_reader_without_rights_to_write_routes(
    store: PostgresStore, library: Make, database: str, tmp_path: Path
) -> None:
    publish(store, [made_skill(tmp_path, number) for number in range(3)])
    settings = Settings(
        cache_dir=tmp_path / "cache",
        store=f"{database}?options=-c%20default_transaction_read_only%3Don",
        routing="approximate",
    )
    pager = SkillPager(settings=settings, encoder="hashing")
    with closing(Library(pager, [], published="default")) as reading:
        assert reading.route("backup").searched == 3


def test_damage_and_a_store_that_is_away_are_told(
    store: PostgresStore, library: Make, database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    publish(store, [made_skill(tmp_path, 1)])
    Place(database).execute("UPDATE skill_words SET words = '\\x00'::bytea")
    with pytest.raises(StoreError, match="publish them again"):
        library().route(" ".join(WORDS))
    own = made_skill(tmp_path / "own", 2).parent
    assert [each.skill.name for each in library("approximate", own).route(" ".join(WORDS)).skills] == [
        "skill-0002"
    ]
    assert "only skills of folders are searched" in caplog.text


def test_a_skill_of_very_many_words_is_published(store: PostgresStore, library: Make, tmp_path: Path) -> None:
    """Of 80,000 different words; a `tsvector` holds no more than a megabyte."""
    path = tmp_path / "dictionary"
    path.mkdir()
    words = " ".join(f"w{number:x}q" for number in range(80_000))
    (path / "SKILL.md").write_text(f"---\nname: dictionary\ndescription: All words.\n---\n{words}\n")
    publish(store, [path])
    assert library().route("dictionary").skills[0].skill.name == "dictionary"


def test_commands_take_the_setting(database: str, tmp_path: Path) -> None:
    env = environment(tmp_path / "cache", SKILLPAGER_STORE=database, SKILLPAGER_ENCODER="hashing")
    assert invoke("index", SAMPLES, env=env).code == 0
    empty = tmp_path / "empty"
    empty.mkdir()
    asked = ("route", "find the commit that broke the tests", empty, "--json")
    exact = invoke(*asked, env=env)
    found = invoke(*asked, env=env | {"SKILLPAGER_ROUTING": "approximate"})
    assert found.code == 0
    assert found.out == exact.out
    wrong = invoke(*asked, env=env | {"SKILLPAGER_ROUTING": "fuzzy"})
    assert wrong.code == 1
    assert "it must be one of exact, approximate" in wrong.err


def test_the_setting_is_checked() -> None:
    assert load_settings(environ={}, project_file=None).routing == "exact"
    with pytest.raises(SettingsError, match="must be one of exact, approximate"):
        load_settings(environ={"SKILLPAGER_ROUTING": "fast"}, project_file=None)
