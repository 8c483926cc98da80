"""Routes of the explorer: its files, a skill's documents as HTML, and what it says in words."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from skillpager.http.explorer.document import render_skill
from skillpager.http.requests import ScopeQuery
from skillpager.http.service import ResponderOf, make_etag, respond
from skillpager.output.outline import SIGNALS
from skillpager.pages.gaps import LEAST_COVERED

INDEX = "index.html"
PREFIX = "/explorer/"
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

# not part of the API: it changes with the explorer's own files
router = APIRouter(include_in_schema=False)


class Asset(NamedTuple):
    """A file of the explorer."""

    body: bytes
    media_type: str
    etag: str


@cache
def assets() -> Mapping[str, Asset]:
    """Return the explorer's files by URL path: `/` and paths below `/explorer/`. They hold no data."""
    found = {}
    for file in files("skillpager").joinpath("http/explorer/web").iterdir():
        media_type = MEDIA_TYPES.get(PurePath(file.name).suffix)
        if media_type is not None:
            body = file.read_bytes()
            path = "/" if file.name == INDEX else PREFIX + file.name
            found[path] = Asset(body, media_type, make_etag(body))
    return found


async def send_asset(request: Request) -> Response:
    """Return a file of the explorer."""
    asset = assets()[request.url.path]
    return respond(request, asset.body, asset.etag, media_type=asset.media_type, cache_control="no-cache")


for _path in assets():
    router.add_api_route(_path, send_asset, methods=["GET"])


@router.get(PREFIX + "words")
async def words(responder: ResponderOf) -> Response:
    """Return the groups of features in plain words, and the chance below which a skill is not covered."""
    return await responder.send(lambda: {"signals": SIGNALS, "least_covered": LEAST_COVERED})


@router.get(PREFIX + "document/{name:path}")
async def document(name: str, asked: Annotated[ScopeQuery, Query()], responder: ResponderOf) -> Response:
    """Return a skill's files as HTML with every node marked."""
    return await responder.send_index(name, asked.scope, lambda index: {"files": render_skill(index)})
