"""`skillpager serve`: the HTTP service."""

import logging
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.cli.messages import listening, note, reported
from skillpager.cli.options import IndexOptions, SkillFolders
from skillpager.errors import require_extra
from skillpager.http.options import ServerOptions, check_options

if TYPE_CHECKING:
    from skillpager.library import Library


@reported
def serve(
    folders: SkillFolders = None,
    *,
    limits: ServerOptions,
    options: IndexOptions,
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

    check_options(limits)
    library = open_library(folders or [], options)

    def announce(url: str) -> None:
        note(f"serving at {url}; Ctrl+C ends it")

    if limits.workers > 1:
        # each process opens the library for itself; this one has said what there is to say about it
        library.close()
        start = partial(_open_again, listening(), folders or [], options, access_log=limits.access_log)
        http_server.serve_workers(start, limits, announce=announce)
        return
    if limits.access_log:
        _print_access()
    try:
        finished = http_server.serve(library, limits, announce=announce)
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
    listen: Callable[[], None], folders: Sequence[Path], options: IndexOptions, *, access_log: bool
) -> "Library":
    """Return the skills on offer in another process of the service, whose messages are as in the first."""
    from skillpager.cli.session import open_library

    listen()
    if access_log:
        _print_access()
    return open_library(folders, options, counts=False, search=False)
