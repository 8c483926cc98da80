"""Notes on the nodes of a skill: what each node is asked for, and which nodes must come with it.

They are kept as JSON by the digest of the node: a node whose text or headings change loses its notes, the
others keep theirs. A file that comes with a skill is not trusted: it is checked, and only moves scores.
"""

import hashlib
import io
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skillpager.display_text import is_plain, snippet
from skillpager.files import make_private_folder, read_bounded, write_file
from skillpager.types import Encoder, FloatArray, Fragment, IndexNotes, Node

logger = logging.getLogger(__name__)

MAX_BYTES = 5 * 1024 * 1024
MAX_ASKS, MAX_ASK_CHARS, MAX_ALONG = 4, 200, 6


@dataclass(frozen=True, slots=True)
class NodeNotes:
    """What a node is asked for, and the digests of the nodes that must come with it."""

    asks: tuple[str, ...]
    along: tuple[str, ...]


Notes = dict[str, NodeNotes]  # by digest of the node


def digest_of(node: Node | Fragment) -> str:
    """Return the first half of the SHA-256 of a node's headings and text, hexadecimal."""
    return hashlib.sha256(json.dumps([*node.heading_path, node.text]).encode()).hexdigest()[:32]


def notes_in(data: object, digests: Mapping[str, str] | None = None) -> tuple[Notes, list[str]]:
    """Return the notes in untrusted JSON, and why entries are left out, each after the id of its node.

    The JSON is `{"nodes": [{"id", "asks", "with"}, …]}`, else a `ValueError`. Without `digests` by id,
    digests stand in place of ids.
    """
    if not (isinstance(data, dict) and isinstance(data.get("nodes"), list)):
        raise ValueError('there is no list of "nodes" in it')
    notes, faults = {}, []
    for place, entry in enumerate(data["nodes"], 1):
        name = f"entry {place}"
        try:
            match entry:
                case {"id": str(name), "asks": list(asks), "with": list(along)}:
                    _check("asks", asks, MAX_ASKS)
                    _check("with", [name, *along], MAX_ALONG + 1)
                case _:
                    raise ValueError("it has no id, asks and with")
            names = {each: digests.get(each) if digests is not None else each for each in (name, *along)}
            if unknown := [each for each, digest in names.items() if digest is None]:
                raise ValueError(f"the skill has no node {snippet(unknown[0])!r}")
            digest, *others = filter(None, names.values())
            notes[digest] = NodeNotes(tuple(asks), tuple(others))
        except ValueError as error:
            faults.append(f"{snippet(name)}: {error}")
    return notes, faults


def _check(name: str, texts: Sequence[object], most: int) -> None:
    if len(texts) > most:
        raise ValueError(f"{name} has too many entries")
    for text in texts:
        if not (isinstance(text, str) and text.strip() and len(text) <= MAX_ASK_CHARS and is_plain(text)):
            raise ValueError(f"{name} holds no plain text of 1 to {MAX_ASK_CHARS} characters on one line")


def read_notes(places: Sequence[Path]) -> Notes:
    """Return the notes in files, of which the first that has a node counts; a damaged file is a warning."""
    found: Notes = {}
    for place in reversed(places):
        try:
            data = read_bounded(place, MAX_BYTES)
            if len(data) > MAX_BYTES:
                raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
            notes, faults = notes_in(json.loads(data))
            if faults:
                logger.warning("%d notes in %s are not valid and not used", len(faults), place)
            found |= notes
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError, RecursionError) as error:
            logger.warning("the notes %s cannot be used: %s", place, snippet(str(error)))
    return found


def write_notes(place: Path, notes: Notes) -> None:
    """Write notes to a file; its folder is made if it is missing."""
    entries = [{"id": digest, "asks": of.asks, "with": of.along} for digest, of in notes.items()]
    make_private_folder(place.parent)
    write_file(place, json.dumps({"nodes": entries}, ensure_ascii=False, indent=1) + "\n")


def without_notes(nodes: Iterable[Node], notes: Notes) -> list[Node]:
    """Return the nodes that have no notes."""
    return [node for node in nodes if digest_of(node) not in notes]


def notes_on(
    nodes: Sequence[Node | Fragment], notes: Notes, encoder: Encoder, cached: Path
) -> IndexNotes | None:
    """Return notes as a strategy reads them, embedded; None if no node of a skill is asked for anything.

    The embeddings are kept in the file `cached`.
    """
    digests = [digest_of(node) for node in nodes]
    first = {digest: ordinal for ordinal, digest in reversed([*enumerate(digests)])}
    noted = [(ordinal, notes[digest]) for ordinal, digest in enumerate(digests) if digest in notes]
    asks = [(ordinal, ask) for ordinal, of in noted for ask in of.asks]
    along = [(ordinal, first[each]) for ordinal, of in noted for each in of.along if each in first]
    if not asks:
        return None
    return IndexNotes(
        noted=np.array([ordinal for ordinal, _ in noted], np.intp),
        rows=_rows([ask for _, ask in asks], encoder, cached),
        owners=np.array([ordinal for ordinal, _ in asks], np.intp),
        along=np.array(along, np.intp).reshape(-1, 2),
    )


def _rows(asks: Sequence[str], encoder: Encoder, cached: Path) -> FloatArray:
    key = hashlib.sha256(json.dumps([encoder.id, *asks]).encode()).hexdigest()
    try:
        with np.load(cached, allow_pickle=False) as stored:
            rows: FloatArray = stored[key]  # of other asks there is another key
            if rows.shape == (len(asks), encoder.dim):
                return rows
    except Exception as error:  # numpy raises errors of many kinds for damaged files
        logger.debug("%s has no embeddings of these asks: %r", cached, error)
    rows = encoder.encode_documents(asks)
    stream = io.BytesIO()
    np.savez(stream, **{key: rows})  # type: ignore[arg-type]
    try:
        make_private_folder(cached.parent)
        write_file(cached, stream.getvalue())
    except OSError as error:
        logger.warning("embeddings of notes cannot be kept in %s: %s", cached, error.strerror)
    return rows
