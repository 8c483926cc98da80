"""`skillpager mcp`: skills for agents over the Model Context Protocol."""

import gc
import sys
from contextlib import suppress
from dataclasses import dataclass
from threading import Timer
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import UsageError, note, reported
from skillpager.cli.options import PagerOptions, SkillFolders
from skillpager.errors import SkillPagerError, require_extra

if TYPE_CHECKING:
    from skillpager.library import Library

# agents ask for tools, prompts and resources at once, and for a page some seconds later
WARM_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class McpOptions:
    """How the server is reached, and what it sends."""

    http: Annotated[
        bool,
        typer.Option("--http", help="Listen on a loopback port instead of stdin and stdout."),
    ] = False
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", min=0, max=65535, help="Port for --http. [default: 8642]"),
    ] = None
    ceiling: Annotated[
        int | None,
        typer.Option(
            "--ceiling",
            metavar="N",
            help="Most tokens in one reply. [default: 12000]",
        ),
    ] = None
    text_only: Annotated[
        bool, typer.Option("--text-only", hidden=True, help="Has no effect: every reply is text.")
    ] = False
    resend: Annotated[
        bool,
        typer.Option("--resend", help="Repeat nodes that were already sent in the same session."),
    ] = False


@reported
def mcp(folders: SkillFolders = None, *, served: McpOptions, options: PagerOptions) -> None:
    """Offer skills to agents as an MCP server.

    An agent starts this command itself and talks to it over stdin and stdout. Tools: list_skills,
    search_skills, load_skill, read_skill_nodes, get_skill_outline; each skill is a prompt and a
    resource, too. With --http one server is shared by all agents on this machine.

    \b
    Examples:
      skillpager mcp examples/skills < /dev/null
      skillpager mcp --ceiling 5000 < /dev/null
    """
    if served.port is not None and not served.http:
        raise UsageError("--port needs --http: add --http, or leave --port out.")
    require_extra("mcp", extra="mcp", purpose="`skillpager mcp`")
    gc.disable()  # to look through what is imported for garbage takes a seventh of the start
    try:
        from skillpager.cli.session import missing_skills, open_library
        from skillpager.mcp import server as mcp_server
        from skillpager.mcp.tools import DEFAULT_CEILING, ToolOptions

        ceiling = DEFAULT_CEILING if served.ceiling is None else served.ceiling
        tools = ToolOptions(ceiling, served.resend, options.scope)
        library = open_library(folders or [], options, search=served.http)
        # agents list the tools, and ask for a page later: the model is loaded between the two
        warming = Timer(WARM_SECONDS, _warm, [library])

        def warm() -> None:
            if warming.ident is None:
                warming.start()

        server = mcp_server.make_server(library, tools, listed=warm)
        gc.freeze()
    finally:
        gc.enable()
    try:
        if served.http:
            listening = mcp_server.open_port(mcp_server.DEFAULT_PORT if served.port is None else served.port)
            note(f"MCP server at {mcp_server.address_of(listening)}; Ctrl-C stops it")
            mcp_server.serve_http(server, listening)
        else:
            if sys.stdin.isatty():
                note("waiting for an MCP client on stdin; agents start this command (docs/hosts.md)")
            # instructions of this text name no skill, and do not mention that there are many
            if server.instructions == mcp_server.USE and (missing := missing_skills(library)):
                note(missing)
            mcp_server.serve_pipe(server)
    finally:
        warming.cancel()
        if warming.ident is not None:
            warming.join()  # an exit in the middle of it ends in a traceback


def _warm(library: "Library") -> None:
    """Load the vocabulary, and the encoder if it is the built-in one, before the first page needs them."""
    pager = library.pager
    pager.token_counter.count("")
    with suppress(SkillPagerError):  # the first call will report it
        if pager.settings.encoder.startswith("builtin"):  # other encoders may cost money
            pager.embed_query("load the model")
