"""Routes for the library as a whole: which skills a query needs, and one page of them."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from skillpager.http.requests import AskFields, AskQuery, RouteFields, RouteQuery
from skillpager.http.routes.pages import allowed_tokens, check_strategy
from skillpager.http.service import Responder, ResponderOf
from skillpager.json_types import JsonObject, json_type, to_json
from skillpager.library import LibraryPage, LibraryPageOptions, Route

router = APIRouter(prefix="/v1", tags=["library"])


@router.post("/route", response_model=json_type(Route), summary="Find the skills that a query needs")
async def route(asked: RouteFields, responder: ResponderOf) -> Response:
    """Return the skills that a query most likely needs, best first, and the chance that any skill fits."""
    library = responder.service.library
    return await responder.send(
        lambda: to_json(library.route(asked.query, k=asked.k, for_model=asked.for_model))
    )


@router.get("/route", response_model=json_type(Route), summary="Find the skills that a query needs, by GET")
async def route_by_get(asked: Annotated[RouteQuery, Query()], responder: ResponderOf) -> Response:
    """Return the same skills as POST, for clients that cache answers or share links."""
    return await route(asked, responder)


@router.post(
    "/ask", response_model=json_type(LibraryPage), summary="Make a page from the skills that a query needs"
)
async def ask(asked: AskFields, responder: ResponderOf) -> Response:
    """Return one page from the skills that a query needs, each part under its skill's name."""
    return await responder.send(lambda: _ask(responder, asked))


@router.get("/ask", response_model=json_type(LibraryPage), summary="Make a page from several skills, by GET")
async def ask_by_get(asked: Annotated[AskQuery, Query()], responder: ResponderOf) -> Response:
    """Return the same page as POST, for clients that cache answers or share links."""
    return await ask(asked, responder)


def _ask(responder: Responder, asked: AskFields) -> JsonObject:
    """Return a page; raise an error if the owner's options forbid its strategy or `max_tokens`."""
    service = responder.service
    check_strategy(service, asked.strategy)
    options = LibraryPageOptions(
        k=asked.k,
        max_tokens=allowed_tokens(service, asked.max_tokens),
        sufficiency=asked.sufficiency,
        fill=asked.fill,
        strategy=asked.strategy,
        scope=asked.scope,
        style=asked.style,
    )
    if asked.max_skills is not None:
        options["max_skills"] = asked.max_skills
    if asked.show:
        options["show"] = lambda skill: f"{asked.show} {skill.name}"
    made = service.library.page(asked.query, **options)
    for part in made.parts:
        service.metrics.count_page(part.page)
    return to_json(made)
