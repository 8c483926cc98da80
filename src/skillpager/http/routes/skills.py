"""Routes on skills: which there are, and what is inside one."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from skillpager.http.answers import GraphAnswer, NodesAnswer, OutlineAnswer, SkillsAnswer, SourceAnswer
from skillpager.http.requests import NodesQuery, ScopeQuery
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
from skillpager.library import found_json
from skillpager.output.json import (
    JsonObject,
    graph_json,
    index_json,
    node_json,
    source_json,
    summary_json,
)
from skillpager.pages.addresses import find_nodes
from skillpager.types import SkillIndex

router = APIRouter(prefix="/v1/skills", tags=["skills"])

Form = Callable[[SkillIndex], JsonObject]


@router.get("", response_model=SkillsAnswer, summary="List the skills")
async def skills(request: Request, service: ServiceOf) -> Response:
    """Return the skills that can be paged by name, and those that were found and cannot."""
    return await respond(service, request, partial(_skills, service))


# a name is whatever the front matter says, a slash included
@router.get("/{name:path}/outline", response_model=OutlineAnswer, summary="Headings and nodes of a skill")
async def outline(
    name: str, asked: Annotated[ScopeQuery, Query()], request: Request, service: ServiceOf
) -> Response:
    """Return a skill's headings and nodes in document order."""
    return await respond(service, request, partial(_told, service, name, asked.scope, index_json))


@router.get("/{name:path}/graph", response_model=GraphAnswer, summary="Nodes and edges of a skill")
async def graph(
    name: str, asked: Annotated[ScopeQuery, Query()], request: Request, service: ServiceOf
) -> Response:
    """Return a skill's nodes and the edges between them, of all four kinds."""
    return await respond(service, request, partial(_told, service, name, asked.scope, graph_json))


@router.get("/{name:path}/source", response_model=SourceAnswer, summary="Files of a skill")
async def source(
    name: str, asked: Annotated[ScopeQuery, Query()], request: Request, service: ServiceOf
) -> Response:
    """Return a skill's files exactly as their author wrote them."""
    return await respond(service, request, partial(_told, service, name, asked.scope, source_json))


@router.get("/{name:path}/nodes", response_model=NodesAnswer, summary="Nodes of a skill")
async def nodes(
    name: str, asked: Annotated[NodesQuery, Query()], request: Request, service: ServiceOf
) -> Response:
    """Return some of a skill's nodes, or all."""
    form = partial(_nodes_json, asked.nodes)
    return await respond(service, request, partial(_told, service, name, asked.scope, form))


def _skills(service: Service, seen: str | None) -> Answer:
    usable = service.library.skills()
    left_out = [found for found in service.library.found() if found not in usable]
    told = {"skills": [found_json(found) for found in usable]}
    return answer_json({**told, "left_out": [found_json(found) for found in left_out]}, seen)


def _told(service: Service, name: str, scope: str | None, form: Form, seen: str | None) -> Answer:
    """Return what `form` tells of a skill; nothing is rendered for a client that has it."""
    index = service.library.index(name, scope=scope)
    # a tag belongs to a URL, which says the form; the root is no part of the key and still told
    etag = make_etag(service.version, index.key, str(index.skill.root))
    return Answer(None if is_seen(etag, seen) else encode(form(index)), etag)


def _nodes_json(addresses: list[str], index: SkillIndex) -> JsonObject:
    chosen = find_nodes(index, addresses) if addresses else range(len(index.nodes))
    return {**summary_json(index), "nodes": [node_json(index.nodes[ordinal]) for ordinal in chosen]}
