"""Vectors of skills and queries, by which routing finds skills that share few words with a query.

The vector of a text is the sum of trained vectors of its terms, so it needs no encoder and takes some tens of
microseconds. Each skill has two, in 8 bits a number: of name and description, and of the opening of its body.
A first pass over all skills compares signs (Hamming distance); the best are compared in full. The vectors of
skills are sums of integers, so that every machine gets the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from skillpager.errors import StrategyError, reinstall_command
from skillpager.library.routing.fields import FIELDS, MOST_COUNTED, Postings, TermArray
from skillpager.types import FloatArray

MODEL = Path(__file__).parents[2] / "models" / "router" / "vectors.npz"
# the fields whose terms make each of the vectors of a skill
SOURCES = (("name", "description"), ("opening",))
DESCRIBED, OPENING = range(len(SOURCES))
RESCORED = 200  # skills that are compared in full
# of what is near: most texts that share nothing are below, and few skills that a query needs
LEAST_COSINE = 0.3
CODE_BITS = 64  # of a word of a code
LARGEST = 127  # of a number in 8 bits
WEIGHT_STEPS = 256  # a weight of 1 as an integer
SUMMED_POSTINGS = 1 << 14  # at once, which bounds the memory of it

VectorArray = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class TermVectors:
    """Trained vectors of terms, of `dim` numbers each.

    Attributes:
        hashes: `(t,)` uint64, ascending hashes of the terms (`fields.hash_term`).
        rows: `(t, dim)` int8.
        in_query: `(t,)` float32: what a term weighs in a query.
        in_skill: `(t,)` float32: what it weighs in a skill.
    """

    hashes: TermArray
    rows: VectorArray
    in_query: FloatArray
    in_skill: FloatArray

    @property
    def dim(self) -> int:
        """Numbers of a vector: a multiple of `CODE_BITS`."""
        return int(self.rows.shape[1])

    def of_query(self, hashes: TermArray) -> FloatArray:
        """Return `(dim,)` float32: the vector of a query or of a part of it, given its terms.

        It has unit length, or is 0 if no term is known.
        """
        terms, counts = np.unique(hashes, return_counts=True)
        places, known = self._find(terms)
        weights = self.in_query[places[known]] * (1 + np.log(counts[known]))
        summed = weights.astype(np.float32) @ self.rows[places[known]].astype(np.float32)
        return _scaled(summed)

    def of_skills(self, fields: Sequence[Postings]) -> VectorArray:
        """Return `(n, len(SOURCES), dim)` int8: the vectors of skills, given the postings of `FIELDS`.

        The largest number of a vector is 127, or 0 if no term is known.
        """
        size = len(fields[0].lengths)
        vectors = np.zeros((size, len(SOURCES), self.dim), np.int8)
        for number, names in enumerate(SOURCES):
            summed = np.zeros((size, self.dim), np.int32)
            for name in names:
                self._add(fields[FIELDS.index(name)], summed)
            largest = np.maximum(np.abs(summed).max(axis=1, initial=0), 1)[:, None]
            vectors[:, number] = np.rint(summed * (LARGEST / largest))
        return vectors

    def _add(self, field: Postings, summed: NDArray[np.int32]) -> None:
        """Add the vectors of the terms of each skill to its row."""
        places, known = self._find(field.terms)
        sizes = np.diff(field.starts)
        held = np.repeat(known, sizes)
        rows = field.rows[held]
        terms = np.repeat(places, sizes)[held]
        often = 1 + np.log(np.arange(1, MOST_COUNTED + 1))
        weights = self.in_skill[terms] * often[field.counts[held].astype(np.intp) - 1]
        steps = np.rint(weights * WEIGHT_STEPS).astype(np.int32)
        order = np.argsort(rows, kind="stable")
        for start in range(0, len(order), SUMMED_POSTINGS):
            some = order[start : start + SUMMED_POSTINGS]
            firsts = np.flatnonzero(np.diff(rows[some], prepend=-1))
            products = self.rows[terms[some]] * steps[some][:, None]
            summed[rows[some][firsts]] += np.add.reduceat(products, firsts, axis=0)

    def _find(self, hashes: TermArray) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the place of each term, and whether it is known."""
        places = np.searchsorted(self.hashes, hashes).clip(max=len(self.hashes) - 1)
        return places, self.hashes[places] == hashes


@cache
def load_vectors(path: Path = MODEL) -> TermVectors:
    """Return the vectors in a file.

    Raises:
        StrategyError: It cannot be read.
    """
    try:
        with path.open("rb") as file, np.load(file) as held:
            vectors = TermVectors(held["hashes"], held["rows"], held["in_query"], held["in_skill"])
        sizes = {len(each) for each in (vectors.hashes, vectors.rows, vectors.in_query, vectors.in_skill)}
        if len(sizes) != 1 or vectors.rows.dtype != np.int8 or vectors.dim % CODE_BITS:
            raise ValueError(f"it holds arrays of {sizes} terms")
        return vectors
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise StrategyError(
            f"The router's vectors {path} cannot be used ({error}): the installation is damaged, so run "
            f"`{reinstall_command()}`."
        ) from error


