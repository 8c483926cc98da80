"""JSON forms of the value types: complete, plain, and equal to what they are made of."""

import json
import math
from dataclasses import fields, replace
from pathlib import Path

from conftest import SAMPLES
from index_builder import build_index
from skillpager import SkillPager
from skillpager.errors import SkillError
from skillpager.library import FoundSkill, found_json
from skillpager.output import json as serialize
from skillpager.types import Budget, EdgeKind, NodeType, Omission, Page, Pick, Skip, StoreEntry, Style

INDEX = build_index(12)


def context(**changes: object) -> Page:
    """Return a small page."""
    made = Page("text", Style.MARKED, INDEX.nodes[:2], 25, 100, True, (), False, None)
    return replace(made, **changes)  # type: ignore[arg-type]


def is_json(value: object) -> bool:
    """Tell whether `value` is the same after a trip through JSON, which holds for plain values only."""
    return bool(json.loads(json.dumps(value, allow_nan=False)) == value)


def test_context_of_a_real_page(hashing_pager: SkillPager) -> None:
    page = hashing_pager.page("# A\n\nOne sentence.\n\nTwo more.\n\nThen three.\n", "two", max_nodes=1)
    form = serialize.context_json(page)
    assert is_json(form)
    assert form["text"] == page.text
    assert form["style"] == "marked"
    assert form["complete"] is page.complete
    assert form["sufficiency"] is None  # MMR estimates none
    assert form["nodes"] == [serialize.node_json(node) for node in page.nodes]
    assert page.selection is not None
    assert form["selection"] == serialize.selection_json(page.selection)


def test_selection_tells_each_number_of_picks_and_skips(hashing_pager: SkillPager) -> None:
    page = hashing_pager.page("# A\n\nOne sentence.\n\nTwo more.\n\nThen three.\n", "two", max_nodes=1)
    assert page.selection is not None
    form = serialize.selection_json(page.selection)
    assert form["query"] == "two"
    assert form["budget"] == {item.name: getattr(page.selection.budget, item.name) for item in fields(Budget)}
    assert form["budget"] == {"max_nodes": 1, "max_tokens": None, "sufficiency": None, "fill": False}
    assert (form["score_kind"], form["covered"]) == ("mmr_margin", None)
    [pick] = page.selection.picks
    expected = {item.name: getattr(pick, item.name) for item in fields(Pick)}
    assert form["picks"] == [{**expected, "node": pick.node.id}]
    assert len(page.selection.skipped) == 2
    skip = page.selection.skipped[0]
    expected = {item.name: getattr(skip, item.name) for item in fields(Skip)}
    skips = form["skipped"]
    assert isinstance(skips, list)
    assert skips[0] == {**expected, "node": skip.node.id, "reason": "max_nodes"}


def test_a_page_that_estimates_tells_its_target_and_each_chance(pager: SkillPager) -> None:
    page = pager.page(SAMPLES / "postgres-backup", "restore one table", sufficiency=0.5, max_tokens=900)
    form = serialize.context_json(page)
    assert is_json(form)
    assert page.sufficiency is not None
    assert form["sufficiency"] == page.sufficiency
    assert page.selection is not None
    told = serialize.selection_json(page.selection)
    total = len(page.selection.picks) + len(page.selection.skipped)
    assert told["budget"] == {"max_nodes": total, "max_tokens": 900, "sufficiency": 0.5, "fill": False}
    assert told["score_kind"] == "need"
    assert isinstance(told["picks"], list)
    assert [pick["sufficiency"] for pick in told["picks"]] == [
        pick.sufficiency for pick in page.selection.picks
    ]
    assert all(type(pick["sufficiency"]) is float for pick in told["picks"])


def test_page_fault_has_no_selection() -> None:
    assert serialize.context_json(context())["selection"] is None


def test_token_reduction_is_the_share_saved() -> None:
    assert serialize.token_reduction(context()) == 0.75
    assert serialize.token_reduction(context(tokens=150)) == -0.5
    assert serialize.token_reduction(context(tokens=0, full_tokens=0)) == 0.0


def test_node_tells_its_place_flat() -> None:
    node = INDEX.nodes[3]
    form = serialize.node_json(node)
    assert is_json(form)
    assert (form["file"], form["start_line"], form["end_line"]) == (
        node.span.file,
        node.span.start_line,
        node.span.end_line,
    )
    assert form["heading_path"] == list(node.heading_path)
    assert set(form) >= {"id", "type", "type_confidence", "kind", "tokens", "text"}


def test_omission() -> None:
    gap = Omission("SKILL.md", 3, 9, ("n1", "n2"), {NodeType.STEP: 2}, 40)
    assert serialize.omission_json(gap) == {
        "file": "SKILL.md",
        "start_line": 3,
        "end_line": 9,
        "nodes": ["n1", "n2"],
        "types": {"step": 2},
        "tokens": 40,
        "known": False,
    }


def test_index_and_graph_name_the_same_skill() -> None:
    outline, graph = serialize.index_json(INDEX), serialize.graph_json(INDEX)
    assert is_json(outline)
    assert is_json(graph)
    assert outline["nodes"] == graph["nodes"]
    assert outline["headings"] == [serialize.heading_json(heading) for heading in INDEX.headings]
    assert outline["key"] == graph["key"] == INDEX.key
    assert "edges" not in outline


def test_edges_name_their_ends_by_id() -> None:
    edge = next(edge for edge in INDEX.edges if edge.kind is EdgeKind.SEQUENCE)
    assert serialize.edge_json(edge, INDEX) == {
        "source": f"n{edge.source}",
        "target": f"n{edge.target}",
        "kind": "sequence",
        "weight": edge.weight,
    }


def test_entry_holds_every_field() -> None:
    entry = StoreEntry("k", "name", "/root", 3, 1024, 1.5, 2.5)
    assert serialize.entry_json(entry) == {item.name: getattr(entry, item.name) for item in fields(entry)}


def test_found_skill_with_and_without_shadow() -> None:
    shadowed = FoundSkill("a", "b", Path("x/a"), Path("y/a"), None)
    assert found_json(shadowed)["shadowed_by"] == str(Path("y/a"))
    broken = FoundSkill("a", "", Path("x/a"), None, "it is empty")
    assert found_json(broken) == {
        "name": "a",
        "description": "",
        "path": str(Path("x/a")),
        "shadowed_by": None,
        "problem": "it is empty",
        "user_only": False,
    }


def test_error_tells_type_and_message() -> None:
    assert serialize.error_json(SkillError("no")) == {"error": {"type": "SkillError", "message": "no"}}


def test_scores_are_numbers_json_knows(hashing_pager: SkillPager) -> None:
    page = hashing_pager.page("One.\n\nTwo.\n\nThree.\n", "two", max_nodes=1)
    assert page.selection is not None
    for pick in page.selection.picks:
        assert type(pick.relevance) is float
        assert math.isfinite(pick.relevance)


def test_a_source_is_the_files_as_they_are(hashing_pager: SkillPager) -> None:
    index = hashing_pager.index(SAMPLES / "kubernetes-debugging")
    form = serialize.source_json(index)
    assert is_json(form)
    sources = form.pop("sources")
    assert form == serialize.summary_json(index)
    assert sources == [
        {"path": file.path, "text": file.text, "digest": file.digest, "body_start": file.body_start}
        for file in index.skill.files
    ]
