"""Values of `types.py` as JSON-ready dicts; every front end that speaks JSON speaks these.

Field names are those of the dataclasses; a node's and a gap's place is told flat, as `file`,
`start_line` and `end_line`. Fields are only ever added.
"""

__all__ = [
    "JsonObject",
    "JsonValue",
    "context_json",
    "edge_json",
    "entry_json",
    "error_json",
    "graph_json",
    "heading_json",
    "index_json",
    "node_json",
    "omission_json",
    "selection_json",
    "source_json",
    "summary_json",
    "token_reduction",
]

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from skillpager.types import (
    Edge,
    Heading,
    Node,
    Omission,
    Page,
    Pick,
    Selection,
    SkillIndex,
    Skip,
    Span,
    StoreEntry,
)

# covariant, so that a list of objects is a JSON value
JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
JsonObject: TypeAlias = dict[str, JsonValue]


def token_reduction(context: Page) -> float:
    """Return `1 - tokens / full_tokens`: what the page saves; negative if it is longer."""
    return 1.0 - context.tokens / context.full_tokens if context.full_tokens else 0.0


def context_json(context: Page) -> JsonObject:
    """Return a page with its nodes, gaps and selection (None for a page fault)."""
    return {
        "text": context.text,
        "style": str(context.style),
        "tokens": context.tokens,
        "full_tokens": context.full_tokens,
        "tokens_exact": context.tokens_exact,
        "token_reduction": token_reduction(context),
        "complete": context.complete,
        "sufficiency": context.sufficiency,
        "nodes": [node_json(node) for node in context.nodes],
        "omitted": [omission_json(omission) for omission in context.omitted],
        "selection": selection_json(context.selection) if context.selection else None,
    }


def node_json(node: Node) -> JsonObject:
    """Return a node: its role, place and exact source text."""
    return {
        "id": node.id,
        "type": str(node.type),
        "type_confidence": node.type_confidence,
        "kind": str(node.kind),
        **_place(node.span),
        "heading_path": list(node.heading_path),
        "tokens": node.tokens,
        "text": node.text,
    }


def omission_json(omission: Omission) -> JsonObject:
    """Return a gap of a page."""
    return {
        "file": omission.file,
        "start_line": omission.start_line,
        "end_line": omission.end_line,
        "nodes": list(omission.nodes),
        "types": {str(kind): count for kind, count in omission.types.items()},
        "tokens": omission.tokens,
        "known": omission.known,
    }


def selection_json(selection: Selection) -> JsonObject:
    """Return why each node was picked, in pick order, and why each other one was not; nodes by id."""
    budget = selection.budget
    return {
        "strategy": selection.strategy,
        "query": selection.query,
        "budget": {
            "max_nodes": budget.max_nodes,
            "max_tokens": budget.max_tokens,
            "sufficiency": budget.sufficiency,
        },
        "picks": [_pick(pick) for pick in selection.picks],
        "skipped": [_skip(skip) for skip in selection.skipped],
    }


def index_json(index: SkillIndex) -> JsonObject:
    """Return a skill's outline: headings and nodes in document order, without edges and embeddings."""
    return {
        **summary_json(index),
        "headings": [heading_json(heading) for heading in index.headings],
        "nodes": [node_json(node) for node in index.nodes],
    }


def summary_json(index: SkillIndex) -> JsonObject:
    """Return what an index is of and how it was made; `nodes` and `edges` are left to the others."""
    skill, recipe = index.skill, index.recipe
    return {
        "name": skill.name,
        "description": skill.description,
        "metadata": dict(skill.metadata),
        "root": None if skill.root is None else str(skill.root),
        "files": [file.path for file in skill.files],
        "warnings": list(skill.warnings),
        "full_tokens": index.full_tokens,
        "token_counter": recipe.token_counter,
        "encoder": recipe.encoder,
        "classifier": recipe.classifier,
        "key": index.key,
    }


def graph_json(index: SkillIndex) -> JsonObject:
    """Return a skill's graph: its nodes in document order and its edges by node id."""
    return {
        **summary_json(index),
        "nodes": [node_json(node) for node in index.nodes],
        "edges": [edge_json(edge, index) for edge in index.edges],
    }


def source_json(index: SkillIndex) -> JsonObject:
    """Return a skill's files exactly as their author wrote them; `body_start` is an offset in characters."""
    return {
        **summary_json(index),
        "sources": [
            {"path": file.path, "text": file.text, "digest": file.digest, "body_start": file.body_start}
            for file in index.skill.files
        ],
    }


def edge_json(edge: Edge, index: SkillIndex) -> JsonObject:
    """Return an edge of `index`, its ends as node ids."""
    return {
        "source": index.nodes[edge.source].id,
        "target": index.nodes[edge.target].id,
        "kind": str(edge.kind),
        "weight": edge.weight,
    }


def heading_json(heading: Heading) -> JsonObject:
    """Return a heading."""
    return {"level": heading.level, "title": heading.title, **_place(heading.span)}


def entry_json(entry: StoreEntry) -> JsonObject:
    """Return a stored index; times are Unix times."""
    return {
        "key": entry.key,
        "name": entry.name,
        "root": entry.root,
        "nodes": entry.nodes,
        "size": entry.size,
        "created": entry.created,
        "used": entry.used,
    }


def error_json(error: BaseException) -> JsonObject:
    """Return `{"error": {"type", "message"}}`; the type is the name of the exception's class."""
    return {"error": {"type": type(error).__name__, "message": str(error)}}


def _pick(pick: Pick) -> JsonObject:
    return {
        "node": pick.node.id,
        "rank": pick.rank,
        "relevance": pick.relevance,
        "redundancy": pick.redundancy,
        "marginal": pick.marginal,
        "tokens": pick.tokens,
        "total_tokens": pick.total_tokens,
        "sufficiency": pick.sufficiency,
    }


def _skip(skip: Skip) -> JsonObject:
    return {
        "node": skip.node.id,
        "reason": str(skip.reason),
        "relevance": skip.relevance,
        "redundancy": skip.redundancy,
        "marginal": skip.marginal,
    }


def _place(span: Span) -> JsonObject:
    return {"file": span.file, "start_line": span.start_line, "end_line": span.end_line}