class SkillVectors:
    """The vectors of the skills of a library.

    Args:
        terms: The vectors of terms.
        parts: `(n, len(SOURCES), dim)` int8 each: the vectors of some skills; the parts stay where they lie.
        ordinals: The skill of each row of all parts, one behind the other; -1 for none.
        size: Skills of the library; one without a row has a vector of zeros.
    """

    def __init__(
        self, terms: TermVectors, parts: Sequence[VectorArray], ordinals: NDArray[np.int32], size: int
    ) -> None:
        self.terms = terms
        self._parts = parts
        self._starts = np.cumsum([0, *map(len, parts)])
        self._rows = np.full(size, -1, np.int64)
        held = np.flatnonzero(ordinals >= 0)
        self._rows[ordinals[held]] = held
        self._codes = np.zeros((terms.dim // CODE_BITS, size), np.uint64)
        for part, start in zip(parts, self._starts, strict=False):
            mine = ordinals[start : start + len(part)]
            self._codes[:, mine[mine >= 0]] = codes_of(part[mine >= 0, DESCRIBED])
        self._known = np.flatnonzero(self._rows >= 0)

    def joined(
        self,
        places: NDArray[np.int64],
        part: VectorArray,
        own_places: NDArray[np.int64],
        is_near: NDArray[np.bool_],
    ) -> "SkillVectors":
        """Return the vectors of these skills and of those of another part; see `FieldIndex.joined`.

        Of the part only those that `is_near` marks, `(n,)`, are nearest to a query: others are nearer than
        some of a whole library, but not nearest in it.
        """
        ordinals = np.full(self._starts[-1], -1, np.int32)
        held = np.flatnonzero(self._rows >= 0)
        ordinals[self._rows[held]] = places[held]
        made = np.concatenate([ordinals, own_places]).astype(np.int32)
        joined = SkillVectors(self.terms, [*self._parts, part], made, len(self._rows) + len(own_places))
        joined._known = np.union1d(places[held], own_places[is_near])
        return joined

    def nearest(self, query: FloatArray, most: int) -> NDArray[np.intp]:
        """Return at most `most` skills whose description is nearest to a query, ascending.

        Args:
            query: `(dim,)`, as `TermVectors.of_query` returns it.
            most: At most `RESCORED`.
        """
        if not query.any():
            return np.empty(0, np.intp)
        found = self._known
        if len(found) > RESCORED:
            found = found[_least(self._distances(query)[found], RESCORED)]
        cosines = self.cosines(query[None], found)[DESCRIBED][:, 0]
        return np.sort(found[near_enough(cosines, most)])

    def _distances(self, query: FloatArray) -> NDArray[np.int16]:
        """Return `(size,)`: in how many signs each description differs from a query."""
        distances = np.zeros(self._codes.shape[1], np.int16)
        for codes, own in zip(self._codes, codes_of(query[None])[:, 0], strict=True):
            distances += np.bitwise_count(codes ^ own)
        return distances

    def cosines(self, queries: FloatArray, skills: NDArray[np.intp]) -> FloatArray:
        """Return `(len(SOURCES), len(skills), len(queries))`: cosines of skills and unit vectors."""
        rows = self._rows[skills]
        vectors = np.zeros((len(skills), len(SOURCES), self.terms.dim), np.float32)
        for part, start in zip(self._parts, self._starts, strict=False):
            mine = (rows >= start) & (rows < start + len(part))
            vectors[mine] = part[rows[mine] - start]
        return cosines_of(queries, vectors)


def cosines_of(queries: FloatArray, vectors: VectorArray | FloatArray) -> FloatArray:
    """Return `(len(SOURCES), n, len(queries))`: cosines of `(n, len(SOURCES), dim)` and unit vectors."""
    cosines: FloatArray = _scaled(vectors.astype(np.float32, copy=False)).swapaxes(0, 1) @ queries.T
    return cosines


def near_enough(cosines: FloatArray, most: int) -> NDArray[np.intp]:
    """Return the places of the largest that are large enough, at most `most`, the largest first."""
    best = np.argsort(-cosines, kind="stable")[:most]
    return best[cosines[best] >= LEAST_COSINE]


def codes_of(vectors: NDArray[np.int8] | FloatArray) -> NDArray[np.uint64]:
    """Return `(dim / CODE_BITS, n)`: the signs of vectors as bits."""
    return np.packbits(vectors > 0, axis=1).view(np.uint64).T


def sign_digits(vector: VectorArray | FloatArray) -> str:
    """Return the signs of a vector as the digits 0 and 1."""
    return "".join(map(str, (vector > 0).astype(int).tolist()))


def _least(values: NDArray[np.int16], most: int) -> NDArray[np.intp]:
    """Return the places of the `most` least values, of which there are more; of equal ones the first."""
    bound = np.partition(values, most - 1)[most - 1]
    below = np.flatnonzero(values < bound)
    return np.concatenate([below, np.flatnonzero(values == bound)[: most - len(below)]])


def _scaled(vectors: FloatArray) -> FloatArray:
    """Return vectors at unit length; those of zeros stay."""
    lengths = np.sqrt(np.einsum("...i,...i->...", vectors, vectors))[..., None]
    scaled: FloatArray = vectors / np.maximum(lengths, 1e-9)
    return scaled
