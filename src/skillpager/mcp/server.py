"""The MCP server: the tools behind the official SDK, over stdin and stdout or HTTP on this machine.

The server remembers the nodes that a session was sent. A session is a connection by stdin and stdout, or over
HTTP what `initialize` opened. HTTP requests of protocol 2026-07-28 have no session and are sent everything.
"""

import json
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
from anyio.lowlevel import checkpoint_if_cancelled
from anyio.to_thread import run_sync
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    JSONRPCError,
    JSONRPCResponse,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from skillpager.display_text import encodable
from skillpager.errors import SettingsError, SkillPagerError
from skillpager.library import Library
from skillpager.mcp import schemas
from skillpager.mcp.callers import RequestContext, caller_of, has_left
from skillpager.mcp.greeting import NAME, Greeting, instructions_of
from skillpager.mcp.memory import Sessions
from skillpager.mcp.offers import Offers
from skillpager.mcp.options import ToolOptions
from skillpager.mcp.replies import ERROR_CHARS, Reply
from skillpager.mcp.tools import TOOLS, Caller, SkillTools
from skillpager.output.formatting import snippet

if TYPE_CHECKING:
    import uvicorn
    from mcp.shared._stream_protocols import WriteStream
    from starlette.types import ASGIApp, Receive, Scope, Send

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
PATH = "/mcp"
DEFAULT_PORT = 8642
# open streams would keep a server from stopping
STOP_SECONDS = 2
# largest body over HTTP; a call is a few hundred bytes
MAX_BODY_BYTES = 256 * 1024
# sessions over HTTP: a session without a request or an open stream for this long ends; beyond the number no
# further one is opened
SESSION_SECONDS = 30 * 60
MAX_OPEN_SESSIONS = 1_000
# skills among which a model may choose by the schema of a tool: each takes some tokens of every request
MAX_NAMED = 64

SkillServer = Server[Sessions]


def make_server(library: Library, options: ToolOptions | None = None) -> SkillServer:
    """Return a server that offers the skills of a library."""
    options = options or ToolOptions()
    tools = SkillTools(library, options)
    offers = Offers(library, tools, options)

    async def list_tools(_: RequestContext, __: PaginatedRequestParams | None) -> ListToolsResult:
        skills = await run_sync(partial(library.skills, for_model=True))
        return _tools([skill.name for skill in skills], options)

    async def call_tool(context: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        caller = caller_of(context, options)
        result, reply = await run_sync(_answer, tools, params, caller, options.structured)
        # a thread cannot be cancelled: if the client cancelled the call meanwhile, it ends here unanswered
        await checkpoint_if_cancelled()
        if reply is not None and not await has_left(context):
            for key, nodes in reply.sent:
                caller.memory.add(key, (node.id for node in nodes))
        return result

    @asynccontextmanager
    async def sessions(_: SkillServer) -> AsyncIterator[Sessions]:
        yield Sessions()

    return Server(
        NAME,
        version=version(NAME),
        instructions=instructions_of(library),
        lifespan=sessions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=offers.list_prompts,
        on_get_prompt=offers.get_prompt,
        on_list_resources=offers.list_resources,
        on_list_resource_templates=offers.list_templates,
        on_read_resource=offers.read_resource,
        on_completion=offers.complete,
    )


def _tools(names: Sequence[str], options: ToolOptions) -> ListToolsResult:
    """Return the tools; `load_skill` takes one of the given names, if they are few."""
    choices = {"load_skill": names if len(names) <= MAX_NAMED else ()}
    tools = [
        Tool(
            name=name,
            description=tool.description,
            input_schema=schemas.input_schema(tool.arguments, choices.get(name, ())),
            output_schema=dict(tool.output_schema) if options.structured else None,
            annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
            _meta=options.meta,
        )
        for name, tool in TOOLS.items()
    ]
    return ListToolsResult(tools=tools)


def _answer(
    tools: SkillTools, params: CallToolRequestParams, caller: Caller, structured: bool
) -> tuple[CallToolResult, Reply | None]:
    """Return the answer to a call, and the reply in it, or None if it is an error."""
    try:
        reply = tools.call(params.name, params.arguments or {}, caller)
    except (KeyboardInterrupt, SystemExit):
        raise
    except SkillPagerError as error:
        message = str(error)
    # a client must get an answer, without details of the fault; a panic of a Rust extension is no Exception
    except BaseException:
        logger.exception("the tool %s failed", params.name)
        message = "This is a fault of SkillPager; its log says more."
    else:
        content = TextContent(type="text", text=reply.text)
        return CallToolResult(content=[content], structured_content=reply.form if structured else None), reply
    content = TextContent(type="text", text=snippet(message, ERROR_CHARS))
    return CallToolResult(content=[content], is_error=True), None


def serve_pipe(server: SkillServer, greeting: Greeting) -> None:
    """Answer the client at stdin and stdout until it closes them, after its first line."""

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing), anyio.create_task_group() as tasks:
            repaired, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)

            async def repair() -> None:
                async with incoming, repaired:
                    if greeting.line:
                        await repaired.send(_repaired(_message(greeting.line)))
                    async for message in incoming:
                        await repaired.send(_repaired(message))

            tasks.start_soon(repair)
            answers = outgoing if greeting.answered is None else _Ungreeted(outgoing, greeting.answered)
            async with messages:
                await server.run(messages, answers, server.create_initialization_options())
            tasks.cancel_scope.cancel()

    anyio.run(serve)


