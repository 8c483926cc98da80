"""The SQLite file: size, damage, errors, format; the rest is in test_all_stores.py."""

import os
import random
import re
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from index_builder import assert_same_index, build_index
from messages import raises
from skillpager.errors import StoreError
from skillpager.stores.sqlite import APPLICATION_ID, VERSION, SqliteStore
from skillpager.types import SkillIndex, Span
from store_places import Place
from test_all_stores import filled

FORMAT = Path(__file__).parents[2] / "docs" / "design.md"
FLIPS = 100
TRUNCATIONS = 25
HEADER_BYTES = 100


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def store(folder: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(folder)) as opened:
        yield opened


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach, unlike `tmp_path`."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    for found in [path, *path.rglob("*")]:
        found.chmod(0o755)
    shutil.rmtree(path)


@pytest.fixture
def without_privileges() -> Iterator[Callable[[], None]]:
    """A function that makes file permissions count, even for root."""
    if not hasattr(os, "geteuid"):
        pytest.skip("file permissions are not those of POSIX")
    user = os.geteuid()
    yield lambda: os.seteuid(65534) if user == 0 else None
    os.seteuid(user)


def flip(path: Path, needle: bytes) -> None:
    """Flip one bit of the last byte of `needle` in a file."""
    data = bytearray(path.read_bytes())
    data[data.index(needle) + len(needle) - 1] ^= 1
    path.write_bytes(data)


# ---- size


def test_saves_stay_under_the_cap(folder: Path) -> None:
    cap = 400_000
    with closing(SqliteStore(folder, max_bytes=cap)) as store:
        for i in range(20):
            store.save(build_index(20, dim=384, name=f"skill-{i}"))
        names = [entry.name for entry in store.entries()]
        assert names == [f"skill-{i}" for i in range(19, 19 - len(names), -1)]
        assert 4 < len(names) < 20
    assert 0.7 * cap < store.size <= cap


