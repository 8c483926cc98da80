"""Routes for the list of skills, and for the outline, graph, files and nodes of one."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response
from typing_extensions import TypedDict

from skillpager.http.requests import NodesQuery, ScopeQuery
from skillpager.http.service import ResponderOf
from skillpager.json_types import GraphJson, NodesJson, OutlineJson, SkillJson, SourceJson
from skillpager.library import found_json
from skillpager.output.json import graph_json, index_json, node_json, source_json, summary_json
from skillpager.pages.addresses import find_nodes
from skillpager.types import SkillIndex

router = APIRouter(prefix="/v1/skills", tags=["skills"])

# a skill's name comes from its front matter and may contain a slash
SKILL = "/{name:path}"
Scoped = Annotated[ScopeQuery, Query()]


class SkillsJson(TypedDict):
    """The skills that can be paged, and those that cannot because they are shadowed or not readable."""

    skills: list[SkillJson]
    left_out: list[SkillJson]


@router.get("", response_model=SkillsJson, summary="List the skills")
async def skills(responder: ResponderOf) -> Response:
    """Return the skills that can be paged by name, and those that were found but cannot."""
    library = responder.service.library

    def make() -> SkillsJson:
        usable = library.skills()
        left_out = [found for found in library.found() if found.problem or found.shadowed_by]
        return {"skills": list(map(found_json, usable)), "left_out": list(map(found_json, left_out))}

    return await responder.send(make)


@router.get(f"{SKILL}/outline", response_model=OutlineJson, summary="Headings and nodes of a skill")
async def outline(name: str, asked: Scoped, responder: ResponderOf) -> Response:
    """Return a skill's headings and nodes in document order."""
    return await responder.send_index(name, asked.scope, index_json)


@router.get(f"{SKILL}/graph", response_model=GraphJson, summary="Nodes and edges of a skill")
async def graph(name: str, asked: Scoped, responder: ResponderOf) -> Response:
    """Return a skill's nodes and the edges between them, of all four kinds."""
    return await responder.send_index(name, asked.scope, graph_json)


@router.get(f"{SKILL}/source", response_model=SourceJson, summary="Files of a skill")
async def source(name: str, asked: Scoped, responder: ResponderOf) -> Response:
    """Return a skill's files exactly as their author wrote them."""
    return await responder.send_index(name, asked.scope, source_json)


@router.get(f"{SKILL}/nodes", response_model=NodesJson, summary="Nodes of a skill")
async def nodes(name: str, asked: Annotated[NodesQuery, Query()], responder: ResponderOf) -> Response:
    """Return some or all of a skill's nodes."""

    def form(index: SkillIndex) -> NodesJson:
        chosen = find_nodes(index, asked.nodes) if asked.nodes else range(len(index.nodes))
        return {**summary_json(index), "nodes": [node_json(index.nodes[ordinal]) for ordinal in chosen]}

    return await responder.send_index(name, asked.scope, form)
