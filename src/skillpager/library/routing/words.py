"""The words of one skill as bytes, for a shared store: hashes and counts of the terms of each field.

A segment of many skills is made of them without their texts: the arrays are those that `make_terms` makes.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skillpager.library.routing.catalog import DamagedSegmentError
from skillpager.library.routing.fields import (
    FIELDS,
    MOST_COUNTED,
    Postings,
    TermArray,
    as_starts,
    field_terms,
    hash_term,
)
from skillpager.library.routing.segments import Segment, make_segment

# raise it when terms or fields change
VERSION = 5
# the version, then for each field the number of different terms, and of all
_HEAD_BYTES = 8 + 8 * len(FIELDS)
_LOW_BITS = np.uint64(0xFFFF)


def words_of(name: str, description: str, body: str) -> bytes:
    """Return the words of a skill: a head, then the hashes of all fields (ascending in each), then counts."""
    head, hashes, counts = [], [], []
    for terms in field_terms(name, description, body):
        held = sorted((hash_term(term), count) for term, count in Counter(terms).items())
        head.append((len(held), len(terms)))
        hashes += [term for term, _ in held]
        counts += [min(count, MOST_COUNTED) for _, count in held]
    version = np.array([VERSION], "<u8")
    parts = version, np.array(head, "<u4"), np.array(hashes, "<u8"), np.array(counts, np.uint8)
    return b"".join(part.tobytes() for part in parts)


def are_whole(words: bytes) -> bool:
    """Return whether bytes are words of this release, and not cut off."""
    is_current = len(words) >= _HEAD_BYTES and words[:8] == VERSION.to_bytes(8, "little")
    # eight bytes of a hash and one of a count
    return is_current and len(words) == _HEAD_BYTES + 9 * sum(_read_head(words)[:, 0].tolist())


def segment_of(keys: Sequence[int], words: Sequence[bytes]) -> Segment:
    """Return the segment of skills, each given by its key and its words, which `are_whole`."""
    hashes: list[list[NDArray[np.uint64]]] = [[] for _ in FIELDS]
    counts: list[list[NDArray[np.uint8]]] = [[] for _ in FIELDS]
    heads = np.zeros((len(words), len(FIELDS), 2), np.int64)
    for place, data in enumerate(words):
        heads[place], of_hashes, of_counts = unpack_words(data)
        start = 0
        for field, size in enumerate(heads[place, :, 0].tolist()):
            hashes[field].append(of_hashes[start : start + size])
            counts[field].append(of_counts[start : start + size])
            start += size
    return make_segment(
        keys, [_postings(hashes[field], counts[field], heads[:, field, 1]) for field in range(len(FIELDS))]
    )


def _read_head(words: bytes) -> NDArray[np.uint32]:
    """Return for each field the number of different terms, and of all; shape `(n_fields, 2)`."""
    return np.frombuffer(words, "<u4", 2 * len(FIELDS), 8).reshape(-1, 2)


def unpack_words(data: bytes) -> tuple[NDArray[np.uint32], TermArray, NDArray[np.uint8]]:
    """Return the arrays in the bytes that `words_of` made.

    These are `(fields, 2)`, the number of different terms of each field and of all; and the hashes and the
    counts of all fields, one field behind the other.

    Raises:
        DamagedSegmentError: They are not such bytes.
    """
    if not are_whole(data):
        raise DamagedSegmentError("the words of a skill are cut off, or of another release")
    head = _read_head(data)
    size = int(head[:, 0].sum())
    hashes = np.frombuffer(data, "<u8", size, _HEAD_BYTES)
    return head, hashes, np.frombuffer(data, np.uint8, size, _HEAD_BYTES + hashes.nbytes)


def postings_of(words: Sequence[bytes], terms: TermArray) -> tuple[Postings, ...]:
    """Return the postings of some terms, ascending, in each field of skills that are given by their words.

    Raises:
        DamagedSegmentError: Bytes are not those of words.
    """
    heads = np.zeros((len(words), len(FIELDS), 2), np.int64)
    hashes, counts = [], []
    for place, data in enumerate(words):
        heads[place], of_hashes, of_counts = unpack_words(data)
        hashes.append(of_hashes)
        counts.append(of_counts)
    flat = np.concatenate([np.empty(0, np.uint64), *hashes])
    # most terms of a skill are not asked for: a look at 16 bits says so of nearly all of these
    likely = np.zeros(1 << 16, bool)
    likely[terms & _LOW_BITS] = True
    found = np.flatnonzero(likely[flat & _LOW_BITS])
    numbers = np.searchsorted(terms, flat[found]).clip(max=max(0, len(terms) - 1))
    is_asked = terms[numbers] == flat[found] if len(terms) else np.zeros(0, bool)
    found, numbers = found[is_asked], numbers[is_asked]
    counted = np.concatenate([np.empty(0, np.uint8), *counts])[found]
    skills, fields = np.divmod(np.searchsorted(np.cumsum(heads[:, :, 0]), found, side="right"), len(FIELDS))
    parts = []
    for field in range(len(FIELDS)):
        mine = np.flatnonzero(fields == field)
        order = mine[np.argsort(numbers[mine], kind="stable")]  # of one term the skills stay in order
        starts = np.searchsorted(numbers[order], np.arange(len(terms) + 1))
        lengths = heads[:, field, 1].astype(np.int32)
        parts.append(
            Postings(terms, as_starts(starts), skills[order].astype(np.int32), counted[order], lengths)
        )
    return tuple(parts)


def _postings(
    hashes: Sequence[NDArray[np.uint64]], counts: Sequence[NDArray[np.uint8]], lengths: NDArray[np.int64]
) -> Postings:
    flat = np.concatenate(hashes)
    rows = np.repeat(np.arange(len(hashes), dtype=np.int32), [len(each) for each in hashes])
    order = np.argsort(flat, kind="stable")  # of one term the skills stay in order
    terms, starts = np.unique(flat[order], return_index=True)
    return Postings(
        terms,
        as_starts(np.append(starts, len(flat))),
        rows[order],
        np.concatenate(counts)[order],
        lengths.astype(np.int32),
    )
