"""Routes of the explorer: its files, a skill's documents as HTML, and what it says in words."""

import mimetypes
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from skillpager.http.explorer.document import render_skill
from skillpager.http.requests import ScopeQuery
from skillpager.http.service import ResponderOf
from skillpager.output.outline import SIGNALS
from skillpager.pages.gaps import LEAST_COVERED

INDEX = "index.html"
PREFIX = "/explorer/"
WEB = Path(str(files("skillpager"))) / "http" / "explorer" / "web"
# URL paths of the explorer's files, which hold no data
ASSETS = frozenset({"/", *(PREFIX + file.name for file in WEB.iterdir())})

# a system may say otherwise, and then browsers would not run the scripts
mimetypes.add_type("text/javascript", ".js")
_static = StaticFiles(directory=WEB)

# not part of the API: it changes with the explorer's own files
router = APIRouter(include_in_schema=False)


@router.get(PREFIX + "words")
async def words(responder: ResponderOf) -> Response:
    """Return the groups of features in plain words, and the chance below which a skill is not covered."""
    return await responder.send(lambda: {"signals": SIGNALS, "least_covered": LEAST_COVERED})


@router.get(PREFIX + "document/{name:path}")
async def document(name: str, asked: Annotated[ScopeQuery, Query()], responder: ResponderOf) -> Response:
    """Return a skill's files as HTML with every node marked."""
    return await responder.send_index(name, asked.scope, lambda index: {"files": render_skill(index)})


@router.get("/")
@router.get(PREFIX + "{name}")
async def asset(request: Request, name: str = INDEX) -> Response:
    """Return a file of the explorer."""
    return await _static.get_response(name, request.scope)
