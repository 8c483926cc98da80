"""Routes of the explorer: its files, a skill's documents as HTML, and what it calls things."""

from functools import partial
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from skillpager.http.explorer.assets import PREFIX, Asset, assets
from skillpager.http.explorer.document import render_skill
from skillpager.http.requests import ScopeQuery
from skillpager.http.service import (
    Answer,
    Service,
    ServiceOf,
    answer_json,
    encode,
    is_seen,
    make_etag,
    respond,
)
from skillpager.output.outline import SIGNALS

# not a part of the API: it changes with the page that asks
router = APIRouter(include_in_schema=False)


@router.get(PREFIX + "words")
async def words(request: Request, service: ServiceOf) -> Response:
    """Return what the kinds of signals say, in a person's words."""
    return await respond(service, request, partial(answer_json, {"signals": SIGNALS}))


@router.get(PREFIX + "document/{name:path}")
async def document(
    name: str, asked: Annotated[ScopeQuery, Query()], request: Request, service: ServiceOf
) -> Response:
    """Return a skill's files as HTML, every node marked."""
    return await respond(service, request, partial(_document, service, name, asked.scope))


def _document(service: Service, name: str, scope: str | None, seen: str | None) -> Answer:
    index = service.library.index(name, scope=scope)
    etag = make_etag(service.version, index.key)
    return Answer(None if is_seen(etag, seen) else encode({"files": render_skill(index)}), etag)


def _give(asset: Asset, request: Request) -> Response:
    headers = {"ETag": asset.etag, "Cache-Control": "no-cache"}
    if is_seen(asset.etag, request.headers.get("if-none-match")):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(asset.body, headers=headers, media_type=asset.media_type)


def _add_asset(path: str, asset: Asset) -> None:
    async def give(request: Request) -> Response:
        return _give(asset, request)

    router.add_api_route(path, give, methods=["GET"])


for _path, _asset in assets().items():
    _add_asset(_path, _asset)
