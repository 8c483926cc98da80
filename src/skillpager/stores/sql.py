"""Stores of indexes in an SQL database, whatever its kind: table, statements, and the bytes of an index.

An index is one blob, whose bytes `docs/design.md` describes. The text of nodes is not in them: they hold
offsets into the files of the skill. The digests of those files are part of the cache key, so the same key
means the same text.
"""

import hashlib
import io
import json
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from skillpager.errors import StoreError
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
    StoreEntry,
    TileKind,
)

logger = logging.getLogger(__name__)

Row = tuple[Any, ...]

# The last byte is the version of the format; raise it together with `indexing.FORMAT_VERSION`.
MAGIC = b"SkPgIdx\x02"
LENGTH_BYTES = 8
BUSY_TIMEOUT = 30.0  # seconds to wait for a lock of another process or session
FILE_PLACE = 6  # in the values of a node, the ordinal of its file

# columns of the table of indexes, but for its `id` and `data`, in types that SQLite and PostgreSQL know
COLUMNS = """key TEXT NOT NULL UNIQUE, name TEXT NOT NULL, root TEXT NOT NULL, nodes BIGINT NOT NULL,
    size BIGINT NOT NULL, created DOUBLE PRECISION NOT NULL, checksum TEXT NOT NULL"""

_SELECT = "SELECT id, name, checksum, data FROM indexes WHERE key = ?"
_NEWEST = "SELECT checksum, data FROM indexes WHERE name = ? AND root = ? ORDER BY id DESC LIMIT 1"
_INSERT = """
    INSERT INTO indexes (key, name, root, nodes, size, created, checksum, data)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING"""
# no checksum covers the time: a damaged one counts as 0
_ENTRIES = "SELECT key, name, root, nodes, size, created + 0.0 FROM indexes ORDER BY id DESC"
_EVICT = """
    DELETE FROM indexes WHERE id IN (
        SELECT id FROM (SELECT id, sum(size) OVER (ORDER BY id DESC) AS kept FROM indexes) AS entries
        WHERE kept > ?
    ) RETURNING id, key"""


class DamagedBlobError(Exception):
    """Bytes that are not those of the index they claim to be."""


@dataclass(frozen=True, slots=True)
class DamagedEntry:
    """Damage in an entry, by cache key and name of the skill, or in a file, by its path and without a key."""

    key: str
    name: str
    problem: str


