"""The routes of the HTTP service: pages, skills, the service itself, and the explorer's files."""

import mimetypes
from dataclasses import dataclass
from http import HTTPStatus
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal, NotRequired, cast

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import FileResponse, Response
from typing_extensions import TypedDict

from skillpager.display_text import LEAST_COVERED, SURELY_UNCOVERED
from skillpager.errors import MissingExtraError, SettingsError
from skillpager.factories import STRATEGY, make_strategy, unknown_part
from skillpager.http.middleware import MAX_REQUEST_BYTES
from skillpager.http.requests import AskRequest, ExpandRequest, PageRequest, RouteRequest, ScopeQuery
from skillpager.http.service import Service
from skillpager.json_types import JsonObject, json_type, to_json
from skillpager.library import FoundSkill, LibraryPage, LibraryPageOptions, Route
from skillpager.output.outline import SIGNALS
from skillpager.pages.assemble import estimates
from skillpager.strategies.registry import FAMILIES, Family
from skillpager.types import Page, PageOptions, SkillIndex

# the explorer's files
WEB = Path(str(files("skillpager"))) / "http" / "web"
# of a name with a slash the answer says, too, that there is no such skill
SKILL = "/v1/skills/{name:path}"

# a system may say otherwise, and then browsers would not run the scripts
mimetypes.add_type("text/javascript", ".js")

# without and with the token
public = APIRouter()
router = APIRouter()


async def _service(request: Request) -> Service:
    return cast(Service, request.app.state.service)


ServiceOf = Annotated[Service, Depends(_service)]
Scope = Annotated[ScopeQuery, Query()]

ExplainedPageJson = json_type(Page, name="ExplainedPage", reasons=NotRequired[dict[str, dict[str, float]]])
OutlineJson = json_type(SkillIndex, "nodes", "headings", name="Outline")
GraphJson = json_type(SkillIndex, "nodes", "edges", name="Graph")
Knob = Literal["max_nodes", "max_tokens", "sufficiency", "fill", "mmr_lambda"]


@dataclass(frozen=True, slots=True)
class Skills:
    """The skills that can be paged, and those that cannot because they are shadowed or not readable."""

    skills: list[FoundSkill]
    left_out: list[FoundSkill]


class ArgumentJson(TypedDict):
    """The argument after the colon of a strategy's name."""

    name: str
    kind: str
    sample: str


class StrategyJson(TypedDict):
    """A strategy: the page arguments that it uses (`heeds`), and why it is unavailable (`problem`), if so."""

    name: str
    heeds: list[Knob]
    argument: ArgumentJson | None
    problem: str | None


class StrategiesJson(TypedDict):
    """The strategies that `strategy` can name."""

    strategies: list[StrategyJson]


# ---- pages


@router.post("/v1/page", response_model=ExplainedPageJson, tags=["pages"], summary="Make a page")
async def page(asked: PageRequest, service: ServiceOf) -> Response:
    """Return the smallest part of a skill that suffices for a query."""

    def make() -> JsonObject:
        _check_strategy(asked.strategy)
        # the index below has the scope already
        names = set(PageOptions.__annotations__) - {"scope"}
        options = cast(PageOptions, asked.model_dump(include=names))
        options["max_tokens"] = _allowed_tokens(service, asked.max_tokens)
        pager = service.library.pager
        likely = pager.for_draft(asked.query, asked.strategy, asked.mmr_lambda)
        index = service.library.index(asked.skill, scope=asked.scope, query=likely)
        made = pager.page(index, asked.query, **options)
        service.metrics.count_page(made)
        form = to_json(made)
        if asked.explain:
            # only strategies that estimate sufficiency have reasons
            estimated = made.sufficiency is not None
            reasons = pager.reasons(index, asked.query, strategy=asked.strategy) if estimated else {}
            form["reasons"] = {node: dict(shares) for node, shares in reasons.items()}
        return form

    return await service.respond(make)


@router.post(
    "/v1/expand", response_model=json_type(Page), tags=["pages"], summary="Read what a page left out"
)
async def expand(asked: ExpandRequest, service: ServiceOf) -> Response:
    """Return nodes of a skill: a page fault."""

    def make() -> JsonObject:
        pager, index = service.library.pager, service.library.index(asked.skill, scope=asked.scope)
        made = pager.expand(index, asked.nodes, max_tokens=asked.max_tokens, style=asked.style)
        most = service.options.max_tokens
        if most is not None and made.tokens > most:
            message = f"The nodes have {made.tokens} tokens, over the {most} that the service allows: "
            raise SettingsError(message + "ask for fewer.")
        return to_json(made)

    return await service.respond(make)


@router.post(
    "/v1/route", response_model=json_type(Route), tags=["pages"], summary="Find the skills that a query needs"
)
async def route(asked: RouteRequest, service: ServiceOf) -> Response:
    """Return the skills that a query most likely needs, best first, and the chance that any skill fits."""
    library = service.library
    return await service.respond(
        lambda: to_json(library.route(asked.query, k=asked.k, for_model=asked.for_model))
    )


