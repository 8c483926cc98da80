"""Many processes on one store, with deletes and evictions: every load is right, and nobody waits for ever."""

import os
import sys
from collections import Counter
from contextlib import closing
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from skillpager.stores.sqlite import SqliteStore
from torture_scale import Torture
from torture_workers import share_store, workers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no forkserver")

MAX_BYTES = 600_000


def test_many_processes_share_a_store(
    torture: Torture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    context = ForkServerContext()
    context.set_forkserver_preload(["torture_workers"])
    count, seconds = torture.amount(6, 50), torture.seconds(0.5, 60.0)
    total: Counter[str] = Counter()
    with workers() as started:
        said = []
        for seed in range(count):
            ours, theirs = context.Pipe(duplex=False)
            started.start(
                context.Process(target=share_store, args=(tmp_path, seed, seconds, MAX_BYTES, theirs))
            )
            theirs.close()
            said.append(ours)
        for process in started.processes:
            process.join(seconds + 200)
        assert [process.exitcode for process in started.processes] == [0] * count
        for pipe in said:
            total.update(pipe.recv())
    with closing(SqliteStore(tmp_path)) as store:
        assert store.verify() == []
        assert store.size <= 2 * MAX_BYTES
    assert total["found"] > 0, total
    torture.record("processes on one store", count)
    for what, number in total.items():
        torture.record(f"one store: {what}", number, "times")
