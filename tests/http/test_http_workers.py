"""Several processes behind one port: what they share, and what happens when one is killed."""

import os
import re
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from http_running import ASKED, TIME_LIMIT, Child, child
from postgres_server import is_running

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found as on Linux")


def workers_of(service: Child) -> list[int]:
    """Return the processes that answer, oldest first."""
    pid = service.process.pid
    children = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return [each for each in children if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIME_LIMIT
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_processes_share_a_port_and_their_counts_and_a_killed_one_is_replaced(tmp_path: Path) -> None:
    with child(tmp_path, "--workers", "2") as service, ThreadPoolExecutor(4) as clients:
        url = str(service.client.base_url)

        def ask(_: int) -> str:
            return str(httpx.post(f"{url}/v1/page", json=ASKED, timeout=TIME_LIMIT).json()["text"])

        def pages() -> float:
            text = httpx.get(f"{url}/metrics", timeout=TIME_LIMIT).text
            found = re.search(r'^skillpager_pages_total{strategy="navigator"} ([\d.]+)$', text, re.MULTILINE)
            assert found is not None
            return float(found[1])

        assert len(set(clients.map(ask, range(20)))) == 1
        # whichever process is asked tells the sums of both
        assert {pages() for _ in range(10)} == {20.0}
        killed = workers_of(service)[0]
        os.kill(killed, signal.SIGKILL)
        until(lambda: len(workers_of(service)) == 2 and killed not in workers_of(service))
        ask(0)
        assert pages() == 21
        service.process.send_signal(signal.SIGTERM)
        assert service.end() == 0
    assert len(service.said) == 1


def test_no_process_outlives_a_killed_supervisor(tmp_path: Path) -> None:
    with child(tmp_path, "--workers", "2") as service:
        url = str(service.client.base_url)
        until(lambda: httpx.get(f"{url}/readyz", timeout=TIME_LIMIT).is_success)
        workers = workers_of(service)
        assert len(workers) == 2
        service.process.kill()
        service.end()
        until(lambda: not any(map(is_running, workers)))  # nobody may have waited for those that ended
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{url}/livez", timeout=TIME_LIMIT)
