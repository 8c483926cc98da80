"""The catalog: what a process learned of skills is there for the next, whatever happens to the file."""

import logging
import os
import random
import shutil
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from tantivy import Index

import catalog_workers
import skillpager.library.discovery
from conftest import Processes, run_all, write_skill
from plain_parts import plain_pager
from skillpager.library import FoundSkill, Library, Route
from skillpager.library.routing.catalog import Catalog
from skillpager.library.routing.word_index import WordIndex
from skillpager.parsing.skill import read_skill

KILLS = 4


def write(folder: Path, number: int, words: str = "") -> Path:
    """Write a skill that is old enough to be known by its time stamps."""
    body = f"The body of all skills. {words}\n"
    return write_skill(folder / f"skill-{number}", body, description=f"About topic{number}.")


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


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Notes the skills that are read, by discovery and for their words."""
    counted = Mock(wraps=read_skill)
    monkeypatch.setattr(skillpager.library.discovery, "read_skill", counted)
    return counted


def taken(read: Mock) -> set[str]:
    """Return the names of the folders that were read since the last call."""
    paths = {call.args[0].name for call in read.call_args_list}
    read.reset_mock()
    return paths


def test_the_next_process_reads_only_what_is_new(skills: Path, cache: Path, read: Mock) -> None:
    settle(skills)
    first = library_of(skills, cache).route("topic3")
    assert len(taken(read)) == 12
    second = library_of(skills, cache)
    assert same_routes(second.route("topic3"), first)
    assert taken(read) == set()

    write(skills, 12)
    write(skills, 3, "changed")
    shutil.rmtree(skills / "skill-5")
    assert names(route(second, "topic12", 1)) == ["skill-12"]
    assert taken(read) == {"skill-12", "skill-3"}
    assert names(second.route("changed", k=1)) == ["skill-3"]
    assert "skill-5" not in names(second.route("topic5"))
    # what was learned in steps is what is learned at once
    at_once = library_of(skills, cache / "other")
    for query in ("topic3 changed", "topic5", "the body of all skills", "topic12"):
        assert same_routes(second.route(query), at_once.route(query))


def test_what_is_in_no_folder_any_more_leaves_the_catalog(skills: Path, cache: Path) -> None:
    library = library_of(skills, cache)
    library.prepare()
    shutil.rmtree(skills)
    write(skills, 99)
    assert names(route(library, "topic99")) == ["skill-99"]
    assert library._words.search_skills(library.skills()).holders("body", ["skill"]).tolist() == [1]
    assert list(Catalog(cache).readings()) == [skills / "skill-99"]


def test_libraries_of_one_cache_know_nothing_of_each_other(skills: Path, cache: Path, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    shutil.copytree(skills, copies)
    write(copies, 50)
    some = Library(plain_pager(cache, cache), [skills], keep=only_few)
    assert names(library_of(copies, cache).route("topic50", k=1)) == ["skill-50"]
    assert library_of(skills, cache).route("topic50").searched == 12
    assert [some.route(f"topic{number}").searched for number in (1, 9)] == [3, 3]
    assert set(names(some.route("topic1"))) == {"skill-1", "skill-2", "skill-3"}
    assert len(list((cache / "words").iterdir())) == 3


def only_few(found: FoundSkill) -> bool:
    return found.name in ("skill-1", "skill-2", "skill-3")


def test_words_that_nobody_uses_are_deleted(skills: Path, cache: Path) -> None:
    library_of(skills, cache).prepare()
    (old,) = (cache / "words").iterdir()
    os.utime(old, (0, 0))
    library_of(skills / "skill-1", cache).prepare()
    assert old not in list((cache / "words").iterdir())


def test_folders_may_be_relative(
    skills: Path, cache: Path, read: Mock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settle(skills)
    library_of(skills, cache).prepare()
    monkeypatch.chdir(tmp_path)
    read.reset_mock()
    found = library_of(Path("skills"), cache).route("topic7", k=1)
    assert found.skills[0].skill.path == Path("skills/skill-7")
    assert taken(read) == set()


def test_words_that_cannot_be_stored_are_kept_in_memory(
    skills: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk may fail, or be full."""
    expected = library_of(skills, cache / "other").route("topic7")
    writer_of = WordIndex._writer

    def fail(index: WordIndex, opened: Index) -> object:
        if index.folder is not None:
            raise OSError("no room on the disk")
        return writer_of(index, opened)

    monkeypatch.setattr(WordIndex, "_writer", fail)
    assert same_routes(library_of(skills, cache).route("topic7"), expected)
    assert sum("stay in memory" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("damage", ["cut off", "gone", "meta.json", "catalog", "readings"])
def test_damage_is_noticed_and_made_good(
    damage: str, skills: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    library = library_of(skills, cache)
    expected = library.route("topic7")
    (words,) = (cache / "words").iterdir()
    path = next(words.glob("*.idx"))
    if damage == "cut off":
        path.write_bytes(path.read_bytes()[:-3])
    elif damage == "gone":
        path.unlink()
    elif damage == "meta.json":
        (words / damage).write_text("{")
    elif damage == "catalog":
        Catalog(cache).path.write_bytes(b"no JSON at all" * 100)
    else:
        Catalog(cache).path.write_text('[1, {"x": 1}]')
    for _ in range(2):
        assert same_routes(library_of(skills, cache).route("topic7"), expected)
    assert len(Catalog(cache).readings()) == 12
    told = {record.message for record in caplog.records if "again" in record.message}
    assert len(told) == 1


def test_what_cannot_be_stored_stays_in_memory_with_one_warning(
    skills: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "a-file"
    blocked.write_text("in the place of the cache")
    library = library_of(skills, blocked)
    with caplog.at_level(logging.WARNING):
        assert names(library.route("topic7", k=1)) == ["skill-7"]
        write(skills, 12)
        assert names(route(library, "topic12", 1)) == ["skill-12"]
    (said,) = (record.getMessage() for record in caplog.records)
    assert said.startswith("what was read of skills is not stored")
    assert str(blocked) in said


def test_processes_begin_a_catalog_together(processes: Processes, skills: Path, cache: Path) -> None:
    barrier = processes.Barrier(3)
    together = (skills, cache, barrier)
    run_all([processes.Process(target=catalog_workers.route_together, args=together) for _ in range(3)])
    (words,) = (cache / "words").iterdir()
    assert WordIndex(words).search([]).holders("description", ["about"]).tolist() == [12]


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
        assert len(Catalog(cache).readings()) >= 12
    library = library_of(skills, cache)
    assert names(library.route("topic1000", k=1)) == ["skill-1000"]
    assert names(library.route("topic7", k=1)) == ["skill-7"]
