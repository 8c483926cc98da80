"""A SkillIndex as the rows of tables, and back.

Text of nodes is not in the rows: they hold offsets into the files of the skill, whose digests are
part of the cache key, so that the same digests give the same text. Columns are named as in
`docs/store-format.md`, which also tells how the checksum is made.
"""

import hashlib
import json
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

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

Row = tuple[Any, ...]

RECIPE_COLUMNS = ("splitter", "classifier", "encoder", "embedded_text", "token_counter", "format")
HEAD_COLUMNS = ("key", "name", "root", *RECIPE_COLUMNS, "dim", "n_nodes", "full_tokens", "created")
SPAN_COLUMNS = ("file", "start_line", "end_line", "start_char", "end_char")
TABLE_COLUMNS = {
    "files": ("ordinal", "path", "digest"),
    "headings": ("ordinal", "level", "title", *SPAN_COLUMNS),
    "nodes": (
        *("ordinal", "id", "type", "type_confidence", "tokens", "kind", *SPAN_COLUMNS, "heading_path"),
        *("list_position", "list_size"),
        *(f"lead_in_{column}" for column in SPAN_COLUMNS[1:]),
    ),
    "edges": ("ordinal", "source", "target", "kind", "weight"),
}

_NODE_TYPES = {member.value: member for member in NodeType}
_TILE_KINDS = {member.value: member for member in TileKind}
_EDGE_KINDS = {member.value: member for member in EdgeKind}


class DamagedRowsError(Exception):
    """Rows that are not those of the index they claim to be."""


@dataclass(frozen=True, slots=True)
class IndexRows:
    """One index as rows, without the id that ties them together in a store.

    Attributes:
        head: Values of `HEAD_COLUMNS`.
        tables: Rows of each of `TABLE_COLUMNS`, by ordinal.
        embeddings: The matrix row by row, little-endian IEEE 754 binary32.
    """

    head: Row
    tables: dict[str, list[Row]]
    embeddings: bytes


def to_rows(index: SkillIndex, *, created: float) -> IndexRows:
    """Return the rows of `index`, written at Unix time `created`.

    Raises:
        ValueError: `index` breaks its own contract: ordinals, spans or shapes do not fit.
    """
    n_nodes = len(index.nodes)
    if index.embeddings.ndim != 2 or index.embeddings.shape[0] != n_nodes:
        raise ValueError(f"embeddings must be ({n_nodes}, dim), not {index.embeddings.shape}")
    sources = {file.path: (place, file.text) for place, file in enumerate(index.skill.files)}
    skill, root = index.skill, index.skill.root
    return IndexRows(
        head=(
            *(index.key, _storable(skill.name), _storable(str(root)) if root else "", *astuple(index.recipe)),
            *(int(index.embeddings.shape[1]), n_nodes, int(index.full_tokens), float(created)),
        ),
        tables={
            "files": [(i, _storable(file.path), file.digest) for i, file in enumerate(skill.files)],
            "headings": [_heading_row(i, heading, sources) for i, heading in enumerate(index.headings)],
            "nodes": [_node_row(i, node, sources) for i, node in enumerate(index.nodes)],
            "edges": [_edge_row(i, edge) for i, edge in enumerate(index.edges)],
        },
        embeddings=index.embeddings.astype("<f4", order="C", copy=False).tobytes(),
    )


def from_rows(rows: IndexRows, skill: Skill) -> SkillIndex:
    """Return the index that `rows` hold, its texts cut out of `skill`.

    Raises:
        DamagedRowsError: `rows` are not of this skill, or cannot be decoded.
    """
    head = dict(zip(HEAD_COLUMNS, rows.head, strict=True))
    if [row[2] for row in rows.tables["files"]] != [file.digest for file in skill.files]:
        raise DamagedRowsError("its file digests are not those of the skill")
    try:
        return SkillIndex(
            skill=skill,
            nodes=_nodes(rows.tables["nodes"], skill.files),
            headings=tuple(_heading(row, skill.files) for row in rows.tables["headings"]),
            edges=tuple(
                Edge(source, target, _EDGE_KINDS[kind], weight)
                for _, source, target, kind, weight in rows.tables["edges"]
            ),
            embeddings=_matrix(rows.embeddings, n_nodes=head["n_nodes"], dim=head["dim"]),
            recipe=Recipe(*(head[column] for column in RECIPE_COLUMNS)),
            key=head["key"],
            full_tokens=head["full_tokens"],
        )
    except (ValueError, LookupError, TypeError) as error:
        raise DamagedRowsError(f"its rows cannot be decoded: {error!r}") from error


def checksum(rows: IndexRows) -> tuple[str, int]:
    """Return the SHA-256 over every value of `rows`, hexadecimal, and how many bytes they are.

    Raises:
        ValueError: A value is not a finite number.
    """
    parts = [rows.head, *(rows.tables[table] for table in TABLE_COLUMNS)]
    values = json.dumps(parts, separators=(",", ":"), allow_nan=False).encode()
    digest = hashlib.sha256(values)
    digest.update(rows.embeddings)
    return digest.hexdigest(), len(values) + len(rows.embeddings)


