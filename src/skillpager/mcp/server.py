"""The MCP server: tools, prompts and resources behind the official SDK, over stdin and stdout or HTTP.

The server remembers the nodes that a session was sent. A session is a connection by stdin and stdout, or over
HTTP what `initialize` opened. HTTP requests of protocol 2026-07-28 have no session and are sent everything.
"""

import json
import logging
import re
import shlex
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from io import TextIOWrapper
from threading import Thread
from typing import Any
from urllib.parse import quote, unquote

import anyio
from anyio.from_thread import check_cancelled
from anyio.lowlevel import checkpoint_if_cancelled
from anyio.to_thread import run_sync
from mcp.server import Server, ServerRequestContext
from mcp.server.mcpserver.tools import Tool
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from mcp import types
from skillpager.caches import LRUCache
from skillpager.display_text import encodable, snippet
from skillpager.errors import SettingsError, SkillPagerError
from skillpager.library import Library
from skillpager.library.discovery import skill_folders
from skillpager.mcp.tools import TOOLS, Memory, ToolCall, ToolOptions

logger = logging.getLogger(__name__)

NAME = "skillpager"
HOST = "127.0.0.1"
PATH = "/mcp"
DEFAULT_PORT = 8642
# open streams would keep a server from stopping
STOP_SECONDS = 2
# open connections over HTTP; requests on further ones get 503
MAX_CONNECTIONS = 512
# calls of tools at the same time: a process runs one thread at a time, and the second makes pages while the
# first indexes. The SDK reads stdin in a thread as well: beside more of ours it would learn that a call is
# cancelled only when the calls before it are answered
THREADS = 2
# sessions that are remembered; the least recently used are dropped
MAX_SESSIONS = 1_000

USE = (
    "Skills are instructions for tasks. Before a task for which there is a skill, call load_skill and say in "
    "query what you are about to do: you get the part that is needed. [… marks …] show what is left out; "
    "read it with read_skill_nodes when you need it."
)
# and when there are more skills than the instructions describe
FIND = "To find the skill for a task, call load_skill with a query and without a name."
# hosts wait for the instructions and the tools; only thousands of new skills take longer to find, and a query
# finds them all the same
SEARCH_SECONDS = 0.3
# Claude Code cuts instructions off at 2 kB
MAX_BYTES = 2_000
# names of more skills are longer than that; these are only counted, and read when a client asks for them
MOST_NAMED = MAX_BYTES // 8
# characters of a skill's description in the instructions: the most with which all skills fit
WIDTHS = (160, 80, 40)
DESCRIPTION_CHARS = 300
# sent every second of a call to clients that ask for progress: only skills that are not indexed yet take
# that long
PROGRESS, PROGRESS_SECONDS = "reading and indexing skills", 1
# longest error, and quotation of a value in it: requests may have any length
ERROR_CHARS = 2_000
SHOWN_VALUE = 80
SCHEME = "skill://"
MARKDOWN = "text/markdown"
# argument of a prompt
TASK = "task"
# the prompt that has an agent write notes on the nodes of a skill, and the most nodes of one
ENRICH, MAX_ENRICHED = "enrich_skill", 120
# key of a tool's `_meta`: the characters of a result that Claude Code shows, and the most that it accepts
SHOWN_CHARS = "anthropic/maxResultSizeChars"
MOST_SHOWN_CHARS = 500_000
# characters that a token has at most, but for rare texts
TOKEN_CHARS = 8


@dataclass(frozen=True, slots=True)
class State:
    """What all requests of a running server share; `memories` are those of its sessions, by id."""

    library: Library
    options: ToolOptions
    memories: LRUCache[str, Memory]
    threads: anyio.CapacityLimiter


Context = ServerRequestContext[State]
SkillServer = Server[State]


def make_server(library: Library, options: ToolOptions | None = None) -> SkillServer:
    """Return a server that offers the skills of a library."""

    @asynccontextmanager
    async def state(_: SkillServer) -> AsyncIterator[State]:
        yield State(library, options or ToolOptions(), LRUCache(MAX_SESSIONS), anyio.CapacityLimiter(THREADS))

    return Server(
        NAME,
        version=version(NAME),
        instructions=_first_instructions(library),
        lifespan=state,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )


def _first_instructions(library: Library) -> str:
    """Return the instructions without waiting long; a search that takes longer goes on in a thread."""
    number = sum(1 for _ in skill_folders(library.folders))
    if number > MOST_NAMED:
        return f"{USE} {FIND} There are about {number:,} skills."
    search = Thread(target=library.found, daemon=True)
    search.start()
    search.join(SEARCH_SECONDS)
    return f"{USE} {FIND}" if search.is_alive() else instructions_of(library)


