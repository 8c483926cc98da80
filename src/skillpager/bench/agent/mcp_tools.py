"""The tools of our MCP server, through the SDK's client: a real server process for each agent."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from skillpager.bench.agent.processes import clean_environment
from skillpager.bench.agent.tasks import Task
from skillpager.bench.agent.tools import ToolError
from skillpager.errors import BenchError, require_extra
from skillpager.json_types import JsonObject
from skillpager.parsing.skill import ENTRY_FILE
from skillpager.remote.tool_calls import function_tool

if TYPE_CHECKING:
    from mcp.types import Tool

    from mcp import Client

# seconds for the start of the server, and for one call: the first builds the index
SECONDS = 120.0


class McpTools:
    """The tools that an MCP server lists.

    Attributes:
        tools: The tools, as the chat protocol describes them.
    """

    def __init__(self, portal: BlockingPortal, client: "Client", listed: "list[Tool]") -> None:
        self._portal = portal
        self._client = client
        self._names = {tool.name for tool in listed}
        self.tools: tuple[JsonObject, ...] = tuple(
            function_tool(tool.name, tool.description or "", tool.input_schema) for tool in listed
        )

    def call(self, name: str, arguments: Mapping[str, object]) -> str | None:
        """Return what the server answers to a call, or None if it has no tool of this name."""
        if name not in self._names:
            return None
        mcp = require_extra("mcp", extra="mcp", purpose="The arm mcp")
        try:
            result = self._portal.call(self._client.call_tool, name, dict(arguments), SECONDS)
        except (mcp.MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError, TimeoutError) as error:
            raise ToolError(f"the MCP server did not answer: {error}") from None
        text = "\n".join(block.text for block in result.content if block.type == "text")
        if result.is_error:
            raise ToolError(text)
        return text


@contextmanager
def mcp_tools(task: Task, home: Path, cache: Path) -> Iterator[McpTools]:
    """Start an MCP server that offers the skill of a task, and stop it at the end.

    Args:
        task: The task.
        home: The home folder of the server.
        cache: The folder of stored indexes.

    Raises:
        MissingExtraError: The MCP SDK is not installed.
        BenchError: The server does not start.
    """
    mcp = require_extra("mcp", extra="mcp", purpose="The arm mcp")
    stdio = require_extra("mcp.client.stdio", extra="mcp", purpose="The arm mcp")
    folder = _skill_folder(task, home)
    server = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "skillpager", "mcp", str(folder), "--text-only"],
        env={**clean_environment(home), **_settings(), "SKILLPAGER_CACHE_DIR": str(cache)},
        cwd=home,
    )
    with Path(os.devnull).open("w") as nowhere, start_blocking_portal() as portal:
        client = mcp.Client(stdio.stdio_client(server, nowhere), read_timeout_seconds=SECONDS, mode="legacy")
        try:
            running = portal.wrap_async_context_manager(client)
            opened = running.__enter__()
        except (mcp.MCPError, OSError, TimeoutError, ExceptionGroup) as error:
            raise BenchError(f"The MCP server for the task {task.id} does not start: {error}") from None
        try:
            yield McpTools(portal, opened, portal.call(client.list_tools).tools)
        finally:
            running.__exit__(None, None, None)


def _settings() -> dict[str, str]:
    """Return the variables with settings, so that the server makes the pages of the other arms; no keys."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith("SKILLPAGER_") and "KEY" not in name
    }


def _skill_folder(task: Task, home: Path) -> Path:
    """Return a folder with the skill of a task: its own, or a new one if the skill is a single file."""
    if task.skill.is_dir():
        return task.skill.resolve()
    folder = home / "skills" / task.skill_name
    folder.mkdir(parents=True)
    shutil.copy(task.skill, folder / ENTRY_FILE)
    return folder
