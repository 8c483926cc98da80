"""Time and size of the SQLite store: `python benchmarks/store.py`.

Indexes have 384 dimensions and two edges per node. `cold` is the time a new process needs to open the
database and load one index, without imports; files are in the page cache of the system.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from index_builder import build_index
from skillpager.stores import SqliteStore

SIZES = (38, 100, 500, 5000)
DIM = 384
REPEATS = 15


def milliseconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the median time of `work`."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def load_cold(folder: Path, n_nodes: int) -> None:
    """Print the seconds that opening and loading take: what a child process runs."""
    index = build_index(n_nodes, dim=DIM, name=str(n_nodes))
    store = SqliteStore(folder)
    start = time.perf_counter()
    assert store.load(index.key, index.skill) is not None
    print(time.perf_counter() - start)
    store.close()


def cold_milliseconds(folder: Path, n_nodes: int) -> float:
    """Return the median time of opening and loading in a new process."""
    command = [sys.executable, __file__, str(folder), str(n_nodes)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(REPEATS)]
    return 1000 * statistics.median(float(run.stdout) for run in runs)


def main() -> None:
    """Print one line per size of index."""
    print(f"{'nodes':>6} {'bytes':>10} {'save ms':>8} {'load ms':>8} {'cold ms':>8}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = SqliteStore(folder)
        for n_nodes in SIZES:
            index = build_index(n_nodes, dim=DIM, name=str(n_nodes))
            save = milliseconds(lambda index=index: store.save(index))  # type: ignore[misc]
            load = milliseconds(lambda index=index: store.load(index.key, index.skill))  # type: ignore[misc]
            cold = cold_milliseconds(folder, n_nodes)
            print(f"{n_nodes:>6} {store.entries()[0].size:>10} {save:>8.2f} {load:>8.2f} {cold:>8.2f}")
        store.close()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        load_cold(Path(sys.argv[1]), int(sys.argv[2]))
    else:
        main()