class _Ungreeted:
    """A stream of answers without the first, to a request that `greet` has answered."""

    def __init__(self, outgoing: "WriteStream[SessionMessage]", answered: int | str) -> None:
        self._outgoing = outgoing
        self._answered: int | str | None = answered

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id == self._answered:
            self._answered = None
            if isinstance(message, JSONRPCError):
                logger.warning("the first request is not valid: %s", snippet(message.error.message))
        else:
            await self._outgoing.send(item)

    async def aclose(self) -> None:
        await self._outgoing.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()


def _message(line: bytes) -> SessionMessage | Exception:
    """Return a line of stdin as a message, or as the error that the SDK makes of it."""
    try:
        return SessionMessage(
            jsonrpc_message_adapter.validate_json(line.decode(errors="replace"), by_name=False)
        )
    except ValueError as error:
        return error


def _repaired(message: SessionMessage | Exception) -> SessionMessage | Exception:
    """Return a message that was refused because of half a character, with U+FFFD in its place.

    A client in JavaScript that cuts a text within an emoji sends such a half, and the SDK would never answer.
    """
    if not isinstance(message, ValidationError):
        return message
    line = message.errors()[0]["input"]
    try:
        text = encodable(json.dumps(json.loads(line), ensure_ascii=False))
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except (TypeError, ValueError, RecursionError):
        return message


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
    """Answer clients at a socket until a signal stops the process."""
    import uvicorn

    uvicorn.Server(http_config(server, listening)).run(sockets=[listening])


def http_config(server: SkillServer, listening: socket.socket) -> "uvicorn.Config":
    """Return uvicorn's configuration for a server at a socket.

    Requests with another Host or from a page of another origin are refused (DNS rebinding).
    """
    from skillpager.serving import uvicorn_config

    port = listening.getsockname()[1]
    names = [f"{HOST}:{port}", f"localhost:{port}"]
    security = TransportSecuritySettings(
        allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
    )
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        max_request_body_size=MAX_BODY_BYTES,
        max_sessions=MAX_OPEN_SESSIONS,
        session_idle_timeout=SESSION_SECONDS,
        transport_security=security,
    )
    return uvicorn_config(_without_foreign_pages(app), stop_seconds=STOP_SECONDS)


def _without_foreign_pages(app: "ASGIApp") -> "ASGIApp":
    """Return an application that refuses the requests of web pages of other sites."""
    from starlette.datastructures import Headers
    from starlette.responses import PlainTextResponse

    from skillpager.serving import is_foreign

    async def guarded(scope: "Scope", receive: "Receive", send: "Send") -> None:
        answer = app
        if scope["type"] == "http" and is_foreign(Headers(scope=scope)):
            answer = PlainTextResponse("Web pages of other sites may not use this server.", 403)
        await answer(scope, receive, send)

    return guarded
