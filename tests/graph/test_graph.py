"""Edges: each kind on small documents, and what holds for all of them."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from _pytest.mark import ParameterSet
from hypothesis import given, settings
from hypothesis import strategies as st

from golden import check, edges_text
from messages import raises
from node_lines import TYPES, bag_of_words, document
from processor_time import assert_within
from skillpager import SkillPager
from skillpager.graph import edges as graph
from skillpager.graph.edges import (
    condition_edges,
    infer_edges,
    reference_edges,
    semantic_edges,
    sequence_edges,
)
from skillpager.types import Edge, EdgeKind, FloatArray, NodeType

FIXTURES = Path(__file__).parents[1] / "fixtures" / "graph"


def pairs(edges: Sequence[Edge]) -> set[tuple[int, int]]:
    return {(edge.source, edge.target) for edge in edges}


def cases(text: str) -> list[ParameterSet]:
    """Return source and edges of each document below a line `---- its name: the edges as 0-1 2-3`."""
    found = []
    for case in text.split("---- ")[1:]:
        head, _, source = case.partition("\n")
        name, _, edges = head.partition(":")
        expected = {tuple(map(int, edge.split("-"))) for edge in edges.split()}
        found.append(pytest.param(source, expected, id=name))
    return found


# ---- sequence


def test_sequence_links_neighbours_within_a_file() -> None:
    nodes = document("""
        one
        two
        three
        === references/more.md
        four
        five
    """)
    assert [(e.source, e.target) for e in sequence_edges(nodes)] == [(0, 1), (1, 2), (3, 4)]
    assert {(e.kind, e.weight) for e in sequence_edges(nodes)} == {(EdgeKind.SEQUENCE, 1.0)}


@pytest.mark.parametrize("source", ["", "alone"])
def test_one_node_or_none_has_no_edges(source: str) -> None:
    nodes = document(source)
    assert infer_edges(nodes, np.ones((len(nodes), 1), dtype=np.float32)) == ()


# ---- semantic


def test_semantic_links_the_earlier_to_the_later_of_similar_nodes() -> None:
    nodes = document("""
        restart the server now
        bake a cake
        now restart the server
    """)
    assert semantic_edges(bag_of_words(nodes)) == (Edge(0, 2, EdgeKind.SEMANTIC, 1.0),)


@pytest.mark.parametrize(
    ("cosine", "linked"), [(0.8501, True), (0.85, False), (0.8499, False), (-1.0, False)]
)
def test_the_cosine_must_exceed_the_threshold(cosine: float, linked: bool) -> None:
    rows = np.array([[1, 0], [cosine, np.sqrt(1 - cosine**2)]], dtype=np.float32)
    edges = semantic_edges(rows)
    assert [edge.weight for edge in edges] == ([pytest.approx(cosine, abs=1e-6)] if linked else [])


def test_a_pair_at_the_threshold_is_left_out_beside_one_above_it() -> None:
    rows = np.array([[1, 0], [0.85, np.sqrt(1 - 0.85**2)], [1, 0]], dtype=np.float32)
    assert pairs(semantic_edges(rows)) == {(0, 2)}


def clustered_rows(count: int, *, seed: int) -> FloatArray:
    """Return unit rows in loose groups, so that many cosines lie on either side of the threshold."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((max(count // 8, 1), 16))
    rows = centres[random.integers(len(centres), size=count)] + 0.45 * random.standard_normal((count, 16))
    unit: FloatArray = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def naive_neighbours(rows: FloatArray, *, threshold: float, most: int) -> dict[tuple[int, int], float]:
    """Return what `semantic_edges` must, pair by pair, with the weights."""
    found = {}
    for i in range(len(rows)):
        cosines = {j: round(float(rows[i] @ rows[j]), 6) for j in range(i + 1, len(rows))}
        close = sorted((j for j in cosines if cosines[j] > threshold), key=lambda j: (-cosines[j], j))
        found |= {(i, j): cosines[j] for j in close[:most]}
    return found


@pytest.mark.parametrize("block", [1, 7, 64, 1024])
@pytest.mark.parametrize("most", [1, 3, 200])
def test_semantic_edges_equal_a_naive_search(block: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "BLOCK_ROWS", block)
    rows = clustered_rows(150, seed=block)
    expected = naive_neighbours(rows, threshold=0.85, most=most)
    assert len(expected) > 50
    monkeypatch.setattr(graph, "MAX_NEIGHBOURS", most)
    edges = semantic_edges(rows)
    assert {(edge.source, edge.target): edge.weight for edge in edges} == pytest.approx(expected, abs=2e-6)


