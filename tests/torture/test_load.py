"""Servers under load while skills change beneath them, and clients that behave badly."""

import contextlib
import json
import random
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import pytest

from changing_skills import (
    QUERIES,
    Answers,
    ChangingSkills,
    marks_in,
    resident_bytes,
    revision,
    skill_name,
    until,
)
from cli_process import SAMPLES, TIME_LIMIT, command, environment
from http_running import child as http_child
from mcp import Client
from mcp_clients import child as mcp_child
from mcp_clients import http_server
from plain_parts import NoStore
from skillpager import SkillPager
from skillpager.parsing.skill import skill_from_text
from skillpager.settings import Settings
from torture_scale import Torture

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read as on Linux")

SKILLS = 8
CLIENTS = 4
# the load shares the machine with the other parts: seconds that a client waits between requests, and a change lasts
PAUSE, CHANGE_PAUSE = 0.02, 0.15
# memory that a server may gain after its caches are warm; they are bounded by nodes, of about 3 kB
MAX_GROWTH = 400_000_000
EXPECTED = {200, 404, 422}
READING = ("outline", "graph")
NEWEST_PROTOCOL = "2026-07-28"


@dataclass
class Reference:
    """Makes the pages that a server should answer with, without store and server; one thread at a time.

    Attributes:
        share: Share of the pages that are compared, because each costs as much as that of the server.
        compared: How many were.
    """

    pager: SkillPager
    share: float
    compared: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def check(self, page: dict[str, Any], query: str, options: dict[str, Any], answers: Answers) -> None:
        """Check the ceiling of a page and, of some, that it is the page of the revision that it shows."""
        if page["tokens"] > options.get("max_tokens", page["tokens"]):
            answers.wrong(f"{page['tokens']} tokens, over {options['max_tokens']}")
        marks = marks_in(page["text"])
        if len(marks) != 1:
            return  # none in a page that is too small, and more are noted already
        with self._lock:
            if random.random() > self.share:
                return
            self.compared += 1
            made = self.pager.page(skill_from_text(revision(*marks.pop())), query, **options)
        if made.text != page["text"]:
            answers.wrong(f"another page for {query!r} and {options}: {page['text']}")


def test_http_answers_from_one_revision_at_a_time(torture: Torture, tmp_path: Path) -> None:
    skills = ChangingSkills(tmp_path / "skills", SKILLS)
    answers, duration = Answers(), torture.load_seconds(2 / 3)
    made = SkillPager(store=NoStore(), settings=Settings(cache_dir=tmp_path))
    reference = Reference(made, 0.03 if torture.scale else 0.2)
    # it serves the samples as well
    with http_child(tmp_path, skills.folder) as server, skills.changing(CHANGE_PAUSE):
        url = str(server.client.base_url)
        # the models are loaded by the first request
        server.client.post("/v1/page", json={"skill": skill_name(0), "query": QUERIES[0]}).raise_for_status()
        threads = [
            threading.Thread(target=ask_http, args=(url, seed, duration, answers, reference))
            for seed in range(CLIENTS)
        ]
        threads.append(threading.Thread(target=behave_badly, args=(url, duration, answers)))
        for thread in threads:
            thread.start()
        warm = 0
        for passed in until(duration):
            time.sleep(min(1.0, duration / 10))
            if passed < duration / 4:
                warm = resident_bytes(server.process.pid)
        for thread in threads:
            thread.join()
        grown = resident_bytes(server.process.pid) - warm
        assert server.client.get("/livez").status_code == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0
    said = "".join(server.said)
    _record(torture, "HTTP", answers, grown)
    torture.record("HTTP: pages compared with those of the library", reference.compared)
    torture.record("HTTP: changes of skills meanwhile", sum(skills.changes.values()))
    assert answers.problems == []
    assert "Traceback" not in said
    assert "fault of SkillPager" not in said
    assert grown <= MAX_GROWTH
    assert answers.statuses["200"] > 0


def ask_http(url: str, seed: int, duration: float, answers: Answers, reference: Reference) -> None:
    """Ask for pages, nodes, outlines and lists, one after the other."""
    draw = random.Random(seed)
    with httpx.Client(base_url=url, timeout=60) as client:
        for _ in until(duration):
            try:
                _ask_once(client, draw, answers, reference)
            except Exception as problem:
                answers.wrong(f"{type(problem).__name__}: {problem}")
            time.sleep(PAUSE * draw.random() * 2)