def instructions_of(library: Library) -> str:
    """Return how to use the server and which skills it offers.

    Skills are described as shortly as is needed to name them all; if only their names fit, or not even these,
    the instructions say how to find a skill.
    """
    skills = library.skills(for_model=True)
    if not skills:
        return USE
    for width in WIDTHS:
        lines = (f"\n- {skill.name}: {snippet(skill.description, width)}" for skill in skills)
        text = f"{USE}\n\nSkills:{''.join(lines)}"
        if len(text.encode()) <= MAX_BYTES:
            return text
    names = ", ".join(f'"{skill.name}"' for skill in skills)
    text = f"{USE} {FIND}\n\nSkills: {names}."
    return text if len(text.encode()) <= MAX_BYTES else f"{USE} {FIND} There are {len(skills):,} skills."


async def list_tools(context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    """Return the tools."""
    state = context.lifespan_context
    tools = [
        types.Tool(
            name=name,
            description=tool.description,
            input_schema=tool.parameters,
            annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
            _meta={SHOWN_CHARS: min(state.options.ceiling * TOKEN_CHARS, MOST_SHOWN_CHARS)},
        )
        for name, tool in _tools().items()
    ]
    return types.ListToolsResult(tools=tools)


async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Return the answer of a tool, and record in the session's memory what it sends."""
    state, memory = context.lifespan_context, _memory(context)
    call = ToolCall(state.library, state.options, memory)
    is_error = True
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_report_progress, context)
        try:
            text = await run_sync(_answer, call, params.name, params.arguments or {}, limiter=state.threads)
            is_error = False
        except SkillPagerError as error:
            text = snippet(str(error), ERROR_CHARS)
        except (anyio.get_cancelled_exc_class(), KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a panic of Rust code is not an Exception
            logger.exception("the tool %s failed", params.name)
            text = "This is a fault of SkillPager; its log says more."
        tasks.cancel_scope.cancel()
    # a thread cannot be cancelled: if the client cancelled the call meanwhile, it ends here unanswered
    await checkpoint_if_cancelled()
    if not is_error:
        for key, nodes in call.sending.items():
            memory.sent[key] = memory.sent.get(key, frozenset()).union(nodes)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)


async def _report_progress(context: Context) -> None:
    """Report every second how long a call takes; the SDK sends it only if the client asked."""
    begun = anyio.current_time()
    while True:
        await anyio.sleep(PROGRESS_SECONDS)
        await context.session.report_progress(round(anyio.current_time() - begun, 1), message=PROGRESS)


