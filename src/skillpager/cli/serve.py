"""`skillpager serve`: the HTTP service."""

import logging
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import note, reported
from skillpager.cli.options import CacheDir, ClassifierName, EncoderName, OfferedFolders
from skillpager.errors import require_extra
from skillpager.http.options import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    DEFAULT_WAITING,
    DEFAULT_WORKERS,
    ServerOptions,
    check_options,
)

if TYPE_CHECKING:
    pass

EXTRA = "server"
PURPOSE = "The HTTP service"


@reported
def serve(
    folders: OfferedFolders = None,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen at.")] = DEFAULT_HOST,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port to listen at; 0 for a free one.")
    ] = DEFAULT_PORT,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="SECRET",
            envvar="SKILLPAGER_SERVER_TOKEN",
            help="Secret that requests must bring; needed beyond loopback. Better set by the variable.",
        ),
    ] = None,
    allowed_hosts: Annotated[
        list[str] | None,
        typer.Option("--allowed-host", metavar="NAME", help="Name of the service; may be repeated."),
    ] = None,
    allow_uploads: Annotated[
        bool, typer.Option("--allow-uploads", help="Also page Markdown that requests bring.")
    ] = False,
    allow_models: Annotated[
        bool,
        typer.Option(
            "--allow-models", help="Let requests name strategies with models or endpoints of others."
        ),
    ] = False,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", metavar="N", min=1, help="Ceiling on every page. [none]")
    ] = None,
    max_request_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-request-bytes", metavar="N", min=1, help="Largest request. [64 KiB; 1 MiB with uploads]"
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, help="Requests to work on at a time.")
    ] = DEFAULT_WORKERS,
    waiting: Annotated[
        int, typer.Option(metavar="N", min=0, help="Requests that may wait for a worker.")
    ] = DEFAULT_WAITING,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Write one JSON line to stderr for each request.")
    ] = False,
    encoder: EncoderName = None,
    classifier: ClassifierName = None,
    cache_dir: CacheDir = None,
) -> None:
    """Serve pages over HTTP until interrupted.

    /v1/openapi.json describes what can be asked; docs/http.md explains it. Needs the extra [server].

    \b
    Examples:
      skillpager serve examples/skills
      skillpager serve examples/skills --port 0 --allow-uploads --access-log
    """
    for package in ("fastapi", "uvicorn", "prometheus_client"):
        require_extra(package, extra=EXTRA, purpose=PURPOSE)
    from skillpager.cli.session import open_library
    from skillpager.http import server as http_server

    options = ServerOptions(
        host=host,
        port=port,
        token=token,
        allowed_hosts=tuple(allowed_hosts or ()),
        allow_uploads=allow_uploads,
        allow_models=allow_models,
        max_tokens=max_tokens,
        max_request_bytes=max_request_bytes,
        workers=workers,
        waiting=waiting,
    )
    check_options(options)
    library = open_library(folders or [], encoder=encoder, classifier=classifier, cache_dir=cache_dir)
    if access_log:
        _write_access_log()
    try:
        finished = http_server.serve(library, options, announce=_announce)
    finally:
        library.pager.close()
    if not finished:
        # threads that still work would hold up an ordinary exit; the store is always whole
        os._exit(0)


def _announce(url: str) -> None:
    note(f"serving at {url}; Ctrl+C ends it")


def _write_access_log() -> None:
    """Write requests straight to stderr: the handler of notes would keep each line, to say it once."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log = logging.getLogger("skillpager.http.access")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
