"""Sessions: what one was sent is named instead of sent again; calls that are cancelled or fail."""

import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.to_thread import current_default_thread_limiter, run_sync

from conftest import SAMPLES
from encoder_stubs import TIME_LIMIT, HeldEncoder, PanickingEncoder
from mcp import Client
from mcp_clients import ERAS, answers, child, error_of, server_of, text_of, with_client
from skillpager import SkillPager
from skillpager.mcp import server
from skillpager.mcp.server import PROGRESS, THREADS

PAGE = ("load_skill", {"name": "postgres-backup", "query": "Restore a single table from last night's dump."})
# whose page has several parts
PARTS = (PAGE[0], {**PAGE[1], "query": "Which options does pg_restore need, and what goes wrong?"})
OTHER = ("load_skill", {"name": "postgres-backup", "query": "Restore a whole database on a new server."})
AGAIN = ("load_skill", {**PAGE[1], "resend": "true"})  # models write flags as text, too
KNOWN = "sent earlier"
LOG = "Then look at the log for a minute, line by line, and write down what it says.\n\n"


@pytest.mark.parametrize("era", ERAS)
def test_a_page_names_what_the_session_was_sent(pager: SkillPager, era: str) -> None:
    first, second, other = map(text_of, answers(server_of(pager, SAMPLES), PARTS, PARTS, OTHER, era=era))
    skill = SAMPLES / "postgres-backup"
    one, both = pager.page(skill, PARTS[1]["query"]), pager.page(skill, OTHER[1]["query"])
    assert KNOWN not in first
    assert {node.id for node in one.nodes} & {node.id for node in both.nodes}
    show, known = 'read_skill_nodes(name="postgres-backup", ids="{ids}")', [node.id for node in one.nodes]
    again = pager.page(skill, PARTS[1]["query"], known=known, show=show, folder=True)
    assert second == again.text
    assert len(re.findall(rf"^\[… L[\d-]+, {KNOWN}\]$", second, re.MULTILINE)) > 1
    # what to do when the host has dropped it
    assert "[…] = omitted lines; read: read_skill_nodes(" in second
    assert KNOWN in other
    for node in one.nodes:
        assert node.text.strip() in first
        assert node.text.strip() not in other


def test_it_is_sent_again_when_asked_for(pager: SkillPager) -> None:
    first, again = answers(server_of(pager, SAMPLES), PAGE, AGAIN)
    assert text_of(again) == text_of(first)
    always, also = answers(server_of(pager, SAMPLES, resend=True), PAGE, PAGE)
    assert text_of(always) == text_of(also) == text_of(first)


def test_reading_nodes_always_sends_them_and_counts_as_sent(pager: SkillPager) -> None:
    read = ("read_skill_nodes", {"name": "postgres-backup", "ids": "n30-n40"})
    one, two, page = map(text_of, answers(server_of(pager, SAMPLES), read, read, PAGE))
    assert one == two
    assert KNOWN not in two
    picked = pager.page(SAMPLES / "postgres-backup", PAGE[1]["query"]).nodes
    was_read = [30 <= node.ordinal <= 40 for node in picked]
    assert [node.text.strip() not in page for node in picked] == was_read
    assert set(was_read) == {True, False}


def test_a_whole_skill_is_named_once_it_was_sent(pager: SkillPager) -> None:
    whole = ("load_skill", {"name": "git-bisect"})
    full = ("load_skill", {"name": "git-bisect", "mode": "full"})
    first, second, full_mode = map(text_of, answers(server_of(pager, SAMPLES), whole, whole, full))
    assert first == pager.whole(SAMPLES / "git-bisect").text
    assert "[… L9-49, sent earlier]" in second
    assert full_mode == second


def test_a_changed_file_is_indexed_anew_and_counts_as_not_sent(pager: SkillPager, tmp_path: Path) -> None:
    file = tmp_path / "restart" / "SKILL.md"
    file.parent.mkdir()

    def write(step: str) -> None:
        head = "---\nname: restart\ndescription: d\n---\n# Restart\n\n"
        file.write_text(f"{head}{step}\n\n{LOG * 8}", encoding="utf-8")
        os.utime(file, (1_700_000_000, 1_700_000_000))  # the same age: size and digest tell

    write("Stop the old service.")
    texts: list[str] = []

    async def ask(client: Client) -> None:
        for step in ("", "", "Stop the new service at once."):
            if step:
                write(step)
            texts.append(text_of(await client.call_tool("load_skill", {"name": "restart"})))

    with_client(server_of(pager, tmp_path), ask)
    assert "Stop the old service." in texts[0]
    assert KNOWN in texts[1]
    assert "Stop the new service at once." in texts[2]
    assert KNOWN not in texts[2]


