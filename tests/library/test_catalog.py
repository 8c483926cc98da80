"""The catalog: what a process learned of skills is there for the next, whatever happens to the file."""

import logging
import os
import random
import shutil
import sqlite3
import time
from contextlib import closing, nullcontext
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

import catalog_workers
import skillpager.library.discovery
import skillpager.library.routing.upkeep
from conftest import Processes
from plain_parts import plain_pager
from skillpager.errors import StoreError
from skillpager.library import Library, Route
from skillpager.library.routing.catalog import Catalog

KILLS = 4


def write(folder: Path, number: int, words: str = "") -> Path:
    """Write a skill that is old enough to be known by its time stamps."""
    path = folder / f"skill-{number}"
    path.mkdir(parents=True, exist_ok=True)
    text = f"---\ndescription: About topic{number}.\n---\nThe body of all skills. {words}\n"
    (path / "SKILL.md").write_text(text, encoding="utf-8")
    return path


def settle(folder: Path) -> None:
    """Wait until the time stamps of what was written are old enough to be trusted."""
    time.sleep(max(0.0, 2.05 - (time.time() - folder.stat().st_mtime)))


def route(library: Library, query: str, k: int = 10) -> Route:
    library.found(fresh=True)
    return library.route(query, k=k)


def names(found: Route) -> list[str]:
    return [routed.skill.name for routed in found.skills]


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    folder = tmp_path / "skills"
    for number in range(12):
        write(folder, number)
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "own-cache"


def library_of(skills: Path, cache: Path) -> Library:
    return Library(plain_pager(cache, cache), [skills])


def same_routes(one: Route, other: Route) -> bool:
    """Return whether two routes name the same skills with the same numbers."""
    return (one.fits, one.searched, one.skills) == (other.fits, other.searched, other.skills)


