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


class DamagedBlobError(Exception):
    """Bytes that are not those of the index they claim to be."""


def encode(index: SkillIndex) -> bytes:
    """Return the bytes of an index.

    Raises:
        ValueError: `index` breaks its own contract: spans, shapes or numbers do not fit.
    """
    skill, n_nodes = index.skill, len(index.nodes)
    if index.embeddings.ndim != 2 or index.embeddings.shape[0] != n_nodes:
        raise ValueError(f"embeddings must be ({n_nodes}, dim), not {index.embeddings.shape}")
    files = {file.path: (place, file.text) for place, file in enumerate(skill.files)}
    paths = {
        path: place for place, path in enumerate(dict.fromkeys(node.heading_path for node in index.nodes))
    }
    header = {
        "key": index.key,
        "recipe": asdict(index.recipe),
        "full_tokens": int(index.full_tokens),
        "files": [[file.path, file.digest] for file in skill.files],
        "headings": [
            [heading.level, heading.title, *_span_values(heading.span, heading.text, files)]
            for heading in index.headings
        ],
        "heading_paths": list(paths),
        "nodes": [_node_values(node, paths[node.heading_path], files) for node in index.nodes],
        "edges": [
            [int(edge.source), int(edge.target), edge.kind.value, float(edge.weight)] for edge in index.edges
        ],
    }
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    stream = io.BytesIO()
    stream.write(MAGIC + len(text).to_bytes(LENGTH_BYTES, "little") + text)
    np.save(stream, index.embeddings.astype("<f4", order="C", copy=False), allow_pickle=False)
    return stream.getvalue()


def decode(data: bytes, skill: Skill) -> SkillIndex:
    """Return the index that bytes hold, its texts cut out of `skill`.

    Raises:
        DamagedBlobError: They are not those of this skill, or cannot be decoded.
    """
    if not data.startswith(MAGIC):
        raise DamagedBlobError("it is of another format")
    stream, files = io.BytesIO(data), skill.files
    stream.seek(len(MAGIC))
    try:
        header = json.loads(stream.read(int.from_bytes(stream.read(LENGTH_BYTES), "little")))
        embeddings = np.load(stream, allow_pickle=False).astype(np.float32, copy=False)
        embeddings.flags.writeable = False
        if [digest for _, digest in header["files"]] != [file.digest for file in files]:
            raise DamagedBlobError("its file digests are not those of the skill")
        # neighbours share their heading path: let equal ones be one object
        paths = [tuple(path) for path in header["heading_paths"]]
        return SkillIndex(
            skill=skill,
            nodes=tuple(_node(i, files, paths, *values) for i, values in enumerate(header["nodes"])),
            headings=tuple(
                Heading(TileKind.HEADING, *_located(files[place], *span), level, title)
                for level, title, place, *span in header["headings"]
            ),
            edges=tuple(
                Edge(source, target, EdgeKind(kind), weight)
                for source, target, kind, weight in header["edges"]
            ),
            embeddings=embeddings,
            recipe=Recipe(**header["recipe"]),
            key=header["key"],
            full_tokens=header["full_tokens"],
        )
    except (ValueError, LookupError, TypeError, EOFError) as error:
        raise DamagedBlobError(f"it cannot be decoded: {error!r}") from error


def _span_values(span: Span, text: str, files: dict[str, tuple[int, str]]) -> list[int]:
    """Return the file's ordinal, the lines and the characters of a span; `text` must be there."""
    place, source = files.get(span.file, (-1, ""))
    if place < 0 or source[span.start : span.end] != text:
        raise ValueError(f"{text[:40]!r} is not the text at {span}")
    return [place, span.start_line, span.end_line, span.start, span.end]


def _node_values(node: Node, path: int, files: dict[str, tuple[int, str]]) -> list[Any]:
    listed: list[int] = []
    if context := node.list_context:
        span = context.lead_in_span
        lead_in = _span_values(span, context.lead_in, files)[1:] if span else []
        listed = [context.position, context.size, *lead_in]
    own = [node.id, node.type.value, float(node.type_confidence), int(node.tokens), path, node.kind.value]
    return [*own, *_span_values(node.span, node.text, files), listed]


def _node(ordinal: int, files: Sequence[SourceFile], paths: Sequence[tuple[str, ...]], *values: Any) -> Node:
    id_, type_, confidence, tokens, path, kind, place, *location, listed = values
    span, text = _located(files[place], *location)
    context = None
    if listed:
        position, size, *lead_in = listed
        lead_in_span, lead_in_text = _located(files[place], *lead_in) if lead_in else (None, "")
        context = ListContext(lead_in_text, lead_in_span, position, size)
    return Node(
        kind=TileKind(kind),
        span=span,
        text=text,
        ordinal=ordinal,
        heading_path=paths[path],
        list_context=context,
        id=id_,
        type=NodeType(type_),
        type_confidence=confidence,
        tokens=tokens,
    )


def _located(file: SourceFile, start_line: int, end_line: int, start: int, end: int) -> tuple[Span, str]:
    """Return a span and the text at it."""
    return Span(file.path, start_line, end_line, start, end), file.text[start:end]
