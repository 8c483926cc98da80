"""Copies and near-copies of skills: found by what their texts share, and folded to the first of each."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from skillpager.errors import SkillPagerError
from skillpager.library.discovery import FoundSkill
from skillpager.library.routing.routes import Route

# A shingle is so many words in a row: shared ones mean copied text, not the same subject.
# Reference: Broder, On the resemblance and containment of documents, 1997.
SHINGLE_WORDS = 5
# hashes of a sketch, with which an estimated likeness of 0.8 has a standard error of 0.025
SKETCH_HASHES = 256
# The least hashes of a sketch lead to texts that may be copies. Two copies share half the expected number of
# these with a probability of 0.999 at a likeness of 0.5, and a higher one if they are more alike.
LEADING_HASHES = 32
# Likeness from which two texts are near-copies. 331 of 18,812 public skills are such copies, 255 of them with
# the same name or description as the first: 25 of these were read, and all were one skill in two versions.
# Most of the others are one template, filled in for different products.
NEAR_COPY = 0.8

# ideographs are words of their own; other scripts separate theirs
_IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W{_IDEOGRAPHS}]+")
_NO_LETTER = re.compile(r"[\W_]+")
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # 2 to the 64 by the golden ratio: it spreads the bits

Sketch = NDArray[np.uint32]

_hash_of = lru_cache(100_000)(lambda word: crc32(word.encode("utf-8", "surrogatepass")))


def sketch_of(text: str) -> Sketch:
    """Return the sketch of a text: the least `SKETCH_HASHES` hashes of its shingles, ascending.

    It is the same in every process. A text with fewer words than a shingle has one hash, an empty text none.
    """
    words = _WORD.findall(text.lower())
    if not words:
        return np.empty(0, np.uint32)
    codes = np.fromiter(map(_hash_of, words), np.uint64, len(words))
    length = max(1, len(codes) - SHINGLE_WORDS + 1)
    mixed = np.zeros(length, np.uint64)
    for place in range(min(SHINGLE_WORDS, len(codes))):
        mixed = (mixed ^ codes[place : place + length]) * _FACTOR
        mixed ^= mixed >> np.uint64(29)
    return np.unique((mixed >> np.uint64(32)).astype(np.uint32))[:SKETCH_HASHES]


def likeness(one: Sketch, other: Sketch) -> float:
    """Return the estimated share of shingles that two texts have in common, of all that either has, 0 to 1.

    It is exact for texts of at most `SKETCH_HASHES` shingles; two empty texts are not alike.
    """
    least = np.union1d(one, other)[:SKETCH_HASHES]
    if not len(least):
        return 0.0
    in_both = np.intersect1d(one, other, assume_unique=True)
    return float(np.isin(least, in_both, assume_unique=True).mean())


@dataclass(frozen=True, slots=True)
class NearCopy:
    """A text that is a near-copy of an earlier one; both by position.

    Attributes:
        place: Position of the text.
        first: Position of the earliest text that it is like.
        likeness: Estimated share of shingles in common, 0 to 1; 1.0 may still differ in a few words.
    """

    place: int
    first: int
    likeness: float


def find_copies(sketches: Sequence[Sketch], *, threshold: float = NEAR_COPY) -> list[NearCopy]:
    """Return which texts are near-copies of an earlier one that is itself none, in order.

    Args:
        sketches: Of each text.
        threshold: Least likeness of near-copies, above 0.
    """
    leading: dict[int, list[int]] = defaultdict(list)
    copies = []
    for place, sketch in enumerate(sketches):
        hashes = sketch[:LEADING_HASHES].tolist()
        shared = Counter(first for each in hashes for first in leading.get(each, ()))
        enough = len(hashes) * threshold / 2
        likely = sorted(first for first, count in shared.items() if count >= enough)
        best = max(((likeness(sketches[first], sketch), -first) for first in likely), default=(0.0, 0))
        if best[0] >= threshold:
            copies.append(NearCopy(place, -best[1], best[0]))
            continue
        for each in hashes:
            leading[each].append(place)
    return copies


def fold(
    skills: Sequence[FoundSkill], sketch_at: Callable[[int], Sketch], *, threshold: float = NEAR_COPY
) -> list[tuple[int, tuple[int, ...]]]:
    """Return the positions of the skills to show, in order, each with those of its copies among the others.

    A copy has nearly the same text and the same name or description. Nearly the same text alone is no copy:
    many skills are made from a template, of which the few words that differ say what the skill is for.

    Args:
        skills: Best first.
        sketch_at: Returns the sketch of the text, without front matter, of the skill at a position. It is
            called only for skills that share a name or a description.
        threshold: Least likeness of copies.
    """
    shown: dict[int, list[int]] = {}
    named: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, skill in enumerate(skills):
        keys = subjects(skill)
        first = next(
            (
                first
                for first in sorted({first for key in keys for first in named[key]})
                if likeness(sketch_at(first), sketch_at(place)) >= threshold
            ),
            None,
        )
        if first is not None:
            shown[first].append(place)
            continue
        shown[place] = []
        for key in keys:
            named[key].append(place)
    return [(first, tuple(copies)) for first, copies in shown.items()]


def fold_route(route: Route, *, k: int) -> Route:
    """Return a route with copies folded to the first of each, cut to `k` skills."""
    skills = [routed.skill for routed in route.skills]

    @cache
    def sketch_at(place: int) -> Sketch:
        try:
            file = skills[place].read(scope="body").files[0]
        except SkillPagerError:  # it has just gone, or cannot be read any more
            return sketch_of("")
        return sketch_of(file.text[file.body_start :])

    shown = [
        replace(route.skills[first], copies=tuple(skills[copy] for copy in copies))
        for first, copies in fold(skills, sketch_at)
    ]
    return replace(route, skills=tuple(shown[:k]))


def subjects(skill: FoundSkill) -> list[tuple[str, str]]:
    """Return by what a skill is told from others of nearly the same text: its name and its description."""
    texts = (("name", skill.name), ("description", skill.description))
    return [(kind, plain) for kind, text in texts if (plain := _NO_LETTER.sub("", text.lower()))]
