"""`skillpager serve`: the HTTP service."""

import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import listening, note, reported
from skillpager.cli.options import OfferedFolders, PagerOptions, UnscopedOptions
from skillpager.errors import require_extra
from skillpager.http.options import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    DEFAULT_THREADS,
    DEFAULT_WAITING,
    DEFAULT_WORKERS,
    ServerOptions,
    check_options,
)

if TYPE_CHECKING:
    from skillpager.library import Library


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The options of the service, as in `ServerOptions`."""

    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen on.")] = DEFAULT_HOST
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port to listen on; 0 picks a free one.")
    ] = DEFAULT_PORT
    token: Annotated[
        str | None,
        typer.Option(
            metavar="SECRET",
            envvar="SKILLPAGER_SERVER_TOKEN",
            help="Secret that every request must send; required unless --host is a loopback address. Other "
            "users can read it from the command line, so prefer the variable.",
        ),
    ] = None
    allowed_hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host",
            metavar="NAME",
            help="Further host name under which clients reach the service; may be repeated.",
        ),
    ] = None
    allow_uploads: Annotated[
        bool, typer.Option("--allow-uploads", help="Also page Markdown that is sent with the request.")
    ] = False
    allow_models: Annotated[
        bool,
        typer.Option(
            "--allow-models",
            help="Let requests choose strategies that load a model or call an LLM endpoint.",
        ),
    ] = False
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens", metavar="N", min=1, help="Longest page, for any request. [default: none]"
        ),
    ] = None
    max_request_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-request-bytes",
            metavar="N",
            min=1,
            help="Largest request. [default: 64 KiB; 1 MiB with --allow-uploads]",
        ),
    ] = None
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of processes that answer requests.")
    ] = DEFAULT_WORKERS
    threads: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Number of requests that each process answers in parallel."),
    ] = DEFAULT_THREADS
    waiting: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Number of requests that may wait in each process; more are refused."
        ),
    ] = DEFAULT_WAITING
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Write one JSON line to stderr for each request.")
    ] = False
    telemetry: Annotated[
        bool,
        typer.Option(
            "--otel",
            help="Send traces and metrics by OpenTelemetry's protocol; the variables OTEL_… say where to.",
        ),
    ] = False


@reported
def serve(
    folders: OfferedFolders = None,
    *,
    limits: ServiceOptions,
    options: UnscopedOptions,
) -> None:
    """Serve pages over HTTP until interrupted.

    /v1/openapi.json describes the API and docs/http.md explains it. Needs `pip install
    "skillpager[server]"`.

    \b
    Examples:
      skillpager serve examples/skills
      skillpager serve examples/skills --port 0 --allow-uploads --access-log
      skillpager serve examples/skills --port 0 --workers 2
    """
    for package in ("fastapi", "uvicorn", "prometheus_fastapi_instrumentator"):
        require_extra(package, extra="server", purpose="The HTTP service")
    from skillpager.cli.session import open_library
    from skillpager.http import server as http_server

    given = asdict(limits)
    access_log = given.pop("access_log")
    served = ServerOptions(**{**given, "allowed_hosts": tuple(limits.allowed_hosts or ())})
    check_options(served)
    library = open_library(folders or [], options)

    def announce(url: str) -> None:
        note(f"serving at {url}; Ctrl+C ends it")

    if served.workers > 1:
        # each process opens the library for itself; this one has said what there is to say about it
        library.close()
        start = partial(_open_again, listening(), folders or [], options, access_log=access_log)
        http_server.serve_workers(start, served, announce=announce)
        return
    if access_log:
        _print_access()
    try:
        finished = http_server.serve(library, served, announce=announce)
    finally:
        library.close()
    if not finished:
        # threads that still work would hold up an ordinary exit; the store is always whole
        os._exit(0)


def _print_access() -> None:
    """Print one line for each request."""
    # straight to stderr: the handler of notes would store each line, to print it only once
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log = logging.getLogger("skillpager.http.access")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


def _open_again(
    listen: Callable[[], None], folders: Sequence[Path], options: PagerOptions, *, access_log: bool
) -> "Library":
    """Return the skills on offer in another process of the service, whose messages are as in the first."""
    from skillpager.cli.session import open_library

    listen()
    if access_log:
        _print_access()
    return open_library(folders, options, counts=False, search=False)
