"""A SkillIndex as the rows of tables, and back; `docs/store-format.md` describes tables and checksum.

The text of nodes is not in the rows: they hold offsets into the files of the skill. The digests of those
files are part of the cache key, so the same key means the same text.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from skillpager.types import (
    DamagedEntry,
    Edge,
    EdgeKind,
    Heading,
    ListContext,
    Node,
    NodeType,
    Recipe,
    Skill,
    SkillIndex,
    SourceFile,
    Span,
    StoreEntry,
    TileKind,
)

logger = logging.getLogger(__name__)

Row = tuple[Any, ...]

# The rows of an index lie in these tables, columns as in `connection.STATEMENTS`.
TABLES = ("files", "headings", "nodes", "edges")
RECIPE_COLUMNS = ("splitter", "classifier", "encoder", "embedded_text", "token_counter", "format")
HEAD_COLUMNS = ("key", "name", "root", *RECIPE_COLUMNS, "dim", "n_nodes", "full_tokens", "created")
# a load notes its time only when the last note is older: most loads write nothing
USED_SECONDS = 60.0

_NODE_TYPES = {member.value: member for member in NodeType}
_TILE_KINDS = {member.value: member for member in TileKind}
_EDGE_KINDS = {member.value: member for member in EdgeKind}


class DamagedRowsError(Exception):
    """Rows that are not those of the index they claim to be."""


@dataclass(frozen=True, slots=True)
class IndexRows:
    """One index as rows, without the `index_id` that connects them in a store.

    Attributes:
        head: Values of `HEAD_COLUMNS`.
        tables: Rows of each of `TABLES`, by ordinal.
        embeddings: The matrix row by row, little-endian IEEE 754 binary32.
    """

    head: Row
    tables: dict[str, list[Row]]
    embeddings: bytes

    def checksum(self) -> tuple[str, int]:
        """Return the SHA-256 of every value, hexadecimal, and the number of bytes it was taken of.

        Raises:
            ValueError: A value is not a finite number.
        """
        parts = [self.head, *(self.tables[table] for table in TABLES)]
        values = json.dumps(parts, separators=(",", ":"), allow_nan=False).encode()
        digest = hashlib.sha256(values)
        digest.update(self.embeddings)
        return digest.hexdigest(), len(values) + len(self.embeddings)

    def check(self, expected: str) -> None:
        """Raise `DamagedRowsError` unless the checksum is `expected`."""
        try:
            found, _ = self.checksum()
        except (ValueError, TypeError) as error:
            raise DamagedRowsError(f"its values are of the wrong type ({error})") from error
        if found != expected:
            raise DamagedRowsError("its checksum does not match")


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """One index as a store holds it, unchecked.

    Attributes:
        id: Number of the index in the store.
        idle: Seconds since its last use.
        checksum: Checksum that it was stored with.
        rows: Its rows.
    """

    id: int
    idle: float
    checksum: str
    rows: IndexRows

    def decode(self, skill: Skill, place: str) -> SkillIndex | None:
        """Return the index of `skill`; None if it is damaged, with a warning that names the store's place."""
        try:
            self.rows.check(self.checksum)
            return from_rows(self.rows, skill)
        except DamagedRowsError as problem:
            key, name = (self.rows.head[HEAD_COLUMNS.index(column)] for column in ("key", "name"))
            logger.warning(
                'The index of "%s" (%s) in %s is damaged: %s. It is deleted and will be rebuilt.',
                *(name, key, place, problem),
            )
            return None


def find_damage(
    entries: Iterable[StoreEntry], select: Callable[[str], StoredIndex | None]
) -> list[DamagedEntry]:
    """Return the entries whose rows do not have their checksum; `select` returns what is under a key."""
    damaged = []
    for entry in entries:
        try:
            if stored := select(entry.key):
                stored.rows.check(stored.checksum)
        except DamagedRowsError as problem:
            damaged.append(DamagedEntry(entry.key, entry.name, str(problem)))
    return damaged


def to_rows(index: SkillIndex, *, created: float) -> IndexRows:
    """Return the rows of `index`, written at Unix time `created`.

    Raises:
        ValueError: `index` breaks its own contract: ordinals, spans or shapes do not fit.
    """
    skill, n_nodes = index.skill, len(index.nodes)
    if index.embeddings.ndim != 2 or index.embeddings.shape[0] != n_nodes:
        raise ValueError(f"embeddings must be ({n_nodes}, dim), not {index.embeddings.shape}")
    sources = {file.path: (place, file.text) for place, file in enumerate(skill.files)}
    return IndexRows(
        head=(
            *(index.key, _storable(skill.name), _storable(str(skill.root)) if skill.root else ""),
            *astuple(index.recipe),
            *(int(index.embeddings.shape[1]), n_nodes, int(index.full_tokens), float(created)),
        ),
        tables={
            "files": [(i, _storable(file.path), file.digest) for i, file in enumerate(skill.files)],
            "headings": [
                (i, heading.level, heading.title, *_span_columns(heading.span, heading.text, sources))
                for i, heading in enumerate(index.headings)
            ],
            "nodes": [_node_row(i, node, sources) for i, node in enumerate(index.nodes)],
            "edges": [
                (i, int(edge.source), int(edge.target), edge.kind.value, _real(edge.weight))
                for i, edge in enumerate(index.edges)
            ],
        },
        embeddings=index.embeddings.astype("<f4", order="C", copy=False).tobytes(),
    )


