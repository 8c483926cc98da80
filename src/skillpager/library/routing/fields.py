"""The words of skills by field, in sparse arrays: BM25 of name, description, body and more, each alone.

Scores of the fields are summed, never their texts mixed: a word in a name is rarer, and says more, than the
same word in a body. Terms are kept as 64-bit hashes, so that a vocabulary of a million takes 8 MB.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skillpager.strategies.navigator.lexical import BM25_B, BM25_K1, terms_of
from skillpager.types import FloatArray

IntArray = NDArray[np.int64]
TermArray = NDArray[np.uint64]
StartArray = NDArray[np.integer[Any]]

# what a description says that a skill is not for is a field of its own, whose words count against it; the
# opening of a body tells what a skill does, and the phrases are pairs of neighbouring terms
FIELDS = ("name", "description", "body", "negated", "opening", "phrases")
OPENING_CHARS, OPENING_TERMS = 3_000, 250
MOST_COUNTED = 255  # occurrences of a term in a text: BM25 is flat long before
MAX_KEPT_HASHES = 200_000
MERGED_POSTINGS = 1_000_000  # merged together, which bounds the memory of it

# in a description, up to the end of the sentence
_NEGATED = re.compile(
    r"\b(?:(?:do|does|should|must|can) ?n[o']t (?:be )?(?:use|used|trigger|invoke|activate|apply|load)\b"
    r"|(?:don['’]t|never|avoid|not) (?:to be )?(?:use|used|using|trigger|triggering|invoke|activate)\b"
    r"|not (?:intended |meant |suitable |designed |needed |required |applicable )?(?:for|when|if)\b"
    r"|skip (?:this |it |the skill )*(?:for|when|if)\b)"
    r".*?(?:[.!?](?=\s|$)|$)",
    re.IGNORECASE | re.MULTILINE,
)


_CODE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+)$", re.MULTILINE)


def field_terms(name: str, description: str, body: str) -> tuple[list[str], ...]:
    """Return the terms of the fields of a skill, repetitions included, in the order of `FIELDS`."""
    prose = _CODE.sub(" ", body)
    described = routing_terms(_NEGATED.sub(" ", description))
    opening = routing_terms(prose[:OPENING_CHARS])[:OPENING_TERMS]
    headings = routing_terms("\n".join(_HEADING.findall(prose)))
    return (
        routing_terms(name),
        described,
        routing_terms(body),
        routing_terms("\n".join(_NEGATED.findall(description))),
        opening,
        [pair for terms in (described, headings, opening) for pair in pairs_of(terms)],
    )


def routing_terms(text: str) -> list[str]:
    """Return the terms by which skills are found, repetitions included."""
    return terms_of(text)


def pairs_of(terms: Sequence[str]) -> list[str]:
    """Return the pairs of neighbouring terms."""
    return [f"{first} {second}" for first, second in pairwise(terms)]


@lru_cache(MAX_KEPT_HASHES)
def hash_term(term: str) -> int:
    """Return the 64-bit number that stands for a term, the same on every machine."""
    data = term.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


@dataclass(frozen=True, eq=False)
class Postings:
    """The terms of one field of some skills, term by term.

    Attributes:
        terms: `(t,)` uint64, ascending hashes of the terms.
        starts: `(t + 1,)` uint32: the first posting of each term, and the end.
        rows: `(p,)` int32: the skills that hold a term, ascending.
        counts: `(p,)` uint8: how often each holds it.
        lengths: `(n,)` int32: terms of each skill, repetitions included.
    """

    terms: TermArray
    starts: StartArray
    rows: NDArray[np.int32]
    counts: NDArray[np.uint8]
    lengths: NDArray[np.int32]

    def ranges(self, terms: TermArray) -> tuple[IntArray, IntArray]:
        """Return the first posting and the end of each of the given terms; equal for an unknown one."""
        places = np.searchsorted(self.terms, terms)
        places[places == len(self.terms)] = 0
        known = self.terms[places] == terms if len(self.terms) else np.zeros(len(terms), bool)
        first = np.where(known, self.starts[places], 0).astype(np.int64)
        return first, np.where(known, self.starts[places + known], 0).astype(np.int64)


def make_postings(texts: Sequence[Sequence[str]]) -> Postings:
    """Return the postings of texts, each given as its terms."""
    numbers: dict[str, int] = {}
    lengths = np.array([len(terms) for terms in texts], np.int32)
    flat = np.fromiter(
        (numbers.setdefault(term, len(numbers)) for terms in texts for term in terms), np.int64, lengths.sum()
    )
    hashes = np.fromiter(map(hash_term, numbers), np.uint64, len(numbers))
    order = np.argsort(hashes)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    size = max(1, len(texts))
    pairs = ranks[flat] * size + np.repeat(np.arange(len(texts)), lengths)
    pairs, counts = np.unique(pairs, return_counts=True)
    starts = np.searchsorted(pairs, np.arange(len(order) + 1) * size)
    rows = (pairs % size).astype(np.int32)
    capped = np.minimum(counts, MOST_COUNTED).astype(np.uint8)
    return Postings(hashes[order], as_starts(starts), rows, capped, lengths)


def merge_postings(parts: Sequence[Postings], places: Sequence[IntArray]) -> Postings:
    """Return the postings of several parts as one, without terms that no skill holds any more.

    Args:
        parts: The parts.
        places: For each part `(n,)`: the new rows of its skills, ascending over all parts; -1 drops a skill.
    """
    moved = [place.astype(np.int32) for place in places]
    sizes = [_kept_sizes(part, place) for part, place in zip(parts, moved, strict=True)]
    terms = np.unique(np.concatenate([part.terms for part in parts]))
    totals = np.zeros(len(terms), np.int64)
    for part, size in zip(parts, sizes, strict=True):
        totals[np.searchsorted(terms, part.terms)] += size
    terms, totals = terms[totals > 0], totals[totals > 0]
    ends = np.cumsum(totals)
    rows = np.empty(totals.sum(), np.int32)
    counts = np.empty(len(rows), np.uint8)
    free = np.concatenate([[0], ends])  # of each term: where the next posting goes
    for part, place, size in zip(parts, moved, sizes, strict=True):
        mine = np.searchsorted(terms, part.terms)  # where `size` is 0 perhaps another term
        for first, last in _chunks(part.starts):
            span = slice(int(part.starts[first]), int(part.starts[last]))
            new, mass = place[part.rows[span]], size[first:last]
            targets = np.repeat(free[mine[first:last]] - np.cumsum(mass) + mass, mass)
            targets += np.arange(len(targets))
            rows[targets], counts[targets] = new[new >= 0], part.counts[span][new >= 0]
        held = size > 0
        free[mine[held]] += size[held]
    lengths = [part.lengths[place >= 0] for part, place in zip(parts, moved, strict=True)]
    return Postings(terms, as_starts(np.concatenate([[0], ends])), rows, counts, np.concatenate(lengths))


def _kept_sizes(part: Postings, places: NDArray[np.int32]) -> IntArray:
    """Return `(t,)`: how many postings of each term are of skills that are kept."""
    if (places >= 0).all():
        return np.diff(part.starts).astype(np.int64)
    sizes = np.empty(len(part.terms), np.int64)
    for first, last in _chunks(part.starts):
        begin = int(part.starts[first])
        stays = places[part.rows[begin : int(part.starts[last])]] >= 0
        before = np.concatenate([[0], np.cumsum(stays)])
        sizes[first:last] = np.diff(before[part.starts[first : last + 1].astype(np.int64) - begin])
    return sizes


def as_starts(starts: IntArray) -> StartArray:
    """Return the first posting of each term in half the bytes; four billion take 20 GB."""
    return starts.astype(np.uint32)


def _chunks(starts: StartArray) -> Iterable[tuple[int, int]]:
    """Yield ranges of terms with about `MERGED_POSTINGS` postings each."""
    first, end = 0, len(starts) - 1
    while first < end:
        last = int(np.searchsorted(starts, int(starts[first]) + MERGED_POSTINGS, "right")) - 1
        last = min(end, max(first + 1, last))
        yield first, last
        first = last


@dataclass(frozen=True, eq=False)
class Hits:
    """Where the terms of a query stand in one field of a library.

    Attributes:
        skills: `(h,)` int32: a skill for each hit.
        terms: `(h,)` int32: number of the term in the query.
        weights: `(h,)` float32: BM25 of the term in this field of the skill.
        rarity: `(t,)` float64: inverse document frequency of each term of the query in this field.
    """

    skills: NDArray[np.int32]
    terms: NDArray[np.int32]
    weights: FloatArray
    rarity: NDArray[np.float64]


class Counted(Protocol):
    """A field of which it is known how many skills hold each term."""

    def holders(self, terms: TermArray) -> IntArray:
        """Return `(t,)`: how many skills of the library hold each term."""


@dataclass(frozen=True, eq=False)
class FieldCounts:
    """What BM25 over one field needs to know of a library of which only some skills are at hand.

    Attributes:
        size: Number of skills of the library.
        total: The terms of all skills together, repetitions included.
        by_term: Number of skills that hold each term, by its hash; no skill holds a term that is left out.
    """

    size: int
    total: int
    by_term: Mapping[int, int]

    def holders(self, terms: TermArray) -> IntArray:
        """Return `(t,)`: how many skills of the library hold each term."""
        return np.array([self.by_term.get(term, 0) for term in terms.tolist()], np.int64)


class FieldIndex:
    """BM25 over one field of the skills of a library, which may lie in several parts.

    Args:
        parts: Postings, whose skills are rows one behind the other.
        ordinals: `(rows,)` int32: the library's number of the skill in each row; -1 if it is not of the
            library. No number stands twice.
        size: Number of skills.
        counts: Of the whole library, if these are only some of its skills: then they score as in the whole.
    """

    def __init__(
        self,
        parts: Sequence[Postings],
        ordinals: NDArray[np.int32],
        size: int,
        counts: FieldCounts | None = None,
    ) -> None:
        self._parts = parts
        self._ordinals = ordinals
        self._size = size
        self._counts = counts
        self._all = bool((ordinals >= 0).all())
        self._offsets = np.cumsum([0, *(len(part.lengths) for part in parts)])

    @cached_property
    def lengths(self) -> FloatArray:
        """`(n,)` float32: the number of terms of each skill, repetitions included."""
        lengths = np.zeros(self._size, np.float32)
        if self._parts:
            held = self._ordinals >= 0
            lengths[self._ordinals[held]] = np.concatenate([part.lengths for part in self._parts])[held]
        return lengths

    def joined(
        self, places: IntArray, part: Postings, own_places: IntArray, counts: FieldCounts
    ) -> "FieldIndex":
        """Return the index of these skills and of those of another part.

        Args:
            places: `(n,)`: the new number of each skill.
            part: The other part.
            own_places: The numbers of its skills.
            counts: Of the whole library.
        """
        moved = np.where(self._ordinals >= 0, places[self._ordinals], -1) if self._size else self._ordinals
        ordinals = np.concatenate([moved, own_places]).astype(np.int32)
        return FieldIndex([*self._parts, part], ordinals, self._size + len(own_places), counts)

    @cached_property
    def _norms(self) -> FloatArray:
        if self._counts is not None:
            mean = max(1.0, self._counts.total / max(1, self._counts.size))
        else:
            mean = max(1.0, float(self.lengths.mean(dtype=np.float64))) if self._size else 1.0
        norms: FloatArray = (BM25_K1 * (1 - BM25_B + BM25_B * self.lengths / mean)).astype(np.float32)
        return norms

    def holders(self, terms: TermArray) -> IntArray:
        """Return `(t,)`: how many skills of the library hold each term."""
        if self._counts is not None:
            return self._counts.holders(terms)
        found = np.zeros(len(terms), np.int64)
        for part, (gone, counts) in zip(self._parts, self._gone, strict=True):
            first, end = part.ranges(terms)
            found += end - first
            if len(gone):
                places = np.searchsorted(gone, terms).clip(max=len(gone) - 1)
                found -= np.where(gone[places] == terms, counts[places], 0)
        return found

    @cached_property
    def _gone(self) -> list[tuple[TermArray, IntArray]]:
        """Of each part the terms that skills hold which have gone, ascending, and how many hold each."""
        found = []
        for part, start, end in zip(self._parts, self._offsets, self._offsets[1:], strict=False):
            is_gone = self._ordinals[start:end] < 0
            postings = np.flatnonzero(is_gone[part.rows]) if is_gone.any() else np.empty(0, np.intp)
            places, counts = np.unique(
                np.searchsorted(part.starts, postings, side="right") - 1, return_counts=True
            )
            found.append((part.terms[places], counts))
        return found

    def hits(self, terms: TermArray) -> Hits:
        """Return where the terms stand, with their weights."""
        skills, numbers, counts = self._postings(terms)
        if self._counts is not None:
            rarity = rarity_of(self._counts.holders(terms), self._counts.size)
        else:
            rarity = rarity_of(np.bincount(numbers, minlength=len(terms)), self._size)
        weights: FloatArray = (rarity * (BM25_K1 + 1)).astype(np.float32)[numbers]
        times = counts.astype(np.float32)
        weights *= times
        times += self._norms[skills]
        weights /= times  # in place: there are hundreds of thousands
        return Hits(skills, numbers, weights, rarity)

    def _postings(self, terms: TermArray) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]:
        """Return for each posting of the terms the skill, the number of the term, and the count."""
        parts = list(zip(self._parts, self._offsets, self._offsets[1:], strict=False))
        ranges = [part.ranges(terms) for part, _, _ in parts]
        sizes = [ends - firsts for firsts, ends in ranges]
        of_parts = [np.repeat(np.arange(len(terms), dtype=np.int32), size) for size in sizes]
        numbers = np.concatenate([np.empty(0, np.int32), *of_parts])
        skills, counts = np.empty(len(numbers), np.int32), np.empty(len(numbers), np.uint8)
        free = 0
        for (part, start, end), (firsts, ends) in zip(parts, ranges, strict=True):
            ordinals = self._ordinals[start:end]
            for first, last in zip(firsts.tolist(), ends.tolist(), strict=True):
                if first < last:
                    there = slice(free, free := free + last - first)
                    np.take(ordinals, part.rows[first:last], out=skills[there], mode="clip")
                    counts[there] = part.counts[first:last]
        if self._all or not len(gone := np.flatnonzero(skills < 0)):
            return skills, numbers, counts
        # mostly a few, of skills that have changed: to pick all others takes four times as long
        return np.delete(skills, gone), np.delete(numbers, gone), np.delete(counts, gone)


def rarity_of(holders: IntArray, size: int) -> NDArray[np.float64]:
    """Return the inverse document frequency of terms, each held by so many of `size` skills."""
    rarity: NDArray[np.float64] = np.log1p((size - holders + 0.5) / (holders + 0.5))
    return rarity


def hash_terms(terms: Iterable[str]) -> TermArray:
    """Return the hashes of terms."""
    return np.array([hash_term(term) for term in terms], np.uint64)


def pick_terms(terms: Iterable[str], fields: Sequence[Counted], most: int) -> list[str]:
    """Return the terms of a query that any of the fields holds, rarest first, at most `most`, each once.

    A whole task names its tools once among hundreds of common words, each of which stands in many skills.
    Of equally rare terms the first in the query comes first.
    """
    asked = list(dict.fromkeys(terms))
    hashes = hash_terms(asked)
    holders = np.max([field.holders(hashes) for field in fields], axis=0) if asked else []
    order = sorted((count, place) for place, count in enumerate(holders) if count)
    return [asked[place] for _, place in order[:most]]
