"""Stores that cannot be used: a full disk, no permission, files that vanish, clocks, other versions.

Whatever happens to the store, pages come, and they are the pages that are made without one.
"""

import os
import random
import resource
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from skillpager.stores.sqlite import SqliteStore
from torture_scale import Torture
from torture_workers import fill_disk, pages_of, say_pages, workers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits and permissions are those of POSIX")

PAGED = range(3)
NOBODY = 65534
# more than an empty store, less than one with the skills
FEW_BYTES = 30_000
Trouble = Callable[[Path], None]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The pages without a store."""
    return pages_of(tmp_path_factory.mktemp("none"), PAGED, stored=False)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users can reach, unlike `tmp_path`."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path)


def pages_in_trouble(folder: Path, trouble: Trouble, processes: ForkServerContext) -> list[str] | str:
    """Return the pages that a process in trouble makes with a store, or the error that it meets."""
    with workers() as started:
        ours, theirs = processes.Pipe(duplex=False)
        process: BaseProcess = processes.Process(
            target=say_pages, args=(folder, tuple(PAGED), trouble, theirs)
        )
        started.start(process)
        theirs.close()
        assert ours.poll(60), "no answer"
        said: list[str] | str = ours.recv()
        process.join(60)
        return said


# ---- troubles, which a process has before it makes pages


def file_size_limit(folder: Path) -> None:
    """Let no file grow further, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (FEW_BYTES, FEW_BYTES))


