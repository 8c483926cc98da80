"""`skillpager mcp` and `serve`: skills for agents over the Model Context Protocol and HTTP."""

import gc
import os
import sys
from typing import Annotated

import typer

from skillpager.cli.messages import note, reported
from skillpager.cli.options import IndexOptions, PagerOptions, SkillFolders
from skillpager.cli.session import missing_skills, note_estimates, open_library
from skillpager.errors import SettingsError, require_extra
from skillpager.http.options import ServerOptions, check_options
from skillpager.tokens import default_counter


@reported
def mcp(
    folders: SkillFolders = None,
    *,
    http: Annotated[
        bool, typer.Option("--http", help="Listen on a loopback port instead of stdin and stdout.")
    ] = False,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", min=0, max=65535, help="Port for --http. [default: 8642]"),
    ] = None,
    ceiling: Annotated[
        int | None, typer.Option(metavar="N", help="Most tokens in one reply. [default: 12000]")
    ] = None,
    resend: Annotated[
        bool, typer.Option("--resend", help="Repeat nodes that were already sent in the same session.")
    ] = False,
    options: PagerOptions,
) -> None:
    """Offer skills to agents as an MCP server.

    An agent starts this command itself and talks to it over stdin and stdout. Tools: list_skills,
    search_skills, load_skill, read_skill_nodes, get_skill_outline; each skill is a prompt and a
    resource, too. With --http one server is shared by all agents on this machine.

    \b
    Examples:
      skillpager mcp examples/skills < /dev/null
      skillpager mcp --ceiling 5000 < /dev/null
    """
    if port is not None and not http:
        raise SettingsError("--port needs --http: add --http, or leave --port out.")
    require_extra("mcp", extra="mcp", purpose="`skillpager mcp`")
    gc.disable()  # a seventh of the time until the tools are listed; what is imported stays
    from skillpager.mcp import server as mcp_server
    from skillpager.mcp.tools import DEFAULT_CEILING, ToolOptions

    gc.enable()
    tools = ToolOptions(DEFAULT_CEILING if ceiling is None else ceiling, resend)
    library = open_library(folders or [], options)
    if http and (missing := missing_skills(library)):
        note(missing)
    server = mcp_server.make_server(library, tools)
    if http:
        listening_at = mcp_server.open_port(mcp_server.DEFAULT_PORT if port is None else port)
        note(f"MCP server at {mcp_server.address_of(listening_at)}; Ctrl-C stops it")
        mcp_server.serve_http(server, listening_at)
        return
    if sys.stdin.isatty():
        note("waiting for an MCP client on stdin; agents start this command (docs/hosts.md)")
    # instructions of this text name no skill, and do not mention that there are many
    if server.instructions == mcp_server.USE and (missing := missing_skills(library)):
        note(missing)
    mcp_server.serve_pipe(server)


@reported
def serve(folders: SkillFolders = None, *, limits: ServerOptions, options: IndexOptions) -> None:
    """Serve pages over HTTP until interrupted.

    /v1/openapi.json describes the API and docs/http.md explains it. Needs the extra `[server]`.

    \b
    Examples:
      skillpager serve examples/skills
      skillpager serve examples/skills --port 0 --max-tokens 2000
    """
    for package in ("fastapi", "uvicorn", "prometheus_fastapi_instrumentator"):
        require_extra(package, extra="server", purpose="The HTTP service")
    from skillpager.http import server as http_server

    check_options(limits)
    library = open_library(folders or [], options)
    note_estimates(default_counter())
    if missing := missing_skills(library):
        note(missing)
    try:
        finished = http_server.serve(
            library, limits, announce=lambda url: note(f"serving at {url}; Ctrl+C ends it")
        )
    finally:
        library.close()
    if not finished:
        os._exit(0)  # threads that still work would hold up an ordinary exit; the store is always whole