class Readings:
    """Counts the skills that are read, by discovery and for their words."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: list[str] = []
        for module in (skillpager.library.discovery, skillpager.library.routing.upkeep):
            monkeypatch.setattr(module, "read_skill", self._counted(module.read_skill))

    def _counted(self, read):  # type: ignore[no-untyped-def]
        def counted(path: Path, **options: object):  # type: ignore[no-untyped-def]
            self.paths.append(path.name)
            return read(path, **options)

        return counted

    def taken(self) -> set[str]:
        """Return the names of the folders that were read since the last call."""
        taken, self.paths = set(self.paths), []
        return taken


def test_the_next_process_reads_only_what_is_new(
    skills: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(skills)
    readings = Readings(monkeypatch)
    first = library_of(skills, cache).route("topic3")
    assert len(readings.taken()) == 12
    second = library_of(skills, cache)
    assert same_routes(second.route("topic3"), first)
    assert readings.taken() == set()

    write(skills, 12)
    write(skills, 3, "changed")
    shutil.rmtree(skills / "skill-5")
    assert names(route(second, "topic12", 1)) == ["skill-12"]
    assert readings.taken() == {"skill-12", "skill-3"}
    assert names(second.route("changed", k=1)) == ["skill-3"]
    assert "skill-5" not in names(second.route("topic5"))
    # what was learned in steps is what is learned at once
    at_once = library_of(skills, cache / "other")
    for query in ("topic3 changed", "topic5", "the body of all skills", "topic12"):
        assert same_routes(second.route(query), at_once.route(query))


def test_what_is_in_no_folder_any_more_leaves_the_file(skills: Path, cache: Path) -> None:
    library = library_of(skills, cache)
    library.prepare()
    shutil.rmtree(skills)
    write(skills, 99)
    assert names(route(library, "topic99")) == ["skill-99"]
    with closing(sqlite3.connect(cache / "catalog.db")) as connection:
        assert connection.execute("SELECT count(*) FROM readings").fetchone() == (1,)
        assert connection.execute("SELECT skills FROM segments").fetchall() == [(1,)]


def test_libraries_share_the_words_of_a_skill(
    skills: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library_of(skills, cache).prepare()
    copies = tmp_path / "copies"
    shutil.copytree(skills, copies)
    write(copies, 50)
    reads: list[Path] = []
    read = skillpager.library.routing.upkeep.read_skill
    monkeypatch.setattr(
        skillpager.library.routing.upkeep,
        "read_skill",
        lambda path, **of: reads.append(path) or read(path, **of),
    )
    found = library_of(copies, cache).route("topic7", k=1)
    assert found.skills[0].skill.path == copies / "skill-7"
    assert reads == [copies / "skill-50"]
    assert library_of(skills, cache).route("topic50").searched == 12


def test_folders_may_be_relative(
    skills: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settle(skills)
    library_of(skills, cache).prepare()
    monkeypatch.chdir(tmp_path)
    readings = Readings(monkeypatch)
    found = library_of(Path("skills"), cache).route("topic7", k=1)
    assert found.skills[0].skill.path == Path("skills/skill-7")
    assert readings.taken() == set()


def test_many_small_segments_are_merged(skills: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillpager.library.routing.catalog.SMALL", 3)
    monkeypatch.setattr("skillpager.library.routing.catalog.TIER", 2)
    monkeypatch.setattr("skillpager.library.routing.upkeep.BATCH", 2)
    library = library_of(skills, cache)
    library.prepare()
    with closing(sqlite3.connect(cache / "catalog.db")) as connection:
        count, total = connection.execute("SELECT count(*), sum(skills) FROM segments").fetchone()
    assert (count <= 3, total) == (True, 12)
    assert same_routes(library.route("topic7"), library_of(skills, cache / "other").route("topic7"))


def test_merging_keeps_segments_few_and_bounded(
    skills: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each skill is written a few times, and memory holds no more than a segment of the largest size."""
    monkeypatch.setattr("skillpager.library.routing.catalog.SMALL", 2)
    monkeypatch.setattr("skillpager.library.routing.catalog.TIER", 2)
    monkeypatch.setattr("skillpager.library.routing.upkeep.BATCH", 2)
    for number in range(12, 48):
        write(skills, number)
    library_of(skills, cache).prepare()
    select = "SELECT skills, length(data) FROM segments ORDER BY skills"
    with closing(sqlite3.connect(cache / "catalog.db")) as connection:
        assert [row[0] for row in connection.execute(select)] == [16, 32]
        ((_, largest),) = connection.execute(f"{select} LIMIT 1")
    monkeypatch.setattr("skillpager.library.routing.catalog.LARGEST_BYTES", largest)
    bounded = library_of(skills, cache / "bounded")
    bounded.prepare()
    with closing(sqlite3.connect(cache / "bounded" / "catalog.db")) as connection:
        rows = connection.execute(select).fetchall()
    assert len(rows) > 2
    assert max(length for _, length in rows) <= largest
    assert same_routes(bounded.route("topic7"), library_of(skills, cache / "other").route("topic7"))


