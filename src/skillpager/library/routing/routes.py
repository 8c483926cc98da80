"""Results of routing a query: skills with their chances and reasons, whether any fits, and all in words."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from skillpager.display_text import chance_words
from skillpager.json_types import HIDDEN, INLINE, ROUNDED, shown_as
from skillpager.library.discovery import FoundSkill
from skillpager.library.filters import UNKNOWN

DEFAULT_ROUTED = 10  # skills of a route
# terms of the query that are named, most telling first
MAX_TERMS = 6
_PATHS = shown_as(lambda copies: [copy.path for copy in copies], list[str])


@dataclass(frozen=True, slots=True)
class RoutedSkill:
    """A skill that routing found for a query, with its reasons.

    Attributes:
        chance: Calibrated chance, 0 to 1, that the query needs this skill.
        terms: The terms of the query that the skill holds, most telling first.
        fields: The fields that hold any of them: `name`, `description`, `body`, in this order.
        licence: SPDX expression of the skill's licence, or `unknown`.
        copies: Other skills with nearly the same text and the same description, which are not listed.
    """

    skill: FoundSkill = field(metadata=INLINE)
    chance: float = field(metadata=ROUNDED)
    terms: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    licence: str = UNKNOWN
    copies: tuple[FoundSkill, ...] = field(default=(), metadata=_PATHS)

    @property
    def folder(self) -> Path | None:
        """The search folder in which the skill was found; None for a skill that was not searched for."""
        return self.skill.folder


@dataclass(frozen=True, slots=True)
class Route:
    """The skills of a library for a query, best first.

    Attributes:
        skills: The best skills, at most as many as were asked for.
        fits: Calibrated chance, 0 to 1, that any skill of the library fits the query.
        searched: Number of skills that were compared.
        threshold: The least `fits` with which `has_fit` is true.
    """

    query: str
    skills: tuple[RoutedSkill, ...]
    fits: float = field(metadata=ROUNDED)
    searched: int
    threshold: float = field(default=0.5, metadata=HIDDEN)

    @property
    def has_fit(self) -> bool:
        """Whether a skill of the library is likely enough to fit the query."""
        return bool(self.skills) and self.fits >= self.threshold


def for_models(route: Route, k: int) -> Route:
    """Return the first `k` skills of a route that a model may start."""
    skills = tuple(routed for routed in route.skills if not routed.skill.user_only)
    # what fits may be a skill that is left out
    best = skills[0].chance if skills else 0.0
    fits = route.fits if skills[:1] == route.skills[:1] else min(route.fits, best)
    return replace(route, skills=skills[:k], fits=fits)


def reason_words(routed: RoutedSkill) -> str:
    """Return why a skill was found, such as `restore, dump in its description and body`."""
    if not routed.fields:
        return "phrases of its description"
    *before, last = routed.fields
    fields = f"{', '.join(before)} and {last}" if before else last
    return f"{', '.join(routed.terms[:MAX_TERMS])} in its {fields}"


def no_fit_words(route: Route) -> str:
    """Return that perhaps no skill fits the query, ahead of a list of the nearest; else an empty text."""
    if not route.searched:
        return "There are no skills."
    if route.has_fit:
        return ""
    one = route.searched == 1
    said = "the only skill does not fit" if one else f"none of {route.searched:,} skills fits"
    chance = f"the chance that {'it' if one else 'one'} does is {chance_words(route.fits)}"
    return f"Perhaps {said} the query: {chance}.{' The nearest:' if route.skills else ''}"