def test_a_repeated_line_keeps_its_nearest_repetitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "BLOCK_ROWS", 50)
    nodes = document("one two three four five six seven\none two three four five six seven eight\n" * 150)
    monkeypatch.setattr(graph, "MAX_NEIGHBOURS", 4)
    found = [(edge.source, edge.target) for edge in semantic_edges(bag_of_words(nodes))]
    # first those that are equal, which are every other one, then the similar ones
    nearest = [sorted(range(i + 1, 300), key=lambda j: (j - i) % 2)[:4] for i in range(300)]
    assert found == [(i, j) for i, others in enumerate(nearest) for j in others]


def test_no_weight_is_above_one() -> None:
    rows = np.full((2, 1), 1.001, dtype=np.float32)  # a little longer than a unit row
    assert [edge.weight for edge in semantic_edges(rows)] == [1.0]


def test_rows_must_match_nodes() -> None:
    with raises(ValueError):
        infer_edges(document("a\nb"), np.ones((3, 4), dtype=np.float32))


# ---- reference


@pytest.mark.parametrize(
    ("heading", "text"),
    [
        ("Rate limits", "Mind the rate limits of the service."),
        *(("Rate limits", "Mind the **Rate**\tlimits."), ("Rate limits", "RATE-LIMITS apply.")),
        ("3.2 Rate limits", "Mind the rate limits."),
        ("🚦 Rate limits (important)", "Mind the rate limits."),
        *(("Step 3: Deploy it", "Then repeat step 3."), ("Phase 2", "Continue with Phase 2.")),
        ("Schritt 4: Prüfen", "Weiter mit Schritt 4."),
        ("The --dry-run flag", "Call it with `--dry-run` first."),
        *(("Using SessionStore", "`SessionStore` keeps it."), ("create_user", "Call `create_user(name)`.")),
        ("open() and close()", "Never forget close()."),
        ("settings.yaml", "It reads `conf/settings.yaml`."),
        ("Überprüfung der Ausgabe", "Danach folgt die Überprüfung der Ausgabe."),
        ("速率限制", "请先阅读速率限制部分。"),
        *(("Rate limits", "See [below](#rate-limits)."), ("What's new?", "See [the news](#whats-new).")),
        ("Überblick", "Siehe [hier](#%C3%BCberblick)."),
        ("Troubleshooting", "If it fails, see Troubleshooting."),
        ("Configuration", "Read the configuration section."),
    ],
)
def test_a_mention_of_a_heading_is_a_reference(heading: str, text: str) -> None:
    nodes = document(f"# Skill\n{text}\n## {heading}\nfirst node\nsecond node")
    assert reference_edges(nodes) == (Edge(0, 1, EdgeKind.REFERENCE, 1.0),)


@pytest.mark.parametrize(
    ("heading", "text"),
    [
        *(("Rate limits", "A pirate limits himself."), ("Rate limits", "The number is masked as xxxx here.")),
        ("Rate limits", "At that rate, limits are reached."),
        ("Rate limits", "At that rate. Limits are reached."),
        ("Rate limits", "Read https://example.com/rate-limits today."),
        ("Rate limits", "Read [this](https://example.com#rate-limits)."),
        *(("Rate limits", "See [this](#rate-limit)."), ("Overview", "This overview is short.")),
        *(("Usage", "Its usage is simple."), ("Notes", "Take notes."), ("Examples", "Examples follow.")),
        *(("References", "See references/api.md."), ("API", "Any API will do."), ("5", "Use 5 of them.")),
        *(("--verbose", "A verbose text."), ("安装", "请先安装。"), ("Go", "Go on.")),
    ],
)
def test_no_reference(heading: str, text: str) -> None:
    assert reference_edges(document(f"# Skill\n{text}\n## {heading}\nnode")) == ()


