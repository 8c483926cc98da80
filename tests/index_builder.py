"""Indexes for tests: a plain deterministic one, and a Hypothesis strategy for odd ones."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from skillpager.types import (
    Edge,
    EdgeKind,
    FloatArray,
    Heading,
    ListContext,
    Node,
    NodeType,
    Recipe,
    Skill,
    SkillIndex,
    SourceFile,
    Span,
    TileKind,
)

RECIPE = Recipe(
    splitter="1",
    classifier="local-1",
    encoder="hashing-8",
    embedded_text="bare",
    token_counter="o200k_base",
    format=2,
)
NODES_PER_SECTION = 8
_TYPES = list(NodeType)
_FRAGMENT_KINDS = [TileKind.SENTENCE, TileKind.LIST_ITEM, TileKind.CODE, TileKind.TABLE, TileKind.QUOTE]


def source_file(path: str, text: str) -> SourceFile:
    """Return a file without front matter."""
    return SourceFile(path, text, hashlib.sha256(text.encode()).hexdigest(), 0)


def span_of(file: SourceFile, start: int, end: int) -> Span:
    """Return the span of two character offsets, lines counted by line feeds."""
    first = file.text.count("\n", 0, start) + 1
    return Span(file.path, first, first + file.text.count("\n", start, max(start, end - 1)), start, end)


def unit_rows(n: int, dim: int, *, seed: int) -> FloatArray:
    """Return `(n, dim)` float32 unit rows, the same for the same seed."""
    rows = np.random.default_rng(seed).standard_normal((n, dim))
    unit: FloatArray = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def build_index(n_nodes: int = 12, *, dim: int = 8, seed: int = 0, name: str = "sample") -> SkillIndex:
    """Return an index of `n_nodes` one-line nodes in sections of eight, every third in a list.

    The skill depends on `name` and `n_nodes` alone, and so does the key; `seed` changes node types,
    weights and embeddings, and stands in `full_tokens`.
    """
    lines: list[str] = []
    for i in range(n_nodes):
        if i % NODES_PER_SECTION == 0:
            lines.append(f"## Section {i // NODES_PER_SECTION}\n")
        lines.append(f"{'- ' if i % 3 == 0 else ''}Line {i} of {name} says what to do with résumé {i * i}.\n")
    file = source_file("SKILL.md", "".join(lines))
    headings: list[Heading] = []
    nodes: list[Node] = []
    start = 0
    for line in lines:
        span = span_of(file, start, start + len(line))
        start += len(line)
        if line.startswith("## "):
            headings.append(Heading(TileKind.HEADING, span, line, 2, line[3:].strip()))
            continue
        listed, ordinal, above = line.startswith("- "), len(nodes), headings[-1]
        node = Node(
            kind=TileKind.LIST_ITEM if listed else TileKind.SENTENCE,
            span=span,
            text=line,
            ordinal=ordinal,
            heading_path=(above.title,),
            list_context=ListContext(above.text, above.span, 0, 1) if listed else None,
            id=f"n{ordinal}",
            type=_TYPES[(ordinal + seed) % len(_TYPES)],
            type_confidence=1 / (ordinal + seed + 1),
            tokens=len(line) // 4,
        )
        nodes.append(node)
    edges = [Edge(i, i + 1, EdgeKind.SEQUENCE, 1.0) for i in range(n_nodes - 1)]
    edges += [Edge(i, i + 2, EdgeKind.SEMANTIC, 1 / (i + seed + 2)) for i in range(n_nodes - 2)]
    return SkillIndex(
        skill=Skill(name, f"What {name} is for.", {}, (file,), Path("/skills") / name),
        nodes=tuple(nodes),
        headings=tuple(headings),
        edges=tuple(sorted(edges, key=lambda edge: (edge.source, edge.target, edge.kind))),
        embeddings=unit_rows(n_nodes, dim, seed=seed),
        recipe=RECIPE,
        key=hashlib.sha256(f"{file.digest} {RECIPE}".encode()).hexdigest(),
        full_tokens=seed,
    )


def assert_same_index(found: SkillIndex | None, expected: SkillIndex) -> None:
    """Fail unless every field is equal, embeddings bit by bit."""
    assert found is not None
    for field in ("skill", "nodes", "headings", "edges", "recipe", "key", "full_tokens"):
        assert getattr(found, field) == getattr(expected, field), field
    assert found.embeddings.shape == expected.embeddings.shape
    assert found.embeddings.dtype == np.float32
    assert found.embeddings.tobytes() == expected.embeddings.tobytes()


# ---- strategy

_CHARACTERS = st.characters(codec="utf-8")
_TEXT = st.text(_CHARACTERS, max_size=60)
_NAME = st.text(_CHARACTERS, min_size=1, max_size=12)
_UNIT = st.floats(0, 1)
_ORDINAL = st.integers(0, 2**31)
_EDGES = st.builds(
    Edge, _ORDINAL, _ORDINAL, st.sampled_from(EdgeKind), st.floats(allow_nan=False, allow_infinity=False)
)


@st.composite
def indexes(draw: st.DrawFn) -> SkillIndex:
    """Draw indexes of any Unicode text, any spans and any bits in the embeddings."""
    paths = draw(st.lists(_NAME, min_size=1, max_size=3, unique=True))
    files = tuple(source_file(path, draw(_TEXT)) for path in paths)
    nodes = tuple(_draw_node(draw, i, files) for i in range(draw(st.integers(0, 6))))
    dim = draw(st.integers(1, 5))
    bits = draw(st.binary(min_size=4 * dim * len(nodes), max_size=4 * dim * len(nodes)))
    return SkillIndex(
        skill=Skill(draw(_TEXT), draw(_TEXT), {}, files, draw(st.sampled_from([None, Path("/skills/é")]))),
        nodes=nodes,
        headings=tuple(_draw_heading(draw, files) for _ in range(draw(st.integers(0, 3)))),
        edges=tuple(draw(st.lists(_EDGES, max_size=6))),
        embeddings=np.frombuffer(bits, np.float32).reshape(len(nodes), dim),
        recipe=draw(st.builds(Recipe, _NAME, _NAME, _NAME, _NAME, _NAME, st.integers(0, 9))),
        key=draw(st.text("0123456789abcdef", min_size=64, max_size=64)),
        full_tokens=draw(st.integers(0, 2**40)),
    )


def _draw_span(draw: st.DrawFn, file: SourceFile) -> tuple[Span, str]:
    end = draw(st.integers(0, len(file.text)))
    start = draw(st.integers(0, end))
    return span_of(file, start, end), file.text[start:end]


def _draw_heading(draw: st.DrawFn, files: Sequence[SourceFile]) -> Heading:
    span, text = _draw_span(draw, draw(st.sampled_from(files)))
    return Heading(TileKind.HEADING, span, text, draw(st.integers(1, 6)), draw(_TEXT))


def _draw_node(draw: st.DrawFn, ordinal: int, files: Sequence[SourceFile]) -> Node:
    file = draw(st.sampled_from(files))
    span, text = _draw_span(draw, file)
    lead_span, lead_in = draw(st.sampled_from([(None, ""), _draw_span(draw, file)]))
    place = ListContext(lead_in, lead_span, draw(st.integers(0, 99)), draw(st.integers(1, 99)))
    return Node(
        kind=draw(st.sampled_from(_FRAGMENT_KINDS)),
        span=span,
        text=text,
        ordinal=ordinal,
        heading_path=tuple(draw(st.lists(_TEXT, max_size=3))),
        list_context=draw(st.sampled_from([None, place])),
        id=f"n{ordinal}",
        type=draw(st.sampled_from(NodeType)),
        type_confidence=draw(_UNIT),
        tokens=draw(_ORDINAL),
    )