def test_an_index_over_the_cap_is_not_stored(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (small,) = filled(Place(folder), "small")
    with closing(SqliteStore(folder, max_bytes=100_000)) as store:
        store.save(build_index(100, dim=384, name="large"))
        assert [entry.key for entry in store.entries()] == [small.key]
    assert '"large" is not stored' in caplog.text


def test_clearing_gives_the_disk_back(folder: Path, store: SqliteStore) -> None:
    filled(Place(folder), *"abcdef", dim=384)
    full = store.path.stat().st_size
    store.clear()
    assert store.entries() == []
    assert store.path.stat().st_size < full / 2


def test_the_folder_is_for_its_owner_alone(folder: Path, store: SqliteStore) -> None:
    assert store.size == 0
    assert not folder.exists()
    store.clear()
    if os.name == "posix":
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_deleted_database_is_begun_afresh(folder: Path, store: SqliteStore) -> None:
    (index,) = filled(Place(folder), "one")
    assert store.load(index.key, index.skill) is not None
    shutil.rmtree(folder)
    assert store.load(index.key, index.skill) is None
    store.save(index)
    assert_same_index(store.load(index.key, index.skill), index)


# ---- damage


def test_a_file_that_is_no_database_is_replaced(
    folder: Path, store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    folder.mkdir()
    garbage = random.Random(1).randbytes(20_000)
    store.path.write_bytes(garbage)
    (damage,) = store.verify()
    assert (damage.key, damage.name) == ("", str(store.path))
    assert store.path.read_bytes() == garbage
    index = build_index()
    store.save(index)
    assert_same_index(store.load(index.key, index.skill), index)
    assert f"{store.path} is damaged" in caplog.text
    assert [path.name for path in folder.iterdir()] == ["index.db"]


def test_a_damaged_structure_is_mended(folder: Path, store: SqliteStore) -> None:
    (index,) = filled(Place(folder), "one")
    flip(store.path, b"CREATE TABL")
    assert [damage.key for damage in store.verify()] == [""]
    store.save(index)
    assert store.verify() == []
    flip(store.path, b"CREATE TABL")
    store.clear()
    assert store.verify() == []


def test_a_truncated_file_never_breaks_a_load(folder: Path) -> None:
    index, _ = filled(Place(folder), "one", "two")
    path = folder / "index.db"
    whole = path.read_bytes()
    for length in range(0, len(whole), len(whole) // TRUNCATIONS):
        path.write_bytes(whole[:length])
        with closing(SqliteStore(folder)) as store:
            assert_right_or_none(store, index)


def test_flipped_bits_anywhere_give_the_right_index_or_none(folder: Path) -> None:
    index, _ = filled(Place(folder), "one", "two")
    path = folder / "index.db"
    whole = path.read_bytes()
    rng = random.Random(3)
    lost = 0
    for _ in range(FLIPS):
        data = bytearray(whole)
        data[rng.randrange(HEADER_BYTES, len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        with closing(SqliteStore(folder)) as store:
            lost += assert_right_or_none(store, index)
    assert 0 < lost < FLIPS


def assert_right_or_none(store: SqliteStore, index: SkillIndex) -> bool:
    """Return whether the index was lost; fail when it is wrong or cannot be stored again."""
    found = store.load(index.key, index.skill)
    if found is not None:
        assert_same_index(found, index)
    store.save(index)
    if store.load(index.key, index.skill) is None:
        # What was overwritten may have lain on damaged pages: by now they are noticed.
        store.save(index)
    assert_same_index(store.load(index.key, index.skill), index)
    return found is None


# ---- errors


def make_database(path: Path, statement: str) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)


IN_THE_WAY: dict[str, Callable[[Path], object]] = {
    "a newer file": lambda path: make_database(path, f"PRAGMA user_version = {VERSION + 1}"),
    "another program": lambda path: make_database(path, "CREATE TABLE bookmarks (url TEXT)"),
    "a file in place of the folder": lambda path: path.parent.write_text("not a folder"),
    "a folder in place of the file": lambda path: path.mkdir(parents=True),
}


@pytest.mark.parametrize("what", IN_THE_WAY)
def test_what_is_not_ours_is_left_alone(what: str, folder: Path, store: SqliteStore) -> None:
    IN_THE_WAY[what](store.path)
    before = store.path.read_bytes() if store.path.is_file() else None
    with raises(StoreError):
        store.save(build_index())
    assert before == (store.path.read_bytes() if store.path.is_file() else None)


@pytest.mark.parametrize("in_use", [False, True])
def test_a_read_only_folder_still_serves_loads(
    in_use: bool, open_folder: Path, without_privileges: Callable[[], None]
) -> None:
    folder = open_folder / "cache"
    (index,) = filled(Place(folder), "one")
    with closing(SqliteStore(folder)) as writer:
        if in_use:
            writer.save(index)
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        without_privileges()
        with closing(SqliteStore(folder)) as store:
            assert_same_index(store.load(index.key, index.skill), index)
            assert store.verify() == []
            with raises(StoreError):
                store.save(index)
            assert_same_index(store.load(index.key, index.skill), index)


def test_a_file_without_permission(open_folder: Path, without_privileges: Callable[[], None]) -> None:
    folder = open_folder / "cache"
    (index,) = filled(Place(folder), "one")
    folder.chmod(0o755)
    folder.joinpath("index.db").chmod(0)
    without_privileges()
    store = SqliteStore(folder)
    with raises(StoreError):
        store.load(index.key, index.skill)
    assert [path.name for path in folder.iterdir()] == ["index.db"]


def test_a_full_file_keeps_what_it_has(folder: Path) -> None:
    (index,) = filled(Place(folder), "one")
    overfill = ("PRAGMA max_page_count = 1", ()), ("UPDATE indexes SET data = zeroblob(1000000)", ())
    with raises(StoreError):
        SqliteStore(folder)._write(*overfill)
    with closing(SqliteStore(folder)) as store:
        assert_same_index(store.load(index.key, index.skill), index)


# ---- versions of the tables


def test_an_older_file_is_emptied(folder: Path, store: SqliteStore) -> None:
    index = build_index()
    folder.mkdir()
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("CREATE TABLE indexes (id INTEGER PRIMARY KEY, key TEXT NOT NULL)")
        connection.execute("CREATE TABLE nodes (index_id INTEGER REFERENCES indexes (id), note TEXT)")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION - 1}")
    assert store.load(index.key, index.skill) is None
    assert store.verify() == []
    store.save(index)
    assert_same_index(store.load(index.key, index.skill), index)
    assert [path.name for path in folder.iterdir()] == ["index.db"]


# ---- documentation


def code_blocks(language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```$", FORMAT.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def test_the_documented_queries_work(folder: Path, store: SqliteStore) -> None:
    filled(Place(folder), "one", "two")
    (query,) = code_blocks("sql")
    with closing(sqlite3.connect(store.path)) as connection:
        found = connection.execute(query).fetchall()
    assert [row[:2] for row in found] == [("two", 20), ("one", 20)]


def test_the_documented_format_can_be_read_without_us(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (index,) = filled(Place(folder), "one")
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    exec("\n".join(code_blocks("python")), names)
    assert np.array_equal(names["embeddings"], index.embeddings)
    header = names["header"]
    text = FORMAT.read_text(encoding="utf-8")
    assert [name for name in header if f"`{name}`" not in text] == []
    assert header["full_tokens"] == index.full_tokens
    (node, heading) = (header["nodes"][1], header["headings"][1])
    assert node[:2] == ["n1", index.nodes[1].type.value]
    assert tuple(header["heading_paths"][node[4]]) == index.nodes[1].heading_path
    assert node[6:11] == [0, *list(vars_of(index.nodes[1].span))]
    assert heading[:2] == [2, "Section 1"]


def vars_of(span: Span) -> tuple[int, int, int, int]:
    return span.start_line, span.end_line, span.start, span.end


def test_every_column_is_documented(folder: Path, store: SqliteStore) -> None:
    store.entries()
    text = FORMAT.read_text(encoding="utf-8")
    with closing(sqlite3.connect(store.path)) as connection:
        for _, column, *_ in connection.execute("PRAGMA table_info(indexes)"):
            assert f"`{column}`" in text, column
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    assert f"This is version {version} of the table" in text