@pytest.mark.parametrize("era", ERAS)
def test_two_clients_have_sessions_of_their_own(pager: SkillPager, era: str) -> None:
    server = server_of(pager, SAMPLES)
    texts: list[str] = []

    async def run() -> None:
        async with Client(server, mode=era) as one, Client(server, mode=era) as other:
            results = [await client.call_tool(*PAGE) for client in (one, other, one, other)]
            texts.extend(map(text_of, results))

    anyio.run(run)
    assert texts[0] == texts[1]
    assert [KNOWN in text for text in texts] == [False, False, True, True]


def held(tmp_path: Path) -> tuple[SkillPager, HeldEncoder]:
    encoder = HeldEncoder()
    return SkillPager(encoder=encoder, store=tmp_path / "store"), encoder


@pytest.mark.parametrize("era", ERAS)
def test_a_cancelled_call_sent_nothing(tmp_path: Path, era: str) -> None:
    pager, encoder = held(tmp_path)
    texts: list[str] = []

    async def ask(client: Client) -> None:
        async with anyio.create_task_group() as calls:
            calls.start_soon(client.call_tool, *PAGE)
            await run_sync(encoder.started.wait, TIME_LIMIT)
            calls.cancel_scope.cancel()
            threading.Timer(0.3, encoder.let_go.set).start()
        await anyio.sleep(1)  # the thread of the cancelled call ends
        texts.extend([text_of(await client.call_tool(*PAGE)) for _ in range(2)])

    with_client(server_of(pager, SAMPLES), ask, era=era)
    pager.close()
    assert [KNOWN in text for text in texts] == [False, True]


@pytest.mark.parametrize("era", ERAS)
def test_a_call_that_takes_seconds_tells_its_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    told: list[tuple[float, float | None, str | None]] = []

    async def note(*progress: Any) -> None:
        told.append(progress)

    async def ask(client: Client) -> None:
        for least in (1, 0):  # the second page needs no index
            begun = anyio.current_time()
            text_of(await client.call_tool(*PAGE, progress_callback=note))
            assert least <= len(told) <= anyio.current_time() - begun
            for second, (seconds, *rest) in enumerate(told, 1):
                assert seconds >= second
                assert rest == [None, PROGRESS]
            told.clear()

    slow = child(SAMPLES, "--encoder", "bulk_parts:SlowEncoder", cache=tmp_path / "cache")
    with_client(slow, ask, era=era)


def test_calls_leave_threads_for_the_messages_that_cancel_them(tmp_path: Path) -> None:
    """The SDK reads stdin in a thread of the pool that tools would else fill, and answers what it reads late."""
    pager, encoder = held(tmp_path)
    pager.index(SAMPLES / "postgres-backup")

    async def ask(client: Client) -> None:
        async with anyio.create_task_group() as calls:
            for number in range(10):
                query = {**PAGE[1], "query": f"{PAGE[1]['query']} {number}"}
                calls.start_soon(client.call_tool, "load_skill", query)
            while not encoder.started.is_set():
                await anyio.sleep(0.1)
            await anyio.sleep(1)
            assert current_default_thread_limiter().borrowed_tokens == 0
            calls.cancel_scope.cancel()
            threading.Timer(0.3, encoder.let_go.set).start()
        await client.list_tools()

    with_client(server_of(pager, SAMPLES), ask)
    pager.close()
    assert encoder.queries == THREADS  # the other eight were cancelled before they began


def test_a_call_that_is_cancelled_before_its_thread_begins_makes_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pager, encoder = held(tmp_path)
    encoder.let_go.set()
    has_thread, go = threading.Event(), threading.Event()

    async def run_late(function: Callable[..., str], *values: object, limiter: anyio.CapacityLimiter) -> str:
        def late() -> str:
            has_thread.set()
            assert go.wait(TIME_LIMIT)
            return function(*values)

        return await run_sync(late, limiter=limiter)

    async def ask(client: Client) -> None:
        async with anyio.create_task_group() as calls:
            calls.start_soon(client.call_tool, *PAGE)
            await run_sync(has_thread.wait, TIME_LIMIT)
            calls.cancel_scope.cancel()
        await client.list_tools()  # the server has read what was sent before
        go.set()

    monkeypatch.setattr(server, "run_sync", run_late)
    with_client(server_of(pager, SAMPLES), ask)
    pager.close()
    assert encoder.queries == 0


def test_calls_at_the_same_time_are_all_sent_whole(tmp_path: Path) -> None:
    pager, encoder = held(tmp_path)
    pager.index(SAMPLES / "postgres-backup")
    texts: list[str] = []

    async def call(client: Client) -> None:
        texts.append(text_of(await client.call_tool(*PAGE)))

    async def ask(client: Client) -> None:
        async with anyio.create_task_group() as calls:
            calls.start_soon(call, client)
            calls.start_soon(call, client)
            await anyio.sleep(1)  # both have looked at what was sent, and wait for the query's embedding
            encoder.let_go.set()
        await call(client)

    with_client(server_of(pager, SAMPLES), ask)
    pager.close()
    assert [KNOWN in text for text in texts] == [False, False, True]
    assert texts[0] == texts[1]


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
