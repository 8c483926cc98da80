"""Copies and near-copies of skills: found by what their texts share, and folded to the first of each."""

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeAlias
from zlib import crc32

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

Sketch: TypeAlias = "array[int]"


def sketch_of(text: str) -> Sketch:
    """Return the sketch of a text: the least `SKETCH_HASHES` hashes of its shingles, ascending.

    It is the same in every process. A text with fewer words than a shingle has one hash, an empty text none.
    """
    words = _WORD.findall(text.lower())
    starts = range(max(1, len(words) - SHINGLE_WORDS + 1)) if words else ()
    shingles = {" ".join(words[at : at + SHINGLE_WORDS]).encode("utf-8", "surrogatepass") for at in starts}
    return array("I", sorted(map(crc32, shingles))[:SKETCH_HASHES])


def likeness(one: Sketch, other: Sketch) -> float:
    """Return the estimated share of shingles that two texts have in common, of all that either has, 0 to 1.

    It is exact for texts of at most `SKETCH_HASHES` shingles; two empty texts are not alike.
    """
    in_one, in_other = set(one), set(other)
    least = sorted(in_one | in_other)[:SKETCH_HASHES]
    return len(in_one.intersection(in_other, least)) / len(least) if least else 0.0


def find_copies(sketches: Sequence[Sketch]) -> list[tuple[int, int, float]]:
    """Return which texts are near-copies of an earlier one that is itself none, in order.

    That is the position of each copy, the position of the earliest text that it is like, and their likeness.
    """
    leading: dict[int, list[int]] = defaultdict(list)
    copies = []
    for place, sketch in enumerate(sketches):
        hashes = sketch[:LEADING_HASHES]
        shared = Counter(first for each in hashes for first in leading.get(each, ()))
        enough = len(hashes) * NEAR_COPY / 2
        likely = sorted(first for first, count in shared.items() if count >= enough)
        best = max(((likeness(sketches[first], sketch), -first) for first in likely), default=(0.0, 0))
        if best[0] >= NEAR_COPY:
            copies.append((place, -best[1], best[0]))
            continue
        for each in hashes:
            leading[each].append(place)
    return copies


def fold_route(route: Route, *, k: int) -> Route:
    """Return a route with copies folded to the first of each, cut to `k` skills.

    A copy has nearly the same text and the same name or description. Nearly the same text alone is no copy:
    many skills are made from a template, of which the few words that differ say what the skill is for.
    """
    skills = [routed.skill for routed in route.skills]
    copies = fold(skills, cache(lambda place: _sketch_of_skill(skills[place])))
    shown = [
        replace(route.skills[first], copies=tuple(skills[copy] for copy in of_first))
        for first, of_first in copies.items()
    ]
    return replace(route, skills=tuple(shown[:k]))


def fold(skills: Sequence[FoundSkill], sketch_at: Callable[[int], Sketch]) -> dict[int, list[int]]:
    """Return the positions of the skills to show, in order, each with those of its copies behind it.

    Args:
        skills: Best first.
        sketch_at: Returns the sketch of the skill at a position; called only for skills that share a name or
            a description.
    """
    shown: dict[int, list[int]] = {}
    named: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, skill in enumerate(skills):
        texts = {"name": skill.name.lower(), "description": skill.description.lower()}
        keys = [(kind, plain) for kind, text in texts.items() if (plain := _NO_LETTER.sub("", text))]
        for first in sorted({first for key in keys for first in named[key]}):
            if likeness(sketch_at(first), sketch_at(place)) >= NEAR_COPY:
                shown[first].append(place)
                break
        else:
            shown[place] = []
            for key in keys:
                named[key].append(place)
    return shown


def _sketch_of_skill(skill: FoundSkill) -> Sketch:
    try:
        file = skill.read(scope="body").files[0]
    except SkillPagerError:  # it has just gone, or cannot be read any more
        return sketch_of("")
    return sketch_of(file.text[file.body_start :])
