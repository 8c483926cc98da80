"""What every store promises: the same tests on the SQLite file and on PostgreSQL servers of two versions."""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import store_workers
from conftest import Processes, run_all
from index_builder import assert_same_index, build_index, indexes
from messages import raises
from skillpager.errors import StoreError
from skillpager.stores.sql import DamagedEntry, SqlStore
from skillpager.types import Edge, EdgeKind, SkillIndex
from store_places import Place

# fresh stores that processes open at the same moment
ROUNDS = {"sqlite": 40, "postgres": 5}


def filled(place: Place, *names: str, dim: int = 8) -> list[SkillIndex]:
    """Return indexes after saving them to a store that is closed again."""
    saved = [build_index(20, dim=dim, seed=i, name=name) for i, name in enumerate(names)]
    with closing(place.open()) as store:
        for index in saved:
            store.save(index)
    return saved


# ---- round trip


@pytest.fixture(scope="module")
def growing_store(make_place: Callable[[], Place]) -> Iterator[SqlStore]:
    """A store of many indexes; at the end all of them must be sound."""
    with closing(make_place().open()) as opened:
        yield opened
        assert opened.verify() == []


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(index=indexes())
def test_every_index_comes_back_equal(growing_store: SqlStore, index: SkillIndex) -> None:
    growing_store.remove([index.key])
    growing_store.save(index)
    assert_same_index(growing_store.load(index.key, index.skill), index)


def test_an_empty_store_says_so(any_store: SqlStore) -> None:
    assert any_store.load("0" * 64, build_index().skill) is None
    assert any_store.entries() == []
    assert any_store.verify() == []
    assert any_store.remove(["0" * 64]) == 0
    assert any_store.evict(0) == []
    any_store.clear()
    assert any_store.entries() == []


def test_the_same_content_may_have_other_file_names(any_store: SqlStore) -> None:
    index = build_index()
    any_store.save(index)
    file = replace(index.skill.files[0], path="renamed.md")
    found = any_store.load(index.key, replace(index.skill, files=(file,)))
    assert found is not None
    assert {node.span.file for node in found.nodes} == {"renamed.md"}
    assert [node.text for node in found.nodes] == [node.text for node in index.nodes]


def test_numpy_numbers_are_stored_as_plain_ones_and_the_first_of_a_key_stays(any_store: SqlStore) -> None:
    edge = Edge(0, 1, EdgeKind.SEMANTIC, np.float32(0.1))  # type: ignore[arg-type]
    index = replace(build_index(), edges=(edge,), full_tokens=np.int64(7))  # type: ignore[arg-type]
    any_store.save(index)
    assert_same_index(any_store.load(index.key, index.skill), index)
    any_store.save(build_index(seed=2))  # under the same key: the first stays
    found = any_store.load(index.key, index.skill)
    assert_same_index(found, index)
    assert found is not None
    assert not found.embeddings.flags.writeable


def test_names_that_no_database_can_hold_are_shown_escaped(any_store: SqlStore) -> None:
    index = build_index()
    index = replace(index, skill=replace(index.skill, name="a\udc80\0", root=Path("/b\udcff")))
    index = replace(index, recipe=replace(index.recipe, encoder="\0"))
    any_store.save(index)
    (entry,) = any_store.entries()
    assert (entry.name, entry.root) == ("a\\udc80\\x00", "/b\\udcff")
    assert_same_index(any_store.load(index.key, index.skill), index)


BROKEN: dict[str, Callable[[SkillIndex], SkillIndex]] = {
    "embeddings": lambda index: replace(index, embeddings=index.embeddings[1:]),
    "text": lambda index: replace(index, nodes=(replace(index.nodes[0], text="?"), *index.nodes[1:])),
    "file": lambda index: replace(index, skill=build_index(name="other").skill),
    "Out of range float": lambda index: replace(index, edges=(Edge(0, 1, EdgeKind.SEMANTIC, float("nan")),)),
}


@pytest.mark.parametrize("what", BROKEN)
def test_an_index_that_breaks_its_contract_is_refused(what: str, any_store: SqlStore) -> None:
    with raises(ValueError):
        any_store.save(BROKEN[what](build_index()))
    assert any_store.entries() == []


# ---- listing, eviction


