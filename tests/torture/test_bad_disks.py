"""Stores that cannot be used, or change beneath a pager: pages come, as they are made without a store.

tests/stores decides what each damage does to the store itself, tests/test_pager.py what no store can be made of.
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
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from skillpager.stores.sqlite import SqliteStore
from torture_scale import Torture
from torture_workers import pages_of, say_pages, workers

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


# ---- troubles, which a process has before it makes pages


def file_size_limit(folder: Path) -> None:
    """Let no file grow further, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (FEW_BYTES, FEW_BYTES))


def read_only(folder: Path) -> None:
    """Take the permission to write."""
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    if os.geteuid() == 0:
        os.setuid(NOBODY)


def locked(folder: Path) -> None:
    """Hold the lock of writers for ever, in this process."""
    SqliteStore.__init__.__kwdefaults__["busy_timeout"] = 0.1
    holder = sqlite3.connect(folder / "index.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    _held.append(holder)


_held: list[sqlite3.Connection] = []


def clock_that_jumps(folder: Path) -> None:
    """Let the clock of this process jump, also to times before 1970."""
    draw = random.Random(1)
    time.time = lambda: draw.uniform(-1e9, 4e9)
    time.time_ns = lambda: int(time.time() * 1e9)


TROUBLES = (file_size_limit, read_only, locked, clock_that_jumps)


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.__name__)
def test_pages_come_without_the_store(
    trouble: Trouble, folder: Path, expected: list[str], processes: ForkServerContext, torture: Torture
) -> None:
    store = folder / "store"
    pages_of(store, PAGED[::2], stored=True)  # so that some are loaded and some saved
    with workers() as started:
        ours, theirs = processes.Pipe(duplex=False)
        arguments = (store, tuple(PAGED), trouble, theirs)
        process = started.start(processes.Process(target=say_pages, args=arguments))
        theirs.close()
        assert ours.poll(60), "no answer"
        said: list[str] | str = ours.recv()
        process.join(60)
    shown = trouble.__name__.replace("_", " ")
    torture.record(f"{shown}, store filled", "the same pages" if said == expected else "wrong")
    assert said == expected


# ---- the store changes while a pager uses it


def vanish(folder: Path) -> None:
    """Delete the folder."""
    shutil.rmtree(folder, ignore_errors=True)


def truncate(folder: Path) -> None:
    """Cut the file in half."""
    path = folder / "index.db"
    os.truncate(path, path.stat().st_size // 2)


def replace_file(folder: Path) -> None:
    """Replace the file by an empty one."""
    (folder / "new").write_bytes(b"")
    (folder / "new").replace(folder / "index.db")


def restore_copy(folder: Path) -> None:
    """Put an earlier copy of the file back, as a backup program does."""
    path, copy = folder / "index.db", folder.with_name("copy.db")
    if copy.exists():
        shutil.copy(copy, path)
    else:
        shutil.copy(path, copy)


CHANGES = (vanish, truncate, replace_file, restore_copy)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_pages_come_while_the_store_changes(
    change: Trouble, folder: Path, expected: list[str], torture: Torture
) -> None:
    store, done = folder / "store", threading.Event()
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

    thread = threading.Thread(target=disturb)
    thread.start()
    until = time.monotonic() + torture.seconds(0.4, 15.0)
    try:
        while time.monotonic() < until:
            assert pages_of(store, PAGED, stored=True) == expected
    finally:
        done.set()
        thread.join()
    assert changes
    shown = change.__name__.replace("_", " ")
    torture.record(f"store under a running pager: {shown}", changes, "times")
