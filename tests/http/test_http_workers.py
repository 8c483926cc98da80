"""Several processes behind one port: what they share, and what happens when one is killed."""

import os
import re
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from cli_process import SAMPLES, environment, run
from http_running import ASKED, TIME_LIMIT, Child, child

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


def metric(url: str, name: str) -> float:
    found = re.search(
        rf"^{name} ([\d.]+)$", httpx.get(f"{url}/metrics", timeout=TIME_LIMIT).text, re.MULTILINE
    )
    assert found is not None, name
    return float(found[1])


def test_processes_share_a_port_and_their_counts(tmp_path: Path) -> None:
    with child(tmp_path, "--workers", "2") as service, ThreadPoolExecutor(4) as clients:
        url = str(service.client.base_url)
        until(lambda: metric(url, "skillpager_workers") == 2)
        assert len(workers_of(service)) == 2

        def ask(_: int) -> str:
            return str(httpx.post(f"{url}/v1/page", json=ASKED, timeout=TIME_LIMIT).json()["text"])

        assert len(set(clients.map(ask, range(20)))) == 1
        # whichever process is asked tells the sums of both
        pages = {metric(url, r'skillpager_pages_total{strategy="navigator"}') for _ in range(10)}
        assert pages == {20.0}
        assert metric(url, "skillpager_requests_taken") == 0
        service.process.send_signal(signal.SIGTERM)
        assert service.end() == 0
    assert len(service.said) == 1


def test_a_killed_process_is_replaced_and_its_counts_stay(tmp_path: Path) -> None:
    with child(tmp_path, "--workers", "2") as service:
        url = str(service.client.base_url)
        until(lambda: metric(url, "skillpager_workers") == 2)
        for _ in range(4):
            httpx.post(f"{url}/v1/page", json=ASKED, timeout=TIME_LIMIT)
        killed = workers_of(service)[0]
        os.kill(killed, signal.SIGKILL)
        until(lambda: metric(url, "skillpager_worker_starts_total") == 3)
        until(lambda: metric(url, "skillpager_workers") == 2)
        assert killed not in workers_of(service)
        assert metric(url, r'skillpager_pages_total{strategy="navigator"}') == 4
        assert httpx.post(f"{url}/v1/page", json=ASKED, timeout=TIME_LIMIT).is_success


def test_a_rolling_restart_answers_every_request(tmp_path: Path) -> None:
    with child(tmp_path, "--workers", "2") as service, ThreadPoolExecutor(2) as clients:
        url = str(service.client.base_url)
        until(lambda: metric(url, "skillpager_workers") == 2)
        before = workers_of(service)
        ended = threading.Event()

        def ask(_: int) -> list[int]:
            statuses = []
            while not ended.is_set():
                statuses.append(httpx.post(f"{url}/v1/page", json=ASKED, timeout=TIME_LIMIT).status_code)
                time.sleep(0.05)  # leaves processors to the processes that start
            return statuses

        asking = [clients.submit(ask, number) for number in range(2)]
        try:
            service.process.send_signal(signal.SIGHUP)
            until(lambda: len(workers_of(service)) == 2 and not set(before) & set(workers_of(service)))
        finally:
            ended.set()
        answers = [status for each in asking for status in each.result()]
        assert set(answers) == {200}
        assert metric(url, r'skillpager_pages_total{strategy="navigator"}') == len(answers)
        assert metric(url, "skillpager_worker_starts_total") == 4
        until(lambda: metric(url, "skillpager_workers") == 2)
        service.process.send_signal(signal.SIGTERM)
        assert service.end() == 0


def test_no_process_outlives_a_killed_supervisor(tmp_path: Path) -> None:
    with child(tmp_path, "--workers", "2") as service:
        url = str(service.client.base_url)
        until(lambda: metric(url, "skillpager_workers") == 2)
        workers = workers_of(service)
        service.process.kill()
        service.end()
        until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{url}/livez", timeout=TIME_LIMIT)


def test_requests_in_flight_are_answered_before_the_end(tmp_path: Path) -> None:
    text = "\n\n".join(f"Step {number}: run command {number} and look." for number in range(400))
    upload = {"markdown": text, "query": "run command 7", "max_nodes": 2}
    with (
        child(tmp_path, "--allow-uploads", "--workers", "2") as service,
        ThreadPoolExecutor(1) as clients,
    ):
        url = str(service.client.base_url)
        until(lambda: httpx.get(f"{url}/readyz", timeout=TIME_LIMIT).is_success)
        answer = clients.submit(service.client.post, "/v1/page", json=upload)
        until(lambda: metric(url, "skillpager_requests_taken") == 1)
        service.process.send_signal(signal.SIGTERM)
        assert answer.result().status_code == 200
        assert service.end() == 0


def test_a_mistake_is_said_once_before_any_process_starts(tmp_path: Path) -> None:
    done = run(
        *("serve", SAMPLES, "--port", "0", "--workers", "2", "--audit-log", tmp_path),
        env=environment(tmp_path / "cache"),
    )
    assert done.code == 1
    assert "the audit log cannot be written" in done.err
    assert len(done.err.splitlines()) == 1
