"""The MCP server: the tools behind the official SDK, over stdin and stdout or HTTP on this machine.

The server remembers the nodes that a session was sent. A session is a connection by stdin and stdout, or over
HTTP what `initialize` opened. HTTP requests of protocol 2026-07-28 have no session and are sent everything.
"""

import json
import logging
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.metadata import version
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import quote, unquote

import anyio
from anyio.lowlevel import checkpoint_if_cancelled
from anyio.to_thread import run_sync
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptRequestParams,
    GetPromptResult,
    JSONRPCError,
    JSONRPCResponse,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
    jsonrpc_message_adapter,
)
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from skillpager.display_text import encodable
from skillpager.errors import SettingsError, SkillPagerError
from skillpager.library import FoundSkill, Library
from skillpager.mcp import schemas
from skillpager.mcp.greeting import NAME, Greeting, instructions_of
from skillpager.mcp.memory import Memory, Sessions
from skillpager.mcp.options import ToolOptions
from skillpager.mcp.replies import Reply
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
# longest error: it quotes the request, which may have any length
ERROR_CHARS = 2_000
# skills among which a model may choose by the schema of a tool: each takes some tokens of every request
MAX_NAMED = 64
# prompts or resources in one answer, and names that complete one
PAGE_SKILLS = 200
MAX_COMPLETIONS = 100
DESCRIPTION_CHARS = 300
SCHEME = "skill://"
MARKDOWN = "text/markdown"
# argument of a prompt
TASK = "task"

SkillServer = Server[Sessions]
RequestContext = ServerRequestContext[Sessions]


def make_server(library: Library, options: ToolOptions | None = None) -> SkillServer:
    """Return a server that offers the skills of a library."""
    options = options or ToolOptions()
    tools = SkillTools(library, options)

    async def list_tools(_: RequestContext, __: PaginatedRequestParams | None) -> ListToolsResult:
        skills = await run_sync(library.skills)
        return _tools([skill.name for skill in skills], options)

    async def call_tool(context: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        caller = _caller(context, options)
        result, reply = await run_sync(_answer, tools, params, caller, options.structured)
        # a thread cannot be cancelled: if the client cancelled the call meanwhile, it ends here unanswered
        await checkpoint_if_cancelled()
        if reply is not None and not await _has_left(context):
            caller.memory.add(reply.key, (node.id for node in reply.nodes))
        return result

    async def list_prompts(_: RequestContext, params: PaginatedRequestParams | None) -> ListPromptsResult:
        skills, following = _part(await run_sync(library.skills), params)
        return ListPromptsResult(prompts=[_prompt(skill) for skill in skills], next_cursor=following)

    async def get_prompt(context: RequestContext, params: GetPromptRequestParams) -> GetPromptResult:
        asked = {"name": params.name, "query": (params.arguments or {}).get(TASK)}
        text = await run_sync(_text, tools, asked, _new_caller(context, options))
        message = PromptMessage(role="user", content=TextContent(type="text", text=text))
        return GetPromptResult(messages=[message])

    async def list_resources(_: RequestContext, params: PaginatedRequestParams | None) -> ListResourcesResult:
        skills, following = _part(await run_sync(library.skills), params)
        return ListResourcesResult(resources=[_resource(skill) for skill in skills], next_cursor=following)

    async def list_templates(
        _: RequestContext, __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        template = ResourceTemplate(name="skill", uri_template=f"{SCHEME}{{name}}", mime_type=MARKDOWN)
        return ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(context: RequestContext, params: ReadResourceRequestParams) -> ReadResourceResult:
        if not params.uri.startswith(SCHEME):
            raise MCPError(INVALID_PARAMS, f"{params.uri[:80]!r} is no skill: the form is {SCHEME}NAME.")
        asked = {"name": unquote(params.uri.removeprefix(SCHEME)), "mode": "full"}
        text = await run_sync(_text, tools, asked, _new_caller(context, options))
        contents = TextResourceContents(uri=params.uri, mime_type=MARKDOWN, text=text)
        return ReadResourceResult(contents=[contents])

    async def complete(_: RequestContext, params: CompleteRequestParams) -> CompleteResult:
        skills = await run_sync(library.skills) if params.argument.name == "name" else []
        names = [skill.name for skill in skills if skill.name.startswith(params.argument.value)]
        shown, more = names[:MAX_COMPLETIONS], len(names) > MAX_COMPLETIONS
        return CompleteResult(completion=Completion(values=shown, total=len(names), has_more=more))

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
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_completion=complete,
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


def _part(
    skills: Sequence[FoundSkill], params: PaginatedRequestParams | None
) -> tuple[Sequence[FoundSkill], str | None]:
    """Return the skills of one answer to a list request, and the cursor of the next: a name."""
    cursor = (params.cursor if params else None) or ""
    rest = [skill for skill in skills if skill.name >= cursor]
    return rest[:PAGE_SKILLS], rest[PAGE_SKILLS].name if len(rest) > PAGE_SKILLS else None


def _prompt(skill: FoundSkill) -> Prompt:
    """Return a skill as a prompt, which a user starts, as a command in many hosts."""
    task = PromptArgument(name=TASK, description="What you are about to do, in a sentence.", required=False)
    description = snippet(skill.description, DESCRIPTION_CHARS)
    return Prompt(name=skill.name, description=description, arguments=[task])


def _resource(skill: FoundSkill) -> Resource:
    uri, description = SCHEME + quote(skill.name, safe=""), snippet(skill.description, DESCRIPTION_CHARS)
    return Resource(uri=uri, name=skill.name, description=description, mime_type=MARKDOWN)


def _caller(context: RequestContext, options: ToolOptions) -> Caller:
    """Return who a request is from: the session's memory, and the ceiling for its host."""
    client = context.session.client_params
    info = client.client_info if client else None
    ceiling = options.ceiling_for(info.name, info.version) if info else options.ceiling_for()
    return Caller(_memory(context), ceiling)


def _new_caller(context: RequestContext, options: ToolOptions) -> Caller:
    """Return the same without a memory: hosts show prompts and resources where tools do not see it."""
    return replace(_caller(context, options), memory=Memory())


def _memory(context: RequestContext) -> Memory:
    """Return the memory of a request's session; a new one for a request without a session."""
    sessions = context.lifespan_context
    if context.request is None:
        return sessions.own
    session = context.request.headers.get("mcp-session-id")
    if session and context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        return sessions.named(session)
    return Memory()


async def _has_left(context: RequestContext) -> bool:
    """Return whether the client of a request over HTTP has closed the connection that the reply goes to."""
    return context.request is not None and await context.request.is_disconnected()


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


def _text(tools: SkillTools, asked: Mapping[str, object], caller: Caller) -> str:
    """Return the text that `load_skill` answers; errors are those of the protocol."""
    try:
        return tools.call("load_skill", asked, caller).text
    except SkillPagerError as error:
        raise MCPError(INVALID_PARAMS, snippet(str(error), ERROR_CHARS)) from error


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
