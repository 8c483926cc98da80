"""`skillpager serve`: the HTTP service."""

import logging
import os
import sys
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from skillpager.cli.messages import note, reported
from skillpager.cli.options import OfferedFolders, UnscopedOptions
from skillpager.errors import require_extra
from skillpager.http.options import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    DEFAULT_WAITING,
    DEFAULT_WORKERS,
    ServerOptions,
    check_options,
)


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
        int, typer.Option(metavar="N", min=1, help="Number of requests processed in parallel.")
    ] = DEFAULT_WORKERS
    waiting: Annotated[
        int, typer.Option(metavar="N", min=0, help="Number of requests that may wait; more are refused.")
    ] = DEFAULT_WAITING


@reported
def serve(
    folders: OfferedFolders = None,
    *,
    limits: ServiceOptions,
    options: UnscopedOptions,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Write one JSON line to stderr for each request.")
    ] = False,
) -> None:
    """Serve pages over HTTP until interrupted.

    /v1/openapi.json describes the API and docs/http.md explains it. Needs `pip install
    "skillpager[server]"`.

    \b
    Examples:
      skillpager serve examples/skills
      skillpager serve examples/skills --port 0 --allow-uploads --access-log
    """
    for package in ("fastapi", "uvicorn", "prometheus_client"):
        require_extra(package, extra="server", purpose="The HTTP service")
    from skillpager.cli.session import open_library
    from skillpager.http import server as http_server

    served = ServerOptions(**{**asdict(limits), "allowed_hosts": tuple(limits.allowed_hosts or ())})
    check_options(served)
    library = open_library(folders or [], options)
    if access_log:
        # straight to stderr: the handler of notes would store each line, to print it only once
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
        log = logging.getLogger("skillpager.http.access")
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
    try:
        finished = http_server.serve(
            library, served, announce=lambda url: note(f"serving at {url}; Ctrl+C ends it")
        )
    finally:
        library.pager.close()
    if not finished:
        # threads that still work would hold up an ordinary exit; the store is always whole
        os._exit(0)