def test_entries_tell_what_is_stored(place: Place, any_store: SqlStore) -> None:
    before = time.time()
    first, second = filled(place, "first", "second")
    entries = any_store.entries()
    assert [entry.key for entry in entries] == [second.key, first.key]
    assert [(entry.name, entry.root, entry.nodes) for entry in entries] == [
        ("second", str(Path("/skills/second")), 20),
        ("first", str(Path("/skills/first")), 20),
    ]
    assert all(before <= entry.created <= time.time() for entry in entries)
    assert all(entry.size > first.embeddings.nbytes for entry in entries)


def test_removing_counts_what_there_was(place: Place, any_store: SqlStore) -> None:
    first, second = filled(place, "first", "second")
    assert any_store.remove([first.key, "0" * 64]) == 1
    assert [entry.key for entry in any_store.entries()] == [second.key]
    assert any_store.remove([]) == 0
    assert any_store.remove([*(str(number) for number in range(1_000)), second.key]) == 1


def test_eviction_takes_the_oldest_first(place: Place, any_store: SqlStore) -> None:
    saved = filled(place, "a", "b", "c", "d", dim=384)
    size = any_store.size
    assert any_store.evict(size - 40_000) == [saved[0].key, saved[1].key]
    assert any_store.size <= size - 40_000
    assert any_store.evict(size) == []
    assert [entry.key for entry in any_store.entries()] == [saved[3].key, saved[2].key]


# ---- threads and processes


def test_threads_share_a_store(any_store: SqlStore) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for seed in range(8):
                index = build_index(10, seed=seed, name=f"skill-{number}")
                any_store.remove([index.key])
                any_store.save(index)
                assert_same_index(any_store.load(index.key, index.skill), index)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(any_store.entries()) == 8


def test_processes_open_fresh_stores_together(processes: Processes, make_place: Callable[[], Place]) -> None:
    names = ["one", "two", "three"]
    kind = "sqlite" if isinstance(make_place().address, Path) else "postgres"
    places = [make_place() for _ in range(ROUNDS[kind])]
    barrier = processes.Barrier(len(names))
    addresses = [place.address for place in places]
    children = [
        processes.Process(target=store_workers.open_fresh_stores, args=(addresses, name, barrier))
        for name in names
    ]
    run_all(children)
    for place in places:
        with closing(place.open()) as store:
            assert sorted(entry.name for entry in store.entries()) == sorted(names)
            assert store.verify() == []
        if isinstance(place.address, Path):
            assert [path.name for path in place.address.iterdir()] == ["index.db"]


def test_readers_never_see_half_an_index(processes: Processes, place: Place) -> None:
    children = [
        processes.Process(target=store_workers.write_some, args=(place.address, 10 * seed, 1.5))
        for seed in range(3)
    ]
    children += [
        processes.Process(target=store_workers.read_some, args=(place.address, 1.5)) for _ in range(2)
    ]
    run_all(children)
    with closing(place.open()) as store:
        assert store.verify() == []
        assert 3 <= len(store.entries()) <= 4


# ---- damage


DAMAGE = {
    "checksum": "UPDATE indexes SET checksum = '0' WHERE name = 'one'",
    "other bytes": "UPDATE indexes SET data = (SELECT data FROM indexes WHERE name = 'two') WHERE name = 'one'",
    "no bytes": "UPDATE indexes SET data = '' WHERE name = 'one'",
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_found_reported_and_mended(
    what: str, place: Place, any_store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    index, other = filled(place, "one", "two")
    place.execute(DAMAGE[what])
    assert any_store.verify() == [DamagedEntry(index.key, "one", "its checksum does not match")]
    assert any_store.load(index.key, index.skill) is None
    (message,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert re.search(f'"one".*{re.escape(any_store.place)}.*rebuilt', message)
    assert [entry.key for entry in any_store.entries()] == [other.key]
    any_store.save(index)
    assert_same_index(any_store.load(index.key, index.skill), index)
    assert any_store.verify() == []


def test_an_index_of_another_skill_is_refused(
    place: Place, any_store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    (index,) = filled(place, "one")
    assert any_store.load(index.key, build_index(20, name="other").skill) is None
    assert "digests" in caplog.text
    assert any_store.entries() == []


# ---- errors


def test_a_writer_that_never_ends_is_named(place: Place) -> None:
    (index,) = filled(place, "one")
    with closing(place.open(busy_timeout=1)) as store, place.locked():
        with raises(StoreError):
            store.save(build_index(name="another"))
        assert_same_index(store.load(index.key, index.skill), index)