REFERENCES = (FIXTURES / "references.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(("source", "expected"), cases(REFERENCES))
def test_references(source: str, expected: set[tuple[int, int]]) -> None:
    edges = reference_edges(document(source))
    assert pairs(edges) == expected
    assert {(edge.kind, edge.weight) for edge in edges} <= {(EdgeKind.REFERENCE, 1.0)}


# ---- condition


CONDITIONS = (FIXTURES / "conditions.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(("source", "expected"), cases(CONDITIONS))
def test_conditions(source: str, expected: set[tuple[int, int]]) -> None:
    edges = condition_edges(document(source))
    assert pairs(edges) == expected
    assert {(edge.kind, edge.weight) for edge in edges} <= {(EdgeKind.CONDITION, 1.0)}


@pytest.mark.parametrize(
    "source",
    [
        "# A\nprecondition: Python 3.11\nstep: Go.",  # no cue
        "# A\nconcept: Requires Docker.\nstep: Go.",  # no precondition
        "# A\nprecondition: Requires Docker.\nexample: Go.",  # no step
        "# A\n## B\n### C\nprecondition: Requires Docker.\n## D\nstep: Go.",  # a step too far away
        "precondition: Requires Docker.\n=== other.md\nstep: Go.",  # another file
        "# Prerequisites\n## Tools\nprecondition: Docker\nstep: Go.",  # a cue in an outer heading
    ],
)
def test_no_condition(source: str) -> None:
    assert condition_edges(document(source)) == ()


# ---- all kinds

WORDS = ["Rate limits", "step 2", "`--dry-run`", "[x](#rate-limits)", "[y](b.md)"]
WORDS += ["Requires", "go", "🚀", "速率限制"]
TITLES = ["Rate limits", "Step 2: Run", "The --dry-run flag", "Overview", "速率限制", ""]


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Draw the source of a document whose nodes mention its headings at random."""
    lines = []
    for _ in range(draw(st.integers(0, 30))):
        text = " ".join(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)))
        heading = f"{'#' * draw(st.integers(1, 4))} {draw(st.sampled_from(TITLES))}"
        node = f"{draw(st.sampled_from(list(TYPES)))} {text}"
        lines.append(draw(st.sampled_from([heading, node, node, node, "=== b.md", "=== a.md"])))
    return "\n".join(lines)


@given(documents())
@settings(max_examples=150, deadline=None)
def test_edges_are_sound_sorted_and_distinct(source: str) -> None:
    nodes = document(source)
    edges = infer_edges(nodes, bag_of_words(nodes))
    keys = [(edge.source, edge.target, edge.kind) for edge in edges]
    assert keys == sorted(set(keys))
    for edge in edges:
        assert 0 <= edge.source < len(nodes)
        assert 0 <= edge.target < len(nodes)
        assert edge.source != edge.target
        assert edge.weight == 1.0 or edge.kind is EdgeKind.SEMANTIC
    conditions = [edge for edge in edges if edge.kind is EdgeKind.CONDITION]
    assert all(nodes[edge.source].type is NodeType.PRECONDITION for edge in conditions)
    assert all(nodes[edge.target].type is NodeType.STEP for edge in conditions)
    assert infer_edges(nodes, bag_of_words(nodes)) == edges


def test_many_headings_and_mentions_are_not_quadratic() -> None:
    sections = [
        f"## Topic number {i} of many\nprecondition: Requires topic number {i * 7 % 4000} of many.\nstep: Go."
        for i in range(4000)
    ]
    nodes = document("\n".join(sections))
    # about 0.3 s; comparing every node with every heading takes minutes
    assert_within(10, lambda: (reference_edges(nodes), condition_edges(nodes)))
    counts = Counter(edge.kind for edge in (*reference_edges(nodes), *condition_edges(nodes)))
    assert counts[EdgeKind.REFERENCE] > 3900
    assert counts[EdgeKind.CONDITION] == 4000


def test_the_edges_of_the_samples_are_what_they_were(sample_pager: SkillPager) -> None:
    check("edges.txt", edges_text(sample_pager))


# ---- limits of names


@pytest.mark.parametrize(
    ("heading", "text", "named"),
    [
        *(("Crop", "Use the crop of it.", True), ("Cro", "Use the cro of it.", False)),
        *(("速率限", "请先阅读速率限。", True), ("速率", "请先阅读速率。", False)),
        ("A 速率 B", "See a 速率 b there.", False),  # two ideographs and, with spaces, three other characters
        ("One two three four five six seven eight", "So one two three four five six seven eight.", True),
        (
            "One two three four five six seven eight nine",
            "So one two three four five six seven eight nine.",
            False,
        ),
        ("速率限制一二三四五六", "请先阅读速率限制一二三四五六。", True),  # each ideograph is a word
        (f"{'x' * 198} yyyy", f"The {'x' * 198} y is it.", True),  # 200 characters are read
        (f"{'x' * 198} yyyy", f"The {'x' * 198} yyyy is it.", False),
        *(("References", "Its references are good.", False), ("A 速 bc", "See a 速 bc there.", True)),
        ("A 速 b", "See a 速 b there.", False),
        ("(Call it home!)", "We call it home often.", True),  # marks at its ends are no part of a name
        *(("Usage", "See usage.", True), ("Usage", "See the usage.", True)),
        *(("Usage", "See section usage.", True), ("Usage", "In the usage section.", True)),
        *(("Usage", "In section usage.", True), ("Usage", "Siehe usage.", True)),
        *(("Usage", "Seen usage.", False), ("Use (e.g. of it)", "The use e g of it.", False)),
        ("Rate limits (of today)", "The rate limits of yesterday.", True),
        ("Run fetch_all() now_and_then", "Call fetch_all() first.", True),
        ("Run fetch_all() now_and_then", "Do it now_and_then.", True),
        ("Set maxNodes here", "It has maxNodes.", True),
        ("Set v2X here", "It has v2X now.", False),  # three letters
        ("Set vv2X here", "It has vv2X now.", True),
    ],
)
def test_names_are_specific_and_short(heading: str, text: str, named: bool) -> None:
    nodes = document(f"# Skill\n{text}\n## {heading}\nnode")
    assert pairs(reference_edges(nodes)) == ({(0, 1)} if named else set())
