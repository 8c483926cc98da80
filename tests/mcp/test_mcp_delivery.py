"""Calls that do not end well: cancelled ones, clients that leave, faults, and sessions that nobody uses."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from anyio.to_thread import run_sync

from conftest import SAMPLES
from encoder_stubs import TIME_LIMIT, HeldEncoder, PanickingEncoder
from mcp import Client
from mcp_clients import ERAS, answers, error_of, served_at_port, server_of, text_of
from skillpager import SkillPager
from skillpager.mcp import server as mcp_server

PAGE = ("load_skill", {"name": "postgres-backup", "query": "Restore a single table from last night's dump."})
KNOWN = "sent earlier"
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def held(tmp_path: Path) -> tuple[SkillPager, HeldEncoder]:
    encoder = HeldEncoder()
    return SkillPager(encoder=encoder, store=tmp_path / "store"), encoder


@pytest.mark.parametrize("era", ERAS)
def test_a_cancelled_call_sent_nothing(tmp_path: Path, era: str) -> None:
    pager, encoder = held(tmp_path)
    texts: list[str] = []

    async def run() -> None:
        async with Client(server_of(pager, SAMPLES), mode=era) as client:
            async with anyio.create_task_group() as calls:
                calls.start_soon(client.call_tool, *PAGE)
                await run_sync(encoder.started.wait, TIME_LIMIT)
                calls.cancel_scope.cancel()
                threading.Timer(0.3, encoder.let_go.set).start()
            await anyio.sleep(1)  # the thread of the cancelled call ends
            texts.extend([text_of(await client.call_tool(*PAGE)) for _ in range(2)])

    anyio.run(run)
    pager.close()
    assert [KNOWN in text for text in texts] == [False, True]


def test_calls_at_the_same_time_are_all_sent_whole(tmp_path: Path) -> None:
    pager, encoder = held(tmp_path)
    pager.index(SAMPLES / "postgres-backup")
    texts: list[str] = []

    async def run() -> None:
        async def call(client: Client) -> None:
            texts.append(text_of(await client.call_tool(*PAGE)))

        async with Client(server_of(pager, SAMPLES), mode="legacy") as client:
            async with anyio.create_task_group() as calls:
                calls.start_soon(call, client)
                calls.start_soon(call, client)
                await anyio.sleep(1)  # both have looked at what was sent, and wait for the query's embedding
                encoder.let_go.set()
            await call(client)

    anyio.run(run)
    pager.close()
    assert [KNOWN in text for text in texts] == [False, False, True]
    assert texts[0] == texts[1]


class Session:
    """A session over HTTP, message by message."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._url = str(client.base_url).rstrip("/")  # httpx would add a slash
        self._headers = {"Accept": "application/json, text/event-stream"}
        opened = self.send("initialize", INITIALIZE)
        self.status = opened.status_code
        if session := opened.headers.get("mcp-session-id"):
            self._headers["Mcp-Session-Id"] = session

    def send(self, method: str, params: dict[str, Any], *, number: int = 1, **options: Any) -> httpx.Response:
        message = {"jsonrpc": "2.0", "method": method, "params": params, "id": number}
        headers = self._headers | options.pop("headers", {})
        return self._client.post(self._url, json=message, headers=headers, **options)

    def page(self, number: int, **options: Any) -> httpx.Response:
        return self.send("tools/call", {"name": PAGE[0], "arguments": PAGE[1]}, number=number, **options)


@contextmanager
def clients_at_port(pager: SkillPager) -> Iterator[httpx.Client]:
    """Serve the samples over HTTP from a thread."""
    with (
        served_at_port(server_of(pager, SAMPLES)) as url,
        httpx.Client(base_url=url, timeout=TIME_LIMIT) as client,
    ):
        yield client


def test_a_client_that_left_before_the_answer_was_sent_nothing(tmp_path: Path) -> None:
    pager, encoder = held(tmp_path)
    with clients_at_port(pager) as client:
        session = Session(client)
        pager.index(SAMPLES / "postgres-backup")  # the call below only waits for the query's embedding
        with pytest.raises(httpx.ReadTimeout):
            session.page(2, timeout=httpx.Timeout(TIME_LIMIT, read=3))
        assert encoder.started.wait(TIME_LIMIT)
        encoder.let_go.set()
        time.sleep(0.5)
        texts = [session.page(number).text for number in (3, 4)]
    pager.close()
    assert [KNOWN in text for text in texts] == [False, True]


@pytest.mark.parametrize("era", ERAS)
def test_a_panic_of_a_dependency_ends_one_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, era: str
) -> None:
    pager = SkillPager(encoder=PanickingEncoder(), store=tmp_path / "store")
    outline = ("get_skill_outline", {"name": "git-bisect"})
    failed, fine, again = answers(server_of(pager, SAMPLES), PAGE, outline, PAGE, era=era)
    pager.close()
    assert "fault of SkillPager" in error_of(failed)
    assert "secret" not in error_of(again)
    assert "git-bisect" in text_of(fine)
    assert "secret detail" in caplog.text


def test_sessions_end_when_nobody_uses_them(pager: SkillPager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_server, "SESSION_SECONDS", 1.5, raising=False)
    with clients_at_port(pager) as client:
        session = Session(client)
        assert session.send("ping", {}).status_code == 200
        time.sleep(3.5)
        assert session.send("ping", {}).status_code == 404


def test_the_number_of_sessions_is_bounded(pager: SkillPager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_server, "MAX_OPEN_SESSIONS", 2, raising=False)
    with clients_at_port(pager) as client:
        assert [Session(client).status for _ in range(3)] == [200, 200, 503]


@pytest.mark.parametrize(("site", "status"), [("cross-site", 403), ("same-site", 403), ("none", 200)])
def test_foreign_web_pages_cannot_make_a_browser_ask(pager: SkillPager, site: str, status: int) -> None:
    with clients_at_port(pager) as client:
        assert Session(client).send("ping", {}, headers={"Sec-Fetch-Site": site}).status_code == status
