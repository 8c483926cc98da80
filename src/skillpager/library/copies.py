"""Copies of skills: nearly the same text under the same name or description, folded to the first of each."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from skillpager.errors import SkillPagerError
from skillpager.library.discovery import FoundSkill
from skillpager.library.routing.routes import Route
from skillpager.types import Skill

# A shingle is so many words in a row: shared ones mean copied text, not the same subject.
# Reference: Broder, On the resemblance and containment of documents, 1997.
SHINGLE_WORDS = 5
# Share of common shingles from which two texts are copies. 255 of 18,812 public skills are copies of another
# with the same name or description: 25 of these were read, and all were one skill in two versions. With
# neither in common, most are one template, of which the few words that differ say what the skill is for.
NEAR_COPY = 0.8

# ideographs are words of their own; other scripts separate theirs
_IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W{_IDEOGRAPHS}]+")
_NO_LETTER = re.compile(r"[\W_]+")


def likeness(one: str, other: str) -> float:
    """Return the share of shingles that two texts have in common, of all that either has, 0 to 1.

    A text with fewer words than a shingle has one; two empty texts are not alike.
    """
    in_one, in_other = _shingles_of(one), _shingles_of(other)
    return len(in_one & in_other) / len(in_one | in_other) if in_one or in_other else 0.0


def _shingles_of(text: str) -> set[tuple[str, ...]]:
    words = _WORD.findall(text.lower())
    starts = range(max(1, len(words) - SHINGLE_WORDS + 1)) if words else ()
    return {tuple(words[at : at + SHINGLE_WORDS]) for at in starts}


def fold(skills: Sequence[FoundSkill | Skill], text_at: Callable[[int], str]) -> dict[int, list[int]]:
    """Return the positions of the skills that are no copies, in order, each with those of its copies.

    Of copies the first stays. `text_at` is called only for skills that share a name or a description.
    """
    firsts: dict[int, list[int]] = {}
    named: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, skill in enumerate(skills):
        texts = {"name": skill.name.lower(), "description": skill.description.lower()}
        keys = [(kind, plain) for kind, text in texts.items() if (plain := _NO_LETTER.sub("", text))]
        for first in sorted({first for key in keys for first in named[key]}):
            if likeness(text_at(first), text_at(place)) >= NEAR_COPY:
                firsts[first].append(place)
                break
        else:
            firsts[place] = []
            for key in keys:
                named[key].append(place)
    return firsts


def fold_route(route: Route, *, k: int) -> Route:
    """Return a route with copies folded to the first of each, cut to `k` skills."""
    skills = [routed.skill for routed in route.skills]

    @cache
    def text_at(place: int) -> str:
        try:
            file = skills[place].read(scope="body").files[0]
        except SkillPagerError:  # it has just gone, or cannot be read any more
            return ""
        return file.text[file.body_start :]

    folded = [
        replace(route.skills[first], copies=tuple(skills[copy] for copy in copies))
        for first, copies in fold(skills, text_at).items()
    ]
    return replace(route, skills=tuple(folded[:k]))
