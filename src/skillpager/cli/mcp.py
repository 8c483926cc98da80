"""`skillpager mcp`: skills for the hosts of agents, by the Model Context Protocol."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import UsageError, note, reported
from skillpager.cli.options import CacheDir, ClassifierName, EncoderName, OfferedFolders, Scope
from skillpager.errors import SkillPagerError, require_extra

if TYPE_CHECKING:
    from skillpager.library import Library
    from skillpager.mcp.server import SkillServer


@reported
def mcp(
    folders: OfferedFolders = None,
    http: Annotated[
        bool, typer.Option("--http", help="Serve HTTP to this machine, instead of stdin and stdout.")
    ] = False,
    port: Annotated[
        int | None, typer.Option("--port", metavar="N", min=0, max=65535, help="Of --http. [8642]")
    ] = None,
    ceiling: Annotated[
        int | None,
        typer.Option("--ceiling", metavar="N", help="Most tokens of a reply, all of it counted. [20000]"),
    ] = None,
    text_only: Annotated[
        bool,
        typer.Option(
            "--text-only",
            help="Send no structured content: for hosts that show the model that, not the text.",
        ),
    ] = False,
    resend: Annotated[
        bool, typer.Option("--resend", help="Send again what was sent before in the session.")
    ] = False,
    scope: Scope = None,
    encoder: EncoderName = None,
    classifier: ClassifierName = None,
    cache_dir: CacheDir = None,
) -> None:
    """Offer skills to agents as an MCP server.

    A host starts it and talks to it over stdin and stdout. Tools: list_skills, load_skill,
    read_skill_nodes, get_skill_outline. With --http it serves many hosts of this machine.

    \b
    Examples:
      skillpager mcp examples/skills < /dev/null
      skillpager mcp --text-only < /dev/null
    """
    if port is not None and not http:
        raise UsageError("--port belongs to --http: add that, or leave --port out.")
    require_extra("mcp", extra="mcp", purpose="`skillpager mcp`")
    with _no_collection():
        from skillpager.cli.session import open_library

        library = open_library(folders or [], encoder=encoder, classifier=classifier, cache_dir=cache_dir)
    with _warming(library):
        with _no_collection():
            from skillpager.mcp import server as mcp_server
            from skillpager.mcp.tools import DEFAULT_CEILING, ToolOptions

            chosen = DEFAULT_CEILING if ceiling is None else ceiling
            server = mcp_server.make_server(library, ToolOptions(chosen, not text_only, resend, scope))
        if http:
            listening = mcp_server.open_port(mcp_server.DEFAULT_PORT if port is None else port)
            note(f"MCP server at {mcp_server.address_of(listening)}; Ctrl-C stops it")
            mcp_server.serve_http(server, listening)
        else:
            _serve_pipe(server)


def _serve_pipe(server: "SkillServer") -> None:
    from skillpager.mcp import server as mcp_server

    if sys.stdin.isatty():
        note("waiting for an MCP client at stdin; hosts start this command themselves (docs/mcp.md)")
    mcp_server.serve_pipe(server)


@contextmanager
def _warming(library: "Library") -> Iterator[None]:
    """Warm up beside the rest; wait for the end of it, since an exit amid it ends in a traceback."""
    thread = Thread(target=_warm, args=[library])
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _warm(library: "Library") -> None:
    """Load what the first page needs while the rest of the server is imported."""
    pager = library.pager
    with suppress(SkillPagerError):  # the first call will tell
        if pager.settings.encoder.startswith("builtin"):  # other encoders may cost money
            pager.embed_query("load the model")


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep what is imported out of garbage collection, which takes a seventh of the start."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
