"""What the child processes of the store's tests do; kept apart so that they start fast."""

import logging.handlers
import time
from collections.abc import Sequence
from contextlib import closing
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path

from index_builder import assert_same_index, build_index
from skillpager import SkillPager
from skillpager.encoders.hashing import HashingEncoder
from skillpager.types import FloatArray
from store_places import Address, open_store

SKILLS = tuple(f"skill-{i}" for i in range(4))
N_NODES = 40


def open_fresh_stores(addresses: Sequence[Address], name: str, barrier: Barrier) -> None:
    """Open stores at the same moment as others, save an index in each and read it back."""
    index = build_index(N_NODES, name=name)
    for address in addresses:
        with closing(open_store(address)) as store:
            barrier.wait(20)
            store.save(index)
            assert_same_index(store.load(index.key, index.skill), index)


def write_for_ever(address: Address, seed: int, ready: Event) -> None:
    """Save versions of a few indexes in turn until killed."""
    versions = [build_index(N_NODES, seed=seed, name=name) for name in SKILLS]
    store = open_store(address)
    ready.set()
    while True:
        for index in versions:
            if not isinstance(address, Path):  # where the first stays, only what is removed is written anew
                store.remove([index.key])
            store.save(index)


def write_some(address: Address, seed: int, seconds: float) -> None:
    """Save every version of a few indexes, and delete one at times, for a while."""
    versions = [build_index(N_NODES, seed=seed + i, name=name) for i in range(2) for name in SKILLS]
    store = open_store(address)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for index in versions:
            store.save(index)
        store.remove([versions[0].key])
    store.close()


def read_some(address: Address, seconds: float) -> None:
    """Load an index that others replace and remove; it must be whole and one of the versions."""
    warnings = logging.handlers.MemoryHandler(capacity=1000)
    logging.getLogger("skillpager").addHandler(warnings)
    newest = build_index(N_NODES, name=SKILLS[-1])
    store = open_store(address)
    until = time.monotonic() + seconds
    loads = 0
    while time.monotonic() < until:
        found = store.load(newest.key, newest.skill)
        if found is not None:
            assert_same_index(found, build_index(N_NODES, seed=found.full_tokens, name=SKILLS[-1]))
            loads += 1
    store.close()
    assert loads > 0
    assert warnings.buffer == []


class NotingEncoder(HashingEncoder):
    """An encoder that notes each skill that it embeds, and gives others time to do so as well."""

    def __init__(self, log: Path, begun: Event | None = None) -> None:
        super().__init__()
        self.log, self.begun = log, begun

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        """Return the embeddings, after a while."""
        if self.begun is not None:
            self.begun.set()
            time.sleep(600)
        time.sleep(0.2)
        with self.log.open("a") as file:
            file.write("built\n")
        return super().encode_documents(texts)


def build_together(address: Address, skill: Path, log: Path, barrier: Barrier | None) -> None:
    """Index a skill at the same moment as others; each build is noted in the log."""
    with closing(SkillPager(encoder=NotingEncoder(log), store=address)) as pager:
        if barrier is not None:
            barrier.wait(60)
        pager.index(skill)


def build_for_ever(address: Address, skill: Path, begun: Event) -> None:
    """Begin to index a skill, and never end."""
    SkillPager(encoder=NotingEncoder(Path(), begun), store=address).index(skill)
