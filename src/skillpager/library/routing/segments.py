"""Segments: what routing knows of some skills, as arrays in one block of bytes.

A library's skills lie in a few large segments and a small one of new skills. A skill's key stands for its
name and the digest of its SKILL.md, so that a segment never changes: a changed skill is a new one.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skillpager.library.routing.catalog import DamagedSegmentError
from skillpager.library.routing.fields import FIELDS, Postings, make_postings, merge_postings
from skillpager.library.routing.vectors import VectorArray, load_vectors

KeyArray = NDArray[np.uint64]

_POSTINGS = {"terms": "<u8", "starts": "<u4", "rows": "<i4", "counts": "|u1", "lengths": "<i4"}
_ALIGNED = 8  # bytes: arrays are read where they lie


@dataclass(frozen=True, eq=False)
class Segment:
    """The words and vectors of some skills.

    Attributes:
        keys: `(n,)` uint64: the key of the skill in each row.
        fields: The postings of each field, in the order of `FIELDS`.
        vectors: `(n, vectors of a skill, dim)` int8, as `TermVectors.of_skills` makes them of the fields.
    """

    keys: KeyArray
    fields: tuple[Postings, ...]
    vectors: VectorArray

    def pack(self) -> list[bytes | memoryview]:
        """Return the segment as blocks of bytes, one behind the other; its arrays are not copied."""
        arrays = {
            f"{name}.{part}": getattr(postings, part).astype(dtype, copy=False)
            for name, postings in zip(FIELDS, self.fields, strict=True)
            for part, dtype in _POSTINGS.items()
        }
        return _pack({"keys": self.keys.astype("<u8", copy=False), **arrays, "vectors": self.vectors})

    @classmethod
    def unpack(cls, data: bytes | bytearray) -> Self:
        """Return the segment whose blocks `pack` made; its arrays lie in their bytes.

        Raises:
            DamagedSegmentError: They are not such bytes.
        """
        wanted = {"keys": "<u8", "vectors": "|i1"} | {
            f"{name}.{part}": dtype for name in FIELDS for part, dtype in _POSTINGS.items()
        }
        arrays = _unpack(data, wanted)
        fields = tuple(Postings(**{part: arrays[f"{name}.{part}"] for part in _POSTINGS}) for name in FIELDS)
        return cls(arrays["keys"], fields, arrays["vectors"])

    @classmethod
    def merge(cls, parts: Sequence[Self], living: Collection[int]) -> Self:
        """Return segments as one, each skill once; only those of the last and those with a living key."""
        keep = _kept(parts, living)
        places, free = [], 0
        for kept in keep:
            places.append(np.where(kept, free + np.cumsum(kept) - 1, -1))
            free += int(kept.sum())
        fields = tuple(
            merge_postings(of, places) for of in zip(*(part.fields for part in parts), strict=True)
        )
        vectors = [part.vectors[kept] for part, kept in zip(parts, keep, strict=True)]
        return cls(_kept_keys(parts, keep), fields, np.concatenate(vectors))


def make_terms(keys: Sequence[int], texts: Sequence[Sequence[Sequence[str]]]) -> Segment:
    """Return the segment of skills, each given by its key and the terms of its fields."""
    return make_segment(keys, [make_postings([of[number] for of in texts]) for number in range(len(FIELDS))])


def make_segment(keys: Sequence[int], fields: Sequence[Postings]) -> Segment:
    """Return the segment of skills, given their keys and the postings of their fields."""
    return Segment(np.array(keys, np.uint64), tuple(fields), load_vectors().of_skills(fields))


def _kept(parts: Sequence[Segment], living: Collection[int]) -> list[NDArray[np.bool_]]:
    """Return which rows of each part stay: of a skill that stands in several the first, if it lives.

    All of the last part live: it is new, and its skills may not have been noted yet.
    """
    keep = []
    seen: set[int] = set()
    for number, part in enumerate(parts):
        keys = part.keys.tolist()
        is_new = number == len(parts) - 1
        keep.append(np.array([key not in seen and (is_new or key in living) for key in keys], bool))
        seen.update(keys)
    return keep


def _kept_keys(parts: Sequence[Segment], keep: Sequence[NDArray[np.bool_]]) -> KeyArray:
    keys: list[KeyArray] = [part.keys for part in parts]
    return np.concatenate([each[kept] for each, kept in zip(keys, keep, strict=True)])


def unpack_keys(data: bytes) -> KeyArray:
    """Return the keys of a segment, given at least that part of its bytes; empty if it is not."""
    try:
        end = data.index(b"\n") + 1
        dtype, (count,) = json.loads(data[:end])["keys"]
        return np.frombuffer(data, dtype, count, end + -end % _ALIGNED).astype(np.uint64)
    except (ValueError, TypeError, KeyError):
        return np.empty(0, np.uint64)


def _pack(arrays: Mapping[str, np.ndarray]) -> list[bytes | memoryview]:
    """Return arrays as blocks: a line of JSON with names, types and shapes, then their data, aligned."""
    head = json.dumps({name: [array.dtype.str, array.shape] for name, array in arrays.items()}).encode()
    blocks: list[bytes | memoryview] = [head + b"\n" + b" " * (-(len(head) + 1) % _ALIGNED)]
    for array in arrays.values():
        blocks += [np.ascontiguousarray(array).data.cast("B")] if array.size else []
        blocks.append(b" " * (-array.nbytes % _ALIGNED))
    return blocks


def _unpack(data: bytes | bytearray, wanted: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Return the arrays that `_pack` made bytes of, if they have the wanted names and types."""
    try:
        end = data.index(b"\n") + 1
        head = json.loads(data[:end])
        if {name: dtype for name, (dtype, _) in head.items()} != dict(wanted):
            raise DamagedSegmentError("it holds other arrays")
        start = end + -end % _ALIGNED
        arrays = {}
        for name, (dtype, shape) in head.items():
            count = int(np.prod(shape, dtype=np.int64))
            arrays[name] = np.frombuffer(data, dtype, count, start).reshape(shape)
            start += arrays[name].nbytes + -arrays[name].nbytes % _ALIGNED
    except (ValueError, TypeError, AttributeError) as error:
        raise DamagedSegmentError(str(error)) from error
    return arrays
