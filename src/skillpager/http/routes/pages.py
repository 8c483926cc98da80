"""Routes for pages of one skill and of several, nodes that a page left out, and the list of strategies."""

from http import HTTPStatus
from typing import Annotated, Literal, NotRequired, cast

from fastapi import APIRouter, Query
from starlette.responses import Response
from typing_extensions import TypedDict

from skillpager.errors import MissingExtraError, SettingsError
from skillpager.factories import STRATEGIES, STRATEGY, make_strategy, unknown_part
from skillpager.http.problems import RefusedError
from skillpager.http.requests import (
    AskFields,
    AskQuery,
    ExpandRequest,
    PageFields,
    PageQuery,
    PageRequest,
    RouteFields,
    RouteQuery,
)
from skillpager.http.service import ResponderOf, Service
from skillpager.json_types import JsonObject, json_type, to_json
from skillpager.library import LibraryPage, LibraryPageOptions, Route
from skillpager.pager import SkillPager
from skillpager.pages.assemble import estimates
from skillpager.parsing.skill import skill_from_text
from skillpager.strategies.registry import FAMILIES, Family, is_local
from skillpager.types import Page, PageOptions, SkillIndex

router = APIRouter(prefix="/v1", tags=["pages"])

NOT_ALLOWED = (
    "The strategy {!r} loads a model or calls an endpoint: choose another of /v1/strategies, or have the "
    "service started with --allow-models."
)


ExplainedPageJson = json_type(Page, name="ExplainedPage", reasons=NotRequired[dict[str, dict[str, float]]])
Knob = Literal["max_nodes", "max_tokens", "sufficiency", "fill", "mmr_lambda"]


class ArgumentJson(TypedDict):
    """The argument after the colon of a strategy's name."""

    name: str
    kind: str
    sample: str
    required: bool


class StrategyJson(TypedDict):
    """A strategy: the page arguments that it uses (`heeds`), and why it is unavailable (`problem`), if so."""

    name: str
    heeds: list[Knob]
    argument: ArgumentJson | None
    problem: str | None


class StrategiesJson(TypedDict):
    """The strategies that `strategy` can name."""

    strategies: list[StrategyJson]


@router.post("/page", response_model=ExplainedPageJson, summary="Make a page")
async def page(asked: PageRequest, responder: ResponderOf) -> Response:
    """Return the smallest part of a skill that suffices for a query."""
    return await responder.send(lambda: _page(responder.service, asked.skill, asked.markdown, asked))


@router.get("/page", response_model=ExplainedPageJson, summary="Make a page, by GET")
async def page_by_get(asked: Annotated[PageQuery, Query()], responder: ResponderOf) -> Response:
    """Return the same page as POST, for clients that cache answers or share links."""
    return await responder.send(lambda: _page(responder.service, asked.skill, None, asked))


@router.post("/expand", response_model=json_type(Page), summary="Read what a page left out")
async def expand(asked: ExpandRequest, responder: ResponderOf) -> Response:
    """Return nodes of a skill: a page fault."""
    service = responder.service

    def make() -> JsonObject:
        pager, index = _find(service, asked.skill, asked.markdown, asked.scope)
        made = pager.expand(index, asked.nodes, max_tokens=asked.max_tokens, style=asked.style)
        most = service.options.max_tokens
        if most is not None and made.tokens > most:
            message = f"The nodes have {made.tokens} tokens, over the {most} that the service allows: "
            raise SettingsError(message + "ask for fewer.")
        return to_json(made)

    return await responder.send(make)


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
    return await responder.send(lambda: _ask(responder.service, asked))


@router.get("/ask", response_model=json_type(LibraryPage), summary="Make a page from several skills, by GET")
async def ask_by_get(asked: Annotated[AskQuery, Query()], responder: ResponderOf) -> Response:
    """Return the same page as POST, for clients that cache answers or share links."""
    return await ask(asked, responder)


