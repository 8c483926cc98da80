"""Drawings: sources that Graphviz reads, whatever the text of the nodes."""

import re
import subprocess
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node_lines import bag_of_words, document
from skillpager.graph.edges import infer_edges
from skillpager.output.graph import EDGE_COLORS, TYPE_COLORS, summarize, to_dot
from skillpager.types import EdgeKind, NodeType, Recipe, Skill, SkillIndex

SOURCE = """
# Deploy
concept: A deploy replaces the running version.
precondition: Make sure that the tests pass, see rate limits.
step: Run `deploy --now`.
step: Run `deploy --now` once more.
## Rate limits
param: `--rate` takes a number.
example: deploy --rate 3
error_handling: On error 429 wait, then repeat it.
"""
HOSTILE = (
    """say "hi" \\n {a|b} [x] (y) <b>bold</b> &amp; `code` #35; """
    """é 速率 🚀 --> end ${x} $\\frac1 ]] }} %% ; x"""
)


def index_of(source: str, name: str = "deploy") -> SkillIndex:
    """Return an index of a `document`."""
    nodes = document(source)
    rows = bag_of_words(nodes)
    skill = Skill(name, "", {}, (), None)
    recipe = Recipe("1", "given", "bag", "bare", "none", 1)
    return SkillIndex(skill, nodes, (), infer_edges(nodes, rows), rows, recipe, "key", 0)


DOT_STRING = r'"(?:[^"\\]|\\.)*"'
DOT_VALUE = rf"(?:{DOT_STRING}|\w+)"
DOT_STATEMENT = re.compile(rf"  (?:node|n\d+|n\d+ -> n\d+) \[\w+={DOT_VALUE}(?:, \w+={DOT_VALUE})*\];")


def assert_is_dot(source: str, index: SkillIndex) -> None:
    """Fail unless `source` has the form of a digraph with the index's nodes and edges."""
    first, *statements, last = source.removesuffix("\n").split("\n")
    assert re.fullmatch(rf"digraph {DOT_STRING} {{", first)
    assert last == "}"
    assert [line for line in statements if not DOT_STATEMENT.fullmatch(line)] == []
    assert sum(" -> " in line.partition("[")[0] for line in statements) == len(index.edges)
    assert len(statements) == 1 + len(index.nodes) + len(index.edges)


def test_dot_has_every_node_and_edge() -> None:
    index = index_of(SOURCE)
    source = to_dot(index)
    assert_is_dot(source, index)
    assert f'n2 [label="n2 · step\\nRun `deploy --now`.", color="{TYPE_COLORS[NodeType.STEP]}"' in source
    for edge in index.edges:
        assert re.search(
            rf'n{edge.source} -> n{edge.target} \[.*"{EDGE_COLORS[edge.kind]}".*"{edge.kind}"', source
        )


@given(st.text(max_size=60), st.text(max_size=20))
@settings(max_examples=100, deadline=None)
def test_dot_survives_any_text(text: str, name: str) -> None:
    index = index_of(SOURCE, name)
    odd = replace(index, nodes=(replace(index.nodes[0], text=text), *index.nodes[1:]))
    assert_is_dot(to_dot(odd), odd)


@pytest.mark.system("dot")
@pytest.mark.parametrize("source", [SOURCE, f"# A\n{HOSTILE}\n{HOSTILE[::-1]}", ""])
def test_graphviz_reads_dot(source: str) -> None:
    index = index_of(source, name=HOSTILE)
    made = subprocess.run(["dot", "-Tsvg"], input=to_dot(index).encode(), capture_output=True, check=True)
    assert made.stderr == b""
    words = " ".join(ElementTree.fromstring(made.stdout).itertext()).replace("\N{NO-BREAK SPACE}", " ")
    assert ('say "hi" \\n {a|b} [x]' in words) == (HOSTILE in source)
    assert all(summarize(node)[:5] in words for node in index.nodes)


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("- **Bold** claim", "Bold claim"),
        ("```bash\npip install it\n```", "pip install it"),
        ("See [the docs](https://example.com/x).", "See the docs."),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "a | b | 1 | 2 |"),
        ("two\n\n  lines\x00\u200b", "two lines\ufffd"),
        ("x" * 41, "x" * 39 + "…"),
        ("", ""),
    ],
)
def test_summaries_are_one_short_line(text: str, summary: str) -> None:
    assert summarize(replace(document("a")[0], text=text)) == summary


def test_types_and_edge_kinds_have_distinct_colours() -> None:
    assert list(TYPE_COLORS) == list(NodeType)
    assert list(EDGE_COLORS) == list(EdgeKind)
    colours = [*TYPE_COLORS.values(), *EDGE_COLORS.values()]
    assert len(set(colours)) == len(colours)
    assert all(re.fullmatch("#[0-9A-F]{6}", colour) for colour in colours)
