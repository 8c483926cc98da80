"""What the child processes of the store's tests do; kept apart so that they start fast."""

import logging.handlers
import time
from collections.abc import Sequence
from contextlib import closing
from multiprocessing.synchronize import Barrier

from index_builder import assert_same_index, build_index
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
