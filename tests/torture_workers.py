"""What the child processes of the torture tests do; kept apart so that they start fast."""

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import TYPE_CHECKING

from index_builder import assert_same_index, build_index
from plain_parts import NoStore, plain_pager
from skillpager.install.changes import plan_install, plan_uninstall, write
from skillpager.install.hosts import find_host, server_entry
from skillpager.library.published import Publisher
from skillpager.parsing.skill import skill_from_text
from skillpager.stores.sqlite import SqliteStore
from skillpager.types import Skill

if TYPE_CHECKING:
    from skillpager.stores.postgres import PostgresStore

QUERY = "what to do first"
# a process that nobody ends does so by itself
LONGEST = 300.0
# steps of a process that shares a store, however busy the machine is
LEAST = 25
HOSTS = (("claude-code", ".json"), ("codex", ".toml"), ("vscode", ".json"))
ENTRY_COMMAND = ("skillpager", "mcp")
PUBLISHED = range(6)
# in its folder: the address of the database that a publisher writes to
ADDRESS_FILE = "address"


def numbered_skill(number: int, *, lines: int = 30) -> Skill:
    """Return a small skill that differs from those of other numbers."""
    text = "".join(
        f"## Part {line}\n\nDo {line} of {number} with care. Then check {line * number}.\n\n- one\n- two\n\n"
        for line in range(lines // 3)
    )
    return skill_from_text(f"---\nname: skill-{number}\ndescription: Number {number}.\n---\n{text}")


def pages_of(folder: Path, numbers: Sequence[int], *, stored: bool) -> list[str]:
    """Return a page of each skill, made with the store in a folder or without any."""
    pager = plain_pager(folder, folder if stored else NoStore())
    try:
        return [pager.page(numbered_skill(number), QUERY, max_nodes=4).text for number in numbers]
    finally:
        pager.close()


# ---- until killed


def index_for_ever(folder: Path, seed: int, ready: Event) -> None:
    """Index one skill after another into a store."""
    draw, until = random.Random(seed), time.monotonic() + LONGEST
    pager = plain_pager(folder, folder)
    ready.set()
    while time.monotonic() < until:
        pager.index(numbered_skill(draw.randrange(10_000)))


def page_for_ever(folder: Path, seed: int, ready: Event) -> None:
    """Page skills of a store, opening it anew each time, and delete some."""
    draw, until = random.Random(seed), time.monotonic() + LONGEST
    ready.set()
    while time.monotonic() < until:
        pages_of(folder, [draw.randrange(12)], stored=True)
        if draw.random() < 0.1:
            with closing(SqliteStore(folder)) as store:
                store.remove([entry.key for entry in store.entries()[:2]])


def install_for_ever(folder: Path, seed: int, ready: Event) -> None:
    """Install into the configuration files of several agents and uninstall again."""
    draw, until = random.Random(seed), time.monotonic() + LONGEST
    ready.set()
    while time.monotonic() < until:
        name, suffix = draw.choice(HOSTS)
        host, file = find_host(name), folder / f"{name}{suffix}"
        write(plan_install(host, file, server_entry(host, ENTRY_COMMAND)))
        write(plan_uninstall(host, file))


def publish_for_ever(folder: Path, seed: int, ready: Event) -> None:
    """Publish some skills of a database in one of two versions again and again, and remove the others."""
    from skillpager.stores.postgres import PostgresStore

    draw, until = random.Random(seed), time.monotonic() + LONGEST
    with closing(PostgresStore((folder / ADDRESS_FILE).read_text(encoding="utf-8"))) as store:
        store.entries()
        pages_of(folder, PUBLISHED[:1], stored=False)  # imports, which would take most of its life
        ready.set()
        while time.monotonic() < until:
            publish_skills(folder, store, draw.sample(PUBLISHED, 4), draw.randrange(2))


def publish_skills(folder: Path, store: "PostgresStore", numbers: Sequence[int], version: int) -> None:
    """Index and publish a version of these skills, and remove all others, as `skillpager index --prune` does."""
    pager, publisher = plain_pager(folder, store), Publisher(store.library("default"))
    for number in numbers:
        skill = numbered_skill(number, lines=30 + 3 * version)
        publisher.publish(skill, Path(skill.name), pager.index(skill).key)
    publisher.prune()


# ---- for a while


def share_store(folder: Path, seed: int, seconds: float, most: int, said: Connection) -> None:
    """Save, load, remove, evict, list and page in a store that others use as well; say what was done."""
    draw, until = random.Random(seed), time.monotonic() + seconds
    expected = {number: pages_of(folder, [number], stored=False) for number in range(4)}
    done = dict.fromkeys(("save", "load", "found", "remove", "evict", "list", "page"), 0)
    with closing(SqliteStore(folder, max_bytes=most, busy_timeout=120)) as store:
        while time.monotonic() < until or sum(done.values()) < LEAST:
            index = build_index(40, seed=draw.randrange(5), name=f"shared-{draw.randrange(5)}")
            what = draw.choices(tuple(done), (20, 40, 0, 4, 2, 5, 10))[0]
            match what:
                case "save":
                    store.save(index)
                case "load":
                    if found := store.load(index.key, index.skill):
                        assert_same_index(
                            found, build_index(40, seed=found.full_tokens, name=index.skill.name)
                        )
                        done["found"] += 1
                case "remove":
                    store.remove([index.key])
                case "evict":
                    store.evict(most // 2)
                case "list":
                    assert all(entry.nodes > 0 for entry in store.entries())
                case _:
                    number = draw.randrange(4)
                    assert pages_of(folder, [number], stored=True) == expected[number]
            done[what] += 1
    said.send(done)
    said.close()


@dataclass(frozen=True)
class Workers:
    """Processes that are killed when the block that started them is left."""

    processes: list[BaseProcess]

    def start(self, process: BaseProcess) -> BaseProcess:
        """Start one more."""
        process.start()
        self.processes.append(process)
        return process


@contextmanager
def workers() -> Iterator[Workers]:
    """Provide a place to start processes."""
    started = Workers([])
    try:
        yield started
    finally:
        for process in started.processes:
            process.kill()
            process.join()


ENDLESS: dict[str, Callable[[Path, int, Event], None]] = {
    "indexing": index_for_ever,
    "paging": page_for_ever,
    "installing": install_for_ever,
    "publishing": publish_for_ever,
}


# ---- in trouble


def say_pages(
    folder: Path, numbers: Sequence[int], trouble: Callable[[Path], None], said: Connection
) -> None:
    """Get into trouble, and send the pages of skills made with the store in a folder, or the error."""
    with tempfile.TemporaryDirectory() as other:
        pages_of(Path(other), numbers[:1], stored=True)  # imports what a process without rights cannot read
    trouble(folder)
    try:
        said.send(pages_of(folder, numbers, stored=True))
    except BaseException as problem:  # the test tells which
        said.send(f"{type(problem).__name__}: {problem}")
    said.close()
