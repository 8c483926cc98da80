"""Clients that keep a connection and do nothing with it: they are cut off, and do not keep others out."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from conftest import SAMPLES
from http_running import ASKED, TIME_LIMIT, running
from mcp_clients import served_at_port, server_of
from skillpager import SkillPager, serving
from skillpager.http import middleware

HEAD = "POST /v1/page HTTP/1.1\r\nHost: 127.0.0.1\r\n"
BODY = "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
FOREIGN = "POST /v1/page HTTP/1.1\r\nHost: evil.example\r\nTransfer-Encoding: chunked\r\n\r\n"
SILENT = ["", "G", HEAD, HEAD + BODY, FOREIGN, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET"]


@contextmanager
def connections(url: httpx.URL, said: list[str]) -> Iterator[list[socket.socket]]:
    """Open a connection for each text and send it."""
    with ExitStack() as opened:
        clients = []
        for text in said:
            client = opened.enter_context(socket.create_connection((url.host, url.port or 0), TIME_LIMIT))
            client.sendall(text.encode())
            clients.append(client)
        yield clients


def ended(client: socket.socket) -> bool:
    """Read up to the end of a connection; return False if that takes too long."""
    client.settimeout(10)
    try:
        while client.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


def test_silent_and_half_sent_requests_end(pager: SkillPager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "CLIENT_SECONDS", 0.8, raising=False)
    monkeypatch.setattr(middleware, "BODY_SECONDS", 60)
    with running(pager) as service, connections(service.client.base_url, SILENT * 3) as clients:
        service.client.headers["Connection"] = "close"
        assert service.client.get("/healthz").is_success
        assert [ended(client) for client in clients] == [True] * len(clients)
        assert service.client.post("/v1/page", json=ASKED).is_success


def trickle(client: socket.socket) -> None:
    """Send one chunk of a body after the other, for a long time."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        client.sendall(b"1\r\nx\r\n")
        time.sleep(0.05)


def test_a_body_that_never_ends_ends(pager: SkillPager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "CLIENT_SECONDS", 0.8, raising=False)
    with (
        running(pager) as service,
        connections(service.client.base_url, [FOREIGN]) as (client,),
        pytest.raises(ConnectionError),
    ):
        trickle(client)


def read_all(client: socket.socket) -> int:
    """Return how many bytes come before the connection ends."""
    count = 0
    with suppress(ConnectionError):
        while data := client.recv(1 << 16):
            count += len(data)
    return count


def test_a_client_that_does_not_read_is_cut_off(
    pager: SkillPager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "CLIENT_SECONDS", 0.8, raising=False)
    (tmp_path / "long").mkdir()
    (tmp_path / "long" / "SKILL.md").write_text("word " * 1_500_000, encoding="utf-8")
    asked = "GET /v1/skills/long/source HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with running(pager, folder=tmp_path) as service:
        length = int(service.client.get("/v1/skills/long/source").headers["content-length"])
        with connections(service.client.base_url, [asked]) as (client,):
            time.sleep(3)
            client.settimeout(10)
            assert read_all(client) < length


def test_the_mcp_server_cuts_silent_clients_off_too(
    pager: SkillPager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving, "CLIENT_SECONDS", 0.8)
    with served_at_port(server_of(pager, SAMPLES)) as address:
        url = httpx.URL(address)
        half = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{url.port}\r\n{BODY}"
        with connections(url, ["", half.partition("Length")[0], half]) as clients:
            assert [ended(client) for client in clients] == [True] * 3
    assert "Traceback" not in caplog.text