class SqlStore(ABC):
    """Indexes as blobs in the table of an SQL database, with a checksum that each load verifies.

    An index never changes: of two that are saved under one key, the first stays. Methods raise `StoreError`
    where the database cannot be opened, read or (to save or delete) written. Without `max_bytes` there is no
    limit.
    """

    max_bytes: int | None

    @property
    @abstractmethod
    def place(self) -> str:
        """Where the store is, without any secret."""

    @abstractmethod
    def probe(self) -> str:
        """Return in words what can be done with the store; make what is missing for that."""

    @abstractmethod
    def close(self) -> None:
        """Close files and connections; using the store again opens others."""

    @abstractmethod
    def _read(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a statement, whose values are marked `?`."""

    @abstractmethod
    def _write(self, *statements: tuple[str, Sequence[object]]) -> list[Row]:
        """Execute statements, all or nothing, and return all their rows."""

    def exists(self) -> bool:
        """Return False if there is nothing to look into; nothing is made."""
        return True

    @property
    def size(self) -> int:
        """Bytes of all indexes; the database takes a little more."""
        return sum(entry.size for entry in self.entries()) if self.exists() else 0

    def load(self, key: str, skill: Skill) -> SkillIndex | None:
        """Return the index of `skill` stored under `key`, or None; a damaged one is logged and deleted."""
        found = self._read(_SELECT, (key,))
        if not found:
            return None
        ((id_, name, checksum, data),) = found
        try:
            _check(data, checksum)
            return decode(data, skill)
        except DamagedBlobError as problem:
            logger.warning(
                'The index of "%s" (%s) in %s is damaged: %s. It is deleted and will be rebuilt.',
                *(name, key, self.place, problem),
            )
            try:  # by its number: another may have been stored under its key since
                self._write(("DELETE FROM indexes WHERE id = ?", (id_,)))
            except StoreError as error:
                logger.warning("The damaged index cannot be deleted: %s", error)
            return None

    def rows_of_files(self, skill: Skill, recipe: Recipe) -> dict[str, FloatArray]:
        """Return the embeddings of each file, by its digest, of the newest index of the skill's folder.

        Empty if there is none of this recipe, or it is damaged.
        """
        found: dict[str, FloatArray] = {}
        for checksum, data in self._read(_NEWEST, _shown(skill)):
            with suppress(DamagedBlobError):
                _check(data, checksum)
                header, rows = _parts(data)
                if header["recipe"] == asdict(recipe):
                    files = (values[FILE_PLACE] for values in header["nodes"])
                    for place, run in groupby(enumerate(files), lambda pair: pair[1]):
                        found[header["files"][place][1]] = rows[[ordinal for ordinal, _ in run]]
        return found

    def save(self, index: SkillIndex) -> None:
        """Write `index` atomically; then delete the oldest ones that are over `max_bytes`.

        An index that alone is larger than `max_bytes` is not stored, which is logged.

        Raises:
            StoreError: The store is read-only, locked for too long, away, or the disk is full.
            ValueError: `index` breaks its own contract.
        """
        data, skill = encode(index), index.skill
        if self.max_bytes is not None and len(data) > self.max_bytes:
            logger.warning(
                'The index of "%s" is not stored: its %d bytes are more than the %d that %s may hold.',
                *(skill.name, len(data), self.max_bytes, self.place),
            )
            return
        values = (index.key, *_shown(skill), len(index.nodes), len(data), time.time(), _checksum(data), data)
        statements: list[tuple[str, Sequence[object]]] = [(_INSERT, values)]
        if self.max_bytes is not None:
            statements.append((_EVICT, (self.max_bytes,)))
        self._write(*statements)

    def entries(self) -> list[StoreEntry]:
        """Return every entry, the newest first."""
        return [StoreEntry(*row) for row in self._read(_ENTRIES)]

    def remove(self, keys: Sequence[str]) -> int:
        """Delete entries; return how many there were."""
        statement = "DELETE FROM indexes WHERE key = ? RETURNING key"
        return len(self._write(*((statement, (key,)) for key in keys)))

    def evict(self, max_bytes: int) -> list[str]:
        """Delete the oldest entries until `max_bytes` suffice; return their keys in that order."""
        return [key for _, key in sorted(self._write((_EVICT, (max_bytes,))))]

    def clear(self) -> None:
        """Delete every entry."""
        self._write(("DELETE FROM indexes", ()))

    def verify(self) -> list[DamagedEntry]:
        """Return what is damaged, by reading everything; nothing is changed."""
        damaged = []
        for entry in self.entries():
            try:
                for _, _, checksum, data in self._read(_SELECT, (entry.key,)):
                    _check(data, checksum)
            except DamagedBlobError as problem:
                damaged.append(DamagedEntry(entry.key, entry.name, str(problem)))
        return damaged


def _check(data: object, checksum: str) -> None:
    """Raise `DamagedBlobError` unless bytes have their checksum."""
    if not isinstance(data, bytes) or _checksum(data) != checksum:
        raise DamagedBlobError("its checksum does not match")


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _shown(skill: Skill) -> list[str]:
    """Return name and folder of a skill as they are listed: what no database can hold is escaped."""
    texts = skill.name, str(skill.root or "")
    return [text.encode(errors="backslashreplace").decode().replace("\0", "\\x00") for text in texts]


def encode(index: SkillIndex) -> bytes:
    """Return the bytes of an index; a `ValueError` if its spans, shapes or numbers do not fit."""
    import numpy as np  # slow to import: commands without indexes do not wait for it

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
    """Return the index that bytes hold, its texts cut out of `skill`; else a `DamagedBlobError`."""
    files = skill.files
    try:
        header, embeddings = _parts(data)
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


def _parts(data: bytes) -> tuple[dict[str, Any], FloatArray]:
    """Return the header and the embeddings that the bytes of an index hold."""
    import numpy as np

    if not data.startswith(MAGIC):
        raise DamagedBlobError("it is of another format")
    stream = io.BytesIO(data)
    stream.seek(len(MAGIC))
    header = json.loads(stream.read(int.from_bytes(stream.read(LENGTH_BYTES), "little")))
    embeddings: FloatArray = np.load(stream, allow_pickle=False).astype(np.float32, copy=False)
    embeddings.flags.writeable = False
    return header, embeddings


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
    return Span(file.path, start_line, end_line, start, end), file.text[start:end]
