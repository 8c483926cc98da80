"""Values of `types.py` as JSON-ready dicts, in the forms that `json_types.py` declares."""

from dataclasses import asdict
from typing import cast

from skillpager import json_types as forms
from skillpager.json_types import JsonObject as JsonObject
from skillpager.json_types import JsonValue as JsonValue
from skillpager.types import Edge, Heading, Node, Omission, Page, Selection, SkillIndex, Span, StoreEntry


def token_reduction(page: Page) -> float:
    """Return the share of tokens that a page saves, `1 - tokens / full_tokens`; negative if it is longer."""
    return 1.0 - page.tokens / page.full_tokens if page.full_tokens else 0.0


def context_json(page: Page) -> forms.PageJson:
    """Return a page with its nodes, gaps and selection (None for a page fault)."""
    return {
        "text": page.text,
        "style": page.style.value,
        "tokens": page.tokens,
        "full_tokens": page.full_tokens,
        "tokens_exact": page.tokens_exact,
        "token_reduction": token_reduction(page),
        "complete": page.complete,
        "sufficiency": page.sufficiency,
        "covered": page.covered,
        "least_tokens": page.least_tokens,
        "nodes": [node_json(node) for node in page.nodes],
        "omitted": [omission_json(omission) for omission in page.omitted],
        "selection": selection_json(page.selection) if page.selection else None,
    }


def node_json(node: Node) -> forms.NodeJson:
    """Return a node: its type, place and exact source text."""
    return {
        "id": node.id,
        "type": node.type.value,
        "type_confidence": node.type_confidence,
        "kind": str(node.kind),
        **_place(node.span),
        "heading_path": list(node.heading_path),
        "tokens": node.tokens,
        "text": node.text,
    }


def omission_json(omission: Omission) -> forms.OmissionJson:
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


def selection_json(selection: Selection) -> forms.SelectionJson:
    """Return picks in pick order and skipped nodes in document order, with their numbers; nodes by id."""
    picks: list[forms.PickJson] = [
        {
            "node": pick.node.id,
            "rank": pick.rank,
            "relevance": pick.relevance,
            "redundancy": pick.redundancy,
            "marginal": pick.marginal,
            "tokens": pick.tokens,
            "total_tokens": pick.total_tokens,
            "sufficiency": pick.sufficiency,
        }
        for pick in selection.picks
    ]
    skipped: list[forms.SkipJson] = [
        {
            "node": skip.node.id,
            "reason": str(skip.reason),
            "relevance": skip.relevance,
            "redundancy": skip.redundancy,
            "marginal": skip.marginal,
        }
        for skip in selection.skipped
    ]
    budget = cast(forms.BudgetJson, asdict(selection.budget))
    return {
        "strategy": selection.strategy,
        "query": selection.query,
        "budget": budget,
        "score_kind": str(selection.score_kind),
        "covered": selection.covered,
        "picks": picks,
        "skipped": skipped,
    }


def summary_json(index: SkillIndex) -> forms.SummaryJson:
    """Return the skill's metadata and how its index was made, without nodes and edges."""
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


def index_json(index: SkillIndex) -> forms.OutlineJson:
    """Return a skill's outline: headings and nodes in document order, without edges and embeddings."""
    headings = [heading_json(heading) for heading in index.headings]
    return {**summary_json(index), "headings": headings, "nodes": [node_json(node) for node in index.nodes]}


def graph_json(index: SkillIndex) -> forms.GraphJson:
    """Return a skill's graph: its nodes in document order and its edges by node id."""
    nodes = [node_json(node) for node in index.nodes]
    return {**summary_json(index), "nodes": nodes, "edges": [edge_json(edge, index) for edge in index.edges]}


def source_json(index: SkillIndex) -> forms.SourceJson:
    """Return a skill's files exactly as their author wrote them; `body_start` is an offset in characters."""
    sources = [cast(forms.FileJson, asdict(file)) for file in index.skill.files]
    return {**summary_json(index), "sources": sources}


def edge_json(edge: Edge, index: SkillIndex) -> forms.EdgeJson:
    """Return an edge of `index`, its ends as node ids."""
    source, target = index.nodes[edge.source].id, index.nodes[edge.target].id
    return {"source": source, "target": target, "kind": edge.kind.value, "weight": edge.weight}


def heading_json(heading: Heading) -> forms.HeadingJson:
    """Return a heading."""
    return {"level": heading.level, "title": heading.title, **_place(heading.span)}


def entry_json(entry: StoreEntry) -> forms.EntryJson:
    """Return a stored index; times are Unix times."""
    return cast(forms.EntryJson, asdict(entry))


def error_json(error: BaseException) -> forms.FailureJson:
    """Return `{"error": {"type", "message"}}`; the type is the name of the exception's class."""
    return {"error": {"type": type(error).__name__, "message": str(error)}}


def _place(span: Span) -> forms.PlaceJson:
    return {"file": span.file, "start_line": span.start_line, "end_line": span.end_line}
