"""Notes on the nodes of a skill: what each node is asked for, and which nodes must come with it.

A file of notes is JSON. It names nodes by digest, so that a node whose text or headings change loses its notes
and the others keep theirs. A file that comes with a skill is not trusted: what is in it is checked, and only
moves the scores of nodes.
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
from skillpager.types import Encoder, IndexNotes, Node, SkillIndex

logger = logging.getLogger(__name__)

MAX_BYTES = 5 * 1024 * 1024
MAX_ASKS, MAX_ASK_CHARS, MAX_ALONG = 4, 200, 6
VERSION = 1
DIGEST_DIGITS = 32


@dataclass(frozen=True, slots=True)
class NodeNotes:
    """What a node is asked for, and the digests of the nodes that must come with it."""

    asks: tuple[str, ...]
    along: tuple[str, ...]


Notes = Mapping[str, NodeNotes]  # by digest of the node


def digest_of(node: Node) -> str:
    """Return the first half of the SHA-256 of a node's headings and text, hexadecimal."""
    content = json.dumps([*node.heading_path, node.text])
    return hashlib.sha256(content.encode()).hexdigest()[:DIGEST_DIGITS]


def checked(asks: object, along: object) -> NodeNotes:
    """Return the notes of untrusted JSON.

    Raises:
        ValueError: They are not lists of texts, too many, too long, or not plain text.
    """
    for name, value, most in (("asks", asks, MAX_ASKS), ("with", along, MAX_ALONG)):
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise ValueError(f"{name} is not a list of texts")
        if len(value) > most:
            raise ValueError(f"{name} has {len(value)} entries, and {most} are the most")
        if not all(each.strip() and len(each) <= MAX_ASK_CHARS and is_plain(each) for each in value):
            raise ValueError(f"{name} has a text that is empty, over {MAX_ASK_CHARS} characters or not plain")
    return NodeNotes(tuple(map(str.strip, asks)), tuple(along))  # type: ignore[call-overload,arg-type]


def read_answer(data: object, nodes: Sequence[Node]) -> tuple[dict[str, NodeNotes], list[str]]:
    """Return the notes in a model's answer, and why entries are left out, each after the id of its node.

    Args:
        data: Decoded JSON: `{"nodes": [{"id", "asks", "with"}, …]}`.
        nodes: All nodes of the skill.

    Raises:
        ValueError: There is no list of nodes.
    """
    entries = data.get("nodes") if isinstance(data, dict) else None
    if not isinstance(entries, list):
        raise ValueError('there is no list of "nodes" in it')
    digests = {node.id: digest_of(node) for node in nodes}
    notes, faults = {}, []
    for place, entry in enumerate(entries, 1):
        match entry:
            case {"id": str(name), "asks": asks, "with": along}:
                pass
            case _:
                faults.append(f"entry {place}: it has no id, asks and with")
                continue
        try:
            found = checked(asks, along)
            if unknown := [each for each in (name, *found.along) if each not in digests]:
                raise ValueError(f"there is no node {snippet(unknown[0], DIGEST_DIGITS)!r}")
        except ValueError as error:
            faults.append(f"{snippet(name, DIGEST_DIGITS)}: {error}")
            continue
        others = dict.fromkeys(digests[each] for each in found.along if each != name)
        notes[digests[name]] = NodeNotes(found.asks, tuple(others))
    return notes, faults


def read_notes(path: Path) -> dict[str, NodeNotes]:
    """Return the notes in a file; none, with a warning, if it is damaged, and none if there is no file."""
    try:
        data = read_bounded(path, MAX_BYTES)
        if len(data) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
        match json.loads(data):
            case {"version": int(version), "nodes": dict(entries)} if version == VERSION:
                pass
            case _:
                raise ValueError(f"it is not of version {VERSION}")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError) as error:
        reason = snippet(str(error), MAX_ASK_CHARS)
        logger.warning("the notes %s cannot be used (%s): delete or replace the file", path, reason)
        return {}
    notes = {}
    for digest, entry in entries.items():
        try:
            notes[digest] = checked(entry["asks"], entry["with"])
        except (ValueError, LookupError, TypeError):
            continue
    if wrong := len(entries) - len(notes):
        logger.warning("%d of the notes in %s are not valid and not used", wrong, path)
    return notes


def write_notes(path: Path, notes: Notes, nodes: Iterable[Node]) -> None:
    """Write the notes of these nodes to a file, and no others.

    Raises:
        OSError: It cannot be written.
    """
    kept = dict.fromkeys(map(digest_of, nodes))
    entries = {
        digest: {"asks": notes[digest].asks, "with": notes[digest].along} for digest in kept if digest in notes
    }
    text = json.dumps({"version": VERSION, "nodes": entries}, ensure_ascii=False, indent=1)
    write_file(path, text + "\n")


def notes_on(index: SkillIndex, notes: Notes, encoder: Encoder, cached: Path) -> IndexNotes | None:
    """Return notes as a strategy reads them; None if they are about none of the nodes of an index.

    Args:
        index: The index.
        notes: Notes by digest of the node.
        encoder: Embeds what nodes are asked for, as it embeds queries.
        cached: File in which these embeddings are kept.
    """
    digests = [digest_of(node) for node in index.nodes]
    first = {digest: ordinal for ordinal, digest in reversed([*enumerate(digests)])}
    noted = [(ordinal, notes[digest]) for ordinal, digest in enumerate(digests) if digest in notes]
    asks = [(ordinal, ask) for ordinal, of in noted for ask in of.asks]
    if not asks:
        return None
    along = [(ordinal, first[each]) for ordinal, of in noted for each in of.along if each in first]
    return IndexNotes(
        noted=np.array([ordinal for ordinal, _ in noted], np.intp),
        rows=_rows([ask for _, ask in asks], encoder, cached),
        owners=np.array([ordinal for ordinal, _ in asks], np.intp),
        along=np.array(along, np.intp).reshape(-1, 2),
    )


def _rows(asks: Sequence[str], encoder: Encoder, cached: Path) -> "np.ndarray":
    """Return `(len(asks), dim)`, from the file if it has those of these asks and this encoder."""
    key = hashlib.sha256(json.dumps([encoder.id, *asks]).encode()).hexdigest()
    try:
        with np.load(cached, allow_pickle=False) as stored:
            if str(stored["key"]) == key and stored["rows"].shape == (len(asks), encoder.dim):
                return np.asarray(stored["rows"], np.float32)
    except FileNotFoundError:
        pass
    except Exception as error:  # of a damaged file: numpy raises errors of many kinds
        logger.warning("%s is damaged (%s) and made again", cached, snippet(str(error)))
    rows = encoder.encode_documents(asks)
    stream = io.BytesIO()
    np.savez(stream, key=np.array(key), rows=rows)
    try:
        make_private_folder(cached.parent)
        write_file(cached, stream.getvalue())
    except OSError as error:
        logger.warning("embeddings of notes cannot be kept in %s: %s", cached, error.strerror)
    return rows