def no_bytes_at_all(folder: Path) -> None:
    """Let no file be written."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def read_only(folder: Path) -> None:
    """Take the permission to write."""
    _protect(folder, 0o444, 0o555)


def nothing_allowed(folder: Path) -> None:
    """Take every permission."""
    _protect(folder, 0, 0)


def _protect(folder: Path, file_mode: int, folder_mode: int) -> None:
    for path in folder.iterdir():
        path.chmod(file_mode)
    folder.chmod(folder_mode)
    if os.geteuid() == 0:
        os.setuid(NOBODY)


def file_in_place_of_the_folder(folder: Path) -> None:
    """Put a file where the folder should be."""
    shutil.rmtree(folder)
    folder.write_text("not a folder")


def folder_in_place_of_the_file(folder: Path) -> None:
    """Put a folder where the file should be."""
    _delete(folder)
    (folder / "index.db" / "inner").mkdir(parents=True)


def other_program(folder: Path) -> None:
    """Put the database of another program there."""
    _delete(folder)
    with closing(sqlite3.connect(folder / "index.db")) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")


def garbage(folder: Path) -> None:
    """Put a file there that is no database."""
    _delete(folder)
    (folder / "index.db").write_bytes(random.Random(1).randbytes(20_000))


def dangling_link(folder: Path) -> None:
    """Put a symbolic link there that leads nowhere."""
    _delete(folder)
    (folder / "index.db").symlink_to(folder / "nowhere" / "index.db")


def pipe(folder: Path) -> None:
    """Put a named pipe there, which would block who opens it."""
    _delete(folder)
    os.mkfifo(folder / "index.db")


def locked(folder: Path) -> None:
    """Hold the lock of writers for ever, in this process."""
    from skillpager.stores import sqlite as stores

    stores.BUSY_TIMEOUT = 0.1
    SqliteStore.__init__.__kwdefaults__["busy_timeout"] = 0.1
    holder = sqlite3.connect(folder / "index.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    _held.append(holder)


_held: list[sqlite3.Connection] = []


def clock_set_back(folder: Path) -> None:
    """Set the clock of this process back by ten years."""
    _shift_clock(-10 * 365 * 86_400)


def clock_set_forward(folder: Path) -> None:
    """Set the clock of this process forward by ten years."""
    _shift_clock(10 * 365 * 86_400)


def clock_that_jumps(folder: Path) -> None:
    """Let the clock of this process jump, also to times before 1970."""
    draw = random.Random(1)
    time.time = lambda: draw.uniform(-1e9, 4e9)
    time.time_ns = lambda: int(time.time() * 1e9)


def _shift_clock(seconds: float) -> None:
    now, now_ns = time.time, time.time_ns
    time.time = lambda: now() + seconds
    time.time_ns = lambda: now_ns() + int(seconds * 1e9)


def other_format(folder: Path) -> None:
    """Be a release that stores other values."""
    from skillpager import indexing

    indexing.FORMAT_VERSION += 1


def newer_tables(folder: Path) -> None:
    """Be a release from before the tables were changed: those in the store are newer."""
    with closing(sqlite3.connect(folder / "index.db")) as connection:
        connection.execute("PRAGMA user_version = 99")


def older_tables(folder: Path) -> None:
    """Be a later release with other tables: those in the store are older."""
    with closing(sqlite3.connect(folder / "index.db")) as connection:
        connection.execute("PRAGMA user_version = 0")


def _delete(folder: Path) -> None:
    for path in folder.glob("index.db*"):
        path.unlink()


TROUBLES = (
    *(file_size_limit, no_bytes_at_all, read_only, nothing_allowed, file_in_place_of_the_folder),
    *(folder_in_place_of_the_file, other_program, garbage, dangling_link, pipe, locked),
    *(clock_set_back, clock_set_forward, clock_that_jumps, other_format, newer_tables, older_tables),
)


@pytest.mark.parametrize("state", ["empty", "filled"])
@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.__name__)
def test_pages_come_without_the_store(
    trouble: Trouble,
    state: str,
    folder: Path,
    expected: list[str],
    processes: ForkServerContext,
    torture: Torture,
) -> None:
    store = folder / "store"
    # half of the skills are stored, so that some are loaded and some saved
    pages_of(store, PAGED[::2] if state == "filled" else PAGED[:1], stored=True)
    if state == "empty":
        _delete(store)
        SqliteStore(store).entries()
    said = pages_in_trouble(store, trouble, processes)
    shown = trouble.__name__.replace("_", " ")
    torture.record(f"{shown}, store {state}", "the same pages" if said == expected else "wrong")
    assert said == expected


@pytest.mark.skipif(not Path("/usr/bin/unshare").exists(), reason="no unshare")
def test_pages_come_on_a_full_disk(
    folder: Path, expected: list[str], processes: ForkServerContext, torture: Torture
) -> None:
    if os.geteuid() != 0 or not torture.scale:
        pytest.skip("only root can mount a small disk, and only `make torture` does")
    for kilobytes in (16, 64, 256):
        said = fill_disk(folder, kilobytes, tuple(PAGED))
        torture.record(f"a disk of {kilobytes} kB", "the same pages" if said == expected else "wrong")
        assert said == expected


# ---- the store changes while a pager uses it


def vanish(folder: Path) -> None:
    """Delete the folder."""
    shutil.rmtree(folder, ignore_errors=True)


def truncate(folder: Path) -> None:
    """Cut the file in half."""
    path = folder / "index.db"
    if path.is_file():
        os.truncate(path, path.stat().st_size // 2)


def replace_file(folder: Path) -> None:
    """Replace the file by an empty one."""
    folder.mkdir(exist_ok=True)
    (folder / "new").write_bytes(b"")
    (folder / "new").replace(folder / "index.db")


def replace_journal(folder: Path) -> None:
    """Put garbage in the place of the journal of a save that was not finished."""
    folder.mkdir(exist_ok=True)
    (folder / "index.db-journal").write_bytes(random.Random(2).randbytes(9_000))


def restore_copy(folder: Path) -> None:
    """Put an earlier copy of the file back, as a backup program does."""
    path, copy = folder / "index.db", folder.with_name("copy.db")
    folder.mkdir(exist_ok=True)
    if not copy.exists() and path.exists():
        shutil.copy(path, copy)
    elif copy.exists():
        shutil.copy(copy, path)


@pytest.mark.parametrize(
    "change", [vanish, truncate, replace_file, replace_journal, restore_copy], ids=lambda c: c.__name__
)
def test_pages_come_while_the_store_changes(
    change: Trouble, folder: Path, expected: list[str], torture: Torture
) -> None:
    store, done = folder / "store", threading.Event()
    problems: list[BaseException] = []
    changes = 0

    def disturb() -> None:
        nonlocal changes
        draw = random.Random(3)
        while not done.wait(draw.random() * 0.03):
            try:
                change(store)
                changes += 1
            except OSError:
                pass  # the pager was faster
            except BaseException as problem:
                problems.append(problem)
                raise

    thread = threading.Thread(target=disturb)
    thread.start()
    rounds = 0
    until = time.monotonic() + torture.seconds(0.4, 15.0)
    try:
        while time.monotonic() < until:
            assert pages_of(store, PAGED, stored=True) == expected
            rounds += 1
    finally:
        done.set()
        thread.join()
    assert problems == []
    shown = change.__name__.replace("_", " ")
    torture.record(f"store under a running pager: {shown}", changes, "times")
    torture.record(f"store under a running pager: {shown}, right pages", rounds * len(PAGED))
