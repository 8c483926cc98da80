"""Routes for the list of skills, and for the outline, graph, files and nodes of one."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from skillpager.http.requests import NodesQuery, ScopeQuery
from skillpager.http.service import ResponderOf
from skillpager.json_types import JsonObject, json_type, to_json
from skillpager.library import FoundSkill
from skillpager.pages.addresses import find_nodes
from skillpager.types import SkillIndex, SourceFile

router = APIRouter(prefix="/v1/skills", tags=["skills"])

# a skill's name comes from its front matter and may contain a slash
SKILL = "/{name:path}"
Scoped = Annotated[ScopeQuery, Query()]


OutlineJson = json_type(SkillIndex, "nodes", "headings", name="Outline")
GraphJson = json_type(SkillIndex, "nodes", "edges", name="Graph")
NodesJson = json_type(SkillIndex, "nodes", name="Nodes")
SourceJson = json_type(SkillIndex, name="Source", sources=list[json_type(SourceFile)])  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class Skills:
    """The skills that can be paged, and those that cannot because they are shadowed or not readable."""

    skills: list[FoundSkill]
    left_out: list[FoundSkill]


@router.get("", response_model=json_type(Skills), summary="List the skills")
async def skills(responder: ResponderOf) -> Response:
    """Return the skills that can be paged by name, and those that were found but cannot."""
    library = responder.service.library

    def make() -> JsonObject:
        usable = library.skills()
        left_out = [found for found in library.found() if found.problem or found.shadowed_by]
        return to_json(Skills(usable, left_out))

    return await responder.send(make)


@router.get(f"{SKILL}/outline", response_model=OutlineJson, summary="Headings and nodes of a skill")
async def outline(name: str, asked: Scoped, responder: ResponderOf) -> Response:
    """Return a skill's headings and nodes in document order."""
    return await responder.send_index(name, asked.scope, lambda index: to_json(index, "nodes", "headings"))


@router.get(f"{SKILL}/graph", response_model=GraphJson, summary="Nodes and edges of a skill")
async def graph(name: str, asked: Scoped, responder: ResponderOf) -> Response:
    """Return a skill's nodes and the edges between them, of all four kinds."""
    return await responder.send_index(name, asked.scope, lambda index: to_json(index, "nodes", "edges"))


@router.get(f"{SKILL}/source", response_model=SourceJson, summary="Files of a skill")
async def source(name: str, asked: Scoped, responder: ResponderOf) -> Response:
    """Return a skill's files exactly as their author wrote them."""

    def form(index: SkillIndex) -> JsonObject:
        return {**to_json(index), "sources": list(map(to_json, index.skill.files))}

    return await responder.send_index(name, asked.scope, form)


@router.get(f"{SKILL}/nodes", response_model=NodesJson, summary="Nodes of a skill")
async def nodes(name: str, asked: Annotated[NodesQuery, Query()], responder: ResponderOf) -> Response:
    """Return some or all of a skill's nodes."""

    def form(index: SkillIndex) -> JsonObject:
        chosen = find_nodes(index, asked.nodes) if asked.nodes else range(len(index.nodes))
        return {**to_json(index), "nodes": [to_json(index.nodes[ordinal]) for ordinal in chosen]}

    return await responder.send_index(name, asked.scope, form)