def _ask_once(client: httpx.Client, draw: random.Random, answers: Answers, reference: Reference) -> None:
    skill = draw.randrange(SKILLS)
    name = skill_name(skill)
    query = draw.choice(QUERIES) if draw.random() < 0.6 else f"{draw.choice(QUERIES)} {draw.randrange(10**9)}"
    match draw.randrange(8):
        case 0 | 1 | 2 | 3:
            options: dict[str, Any] = {"style": draw.choice(("marked", "plain", "xml"))}
            if draw.random() < 0.5:
                options["max_tokens"] = draw.choice((0, 150, 400, 3_000))
            if draw.random() < 0.3:
                options["strategy"] = draw.choice(("mmr", "sections", "head", "bm25"))
            got = client.post("/v1/page", json={"skill": name, "query": query, **options})
            if got.status_code == 200:
                answers.count("page")
                reference.check(got.json(), query, options, answers)
        case 4:
            got = client.get(f"/v1/skills/{name}/{draw.choice(READING)}")
        case 5:
            got = client.post("/v1/expand", json={"skill": name, "nodes": "n1-n3"})
        case _:
            got = client.get(
                draw.choice(("/v1/skills", "/v1/strategies", "/v1/about", "/metrics", "/livez", "/"))
            )
    answers.count(str(got.status_code))
    busy = got.status_code == 503 and "Retry-After" in got.headers
    if got.status_code not in EXPECTED and not busy:
        answers.wrong(f"{got.status_code} for {got.request.method} {got.request.url}: {got.text}")
    # the list is of all skills
    if str(got.request.url.path).count("/") >= 3 or b'"skill"' in got.request.content:
        answers.check(name, got.text)


def behave_badly(url: str, duration: float, answers: Answers) -> None:
    """Send slow, huge, half and wrong requests, and go away in the middle, again and again."""
    parts, draw = urlsplit(url), random.Random(5)
    address = (parts.hostname or "", parts.port or 0)
    half_open: list[socket.socket] = []
    body = json.dumps({"skill": skill_name(0), "query": QUERIES[0]}).encode()
    head = b"POST /v1/page HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    sent = {
        "half a head": head,
        "half a body": head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:9],
        "a body that never comes": head + b"Content-Length: 100\r\n\r\n",
        "a huge body": head + b"Content-Length: 5000000\r\n\r\n" + b"x" * 5_000_000,
        "a huge body in chunks": head
        + b"Transfer-Encoding: chunked\r\n\r\n"
        + (b"ffff\r\n" + b"x" * 65535 + b"\r\n") * 50,
        "a huge head": b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 400_000,
        "garbage": bytes(range(256)) * 40,
        "a request and no wish to read": head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body,
        "many requests at once": (b"GET /v1/skills HTTP/1.1\r\nHost: localhost\r\n\r\n") * 40,
        "a length that is no number": head + b"Content-Length: -1\r\n\r\n{}",
        "JSON that is deep": head + b"Content-Length: 40000\r\n\r\n" + b"[" * 40_000,
    }
    for _ in until(duration):
        what = draw.choice(list(sent))
        connection = socket.create_connection(address, timeout=10)
        with contextlib.suppress(OSError):
            connection.sendall(sent[what])
        answers.count(f"sent: {what}")
        if draw.random() < 0.3:
            half_open.append(connection)
        else:
            if draw.random() < 0.5:
                with contextlib.suppress(OSError):
                    connection.recv(10)
            connection.close()
        while len(half_open) > 60:
            half_open.pop(0).close()
        time.sleep(0.05)
    for connection in half_open:
        connection.close()


