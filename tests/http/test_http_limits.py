"""The HTTP service under load: bounded work, answers in time, budgets, counts."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli_process import wait_until
from encoder_stubs import HeldEncoder
from http_running import ASKED, TIME_LIMIT, Running, running
from plain_parts import plain_pager
from skillpager import SkillPager
from skillpager.errors import StoreError
from skillpager.http import middleware
from skillpager.http import service as http_service
from skillpager.http.options import ServerOptions


@contextmanager
def held(tmp_path: Path, *, waiting: int) -> Iterator[tuple[Running, HeldEncoder, ThreadPoolExecutor]]:
    """Serve with an encoder that holds every request."""
    encoder = HeldEncoder()
    pager = SkillPager(encoder=encoder, store=tmp_path / "store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_service, "MAX_WAITING", waiting)
        with running(pager, ServerOptions(port=0, threads=1)) as service, ThreadPoolExecutor(8) as clients:
            try:
                yield service, encoder, clients
            finally:
                encoder.let_go.set()
    pager.close()


def ask(client: httpx.Client, query: str) -> httpx.Response:
    return client.post("/v1/page", json={**ASKED, "query": query})


def wait_until_taken(service: Running, requests: int) -> None:
    """Wait until so many requests are worked on or wait."""
    wait_until(lambda: service.service.taken == requests)


def test_past_the_limit_requests_are_refused_and_the_rest_is_answered(tmp_path: Path) -> None:
    with held(tmp_path, waiting=2) as (service, encoder, clients):
        taken = [clients.submit(ask, service.client, f"query {number}") for number in range(3)]
        wait_until_taken(service, 3)
        refused = ask(service.client, "one more")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["error"] == "RefusedError"
        assert service.client.get("/livez").is_success
        encoder.let_go.set()
        assert [future.result().status_code for future in taken] == [200] * 3
        wait_until_taken(service, 0)
        assert ask(service.client, "again").is_success


def test_a_client_that_goes_away_frees_its_place_when_the_work_is_done(tmp_path: Path) -> None:
    with held(tmp_path, waiting=0) as (service, encoder, _):
        with pytest.raises(httpx.ReadTimeout):
            service.client.post("/v1/page", json=ASKED, timeout=0.2)
        assert ask(service.client, "busy").status_code == 503
        encoder.let_go.set()
        wait_until_taken(service, 0)
        assert ask(service.client, "free").is_success


def test_a_body_that_does_not_arrive_is_given_up(pager: SkillPager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "BODY_SECONDS", 0.2)
    with running(pager) as service:
        url = service.client.base_url
        with socket.create_connection((url.host, url.port or 0), timeout=TIME_LIMIT) as connection:
            head = f"POST /v1/page HTTP/1.1\r\nHost: {url.host}\r\nContent-Length: 100\r\n\r\n{{"
            connection.sendall(head.encode())
            answer = b"".join(iter(lambda: connection.recv(4096), b""))  # up to the end of the connection
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"did not arrive within 0.2 seconds" in answer
        assert service.client.get("/livez").is_success


def test_a_client_that_hangs_up_within_its_body_is_no_fault(
    pager: SkillPager, caplog: pytest.LogCaptureFixture
) -> None:
    with running(pager) as service:
        url = service.client.base_url
        with socket.create_connection((url.host, url.port or 0)) as connection:
            connection.sendall(
                f"POST /v1/page HTTP/1.1\r\nHost: {url.host}\r\nContent-Length: 100\r\n\r\n".encode()
            )
        assert service.client.get("/livez").is_success
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
        service.client.get("/coffee")
        answer = service.client.get("/metrics")
    lines = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
    outline = 'handler="/v1/skills/{name:path}/outline",method="GET"'
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert lines['http_requests_total{handler="/v1/page",method="POST",status="200"}'] == "2.0"
    assert lines[f'http_requests_total{{{outline},status="200"}}'] == "1.0"
    assert lines[f'http_requests_total{{{outline},status="404"}}'] == "1.0"
    assert lines['http_requests_total{handler="none",method="GET",status="404"}'] == "1.0"
    assert lines['http_request_duration_seconds_count{handler="/v1/page",method="POST"}'] == "2.0"
    assert lines['skillpager_pages_total{strategy="navigator"}'] == "1.0"
    assert lines['skillpager_pages_total{strategy="density"}'] == "1.0"
    assert float(lines["skillpager_full_tokens_total"]) == 2 * page["full_tokens"]
    assert float(lines["skillpager_page_tokens_total"]) > page["tokens"]
    assert "secret-name" not in answer.text


def test_a_store_that_is_away_or_slow_makes_it_unready_and_not_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_service, "READY_SECONDS", 0.2)
    pager = plain_pager(tmp_path)
    load, away, seconds = pager.store.load, False, 0.0

    def load_or_fail(*arguments: Any) -> object:
        time.sleep(seconds)
        if away:
            raise StoreError("it is away: postgresql://host")
        return load(*arguments)

    monkeypatch.setattr(pager.store, "load", load_or_fail)

    def until(status: int) -> None:
        wait_until(lambda: service.client.get("/readyz").status_code == status)
        assert service.client.get("/readyz").json() == {"ready": status == 200}

    with running(pager) as service:
        until(200)
        away = True
        until(503)
        assert service.client.get("/livez").json() == {"status": "ok"}
        away, seconds = False, 1.0
        until(503)
        seconds = 0.0
        until(200)
    # clients are not told where the store is
    assert "it is away" in caplog.text