@router.get("/strategies", response_model=StrategiesJson, summary="List the strategies")
async def strategies(responder: ResponderOf) -> Response:
    """Return the strategies and the page arguments that each uses."""
    return await responder.send(
        lambda: {"strategies": [_strategy(responder.service, *item) for item in FAMILIES.items()]}
    )


def _check_strategy(service: Service, strategy: str | None) -> None:
    """Raise an error for a strategy that is not known, or that the owner's options forbid."""
    if strategy is None:
        return
    if strategy.partition(":")[0] not in FAMILIES:
        # it could name code, which no client may have loaded
        raise unknown_part(STRATEGY, strategy, STRATEGIES)
    if not is_local(strategy) and not service.options.allow_models:
        raise RefusedError(HTTPStatus.FORBIDDEN, NOT_ALLOWED.format(strategy))


def _allowed_tokens(service: Service, asked: int | None) -> int | None:
    """Return the ceiling on a page; raise an error if a request asks for more than the owner allows."""
    most = service.options.max_tokens
    if most is None:
        return asked
    if asked is not None and asked > most:
        raise SettingsError(f"max_tokens is {asked}: the service allows {most} at most.")
    default = service.library.pager.settings.max_tokens
    limits = [most, default if asked is None else asked]
    return min(limit for limit in limits if limit is not None)


def _page(service: Service, name: str | None, markdown: str | None, asked: PageFields) -> JsonObject:
    """Return a page; raise an error if the owner's options forbid its strategy or `max_tokens`."""
    strategy = asked.strategy
    _check_strategy(service, strategy)
    # the index below has the scope already
    options = cast(PageOptions, asked.model_dump(include=set(PageOptions.__annotations__) - {"scope"}))
    options["max_tokens"] = _allowed_tokens(service, asked.max_tokens)
    pager, index = _find(service, name, markdown, asked.scope)
    made = pager.page(index, asked.query, **options)
    service.metrics.count_page(made)
    form = to_json(made)
    if asked.explain:
        # only strategies that estimate sufficiency have reasons
        estimated = made.sufficiency is not None
        reasons = pager.reasons(index, asked.query, strategy=strategy) if estimated else {}
        form["reasons"] = {node: dict(shares) for node, shares in reasons.items()}
    return form


def _ask(service: Service, asked: AskFields) -> JsonObject:
    """Return a page; raise an error if the owner's options forbid its strategy or `max_tokens`."""
    _check_strategy(service, asked.strategy)
    options = LibraryPageOptions(
        k=asked.k,
        max_tokens=_allowed_tokens(service, asked.max_tokens),
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


def _find(
    service: Service, name: str | None, markdown: str | None, scope: str | None
) -> tuple[SkillPager, SkillIndex]:
    """Return the index of a request's skill or upload, and its pager."""
    if markdown is None:
        return service.library.pager, service.library.index(name or "", scope=scope)
    if not service.options.allow_uploads:
        message = "The service takes no uploads: name a skill, or have it started with --allow-uploads."
        raise RefusedError(HTTPStatus.FORBIDDEN, message)
    pager = service.uploads
    # parsed here, because a string without a line break would be read as a path
    return pager, pager.index(skill_from_text(markdown, max_bytes=pager.settings.max_bytes))


def _strategy(service: Service, name: str, family: Family) -> StrategyJson:
    heeds: list[Knob] = ["max_nodes", "max_tokens"]
    if family.weighs:
        heeds.append("mmr_lambda")
    form: StrategyJson = {"name": name, "heeds": heeds, "argument": None, "problem": None}
    if (argument := family.argument) is not None:
        form["argument"] = {
            "name": argument.field,
            "kind": argument.kind,
            "sample": argument.sample,
            "required": argument.required,
        }
    if not family.local:
        form["problem"] = None if service.options.allow_models else NOT_ALLOWED.format(name)
        return form
    try:
        if estimates(make_strategy(name, service.library.pager.settings, mmr_lambda=1.0)):
            heeds += ["sufficiency", "fill"]
    except MissingExtraError as error:
        form["problem"] = str(error)
    return form