def check_rows(rows: IndexRows, expected: str) -> None:
    """Return when `rows` are those whose checksum is `expected`.

    Raises:
        DamagedRowsError: They are not.
    """
    try:
        found, _ = checksum(rows)
    except (ValueError, TypeError) as error:
        raise DamagedRowsError(f"its values are of the wrong type ({error})") from error
    if found != expected:
        raise DamagedRowsError("its checksum does not match")


# ---- to rows


def _storable(text: str) -> str:
    # Paths may hold lone surrogates, which UTF-8 cannot; these columns are only shown.
    return text.encode(errors="backslashreplace").decode()


def _real(number: float) -> float:
    # SQLite keeps whole reals as integers, which have no minus zero; adding 0.0 takes the sign away.
    return float(number) + 0.0


def _span_columns(span: Span, text: str, sources: dict[str, tuple[int, str]]) -> Row:
    """Return the values of `SPAN_COLUMNS`; `text` must be what stands there."""
    place, source = sources.get(span.file, (-1, ""))
    if place < 0 or source[span.start : span.end] != text:
        raise ValueError(f"{text[:40]!r} is not the text at {span}")
    return place, span.start_line, span.end_line, span.start, span.end


def _heading_row(ordinal: int, heading: Heading, sources: dict[str, tuple[int, str]]) -> Row:
    return ordinal, heading.level, heading.title, *_span_columns(heading.span, heading.text, sources)


def _edge_row(ordinal: int, edge: Edge) -> Row:
    return ordinal, int(edge.source), int(edge.target), edge.kind.value, _real(edge.weight)


def _node_row(ordinal: int, node: Node, sources: dict[str, tuple[int, str]]) -> Row:
    if node.ordinal != ordinal:
        raise ValueError(f"node {ordinal} has ordinal {node.ordinal}")
    return (
        *(ordinal, node.id, node.type.value, _real(node.type_confidence), int(node.tokens), node.kind.value),
        *_span_columns(node.span, node.text, sources),
        json.dumps(node.heading_path, ensure_ascii=False),
        *_list_columns(node, sources),
    )


def _list_columns(node: Node, sources: dict[str, tuple[int, str]]) -> Row:
    """Return position, size and lead-in of a list item or table part; all None for other nodes."""
    context = node.list_context
    if context is None:
        return (None,) * 6
    if context.lead_in_span is None:
        if context.lead_in:
            raise ValueError(f"the lead-in of node {node.id} has no span: {context.lead_in[:40]!r}")
        return context.position, context.size, None, None, None, None
    if context.lead_in_span.file != node.span.file:
        raise ValueError(f"the lead-in of node {node.id} stands in another file: {context.lead_in_span}")
    return context.position, context.size, *_span_columns(context.lead_in_span, context.lead_in, sources)[1:]


# ---- from rows


def _slice(file: SourceFile, start: int, end: int) -> str:
    if not 0 <= start <= end <= len(file.text):
        raise ValueError(f"characters {start} to {end} are not in {file.path}")
    return file.text[start:end]


def _heading(row: Row, files: tuple[SourceFile, ...]) -> Heading:
    _, level, title, place, start_line, end_line, start, end = row
    file = files[place]
    span = Span(file.path, start_line, end_line, start, end)
    return Heading(TileKind.HEADING, span, _slice(file, start, end), level, title)


def _nodes(rows: list[Row], files: tuple[SourceFile, ...]) -> tuple[Node, ...]:
    # Neighbours share their heading path: decode each once, and let equal ones be one object.
    paths = {text: tuple(json.loads(text)) for text in {row[11] for row in rows}}
    return tuple(_node(row, files, paths) for row in rows)


def _node(row: Row, files: tuple[SourceFile, ...], paths: dict[str, tuple[str, ...]]) -> Node:
    ordinal, id_, type_, confidence, tokens, kind, place, start_line, end_line, start, end, path, *listed = (
        row
    )
    file = files[place]
    return Node(
        kind=_TILE_KINDS[kind],
        span=Span(file.path, start_line, end_line, start, end),
        text=_slice(file, start, end),
        ordinal=ordinal,
        heading_path=paths[path],
        list_context=None if listed[0] is None else _list_context(listed, file),
        id=id_,
        type=_NODE_TYPES[type_],
        type_confidence=confidence,
        tokens=tokens,
    )


def _list_context(columns: list[Any], file: SourceFile) -> ListContext:
    position, size, start_line, end_line, start, end = columns
    if start is None:
        return ListContext("", None, position, size)
    span = Span(file.path, start_line, end_line, start, end)
    return ListContext(_slice(file, start, end), span, position, size)


def _matrix(data: bytes, *, n_nodes: int, dim: int) -> FloatArray:
    """Return the embeddings, `(n_nodes, dim)` float32, read-only."""
    return np.frombuffer(data, "<f4").reshape(n_nodes, dim).astype(np.float32, copy=False)
