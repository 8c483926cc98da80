"""Processes killed while they index, page, publish and install: stores stay sound, and configuration files whole."""

import random
import signal
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

import torture_workers
from cli_process import wait_until
from postgres_server import PostgresServer
from skillpager.install.changes import plan_install
from skillpager.install.hosts import find_host, server_entry
from skillpager.library.published import unpack_skill
from skillpager.stores.postgres import PostgresStore
from skillpager.stores.sqlite import SqliteStore
from skillpager.types import PublishedSkill
from store_places import Place
from torture_scale import Torture

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")

# kills of each kind in `make test`, and in full
AMOUNTS = {"indexing": (6, 350), "paging": (6, 350), "publishing": (10, 100), "installing": (10, 300)}
# from the first step of the work to somewhere in its middle
LONGEST_LIFE = 0.04
PAGED = range(12)
# by name: what a list of published skills and the row of its text hold
Rows = dict[str, tuple[PublishedSkill, bytes]]
SESSIONS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'killed'"
BEFORE = {
    ".json": '{\n  // mine\n  "other": [1, 2],\n  "mcpServers": {\n    "other": {}\n  }\n}\n',
    ".toml": '# mine\n[other]\nx = "é"\n',
}


def kill_often(
    what: str, folder: Path, count: int, processes: ForkServerContext, *, longest: float = LONGEST_LIFE
) -> Iterator[None]:
    """Start a process that does something again and again, kill it after a while, and yield; `count` times."""
    draw = random.Random(7)
    for number in range(count):
        with torture_workers.workers() as started:
            ready = processes.Event()
            process = started.start(
                processes.Process(target=torture_workers.ENDLESS[what], args=(folder, number, ready))
            )
            assert ready.wait(60)
            time.sleep(draw.random() * longest)
            assert process.is_alive(), "it ended by itself"
            process.kill()
            process.join()
            assert process.exitcode == -signal.SIGKILL
        yield


@pytest.mark.parametrize("what", ["indexing", "paging"])
def test_a_kill_never_harms_the_store(
    what: str, torture: Torture, tmp_path: Path, processes: ForkServerContext
) -> None:
    count = torture.amount(*AMOUNTS[what])
    expected = torture_workers.pages_of(tmp_path, PAGED, stored=False)
    for number, _ in enumerate(kill_often(what, tmp_path, count, processes)):
        path = tmp_path / "index.db"
        if path.exists():
            with closing(sqlite3.connect(path)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        if number % 10 == 0 or number == count - 1:
            assert torture_workers.pages_of(tmp_path, PAGED, stored=True) == expected
    with closing(SqliteStore(tmp_path)) as store:
        assert store.verify() == []
    assert {path.name for path in tmp_path.iterdir()} <= {"index.db", "index.db-wal", "index.db-shm"}
    torture.record(f"kill -9 while {what}", count, "times")


def test_a_kill_while_publishing_leaves_every_skill_old_or_new(
    torture: Torture, tmp_path: Path, processes: ForkServerContext, server: PostgresServer, database: str
) -> None:
    (tmp_path / torture_workers.ADDRESS_FILE).write_text(
        f"{database}?application_name=killed", encoding="utf-8"
    )
    count = torture.amount(*AMOUNTS["publishing"])
    expected: list[Rows] = []
    for version in range(2):
        with closing(PostgresStore(database)) as store:
            torture_workers.publish_skills(tmp_path, store, torture_workers.PUBLISHED, version)
            expected.append(published_rows(store))
    before, changes = expected[1], 0
    kills = kill_often("publishing", tmp_path, count, processes, longest=0.1)
    for number, _ in enumerate(kills):
        wait_until(lambda: not server.sql(SESSIONS))  # the server ends what it was doing for the process
        with closing(PostgresStore(database)) as store:
            found = published_rows(store)
            assert all(row in [rows[name] for rows in expected] for name, row in found.items())
            assert store.verify() == []
            changes += found != before
            torture_workers.publish_skills(tmp_path, store, torture_workers.PUBLISHED, number % 2)
            before = published_rows(store)
        assert before == expected[number % 2]
        if number % 10 == 9:  # the next process makes the tables
            Place(database).execute("DROP SCHEMA skillpager CASCADE")
            before = {}
    assert changes > count // 4, "kills came before any change"
    torture.record("kill -9 while publishing", count, "times")
    torture.record("kill -9 while publishing: kills after a change", changes, "times")


def published_rows(store: PostgresStore) -> Rows:
    """Return, by name, what is published of each skill; fail if its index is not in the store."""
    library = store.library("default")
    listed = [about for _, about in library.changes()[1] if isinstance(about, PublishedSkill)]
    contents = library.contents([about.name for about in listed])
    assert contents.keys() == {about.name for about in listed}
    for about in listed:
        skill = unpack_skill(contents[about.name][1], about.name)
        assert store.load(about.key, skill) is not None
    return {about.name: (about, contents[about.name][1]) for about in listed}


def test_a_kill_never_leaves_half_a_configuration_file(
    torture: Torture, tmp_path: Path, processes: ForkServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed: dict[Path, set[str]] = {}
    for name, suffix in torture_workers.HOSTS:
        file, host = tmp_path / f"{name}{suffix}", find_host(name)
        file.write_text(BEFORE[suffix], encoding="utf-8")
        after = plan_install(host, file, server_entry(host, torture_workers.ENTRY_COMMAND)).after
        assert after is not None
        allowed[file] = {BEFORE[suffix], after}
    count = torture.amount(*AMOUNTS["installing"])
    seen: dict[Path, set[str]] = {file: set() for file in allowed}
    for _ in kill_often("installing", tmp_path, count, processes):
        for file, texts in allowed.items():
            seen[file].add(text := file.read_text(encoding="utf-8"))
            assert text in texts
    for file, texts in allowed.items():
        assert len(seen[file]) == len(texts) or count < 100, "no kill met a change"
    torture.record("kill -9 while installing", count, "times")
