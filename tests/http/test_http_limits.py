"""The HTTP service under load: bounded work, answers in time, budgets, counts."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from encoder_stubs import HeldEncoder
from http_running import ASKED, TIME_LIMIT, Running, running
from skillpager import SkillPager
from skillpager.http import gate as http_gate
from skillpager.http import server as http_server
from skillpager.http.options import ServerOptions


@contextmanager
def held(
    tmp_path: Path, *, threads: int, waiting: int
) -> Iterator[tuple[Running, HeldEncoder, ThreadPoolExecutor]]:
    """Serve with an encoder that holds every request."""
    encoder = HeldEncoder()
    pager = SkillPager(encoder=encoder, store=tmp_path / "store")
    options = ServerOptions(port=0, threads=threads, waiting=waiting)
    with running(pager, options) as service, ThreadPoolExecutor(8) as clients:
        try:
            yield service, encoder, clients
        finally:
            encoder.let_go.set()
    pager.close()


def ask(client: httpx.Client, query: str) -> httpx.Response:
    return client.post("/v1/page", json={**ASKED, "query": query})


def wait_until_taken(service: Running, requests: int) -> None:
    """Wait until so many requests are worked on or wait."""
    deadline = time.monotonic() + TIME_LIMIT
    while service.service.pool.taken != requests:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_past_the_limit_requests_are_refused_and_the_rest_is_answered(tmp_path: Path) -> None:
    with held(tmp_path, threads=1, waiting=2) as (service, encoder, clients):
        taken = [clients.submit(ask, service.client, f"query {number}") for number in range(3)]
        wait_until_taken(service, 3)
        refused = ask(service.client, "one more")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["error"] == "BusyError"
        encoder.let_go.set()
        assert [future.result().status_code for future in taken] == [200] * 3
        wait_until_taken(service, 0)
        assert ask(service.client, "again").is_success


def test_the_service_tells_its_health_while_every_worker_is_busy(tmp_path: Path) -> None:
    with held(tmp_path, threads=2, waiting=0) as (service, _, clients):
        for number in range(2):
            clients.submit(ask, service.client, f"query {number}")
        wait_until_taken(service, 2)
        started = time.perf_counter()
        assert [service.client.get("/healthz").status_code for _ in range(20)] == [200] * 20
        assert "skillpager_requests_taken 2.0" in service.client.get("/metrics").text
        assert time.perf_counter() - started < 5


def test_a_client_that_goes_away_frees_its_place_when_the_work_is_done(tmp_path: Path) -> None:
    with held(tmp_path, threads=1, waiting=0) as (service, encoder, _):
        with pytest.raises(httpx.ReadTimeout):
            service.client.post("/v1/page", json=ASKED, timeout=0.2)
        assert ask(service.client, "busy").status_code == 503
        encoder.let_go.set()
        wait_until_taken(service, 0)
        assert ask(service.client, "free").is_success


def test_what_takes_longer_than_the_end_may_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "SHUTDOWN_SECONDS", 1)
    encoder = HeldEncoder()
    pager = SkillPager(encoder=encoder, store=tmp_path / "store")
    with ThreadPoolExecutor(1) as clients:
        with running(pager) as service:
            url = f"{service.client.base_url}/v1/page"
            answer = clients.submit(httpx.post, url, json=ASKED, timeout=TIME_LIMIT)
            wait_until_taken(service, 1)
        encoder.let_go.set()
    assert (answer.result().status_code, answer.result().json()["error"]) == (503, "EndingError")
    pager.close()


def test_a_body_that_does_not_arrive_is_given_up(pager: SkillPager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_gate, "BODY_SECONDS", 0.2)
    with running(pager) as service:
        url = service.client.base_url
        with socket.create_connection((url.host, url.port or 0), timeout=TIME_LIMIT) as connection:
            head = f"POST /v1/page HTTP/1.1\r\nHost: {url.host}\r\nContent-Length: 100\r\n\r\n{{"
            connection.sendall(head.encode())
            answer = b"".join(iter(lambda: connection.recv(4096), b""))  # up to the end of the connection
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"did not arrive within 0.2 seconds" in answer
        assert service.client.get("/healthz").is_success


def test_a_client_that_hangs_up_within_its_body_is_no_fault(
    pager: SkillPager, caplog: pytest.LogCaptureFixture
) -> None:
    with running(pager) as service:
        url = service.client.base_url
        with socket.create_connection((url.host, url.port or 0)) as connection:
            connection.sendall(
                f"POST /v1/page HTTP/1.1\r\nHost: {url.host}\r\nContent-Length: 100\r\n\r\n".encode()
            )
        assert service.client.get("/healthz").is_success
    assert caplog.text == ""


def test_the_owners_ceiling_holds_for_every_page(pager: SkillPager) -> None:
    with running(pager, ServerOptions(port=0, max_tokens=300)) as service:
        page = service.client.post("/v1/page", json=ASKED).json()
        assert 0 < page["tokens"] <= 300
        assert page["selection"]["budget"]["max_tokens"] == 300
        assert service.client.post("/v1/page", json={**ASKED, "max_tokens": 100}).json()["tokens"] <= 100
        more = service.client.post("/v1/page", json={**ASKED, "max_tokens": 301})
        assert (more.status_code, more.json()["detail"]) == (
            422,
            "max_tokens is 301: the service allows 300 at most.",
        )
        nodes = service.client.post("/v1/expand", json={"skill": "postgres-backup", "nodes": "n0-n52"})
        assert nodes.status_code == 422
        assert "ask for fewer" in nodes.json()["detail"]
        few = service.client.post("/v1/expand", json={"skill": "postgres-backup", "nodes": "n2"})
        assert few.is_success


def test_the_metrics_count_requests_pages_and_tokens(pager: SkillPager) -> None:
    with running(pager) as service:
        page = service.client.post("/v1/page", json=ASKED).json()
        service.client.post("/v1/page", json={**ASKED, "strategy": "density:0.3"})
        service.client.get("/v1/skills/git-bisect/outline")
        service.client.get("/v1/skills/secret-name/outline")
        service.client.request("BREW", "/coffee")
        answer = service.client.get("/metrics")
    lines = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
    counted = "skillpager_http_requests_total"
    outline = 'method="GET",path="/v1/skills/{name}/outline"'
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert lines[f'{counted}{{method="POST",path="/v1/page",status="200"}}'] == "2.0"
    assert lines[f'{counted}{{{outline},status="200"}}'] == "1.0"
    assert lines[f'{counted}{{{outline},status="404"}}'] == "1.0"
    assert lines[f'{counted}{{method="other",path="unknown",status="404"}}'] == "1.0"
    assert lines['skillpager_http_request_seconds_count{path="/v1/page"}'] == "2.0"
    assert lines['skillpager_pages_total{strategy="navigator"}'] == "1.0"
    assert lines['skillpager_pages_total{strategy="density"}'] == "1.0"
    assert float(lines["skillpager_full_tokens_total"]) == 2 * page["full_tokens"]
    assert float(lines["skillpager_page_tokens_total"]) > page["tokens"]
    assert "secret-name" not in answer.text
