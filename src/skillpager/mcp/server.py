"""The MCP server: the tools behind the official SDK, over stdin and stdout or HTTP on this machine.

The server remembers the nodes that a session was sent. A session is a connection by stdin and stdout, or over
HTTP what `initialize` opened. HTTP requests of protocol 2026-07-28 have no session and are sent everything.
"""

import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

import anyio
from anyio.to_thread import run_sync
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS

from skillpager.errors import SettingsError, SkillPagerError
from skillpager.library import Library
from skillpager.mcp.memory import Memory, Sessions
from skillpager.mcp.tools import TOOLS, SkillTools, ToolOptions
from skillpager.output.formatting import snippet

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
PATH = "/mcp"
DEFAULT_PORT = 8642
# open streams would keep a server from stopping
STOP_SECONDS = 2
# longest error: it quotes the request, which may have any length
ERROR_CHARS = 2_000
INSTRUCTIONS = (
    "Skills are instructions for tasks. Before a task for which there is a skill, call load_skill and say in "
    "query what you are about to do: you get the part that is needed. [… marks …] show what is left out; "
    "read it with read_skill_nodes when you need it."
)

SkillServer = Server[Sessions]
RequestContext = ServerRequestContext[Sessions]


def make_server(library: Library, options: ToolOptions | None = None) -> SkillServer:
    """Return a server that offers the skills of a library.

    Raises:
        SettingsError: An option is not valid.
    """
    options = options or ToolOptions()
    tools = SkillTools(library, options)
    listed = ListToolsResult(
        tools=[
            Tool(
                name=name,
                description=tool.description,
                input_schema=dict(tool.input_schema),
                output_schema=dict(tool.output_schema) if options.structured else None,
                annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
            )
            for name, tool in TOOLS.items()
        ]
    )

    async def list_tools(_: RequestContext, __: PaginatedRequestParams | None) -> ListToolsResult:
        return listed

    async def call_tool(context: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        return await run_sync(_answer, tools, params, _memory(context), options.structured)

    @asynccontextmanager
    async def sessions(_: SkillServer) -> AsyncIterator[Sessions]:
        yield Sessions()

    return Server(
        "skillpager",
        version=version("skillpager"),
        instructions=INSTRUCTIONS,
        lifespan=sessions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _memory(context: RequestContext) -> Memory:
    """Return the memory of a request's session; a new one for a request without a session."""
    sessions = context.lifespan_context
    if context.request is None:
        return sessions.own
    session = context.request.headers.get("mcp-session-id")
    if session and context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        return sessions.named(session)
    return Memory()


def _answer(
    tools: SkillTools, params: CallToolRequestParams, memory: Memory, structured: bool
) -> CallToolResult:
    try:
        reply = tools.call(params.name, params.arguments or {}, memory)
    except SkillPagerError as error:
        message = str(error)
    except Exception:  # a client must get an answer, without details of the fault
        logger.exception("the tool %s failed", params.name)
        message = "This is a fault of SkillPager; its log says more."
    else:
        content = TextContent(type="text", text=reply.text)
        return CallToolResult(content=[content], structured_content=reply.form if structured else None)
    content = TextContent(type="text", text=snippet(message, ERROR_CHARS))
    return CallToolResult(content=[content], is_error=True)


def serve_pipe(server: SkillServer) -> None:
    """Answer the client at stdin and stdout until it closes them."""

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)


def open_port(port: int) -> socket.socket:
    """Return a listening socket that only this machine can reach; port 0 takes a free one.

    Raises:
        SettingsError: The port is taken or not allowed.
    """
    try:
        return socket.create_server((HOST, port))
    except (OSError, OverflowError) as error:
        raise SettingsError(
            f"Port {port} of {HOST} cannot be used ({error}): choose another --port."
        ) from error


def address_of(listening: socket.socket) -> str:
    """Return the URL of a server at a socket."""
    return f"http://{HOST}:{listening.getsockname()[1]}{PATH}"


def serve_http(server: SkillServer, listening: socket.socket) -> None:
    """Answer clients at a socket until a signal stops the process.

    Requests with another Host or from a page of another origin are refused (DNS rebinding).
    """
    import uvicorn

    port = listening.getsockname()[1]
    names = [f"{HOST}:{port}", f"localhost:{port}"]
    security = TransportSecuritySettings(
        allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
    )
    app = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, transport_security=security
    )
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[listening])