def test_a_segment_of_which_most_is_gone_is_written_anew(
    skills: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillpager.library.routing.catalog.SMALL", 2)
    library = library_of(skills, cache)
    library.prepare()
    for number in range(7):
        shutil.rmtree(skills / f"skill-{number}")
    write(skills, 99)
    assert names(route(library, "topic99", 1)) == ["skill-99"]
    with closing(sqlite3.connect(cache / "catalog.db")) as connection:
        assert connection.execute("SELECT skills FROM segments").fetchall() == [(6,)]


@pytest.mark.parametrize("broken", ["segments", "add"])
def test_words_that_cannot_be_read_back_are_made_in_memory(
    broken: str, skills: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk may fail, or be full, in the middle of a library."""
    expected = library_of(skills, cache / "other").route("topic7")
    monkeypatch.setattr("skillpager.library.routing.upkeep.BATCH", 5)
    method, calls = getattr(Catalog, broken), []

    def fail(*arguments: object) -> object:
        calls.append(broken)
        if broken == "segments" or len(calls) > 1:
            raise StoreError("no room on the disk")
        return method(*arguments)

    monkeypatch.setattr(Catalog, broken, fail)
    assert same_routes(library_of(skills, cache).route("topic7"), expected)
    assert sum("stays in memory for now" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("damage", ["segment", "file", "readings"])
def test_damage_is_noticed_and_made_good(
    damage: str, skills: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    library = library_of(skills, cache)
    library.prepare()
    expected = library.route("topic7")
    path = cache / "catalog.db"
    if damage == "file":
        path.write_bytes(b"no database at all" * 100)
    else:
        with closing(sqlite3.connect(path)) as connection, connection:
            if damage == "segment":
                connection.execute("UPDATE segments SET data = substr(data, 1, 100) || 'x'")
            else:
                connection.execute("UPDATE readings SET stamps = 'x'")
    with nullcontext(Catalog(cache)) as catalog:
        assert bool(catalog.verify()) == (damage != "readings")
    assert same_routes(library_of(skills, cache).route("topic7"), expected)
    assert same_routes(library_of(skills, cache).route("topic7"), expected)
    with nullcontext(Catalog(cache)) as catalog:
        assert catalog.verify() == []
    assert any("damaged" in record.message for record in caplog.records) == (damage != "readings")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs permissions")
def test_a_folder_that_may_not_be_written_is_read(skills: Path, cache: Path) -> None:
    expected = library_of(skills, cache).route("topic7")
    cache.chmod(0o500)
    try:
        assert same_routes(library_of(skills, cache).route("topic7"), expected)
    finally:
        cache.chmod(0o700)


def test_routing_works_without_a_file(skills: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    blocked = tmp_path / "a-file"
    blocked.write_text("in the place of the cache")
    library = library_of(skills, blocked)
    with caplog.at_level(logging.WARNING):
        assert names(library.route("topic7", k=1)) == ["skill-7"]
    write(skills, 12)
    assert names(route(library, "topic12", 1)) == ["skill-12"]
    assert len({record.message for record in caplog.records if "stays in memory" in record.message}) == 1


def test_readings_that_cannot_be_stored_cost_one_warning(
    skills: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "a-file"
    blocked.write_text("in the place of the cache")
    library = library_of(skills, blocked)
    with caplog.at_level(logging.WARNING):
        assert len(library.found()) == 12
        write(skills, 12)
        assert len(library.found(fresh=True)) == 13
    (said,) = (record.getMessage() for record in caplog.records)
    assert said.startswith("what was read of skills is not stored")
    assert str(blocked) in said


def run_all(children: list[BaseProcess]) -> None:
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0] * len(children)


@pytest.fixture(scope="module")
def processes() -> Processes:
    return Processes()


def test_processes_begin_a_catalog_together(processes: Processes, skills: Path, cache: Path) -> None:
    barrier = processes.Barrier(3)
    run_all(
        [
            processes.Process(target=catalog_workers.route_together, args=(skills, cache, barrier))
            for _ in range(3)
        ]
    )
    with closing(sqlite3.connect(cache / "catalog.db")) as connection:
        assert connection.execute("SELECT sum(skills) FROM segments").fetchone() == (12,)


def test_kills_leave_a_whole_catalog(processes: Processes, skills: Path, cache: Path) -> None:
    rng = random.Random(7)
    for _ in range(KILLS):
        ready = processes.Event()
        child = processes.Process(target=catalog_workers.prepare_for_ever, args=(skills, cache, ready))
        child.start()
        assert ready.wait(30)
        time.sleep(rng.uniform(0, 0.06))
        child.kill()
        child.join()
        child.close()
        assert Catalog(cache).verify() == []
    library = library_of(skills, cache)
    assert names(library.route("topic1000", k=1)) == ["skill-1000"]
    assert names(library.route("topic7", k=1)) == ["skill-7"]


def test_words_outlast_readings_that_could_not_be_stored(
    skills: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merging drops no skill of the library that merges, whatever the file knows of it."""

    def fail(*_: object) -> None:
        raise StoreError("busy")

    monkeypatch.setattr(Catalog, "save_readings", fail)
    Library(plain_pager(cache, cache), [skills]).route("topic3 of all", k=1)
    (skills / "new").mkdir()
    (skills / "new" / "SKILL.md").write_text("---\ndescription: About topic99.\n---\ntext\n")
    again = Library(plain_pager(cache, cache), [skills])
    assert again.route("topic3 of all", k=1).skills[0].skill.name == "skill-3"
    assert again.route("topic99", k=1).skills[0].skill.name == "new"
