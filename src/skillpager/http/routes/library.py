"""Routes for the library as a whole: which skills a query needs."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from skillpager.http.requests import RouteFields, RouteQuery
from skillpager.http.service import ResponderOf
from skillpager.json_types import RouteJson
from skillpager.library import route_json

router = APIRouter(prefix="/v1", tags=["library"])


@router.post("/route", response_model=RouteJson, summary="Find the skills that a query needs")
async def route(asked: RouteFields, responder: ResponderOf) -> Response:
    """Return the skills that a query most likely needs, best first, and the chance that any skill fits."""
    library = responder.service.library
    return await responder.send(
        lambda: route_json(library.route(asked.query, k=asked.k, for_model=asked.for_model))
    )


@router.get("/route", response_model=RouteJson, summary="Find the skills that a query needs, by GET")
async def route_by_get(asked: Annotated[RouteQuery, Query()], responder: ResponderOf) -> Response:
    """Return the same skills as POST, for clients that cache answers or share links."""
    return await route(asked, responder)
