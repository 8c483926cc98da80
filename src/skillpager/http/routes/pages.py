"""Routes that page: a page, what it left out, and the strategies that choose."""

from http import HTTPStatus
from typing import Annotated, Literal, cast

from fastapi import APIRouter, Query
from starlette.responses import Response
from typing_extensions import TypedDict

from skillpager.errors import MissingExtraError, SettingsError
from skillpager.factories import make_strategy
from skillpager.http.problems import RefusedError
from skillpager.http.requests import ExpandRequest, PageFields, PageQuery, PageRequest
from skillpager.http.service import ResponderOf, Service
from skillpager.json_types import PageJson
from skillpager.output.json import context_json
from skillpager.pager import SkillPager
from skillpager.pages.assemble import estimates
from skillpager.parsing.skill import skill_from_text
from skillpager.strategies.registry import FAMILIES, Family, is_local
from skillpager.types import PageOptions, SkillIndex

router = APIRouter(prefix="/v1", tags=["pages"])

# of a strategy that the owner of the service does not allow
NOT_ALLOWED = (
    "The strategy {!r} loads a model or calls an endpoint: choose another of /v1/strategies, or have the "
    "service started with --allow-models."
)


class ArgumentJson(TypedDict):
    """The argument behind the colon of a strategy's name."""

    name: str
    kind: str
    sample: str
    required: bool


class StrategyJson(TypedDict):
    """A strategy: which arguments of a page it heeds, and why it cannot be asked for, if so."""

    name: str
    heeds: list[Literal["max_nodes", "max_tokens", "sufficiency", "mmr_lambda"]]
    argument: ArgumentJson | None
    problem: str | None


class StrategiesJson(TypedDict):
    """The strategies that `strategy` can name."""

    strategies: list[StrategyJson]


@router.post("/page", response_model=PageJson, summary="Make a page")
async def page(asked: PageRequest, responder: ResponderOf) -> Response:
    """Return the smallest part of a skill that suffices for a query."""
    return await responder.send(lambda: _page(responder.service, asked.skill, asked.markdown, asked))


@router.get("/page", response_model=PageJson, summary="Make a page, by GET")
async def page_by_get(asked: Annotated[PageQuery, Query()], responder: ResponderOf) -> Response:
    """Return the same page as POST does, for clients that keep answers or links."""
    return await responder.send(lambda: _page(responder.service, asked.skill, None, asked))


@router.post("/expand", response_model=PageJson, summary="Read what a page left out")
async def expand(asked: ExpandRequest, responder: ResponderOf) -> Response:
    """Return nodes of a skill: a page fault."""
    service = responder.service

    def make() -> PageJson:
        pager, index = _find(service, asked.skill, asked.markdown, asked.scope)
        made = pager.expand(index, asked.nodes, max_tokens=asked.max_tokens, style=asked.style)
        most = service.options.max_tokens
        if most is not None and made.tokens > most:
            raise SettingsError(
                f"The nodes have {made.tokens} tokens, over the {most} that the service allows: "
                "ask for fewer."
            )
        return context_json(made)

    return await responder.send(make)


@router.get("/strategies", response_model=StrategiesJson, summary="List the strategies")
async def strategies(responder: ResponderOf) -> Response:
    """Return the strategies, and which arguments of a page each heeds."""
    return await responder.send(
        lambda: {"strategies": [_strategy(responder.service, *item) for item in FAMILIES.items()]}
    )


def _page(service: Service, name: str | None, markdown: str | None, asked: PageFields) -> PageJson:
    """Return a page within what the owner allows.

    Raises:
        RefusedError: The strategy runs a model or asks an endpoint, or the skill is an upload; neither is
            allowed unless the owner says so.
        SettingsError: The ceiling is above the owner's.
    """
    strategy, most = asked.strategy, service.options.max_tokens
    known = strategy is not None and strategy.partition(":")[0] in FAMILIES
    if strategy is not None and known and not is_local(strategy) and not service.options.allow_models:
        raise RefusedError(HTTPStatus.FORBIDDEN, NOT_ALLOWED.format(strategy))
    # the index is of that scope already
    options = cast(PageOptions, asked.model_dump(include=set(PageOptions.__annotations__) - {"scope"}))
    if most is not None:
        if asked.max_tokens is not None and asked.max_tokens > most:
            raise SettingsError(f"max_tokens is {asked.max_tokens}: the service allows {most} at most.")
        default = service.library.pager.settings.max_tokens
        wanted = default if asked.max_tokens is None else asked.max_tokens
        options["max_tokens"] = most if wanted is None else min(wanted, most)
    pager, index = _find(service, name, markdown, asked.scope)
    made = pager.page(index, asked.query, **options)
    service.metrics.count_page(made)
    form = context_json(made)
    if asked.explain:
        # a strategy that estimates nothing has no reasons
        estimated = made.sufficiency is not None
        reasons = pager.reasons(index, asked.query, strategy=strategy) if estimated else {}
        form["reasons"] = {node: dict(shares) for node, shares in reasons.items()}
    return form


def _find(
    service: Service, name: str | None, markdown: str | None, scope: str | None
) -> tuple[SkillPager, SkillIndex]:
    """Return the index that a request means, and the pager for it.

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
    return pager, pager.index(skill_from_text(markdown, max_bytes=pager.settings.max_bytes))


def _strategy(service: Service, name: str, family: Family) -> StrategyJson:
    form: StrategyJson = {
        "name": name,
        "heeds": ["max_nodes", "max_tokens"],
        "argument": None,
        "problem": None,
    }
    if family.weighs:
        form["heeds"].append("mmr_lambda")
    if family.argument is not None:
        form["argument"] = {
            "name": family.argument.field,
            "kind": family.argument.kind,
            "sample": family.argument.sample,
            "required": family.argument.required,
        }
    if not family.local:
        form["problem"] = None if service.options.allow_models else NOT_ALLOWED.format(name)
        return form
    try:
        if estimates(make_strategy(name, service.library.pager.settings, mmr_lambda=1.0)):
            form["heeds"].append("sufficiency")
    except MissingExtraError as error:
        form["problem"] = str(error)
    return form
