"""Routes that page: a page, what it left out, and the strategies that choose."""

from functools import partial
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from skillpager.errors import MissingExtraError, SettingsError
from skillpager.factories import make_strategy
from skillpager.http.answers import PageAnswer, StrategiesAnswer
from skillpager.http.problems import RefusedError
from skillpager.http.requests import ExpandRequest, PageFields, PageQuery, PageRequest
from skillpager.http.service import Answer, Service, ServiceOf, answer_json, respond
from skillpager.output.json import JsonObject, context_json
from skillpager.pager import SkillPager
from skillpager.pages.assemble import estimates
from skillpager.parsing.skill import skill_from_text
from skillpager.strategies.registry import FAMILIES, Family, is_local
from skillpager.types import Page, SkillIndex

router = APIRouter(prefix="/v1", tags=["pages"])


@router.post("/page", response_model=PageAnswer, summary="Make a page")
async def page(asked: PageRequest, request: Request, service: ServiceOf) -> Response:
    """Return the smallest part of a skill that suffices for a query."""
    return await respond(service, request, partial(_page, service, asked.skill, asked.markdown, asked))


@router.get("/page", response_model=PageAnswer, summary="Make a page, by GET")
async def page_by_get(asked: Annotated[PageQuery, Query()], request: Request, service: ServiceOf) -> Response:
    """Return the same page as POST does, for clients that keep answers or links."""
    return await respond(service, request, partial(_page, service, asked.skill, None, asked))


@router.post("/expand", response_model=PageAnswer, summary="Read what a page left out")
async def expand(asked: ExpandRequest, request: Request, service: ServiceOf) -> Response:
    """Return nodes of a skill: a page fault."""
    return await respond(service, request, partial(_expand, service, asked))


@router.get("/strategies", response_model=StrategiesAnswer, summary="List the strategies")
async def strategies(request: Request, service: ServiceOf) -> Response:
    """Return the strategies, and which arguments of a page each heeds."""
    return await respond(service, request, partial(_strategies, service))


def _page(
    service: Service, name: str | None, markdown: str | None, asked: PageFields, seen: str | None
) -> Answer:
    if asked.strategy is not None:
        _check_strategy(service, asked.strategy)
    max_tokens = _max_tokens(service, asked.max_tokens)
    pager, index = _find(service, name, markdown, asked.scope)
    context = pager.page(
        index,
        asked.query,
        max_nodes=asked.max_nodes,
        max_tokens=max_tokens,
        sufficiency=asked.sufficiency,
        strategy=asked.strategy,
        mmr_lambda=asked.mmr_lambda,
        style=asked.style,
        show=asked.show,
        known=asked.known,
    )
    service.metrics.count_page(context)
    reasons = _reasons(pager, index, asked, context) if asked.explain else {}
    return answer_json({**context_json(context), **reasons}, seen)


def _expand(service: Service, asked: ExpandRequest, seen: str | None) -> Answer:
    pager, index = _find(service, asked.skill, asked.markdown, asked.scope)
    context = pager.expand(index, asked.nodes, max_tokens=asked.max_tokens, style=asked.style)
    most = service.options.max_tokens
    if most is not None and context.tokens > most:
        raise SettingsError(
            f"The nodes have {context.tokens} tokens, over the {most} that the service allows: ask for fewer."
        )
    return answer_json(context_json(context), seen)


def _find(
    service: Service, name: str | None, markdown: str | None, scope: str | None
) -> tuple[SkillPager, SkillIndex]:
    """Return the index that a request means, and what pages it.

    Raises:
        RefusedError: It is an upload, and the service takes none.
        SkillPagerError: There is no such skill, or it cannot be indexed.
    """
    if markdown is None:
        return service.library.pager, service.library.index(name or "", scope=scope)
    if not service.options.allow_uploads:
        raise RefusedError(
            HTTPStatus.FORBIDDEN,
            "The service takes no uploads: name a skill, or have it started with --allow-uploads.",
        )
    pager = service.uploads
    # a skill, not a string: one without a line break would be taken for a path
    skill = skill_from_text(markdown, max_bytes=pager.settings.max_bytes)
    return pager, pager.index(skill)


def _check_strategy(service: Service, strategy: str) -> None:
    """Refuse a strategy that runs a model or asks an endpoint, unless the owner allows such.

    Raises:
        RefusedError: The strategy is one of those, and they are not allowed.
    """
    known = strategy.partition(":")[0] in FAMILIES
    if known and not is_local(strategy) and not service.options.allow_models:
        raise RefusedError(HTTPStatus.FORBIDDEN, _not_allowed(strategy))


def _not_allowed(strategy: str) -> str:
    return (
        f"The strategy {strategy!r} loads a model or calls an endpoint: choose another of /v1/strategies, or "
        "have the service started with --allow-models."
    )


def _max_tokens(service: Service, asked: int | None) -> int | None:
    """Return the ceiling of a page: what is asked for, within what the owner allows.

    Raises:
        SettingsError: More is asked for.
    """
    most = service.options.max_tokens
    if most is None:
        return asked
    if asked is None:
        default = service.library.pager.settings.max_tokens
        return most if default is None else min(default, most)
    if asked > most:
        raise SettingsError(f"max_tokens is {asked}: the service allows {most} at most.")
    return asked


def _reasons(pager: SkillPager, index: SkillIndex, asked: PageFields, context: Page) -> JsonObject:
    if context.sufficiency is None:  # a strategy that estimates nothing has no reasons to tell
        return {"reasons": {}}
    return {"reasons": dict(pager.reasons(index, asked.query, strategy=asked.strategy))}


def _strategies(service: Service, seen: str | None) -> Answer:
    told = [_strategy_json(service, name, family) for name, family in FAMILIES.items()]
    return answer_json({"strategies": told}, seen)


def _strategy_json(service: Service, name: str, family: Family) -> JsonObject:
    heeds = ["max_nodes", "max_tokens"] + ["mmr_lambda"] * family.weighs
    problem = None
    if not family.local and not service.options.allow_models:
        problem = _not_allowed(name)
    elif family.local:
        try:
            made = make_strategy(name, service.library.pager.settings, mmr_lambda=1.0)
            heeds += ["sufficiency"] * estimates(made)
        except MissingExtraError as error:
            problem = str(error)
    argument = family.argument
    return {
        "name": name,
        "heeds": heeds,
        "argument": None
        if argument is None
        else {
            "name": argument.field,
            "kind": argument.kind,
            "sample": argument.sample,
            "required": argument.required,
        },
        "problem": problem,
    }
