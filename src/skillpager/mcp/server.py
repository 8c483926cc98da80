"""The MCP server: tools, prompts and resources behind the official SDK, over stdin and stdout or HTTP.

The server remembers the nodes that a session was sent. A session is a connection by stdin and stdout, or over
HTTP what `initialize` opened. HTTP requests of protocol 2026-07-28 have no session and are sent everything.
"""

import json
import logging
import socket
import sys
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from io import TextIOWrapper
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import anyio
from anyio.lowlevel import checkpoint_if_cancelled
from anyio.to_thread import run_sync
from mcp.server import Server, ServerRequestContext
from mcp.server.mcpserver.tools import Tool
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from mcp import types
from skillpager.display_text import encodable
from skillpager.errors import SettingsError, SkillPagerError
from skillpager.library import FoundSkill, Library
from skillpager.mcp.options import Memory, Sessions, ToolOptions
from skillpager.mcp.tools import TOOLS, ToolCall
from skillpager.output.formatting import snippet

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp, Receive, Scope, Send

logger = logging.getLogger(__name__)

NAME = "skillpager"
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
# characters of a skill's description in the instructions: the most with which all skills fit
WIDTHS = (160, 80, 40, 0)
# skills among which a model may choose by the schema of a tool: each takes some tokens of every request
MAX_NAMED = 64
# names that complete one
MAX_COMPLETIONS = 100
DESCRIPTION_CHARS = 300
# longest error, and quotation of a value in it: requests may have any length
ERROR_CHARS = 2_000
SHOWN_VALUE = 80
SCHEME = "skill://"
MARKDOWN = "text/markdown"
# argument of a prompt
TASK = "task"

Context = ServerRequestContext[Sessions]
SkillServer = Server[Sessions]


def make_server(
    library: Library, options: ToolOptions | None = None, *, listed: Callable[[], None] = lambda: None
) -> SkillServer:
    """Return a server that offers the skills of a library; it calls `listed` when it has listed its tools.

    The search for skills that begins here goes on in a thread if it takes long.
    """
    search = Thread(target=library.found, daemon=True)
    search.start()
    search.join(SEARCH_SECONDS)
    handlers = _Handlers(library, options or ToolOptions(), search, listed)
    return Server(
        NAME,
        version=version(NAME),
        instructions=f"{USE} {FIND}" if search.is_alive() else instructions_of(library),
        lifespan=_sessions,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_completion=handlers.complete,
    )


@asynccontextmanager
async def _sessions(_: SkillServer) -> AsyncIterator[Sessions]:
    yield Sessions()


def instructions_of(library: Library) -> str:
    """Return how to use the server and which skills it offers, each as shortly as is needed to name them all.

    Skills for which there is no room are counted. If there is none for descriptions, the instructions say how
    to find a skill.
    """
    skills = library.skills(for_model=True)
    for width in WIDTHS:
        text = _instructions(skills, len(skills), width)
        if len(text.encode()) <= MAX_BYTES:
            return text
    # of more skills than these even names of one letter would not fit
    most = min(len(skills), MAX_BYTES)
    shown = bisect_right(
        range(most), MAX_BYTES, key=lambda count: len(_instructions(skills, count, 0).encode())
    )
    return _instructions(skills, max(0, shown - 1), 0)


def _instructions(skills: Sequence[FoundSkill], shown: int, width: int) -> str:
    """Return the instructions with the first `shown` skills, described in at most `width` characters."""
    if not skills:
        return USE
    if width:
        lines = (f"\n- {skill.name}: {snippet(skill.description, width)}" for skill in skills)
        return f"{USE}\n\nSkills:{''.join(lines)}"
    names = [skill.name for skill in skills[:shown]]
    if more := len(skills) - shown:
        names.append(f"{more:,} more")
    return f"{USE} {FIND}\n\nSkills: {', '.join(names)}."


