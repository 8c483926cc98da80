"""MCP clients for tests: the SDK's own, in memory, to a child process, or to a port."""

import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp.types import CallToolResult, TextContent

from cli_process import ROOT, TIME_LIMIT, command, environment
from mcp import Client, StdioServerParameters
from skillpager import SkillPager
from skillpager.library import Library
from skillpager.mcp.server import SkillServer, make_server
from skillpager.mcp.tools import ToolOptions

# the handshake of most hosts, and the protocol without sessions
ERAS = ("legacy", "2026-07-28")

Call = tuple[str, dict[str, object]]


def server_of(pager: SkillPager, *folders: Path, **options: Any) -> SkillServer:
    """Return a server of the skills in some folders."""
    return make_server(Library(pager, folders), ToolOptions(**options))


def with_client(server: Any, ask: Callable[[Client], Awaitable[None]], *, era: str = "legacy") -> None:
    """Run a conversation with a server: in memory, a child process, or a URL."""

    async def run() -> None:
        async with Client(server, mode=era) as client:
            await ask(client)

    anyio.run(run)


def answers(server: Any, *calls: Call, era: str = "legacy") -> list[CallToolResult]:
    """Return the results of calls of one session, one after the other."""
    results: list[CallToolResult] = []

    async def ask(client: Client) -> None:
        for name, arguments in calls:
            results.append(await client.call_tool(name, arguments))

    with_client(server, ask, era=era)
    return results


def answer(server: Any, tool: str, /, *, era: str = "legacy", **arguments: object) -> CallToolResult:
    """Return the result of one call."""
    return answers(server, (tool, arguments), era=era)[0]


def text_of(result: CallToolResult) -> str:
    """Return the only text block of a result that is no error."""
    assert not result.is_error, result.content
    return _only_text(result)


def error_of(result: CallToolResult) -> str:
    """Return the message of a result that is an error."""
    assert result.is_error, result.content
    return _only_text(result)


def _only_text(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def child(folder: Path, *arguments: str | Path, cache: Path) -> StdioServerParameters:
    """Return how to start `skillpager mcp` with `arguments`, with a cache and home folder of its own."""
    program, *rest = command("mcp", folder, *arguments)
    env = {"PYTHONWARNINGS": "error", **environment(cache)}
    return StdioServerParameters(command=program, args=rest, env=env, cwd=ROOT)


@contextmanager
def http_server(folder: Path, *arguments: str, cache: Path) -> Iterator[str]:
    """Run `skillpager mcp --http` at a free port; yield its URL."""
    process = subprocess.Popen(
        command("mcp", folder, "--http", "--port", "0", *arguments),
        env=environment(cache),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        words = process.stderr.readline().split()
        assert words[:3] == ["MCP", "server", "at"], (words, process.stderr.read())
        yield words[3].rstrip(";")
    finally:
        process.terminate()
        out, said = process.communicate(timeout=TIME_LIMIT)
    assert out == ""
    assert "Traceback" not in said