async def list_prompts(context: Context, _: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    """Return the skills as prompts, which a user starts, as commands in many hosts; and `enrich_skill`."""
    skills = await run_sync(context.lifespan_context.library.skills)
    task = types.PromptArgument(
        name=TASK, description="What you are about to do, in a sentence.", required=False
    )
    prompts = [
        types.Prompt(
            name=skill.name, description=snippet(skill.description, DESCRIPTION_CHARS), arguments=[task]
        )
        for skill in skills
    ]
    named = types.PromptArgument(name="name", description="The name of a skill.", required=True)
    described = "Write down what parts of a skill are asked for; once more while some are left."
    prompts.append(types.Prompt(name=ENRICH, description=described, arguments=[named]))
    return types.ListPromptsResult(prompts=prompts)


async def get_prompt(context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    """Return the page of a skill for the task that the user names; without one as `load_skill` does."""
    given = params.arguments or {}
    if params.name == ENRICH:
        text = await run_sync(_to_enrich, context.lifespan_context.library, given.get("name", ""))
    else:
        text = await run_sync(_loaded, context, {"name": params.name, "query": given.get(TASK)}, True)
        _memory(context).started.add(params.name)  # from now on the model may page it, too
    content = types.TextContent(type="text", text=text)
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


async def list_resources(
    context: Context, _: types.PaginatedRequestParams | None
) -> types.ListResourcesResult:
    """Return the skills as resources; hosts let their model read these, too."""
    library = context.lifespan_context.library
    resources = [
        types.Resource(
            uri=SCHEME + quote(skill.name, safe=""),
            name=skill.name,
            description=snippet(skill.description, DESCRIPTION_CHARS),
            mime_type=MARKDOWN,
        )
        for skill in await run_sync(lambda: library.skills(for_model=True))
    ]
    return types.ListResourcesResult(resources=resources)


async def read_resource(
    context: Context, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    """Return a whole skill."""
    if not params.uri.startswith(SCHEME):
        raise MCPError(types.INVALID_PARAMS, f"{params.uri[:80]!r} is no skill: the form is {SCHEME}NAME.")
    asked = {"name": unquote(params.uri.removeprefix(SCHEME)), "mode": "full"}
    text = await run_sync(_loaded, context, asked, False)
    contents = types.TextResourceContents(uri=params.uri, mime_type=MARKDOWN, text=text)
    return types.ReadResourceResult(contents=[contents])


def _loaded(context: Context, asked: Mapping[str, object], by_user: bool) -> str:
    """Return the text that `load_skill` answers; errors are those of the protocol.

    The session's memory has no part in it: hosts show prompts and resources where tools do not see them.
    """
    state = context.lifespan_context
    call = ToolCall(state.library, state.options, Memory(), by_user)
    try:
        return _answer(call, "load_skill", asked)
    except SkillPagerError as error:
        raise MCPError(types.INVALID_PARAMS, snippet(str(error), ERROR_CHARS)) from error


def _to_enrich(library: Library, name: str) -> str:
    """Return the prompt to write notes on the first nodes of a skill that have none."""
    from skillpager.enrichment.asking import handout
    from skillpager.enrichment.notes import read_notes, without_notes
    from skillpager.indexing import notes_files

    try:
        index, skill = library.index(name), library.skill(name)
    except SkillPagerError as error:
        raise MCPError(types.INVALID_PARAMS, snippet(str(error), ERROR_CHARS)) from error
    notes = read_notes(notes_files(index.skill, library.pager.settings.cache_dir))
    missing = without_notes(index.nodes, notes)
    command = ["skillpager", "enrich", name if skill.published else str(skill.path), "--take", "answer.json"]
    return handout(missing[:MAX_ENRICHED], shlex.join(command))


def _answer(call: ToolCall, name: str, arguments: Mapping[str, object]) -> str:
    """Return the reply of a tool to its arguments; null counts as not given. It runs in a thread of anyio."""
    check_cancelled()  # on a busy machine the call may be cancelled between its turn and this thread's
    if name not in _tools():
        raise SettingsError(f"There is no tool {name[:80]!r}: there are {', '.join(_tools())}.")
    tool = _tools()[name]
    known = tool.parameters["properties"]
    faults = [
        f"there is no argument {snippet(each, SHOWN_VALUE)!r}" for each in arguments if each not in known
    ]
    given = {each: value for each, value in arguments.items() if value is not None and each in known}
    values: dict[str, Any] = {}
    try:
        values = tool.fn_metadata.validate_arguments(given)
    except ValidationError as error:
        for fault in error.errors():
            wrong, problem = fault["loc"][0], re.sub(r"^(Input|String) should", "it must", fault["msg"])
            value = snippet(repr(fault["input"]), SHOWN_VALUE)
            missing = f"the argument {wrong!r} is missing"
            faults.append(missing if fault["type"] == "missing" else f"{wrong} is {value}, but {problem}")
    if faults:
        message = "; ".join(faults)
        raise SettingsError(f"{message[0].upper()}{message[1:]}. The arguments are {', '.join(known)}.")
    return str(tool.fn(call, **values))


@cache
def _tools() -> dict[str, Tool]:
    """Return the tools by name, with the schemas that the SDK derives."""
    tools = {}
    for function in TOOLS:
        tool = Tool.from_function(function, context_kwarg="self", structured_output=False)
        schema = tool.fn_metadata.arg_model.model_json_schema(schema_generator=_ShortSchema)
        del schema["title"]
        tool.parameters = {"required": [], **schema, "additionalProperties": False}
        tools[tool.name] = tool
    return tools


class _ShortSchema(GenerateJsonSchema):
    """JSON schemas without what a model need not read: titles, empty defaults, null for an absent value."""

    def field_title_should_be_set(self, _: Any) -> bool:
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return (
            super().default_schema(schema) if schema.get("default") else self.generate_inner(schema["schema"])
        )

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


def _memory(context: Context) -> Memory:
    """Return the memory of a request's session; a new one for a request without a session."""
    # stdin and stdout are one session
    session = "" if context.request is None else context.request.headers.get("mcp-session-id")
    return Memory() if session is None else context.lifespan_context.memories.get_or_make(session, Memory)


def serve_pipe(server: SkillServer) -> None:
    """Answer the client at stdin and stdout until it closes them."""

    async def serve() -> None:
        lines = anyio.wrap_file(_Lines(sys.stdin.buffer, encoding="utf-8", errors="replace"))
        async with stdio_server(stdin=lines) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    try:
        anyio.run(serve)
    except* BrokenPipeError:
        pass  # the client is gone


class _Lines(TextIOWrapper):
    """The messages on stdin, with U+FFFD in place of half a character, which the SDK would never answer.

    A client in JavaScript that cuts a text within an emoji sends such a half, escaped.
    """

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # as that of TextIOWrapper
        """Return the next line."""
        line = super().readline(size)
        if "\\ud" in line.lower():
            with suppress(ValueError, RecursionError):
                return encodable(json.dumps(json.loads(line), ensure_ascii=False)) + "\n"
        return line


def open_port(port: int) -> socket.socket:
    """Return a listening socket that only this machine can reach; port 0 takes a free one."""
    try:
        return socket.create_server((HOST, port))
    except (OSError, OverflowError) as error:
        raise SkillPagerError(
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

    names = [f"{host}:{listening.getsockname()[1]}" for host in (HOST, "localhost")]
    security = TransportSecuritySettings(
        allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
    )
    app = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, transport_security=security
    )
    config = uvicorn.Config(
        app,
        access_log=False,
        limit_concurrency=MAX_CONNECTIONS,
        log_config=None,
        proxy_headers=False,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[listening])