def from_rows(rows: IndexRows, skill: Skill) -> SkillIndex:
    """Return the index that `rows` hold, its texts cut out of `skill`.

    Raises:
        DamagedRowsError: `rows` are not of this skill, or cannot be decoded.
    """
    head = dict(zip(HEAD_COLUMNS, rows.head, strict=True))
    files, tables = skill.files, rows.tables
    if [row[2] for row in tables["files"]] != [file.digest for file in files]:
        raise DamagedRowsError("its file digests are not those of the skill")
    try:
        # Neighbours share their heading path: decode each once, and let equal ones be one object.
        paths = {text: tuple(json.loads(text)) for text in {row[11] for row in tables["nodes"]}}
        embeddings = np.frombuffer(rows.embeddings, "<f4").reshape(head["n_nodes"], head["dim"])
        return SkillIndex(
            skill=skill,
            nodes=tuple(_node(row, files, paths) for row in tables["nodes"]),
            headings=tuple(
                Heading(TileKind.HEADING, *_located(files[place], *span), level, title)
                for _, level, title, place, *span in tables["headings"]
            ),
            edges=tuple(
                Edge(source, target, _EDGE_KINDS[kind], weight)
                for _, source, target, kind, weight in tables["edges"]
            ),
            embeddings=embeddings.astype(np.float32, copy=False),
            recipe=Recipe(*(head[column] for column in RECIPE_COLUMNS)),
            key=head["key"],
            full_tokens=head["full_tokens"],
        )
    except (ValueError, LookupError, TypeError) as error:
        raise DamagedRowsError(f"its rows cannot be decoded: {error!r}") from error


def _storable(text: str) -> str:
    # Paths may hold lone surrogates, which UTF-8 cannot; these columns are only shown.
    return text.encode(errors="backslashreplace").decode()


def _real(number: float) -> float:
    # SQLite keeps whole reals as integers, which have no minus zero; adding 0.0 takes the sign away.
    return float(number) + 0.0


def _span_columns(span: Span, text: str, sources: dict[str, tuple[int, str]]) -> Row:
    """Return the file's ordinal, the lines and the characters of a span; `text` must be there."""
    place, source = sources.get(span.file, (-1, ""))
    if place < 0 or source[span.start : span.end] != text:
        raise ValueError(f"{text[:40]!r} is not the text at {span}")
    return place, span.start_line, span.end_line, span.start, span.end


def _node_row(ordinal: int, node: Node, sources: dict[str, tuple[int, str]]) -> Row:
    if node.ordinal != ordinal:
        raise ValueError(f"node {ordinal} has ordinal {node.ordinal}")
    listed: Row = (None, None)
    lead_in: Row = (None, None, None, None)
    if context := node.list_context:
        listed, span = (context.position, context.size), context.lead_in_span
        if span is None and context.lead_in:
            raise ValueError(f"the lead-in of node {node.id} has no span: {context.lead_in[:40]!r}")
        if span and span.file != node.span.file:
            raise ValueError(f"the lead-in of node {node.id} stands in another file: {span}")
        if span:
            lead_in = _span_columns(span, context.lead_in, sources)[1:]
    return (
        *(ordinal, node.id, node.type.value, _real(node.type_confidence), int(node.tokens), node.kind.value),
        *_span_columns(node.span, node.text, sources),
        json.dumps(node.heading_path, ensure_ascii=False),
        *(*listed, *lead_in),
    )


def _node(row: Row, files: tuple[SourceFile, ...], paths: dict[str, tuple[str, ...]]) -> Node:
    ordinal, id_, type_, confidence, tokens, kind, place, *numbers = row
    file = files[place]
    span, text = _located(file, *numbers[:4])
    path, position, size, *lead_in = numbers[4:]
    context = None
    if position is not None:
        lead_in_span, lead_in_text = (None, "") if lead_in[2] is None else _located(file, *lead_in)
        context = ListContext(lead_in_text, lead_in_span, position, size)
    return Node(
        kind=_TILE_KINDS[kind],
        span=span,
        text=text,
        ordinal=ordinal,
        heading_path=paths[path],
        list_context=context,
        id=id_,
        type=_NODE_TYPES[type_],
        type_confidence=confidence,
        tokens=tokens,
    )


def _located(file: SourceFile, start_line: int, end_line: int, start: int, end: int) -> tuple[Span, str]:
    """Return a span and the text at it."""
    if not 0 <= start <= end <= len(file.text):
        raise ValueError(f"characters {start} to {end} are not in {file.path}")
    return Span(file.path, start_line, end_line, start, end), file.text[start:end]