# ---- MCP


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_mcp_answers_from_one_revision_at_a_time(transport: str, torture: Torture, tmp_path: Path) -> None:
    skills = ChangingSkills(tmp_path / "skills", SKILLS)
    answers, duration = Answers(), torture.load_seconds(1 / 6)
    with skills.changing(CHANGE_PAUSE), contextlib.ExitStack() as stack:
        if transport == "stdio":
            server: Any = mcp_child(skills.folder, cache=tmp_path / "cache")
            anyio.run(ask_mcp, [server], duration, answers)
        else:
            server = stack.enter_context(http_server(skills.folder, cache=tmp_path / "cache"))
            anyio.run(ask_mcp, [server] * 3, duration, answers)
    _record(torture, f"MCP over {transport}", answers, None)
    assert answers.problems == []
    assert answers.statuses["answer"] > 0


ASKED: tuple[tuple[str, dict[str, Any] | None], ...] = (
    ("load_skill", {"query": ""}),
    ("load_skill", {"query": "", "resend": True, "budget_tokens": 300}),
    ("load_skill", {"mode": "full"}),
    ("read_skill_nodes", {"ids": "n1-n4"}),
    ("read_skill_nodes", {"lines": "5-20"}),
    ("get_skill_outline", {}),
    ("list_skills", None),
)


async def ask_mcp(servers: list[Any], duration: float, answers: Answers) -> None:
    """Talk to each server in a session of its own, all at once."""

    async def talk(server: Any, seed: int) -> None:
        draw = random.Random(seed)
        async with Client(server, mode=draw.choice(("legacy", NEWEST_PROTOCOL))) as client:
            # loads the models
            await client.call_tool("load_skill", {"name": skill_name(0), "query": QUERIES[0]})
            for _ in until(duration):
                name = skill_name(draw.randrange(SKILLS))
                tool, options = draw.choice(ASKED)
                arguments = {"name": name, **options} if options is not None else {}
                if "query" in arguments:
                    arguments["query"] = f"{draw.choice(QUERIES)} {draw.randrange(99)}"
                try:
                    result = await client.call_tool(tool, arguments)
                except Exception as problem:
                    answers.wrong(f"{tool}: {type(problem).__name__}: {problem}")
                    return
                answers.count("error" if result.is_error else "answer")
                text = "".join(getattr(block, "text", "") for block in result.content)
                if result.is_error and not any(word in text for word in ("skill", "node", "line", "n1")):
                    answers.wrong(f"{tool}: {text}")
                if tool != "list_skills":
                    answers.check(name, text)
                await anyio.sleep(PAUSE * draw.random() * 4)

    async with anyio.create_task_group() as group:
        for seed, server in enumerate(servers):
            group.start_soon(talk, server, seed)


# ---- clients that go away


CALLS = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}
     | {"clientInfo": {"name": "test", "version": "1"}}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
     "params": {"name": "load_skill", "arguments": {"name": "postgres-backup", "query": QUERIES[0]}}},
)  # fmt: skip
LAST_WORDS = {
    "nothing": b"",
    "a question": json.dumps(CALLS[2]).encode() + b"\n",
    "half a message": json.dumps(CALLS[2]).encode()[:40],
    "garbage": b"\xff\x00\n[[[\n\n{}\n",
}


@pytest.mark.parametrize("said_last", LAST_WORDS)
def test_an_mcp_server_ends_when_its_client_goes_away(
    said_last: str, torture: Torture, tmp_path: Path
) -> None:
    for number in range(torture.amount(1, 8)):
        process = subprocess.Popen(
            command("mcp", SAMPLES),
            env=environment(tmp_path / "cache"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        with process:
            try:
                assert process.stdin
                assert process.stdout
                assert process.stderr
                process.stdin.write(b"".join(json.dumps(call).encode() + b"\n" for call in CALLS))
                process.stdin.flush()
                process.stdout.readline()
                time.sleep(0.02 * (number % 5))
                process.stdout.close()  # it learns of it when it writes
                with contextlib.suppress(OSError):
                    process.stdin.write(LAST_WORDS[said_last])
                    process.stdin.close()
                process.wait(TIME_LIMIT)
                assert "Traceback" not in (said := process.stderr.read().decode()), said
            finally:
                process.kill()


def _record(torture: Torture, what: str, answers: Answers, grown: int | None) -> None:
    torture.record(f"{what}: answers", sum(answers.statuses.values()))
    for status, count in sorted(answers.statuses.items()):
        torture.record(f"{what}: {status}", count, "times")
    if grown is not None:
        torture.record(f"{what}: memory gained after the first quarter", grown / 1e6, "MB")