@router.post(
    "/v1/ask",
    response_model=json_type(LibraryPage),
    tags=["pages"],
    summary="Make a page from the skills that a query needs",
)
async def ask(asked: AskRequest, service: ServiceOf) -> Response:
    """Return one page from the skills that a query needs, each part under its skill's name."""

    def make() -> JsonObject:
        _check_strategy(asked.strategy)
        given = asked.model_dump(
            include=set(LibraryPageOptions.__annotations__) - {"show"}, exclude_none=True
        )
        options = cast(LibraryPageOptions, given)
        options["max_tokens"] = _allowed_tokens(service, asked.max_tokens)
        if asked.show:
            options["show"] = lambda skill: f"{asked.show} {skill.name}"
        made = service.library.page(asked.query, **options)
        for part in made.parts:
            service.metrics.count_page(part.page)
        return to_json(made)

    return await service.respond(make)


@router.get("/v1/strategies", response_model=StrategiesJson, tags=["pages"], summary="List the strategies")
async def strategies(service: ServiceOf) -> Response:
    """Return the strategies and the page arguments that each uses."""
    return await service.respond(lambda: {"strategies": [_strategy(*item) for item in FAMILIES.items()]})


def _check_strategy(strategy: str | None) -> None:
    """Raise an error for an unknown strategy: it could name code, which no client may have loaded."""
    if strategy is not None and strategy.partition(":")[0] not in FAMILIES:
        raise unknown_part(STRATEGY, strategy)


def _allowed_tokens(service: Service, asked: int | None) -> int | None:
    """Return the ceiling on a page; raise an error if a request asks for more than the owner allows."""
    most = service.options.max_tokens
    if most is None:
        return asked
    if asked is not None and asked > most:
        raise SettingsError(f"max_tokens is {asked}: the service allows {most} at most.")
    given = service.library.pager.settings.max_tokens if asked is None else asked
    return most if given is None else min(most, given)


def _strategy(name: str, family: Family) -> StrategyJson:
    heeds: list[Knob] = ["max_nodes", "max_tokens"]
    if family.weighs:
        heeds.append("mmr_lambda")
    form: StrategyJson = {"name": name, "heeds": heeds, "argument": None, "problem": None}
    if (argument := family.argument) is not None:
        form["argument"] = {"name": argument.field, "kind": "a number", "sample": argument.sample}
    try:
        if estimates(make_strategy(name, mmr_lambda=1.0)):
            heeds += ["sufficiency", "fill"]
    except MissingExtraError as error:
        form["problem"] = str(error)
    return form


# ---- skills


@router.get("/v1/skills", response_model=json_type(Skills), tags=["skills"], summary="List the skills")
async def skills(service: ServiceOf) -> Response:
    """Return the skills that can be paged by name, and those that were found but cannot."""

    def make() -> JsonObject:
        usable = service.library.skills()
        left_out = [found for found in service.library.found() if found.problem or found.shadowed_by]
        return to_json(Skills(usable, left_out))

    return await service.respond(make)


@router.get(
    f"{SKILL}/outline", response_model=OutlineJson, tags=["skills"], summary="Headings and nodes of a skill"
)
async def outline(name: str, asked: Scope, service: ServiceOf) -> Response:
    """Return a skill's headings and nodes in document order."""
    library = service.library
    return await service.respond(lambda: to_json(library.index(name, scope=asked.scope), "nodes", "headings"))


@router.get(f"{SKILL}/graph", response_model=GraphJson, tags=["skills"], summary="Nodes and edges of a skill")
async def graph(name: str, asked: Scope, service: ServiceOf) -> Response:
    """Return a skill's nodes and the edges between them, of all four kinds."""
    library = service.library
    return await service.respond(lambda: to_json(library.index(name, scope=asked.scope), "nodes", "edges"))


# ---- the service itself


@public.get("/livez", tags=["service"], summary="Whether the service is alive")
async def alive() -> dict[str, str]:
    """Return `ok`, even if every thread is busy: a service that does not should be started again."""
    return {"status": "ok"}


@public.get("/readyz", tags=["service"], summary="Whether the service can take requests")
async def ready(service: ServiceOf, response: Response) -> dict[str, bool]:
    """Return 200 if library and models are prepared and the store answers, else 503; the log says why."""
    is_ready = await service.ready()
    response.status_code = HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE
    return {"ready": is_ready}


@router.get(
    "/v1/about",
    response_model=dict[str, str | int | bool | None],
    tags=["service"],
    summary="What the service is and allows",
)
async def about(service: ServiceOf) -> Response:
    """Return the version, the models in use, and the permissions and limits."""

    def make() -> JsonObject:
        options, pager = service.options, service.library.pager
        return {
            "version": version("skillpager"),
            "encoder": pager.recipe.encoder,
            "classifier": pager.recipe.classifier,
            "token_counter": pager.recipe.token_counter,
            "tokens_exact": pager.token_counter.exact,
            "max_tokens": options.max_tokens,
            "max_request_bytes": MAX_REQUEST_BYTES,
        }

    return await service.respond(make)


# ---- the explorer; not part of the API, because it changes with the explorer's own files


@router.get("/v1/explorer/words", include_in_schema=False)
async def words(service: ServiceOf) -> Response:
    """Return the groups of features in plain words, and the chances of coverage that have words."""
    return await service.respond(lambda: {"signals": SIGNALS, "covered": [SURELY_UNCOVERED, LEAST_COVERED]})


@public.get("/", include_in_schema=False)
async def explorer() -> Response:
    """Return the explorer."""
    return FileResponse(WEB / "index.html")
