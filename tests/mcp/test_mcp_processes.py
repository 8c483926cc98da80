"""`skillpager mcp` as a real process: over stdio and over HTTP, at a real port."""

import http.client
import json
import re
import signal
import socket
import subprocess
import time
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest

from cli_process import ROOT, TIME_LIMIT, command, environment, invoke, run
from conftest import SAMPLES
from mcp import Client
from mcp_clients import ERAS, answer, answers, child, error_of, http_server, server_of, text_of, with_client
from skillpager import SkillPager
from skillpager.errors import install_command

PAGE = ("load_skill", {"name": "postgres-backup", "query": "Restore a single table from last night's dump."})
KNOWN = "sent earlier"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def started(folder: Path, *options: str) -> "subprocess.Popen[str]":
    """Start a server of the samples that logs all it does, its streams in our hands."""
    return subprocess.Popen(
        command("mcp", SAMPLES, "--verbose", *options),
        env=environment(folder / "cache"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# ---- stdio


@pytest.mark.parametrize("era", ERAS)
def test_a_child_process_answers_as_the_library_does(pager: SkillPager, tmp_path: Path, era: str) -> None:
    server = child(SAMPLES, cache=tmp_path / "cache")
    first, second, wrong = answers(server, PAGE, PAGE, ("load_skill", {"name": "nix"}), era=era)
    assert text_of(first) == text_of(answer(server_of(pager, SAMPLES), PAGE[0], **PAGE[1]))
    assert KNOWN in text_of(second)
    assert "There is no skill named 'nix'" in error_of(wrong)


def test_options_of_the_command_reach_the_tools(tmp_path: Path) -> None:
    server = child(SAMPLES, "--resend", "--ceiling", "1000", "--scope", "body", cache=tmp_path / "c")
    full = ("load_skill", {"name": "kubernetes-debugging", "mode": "full"})
    first, second = answers(server, full, full)
    assert text_of(first) == text_of(second)
    assert len(text_of(first)) < 6_000
    assert "[… references/" not in text_of(first)


def test_stdout_holds_the_protocol_and_nothing_else(tmp_path: Path) -> None:
    # half a character, as a client in JavaScript cuts a text within an emoji
    asked = {"name": "load_skill", "arguments": {"name": "git-bisect", "query": "the bad commit \ud83d"}}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked}
    process = started(tmp_path)
    assert process.stdin is not None
    assert process.stdout is not None
    answers = []
    for message in (INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"}, call):
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        if "id" in message:
            answers.append(json.loads(process.stdout.readline()))
    rest, said = process.communicate(timeout=TIME_LIMIT)
    assert [answer["id"] for answer in answers] == [1, 2]
    assert "bisect" in answers[1]["result"]["content"][0]["text"]
    assert (rest, process.returncode) == ("", 0)
    assert "Traceback" not in said


def test_a_client_that_is_gone_is_no_error(tmp_path: Path) -> None:
    process = started(tmp_path)
    assert process.stdout is not None
    process.stdout.close()
    _, said = process.communicate(json.dumps(INITIALIZE) + "\n", timeout=TIME_LIMIT)
    assert (process.returncode, "error" in said) == (0, False)


# ---- HTTP


def post(url: str, message: dict[str, Any], **headers: str) -> tuple[int, str]:
    """Return status and body of a request with headers of the caller's choice."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=TIME_LIMIT)
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    connection.request("POST", parts.path, json.dumps(message), sent)
    answered = connection.getresponse()
    body = answered.read().decode()
    connection.close()
    return answered.status, body


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The URL of a running server of the samples."""
    with http_server(SAMPLES, cache=tmp_path_factory.mktemp("http") / "cache") as address:
        yield address


@pytest.mark.parametrize("era", ERAS)
def test_http_answers_as_the_library_does(url: str, pager: SkillPager, era: str) -> None:
    result = answer(url, PAGE[0], era=era, **PAGE[1])
    alone = answer(server_of(pager, SAMPLES), PAGE[0], **PAGE[1])
    assert text_of(result) == text_of(alone)


def test_sessions_over_http_are_apart(url: str) -> None:
    texts: list[str] = []

    async def talk() -> None:
        async with Client(url, mode="legacy") as one, Client(url, mode="legacy") as other:
            results = [await client.call_tool(*PAGE) for client in (one, other, one, other)]
            texts.extend(map(text_of, results))

    anyio.run(talk)
    assert [KNOWN in text for text in texts] == [False, False, True, True]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:8642"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost:1"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 400),
    ],
)
def test_requests_that_a_web_page_could_make_are_refused(
    url: str, headers: dict[str, str], status: int
) -> None:
    assert post(url, INITIALIZE, **headers)[0] == status