class _Handlers:
    """Handlers of the SDK's requests: the tools, and each skill as a prompt and a resource."""

    def __init__(
        self, library: Library, options: ToolOptions, search: Thread, listed: Callable[[], None]
    ) -> None:
        self._library = library
        self._options = options
        self._search = search
        self._listed = listed
        self._tools = {function.__name__: _tool(function) for function in TOOLS}

    async def list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """Return the tools; `load_skill` takes one of the names of skills if they are few and known."""
        skills = [] if self._search.is_alive() else await run_sync(self._for_model)
        tools = []
        for name, tool in self._tools.items():
            schema = tool.parameters
            if name == "load_skill" and 0 < len(skills) <= MAX_NAMED:
                names = {"type": "string", "enum": [skill.name for skill in skills]}
                schema = {**schema, "properties": {**schema["properties"], "name": names}}
            made = types.Tool(
                name=name,
                description=tool.description,
                input_schema=schema,
                output_schema=tool.output_schema if self._options.structured else None,
                annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
                _meta=self._options.meta,
            )
            tools.append(made)
        self._listed()
        return types.ListToolsResult(tools=tools)

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Return the answer of a tool; the session's memory gets what it sends, once that is on its way."""
        memory = _memory(context)
        sending: dict[str, tuple[str, ...]] = {}
        result = await run_sync(self._answer, context, params, memory, sending)
        # a thread cannot be cancelled: if the client cancelled the call meanwhile, it ends here unanswered
        await checkpoint_if_cancelled()
        if context.request is None or not await context.request.is_disconnected():
            for key, nodes in sending.items():
                memory.add(key, nodes)
        return result

    def _answer(
        self,
        context: Context,
        params: types.CallToolRequestParams,
        memory: Memory,
        sending: dict[str, tuple[str, ...]],
    ) -> types.CallToolResult:
        """Return the answer to a call, and add the nodes that it holds to `sending`."""
        try:
            call = self._call(context, memory)
            form = self._form(call, params.name, params.arguments or {})
        except (KeyboardInterrupt, SystemExit):
            raise
        except SkillPagerError as error:
            message = str(error)
        # a client must get an answer, without details of the fault; a panic of Rust code is no Exception
        except BaseException:
            logger.exception("the tool %s failed", params.name)
            message = "This is a fault of SkillPager; its log says more."
        else:
            sending.update(call.sending)
            content = types.TextContent(type="text", text=form["text"])
            structured = form if self._options.structured else None
            return types.CallToolResult(content=[content], structured_content=structured)
        content = types.TextContent(type="text", text=snippet(message, ERROR_CHARS))
        return types.CallToolResult(content=[content], is_error=True)

    def _call(self, context: Context, memory: Memory, *, by_user: bool = False) -> ToolCall:
        client = context.session.client_params
        info = client.client_info if client else None
        ceiling = self._options.ceiling_for(*((info.name, info.version) if info else ()))
        return ToolCall(self._library, self._library.pager, self._options, memory, ceiling, by_user)

    def _form(self, call: ToolCall, name: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Return the reply of a tool to its arguments; null counts as not given.

        Raises:
            SettingsError: The tool is unknown, or arguments are unknown, missing or not valid.
            SkillPagerError: The skill cannot be found or read.
        """
        if name not in self._tools:
            raise SettingsError(f"There is no tool {name[:80]!r}: there are {', '.join(self._tools)}.")
        tool = self._tools[name]
        known = tool.parameters["properties"]
        faults = [f"there is no argument {_shown(each)!r}" for each in arguments if each not in known]
        given = {each: value for each, value in arguments.items() if value is not None and each in known}
        values: dict[str, Any] = {}
        try:
            values = tool.fn_metadata.validate_arguments(given)
        except ValidationError as error:
            for fault in error.errors():
                wrong, problem = fault["loc"][0], fault["msg"].replace("Input should be", "it must be")
                value = _shown(repr(fault["input"]))
                missing = f"the argument {wrong!r} is missing"
                faults.append(missing if fault["type"] == "missing" else f"{wrong} is {value}, but {problem}")
        if faults:
            message = "; ".join(faults)
            raise SettingsError(f"{message[0].upper()}{message[1:]}. The arguments are {', '.join(known)}.")
        form: dict[str, Any] = tool.fn(call, **values)
        return form

    async def list_prompts(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """Return the skills as prompts, which a user starts, as commands in many hosts."""
        skills = await run_sync(self._library.skills)
        task = types.PromptArgument(
            name=TASK, description="What you are about to do, in a sentence.", required=False
        )
        prompts = [
            types.Prompt(name=skill.name, description=_described(skill), arguments=[task]) for skill in skills
        ]
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """Return the page of a skill for the task that the user names; without one as `load_skill` does."""
        asked = {"name": params.name, "query": (params.arguments or {}).get(TASK)}
        text = await run_sync(self._text, context, asked, True)
        _memory(context).start(params.name)  # from now on the model may page it, too
        content = types.TextContent(type="text", text=text)
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])

    async def list_resources(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Return the skills as resources; hosts let their model read these, too."""
        resources = [
            types.Resource(
                uri=SCHEME + quote(skill.name, safe=""),
                name=skill.name,
                description=_described(skill),
                mime_type=MARKDOWN,
            )
            for skill in await run_sync(self._for_model)
        ]
        return types.ListResourcesResult(resources=resources)

    async def list_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Return the form of a resource's address."""
        template = types.ResourceTemplate(name="skill", uri_template=f"{SCHEME}{{name}}", mime_type=MARKDOWN)
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Return a whole skill."""
        if not params.uri.startswith(SCHEME):
            raise MCPError(
                types.INVALID_PARAMS, f"{params.uri[:80]!r} is no skill: the form is {SCHEME}NAME."
            )
        asked = {"name": unquote(params.uri.removeprefix(SCHEME)), "mode": "full"}
        text = await run_sync(self._text, context, asked, False)
        contents = types.TextResourceContents(uri=params.uri, mime_type=MARKDOWN, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def complete(self, _: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Return the names that begin with what the user has typed."""
        skills = await run_sync(self._for_model) if params.argument.name == "name" else []
        names = [skill.name for skill in skills if skill.name.startswith(params.argument.value)]
        shown, more = names[:MAX_COMPLETIONS], len(names) > MAX_COMPLETIONS
        return types.CompleteResult(
            completion=types.Completion(values=shown, total=len(names), has_more=more)
        )

    def _for_model(self) -> list[FoundSkill]:
        return self._library.skills(for_model=True)

    def _text(self, context: Context, asked: Mapping[str, object], by_user: bool) -> str:
        """Return the text that `load_skill` answers; errors are those of the protocol.

        The session's memory has no part in it: hosts show prompts and resources where tools do not see them.
        """
        try:
            form = self._form(self._call(context, Memory(), by_user=by_user), "load_skill", asked)
        except SkillPagerError as error:
            raise MCPError(types.INVALID_PARAMS, snippet(str(error), ERROR_CHARS)) from error
        return str(form["text"])


def _tool(function: Callable[..., Any]) -> Tool:
    """Return a tool with the schemas that the SDK derives, without what a model need not read."""
    tool = Tool.from_function(function, context_kwarg="self")
    tool.parameters = {"required": [], **_plain(tool.parameters), "additionalProperties": False}
    tool.fn_metadata.output_schema = _plain(tool.fn_metadata.output_schema)
    return tool


def _plain(schema: Any) -> Any:
    """Return a schema without titles and defaults that say nothing; null counts as not given."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = ("title", "anyOf") if isinstance(schema.get("title"), str) else ()
    plain = {
        key: _plain(value)
        for key, value in schema.items()
        if key not in left_out and not (key == "default" and value in (None, ""))
    }
    for choice in schema.get("anyOf", ()):
        plain |= choice if choice != {"type": "null"} else {}
    return plain


def _memory(context: Context) -> Memory:
    """Return the memory of a request's session; a new one for a request without a session."""
    sessions = context.lifespan_context
    if context.request is None:
        return sessions.own
    session = context.request.headers.get("mcp-session-id")
    if session and context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        return sessions.named(session)
    return Memory()


def _described(skill: FoundSkill) -> str:
    return snippet(skill.description, DESCRIPTION_CHARS)


def _shown(text: str) -> str:
    return snippet(text, SHOWN_VALUE)


def serve_pipe(server: SkillServer) -> None:
    """Answer the client at stdin and stdout until it closes them."""

    async def serve() -> None:
        lines = anyio.wrap_file(_Lines(sys.stdin.buffer, encoding="utf-8", errors="replace"))
        async with stdio_server(stdin=lines) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)


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
