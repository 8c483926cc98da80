"""A SkillIndex as one blob of documented bytes, and back; `docs/design.md` describes them.

The text of nodes is not in the bytes: they hold offsets into the files of the skill. The digests of those
files are part of the cache key, so the same key means the same text.
"""

import io
import json
from collections.abc import Sequence
from dataclasses import asdict
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

# The last byte is the version of the format; raise it together with `indexing.FORMAT_VERSION`.
MAGIC = b"SkPgIdx\x02"
LENGTH_BYTES = 8
# of a node's values: the ordinal of its heading path
_PATH = 4

_NODE_TYPES = {member.value: member for member in NodeType}
_TILE_KINDS = {member.value: member for member in TileKind}
_EDGE_KINDS = {member.value: member for member in EdgeKind}


class DamagedBlobError(Exception):
    """Bytes that are not those of the index they claim to be."""


def encode(index: SkillIndex) -> bytes:
    """Return the bytes of an index.

    Raises:
        ValueError: `index` breaks its own contract: ordinals, spans, shapes or numbers do not fit.
    """
    skill, n_nodes = index.skill, len(index.nodes)
    if index.embeddings.ndim != 2 or index.embeddings.shape[0] != n_nodes:
        raise ValueError(f"embeddings must be ({n_nodes}, dim), not {index.embeddings.shape}")
    sources = {file.path: (place, file.text) for place, file in enumerate(skill.files)}
    paths = {
        path: place for place, path in enumerate(dict.fromkeys(node.heading_path for node in index.nodes))
    }
    header = {
        "key": index.key,
        "recipe": asdict(index.recipe),
        "full_tokens": int(index.full_tokens),
        "files": [[file.path, file.digest] for file in skill.files],
        "headings": [
            [heading.level, heading.title, *_span_values(heading.span, heading.text, sources)]
            for heading in index.headings
        ],
        "heading_paths": list(paths),
        "nodes": [
            _node_values(node, ordinal, paths[node.heading_path], sources)
            for ordinal, node in enumerate(index.nodes)
        ],
        "edges": [
            [int(edge.source), int(edge.target), edge.kind.value, float(edge.weight)] for edge in index.edges
        ],
    }
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    stream = io.BytesIO()
    stream.write(MAGIC)
    stream.write(len(text).to_bytes(LENGTH_BYTES, "little"))
    stream.write(text)
    np.save(stream, index.embeddings.astype("<f4", order="C", copy=False), allow_pickle=False)
    return stream.getvalue()


def decode(data: bytes, skill: Skill, *, key: str) -> SkillIndex:
    """Return the index that bytes hold, its texts cut out of `skill`.

    Raises:
        DamagedBlobError: They are not those of this key and skill, or cannot be decoded.
    """
    header, embeddings = _read(data)
    files = skill.files
    try:
        if header["key"] != key:
            raise DamagedBlobError("it has another key")
        if [digest for _, digest in header["files"]] != [file.digest for file in files]:
            raise DamagedBlobError("its file digests are not those of the skill")
        if len(embeddings) != len(header["nodes"]):
            raise DamagedBlobError("it has not one embedding for each node")
        # neighbours share their heading path: let equal ones be one object
        paths = [tuple(path) for path in header["heading_paths"]]
        return SkillIndex(
            skill=skill,
            nodes=tuple(_node(values, i, files, paths) for i, values in enumerate(header["nodes"])),
            headings=tuple(
                Heading(TileKind.HEADING, *_located(files[place], *span), level, title)
                for level, title, place, *span in header["headings"]
            ),
            edges=tuple(
                Edge(source, target, _EDGE_KINDS[kind], weight)
                for source, target, kind, weight in header["edges"]
            ),
            embeddings=embeddings,
            recipe=Recipe(**header["recipe"]),
            key=key,
            full_tokens=header["full_tokens"],
        )
    except (ValueError, LookupError, TypeError) as error:
        raise DamagedBlobError(f"it cannot be decoded: {error!r}") from error


def decode_rows(data: bytes) -> tuple[FloatArray, list[tuple[str, ...]]]:
    """Return the `(nodes, dim)` embeddings of an index, and the heading path of each node.

    Raises:
        DamagedBlobError: The bytes cannot be decoded.
    """
    header, embeddings = _read(data)
    return embeddings, [tuple(header["heading_paths"][node[_PATH]]) for node in header["nodes"]]


def _read(data: bytes) -> tuple[dict[str, Any], FloatArray]:
    """Return the header and the `(nodes, dim)` embeddings, read-only."""
    begin = len(MAGIC) + LENGTH_BYTES
    if data[: len(MAGIC)] != MAGIC:
        raise DamagedBlobError("it is of another format")
    try:
        end = begin + int.from_bytes(data[len(MAGIC) : begin], "little")
        header = json.loads(data[begin:end])
        stream = io.BytesIO(data)
        stream.seek(end)
        embeddings: FloatArray = np.load(stream, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DamagedBlobError(f"it cannot be decoded: {error!r}") from error
    embeddings = embeddings.astype(np.float32, copy=False)
    embeddings.flags.writeable = False
    return header, embeddings


def _span_values(span: Span, text: str, sources: dict[str, tuple[int, str]]) -> list[int]:
    """Return the file's ordinal, the lines and the characters of a span; `text` must be there."""
    place, source = sources.get(span.file, (-1, ""))
    if place < 0 or source[span.start : span.end] != text:
        raise ValueError(f"{text[:40]!r} is not the text at {span}")
    return [place, span.start_line, span.end_line, span.start, span.end]


def _node_values(node: Node, ordinal: int, path: int, sources: dict[str, tuple[int, str]]) -> list[Any]:
    if node.ordinal != ordinal:
        raise ValueError(f"node {ordinal} has ordinal {node.ordinal}")
    listed: list[int] = []
    if context := node.list_context:
        span = context.lead_in_span
        if span is None and context.lead_in:
            raise ValueError(f"the lead-in of node {node.id} has no span: {context.lead_in[:40]!r}")
        if span and span.file != node.span.file:
            raise ValueError(f"the lead-in of node {node.id} stands in another file: {span}")
        lead_in = _span_values(span, context.lead_in, sources)[1:] if span else []
        listed = [context.position, context.size, *lead_in]
    own = [node.id, node.type.value, float(node.type_confidence), int(node.tokens), path, node.kind.value]
    return [*own, *_span_values(node.span, node.text, sources), listed]


def _node(values: Any, ordinal: int, files: Sequence[SourceFile], paths: Sequence[tuple[str, ...]]) -> Node:
    id_, type_, confidence, tokens, path, kind, place, *place_in_file, listed = values
    file = files[place]
    span, text = _located(file, *place_in_file)
    context = None
    if listed:
        position, size, *lead_in = listed
        lead_in_span, lead_in_text = _located(file, *lead_in) if lead_in else (None, "")
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