# ---- wrong usage


def test_wrong_usage_is_told_without_a_traceback(tmp_path: Path) -> None:
    env = environment(tmp_path / "cache")
    for arguments, code, message in (
        (["--port", "8000"], 2, "--port needs --http: add --http"),
        (["--http", "--port", "99999"], 2, "less than or equal to 65535"),
        (["--ceiling", "10"], 2, "The ceiling is 10 tokens: it must be 1000 or more."),
        ([str(tmp_path / "missing")], 1, "is not a folder: name folders that contain skills."),
        (["--scope", "all"], 2, "Unknown scope 'all': choose one of skill, body."),
    ):
        ran = invoke("mcp", *arguments, env=env)
        assert (ran.code, ran.out) == (code, "")
        assert message in ran.err
        assert "Traceback" not in ran.err


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = invoke("mcp", SAMPLES, "--http", "--port", port, env=environment(tmp_path / "cache"))
    assert ran.code == 1
    assert f"Port {port} of 127.0.0.1 cannot be used" in ran.err
    assert "choose another --port" in ran.err


def test_a_folder_without_skills_is_told_and_served(tmp_path: Path) -> None:
    ran = run("mcp", tmp_path, env=environment(tmp_path / "cache"))
    assert (ran.code, ran.err) == (0, f"no skills in {tmp_path}\n")
    listed = answer(child(tmp_path, cache=tmp_path / "cache"), "list_skills")
    assert text_of(listed) == "There are no skills.\n"


def test_without_the_package_the_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text("raise ImportError('no mcp here')\n", encoding="utf-8")
    env = environment(tmp_path / "cache", PYTHONPATH=str(tmp_path))
    ran = run("mcp", SAMPLES, env=env)
    assert ran.code == 1
    assert install_command("mcp") in ran.err


@pytest.mark.parametrize("options", [[], ["--http", "--port", "0"]])
def test_ctrl_c_ends_it_without_a_traceback(tmp_path: Path, options: list[str]) -> None:
    process = started(tmp_path, *options)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    if options:
        assert "MCP server at" in process.stderr.readline()
        time.sleep(0.5)
    else:
        process.stdin.write(json.dumps(INITIALIZE) + "\n")
        process.stdin.flush()
        process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=TIME_LIMIT)
    assert process.returncode == 130
    assert "Traceback" not in said


# ---- the documentation


def test_configurations_in_the_docs_parse_and_start_a_server(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8").partition("## MCP server")[2]
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    blocks += [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL)]
    entries = [entry for block in blocks for servers in block.values() for entry in servers.values()]
    assert len(entries) == 1
    assert {entry["command"] for entry in entries} == {"skillpager"}
    for arguments in {tuple(word for word in entry["args"] if "/" not in word) for entry in entries}:
        assert run(*arguments, env=environment(tmp_path / "cache"), cwd=tmp_path).code == 0


def test_tools_and_their_arguments_are_those_of_the_docs(pager: SkillPager) -> None:
    text = (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8").partition("## MCP server")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", text, re.MULTILINE)
    documented = {name: re.findall(r"`(\w+)`", arguments) for name, arguments in rows}

    async def ask(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert documented == {tool.name: list(tool.input_schema["properties"]) for tool in tools}

    with_client(server_of(pager, SAMPLES), ask)
