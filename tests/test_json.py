"""JSON of the values: complete, plain, and of the types that are made of the same classes."""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ConfigDict, TypeAdapter

from conftest import SAMPLES
from index_builder import build_index
from skillpager import SkillPager
from skillpager.json_types import json_type, to_json
from skillpager.library import FoundSkill, Library, LibraryPage, Route
from skillpager.types import EdgeKind, NodeType, Omission, Page, Pick, SkillIndex, Skip, Style

INDEX = build_index(12)


def checked(form: Any, kind: Any) -> Any:
    """Return JSON after a trip through text and the type that is made for pydantic; further fields are refused."""
    told = json.loads(json.dumps(form, allow_nan=False))
    assert told == form
    # a TypedDict takes the configuration of what it stands in, here of a list
    adapter = TypeAdapter(list[kind], config=ConfigDict(extra="forbid", strict=True))
    assert adapter.validate_python([told]) == [told]
    return told


def test_a_page_tells_each_number_of_its_selection(pager: SkillPager) -> None:
    page = pager.page(SAMPLES / "postgres-backup", "restore one table", sufficiency=0.5, max_tokens=900)
    form = checked(to_json(page), json_type(Page))
    assert form["token_reduction"] == page.token_reduction == 1 - page.tokens / page.full_tokens
    assert page.selection is not None
    told = form["selection"]
    picks, skipped = page.selection.picks, page.selection.skipped
    total = len(picks) + len(skipped)
    assert told["budget"] == {"max_nodes": total, "max_tokens": 900, "sufficiency": 0.5, "fill": False}
    assert told["score_kind"] == "need"
    for kind, ours, theirs in ((Pick, picks, told["picks"]), (Skip, skipped, told["skipped"])):
        for one, other in zip(ours, theirs, strict=True):
            expected = {item.name: getattr(one, item.name) for item in fields(kind)}
            assert other == {**expected, "node": one.node.id}


def test_what_is_not_known_is_null() -> None:
    page = Page("text", Style.MARKED, INDEX.nodes[:2], 25, 100, True, (), False, None)
    form = checked(to_json(page), json_type(Page))
    assert (form["selection"], form["sufficiency"], form["style"]) == (None, None, "marked")
    assert replace(page, tokens=150).token_reduction == -0.5
    assert replace(page, tokens=0, full_tokens=0).token_reduction == 0.0


def test_a_node_tells_its_place_flat() -> None:
    node = INDEX.nodes[3]
    assert to_json(node) == {
        "id": node.id,
        "type": node.type.value,
        "type_confidence": node.type_confidence,
        "kind": node.kind.value,
        "file": node.span.file,
        "start_line": node.span.start_line,
        "end_line": node.span.end_line,
        "heading_path": list(node.heading_path),
        "tokens": node.tokens,
        "text": node.text,
    }


def test_a_gap() -> None:
    gap = Omission("SKILL.md", 3, 9, ("n1", "n2"), {NodeType.STEP: 2}, 40)
    assert to_json(gap) == {
        **{"file": "SKILL.md", "start_line": 3, "end_line": 9},
        **{"nodes": ["n1", "n2"], "types": {"step": 2}, "tokens": 40, "known": False},
    }


@pytest.mark.parametrize("parts", [(), ("nodes", "headings"), ("nodes", "edges")])
def test_parts_of_an_index_on_request(parts: tuple[str, ...]) -> None:
    form = checked(to_json(INDEX, *parts), json_type(SkillIndex, *parts))
    summary = ("name", "description", "metadata", "files", "root", "warnings", "classifier", "encoder")
    assert set(form) == {*summary, "token_counter", "key", "full_tokens", *parts}
    assert form["files"] == [file.path for file in INDEX.skill.files]
    assert all(len(form[part]) == len(getattr(INDEX, part)) for part in parts)


def test_headings_and_edges() -> None:
    form: Any = to_json(INDEX, "headings", "edges")
    heading = INDEX.headings[0]
    place = {"file": heading.span.file, "start_line": heading.span.start_line}
    assert form["headings"][0].items() >= {"level": heading.level, "title": heading.title, **place}.items()
    assert {"text", "kind"}.isdisjoint(form["headings"][0])
    at = next(at for at, edge in enumerate(INDEX.edges) if edge.kind is EdgeKind.SEQUENCE)
    edge = INDEX.edges[at]
    ends = {"source": f"n{edge.source}", "target": f"n{edge.target}"}
    assert form["edges"][at] == {**ends, "kind": "sequence", "weight": edge.weight}


def test_a_found_skill_with_and_without_shadow() -> None:
    shadowed = FoundSkill("a", "b", Path("x/a"), Path("y/a"), None, "digest", folder=Path("x"))
    assert to_json(shadowed) == {
        **{"name": "a", "description": "b", "path": str(Path("x/a")), "shadowed_by": str(Path("y/a"))},
        **{"problem": None, "user_only": False},
    }
    assert to_json(replace(shadowed, shadowed_by=None))["shadowed_by"] is None


def test_routes_and_pages_of_several_skills(pager: SkillPager) -> None:
    library = Library(pager, [SAMPLES])
    route = library.route("restore one table")
    form = checked(to_json(route), json_type(Route))
    best = form["skills"][0]
    assert (best["name"], best["folder"]) == (route.skills[0].skill.name, str(SAMPLES))
    assert best["chance"] == round(route.skills[0].chance, 4)
    page = library.page("restore one table")
    form = checked(to_json(page), json_type(LibraryPage))
    assert form["parts"][0]["page"]["text"] == page.parts[0].page.text
    assert form["has_fit"] is True
