"""A route in words: why a skill was found for a query, how large it is, and that perhaps no skill fits."""

from skillpager.library.discovery import FoundSkill
from skillpager.library.routing.routes import Route, RoutedSkill
from skillpager.output.formatting import chance_words
from skillpager.types import TokenCounter

# terms of the query that are named, most telling first
MAX_TERMS = 6


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


def skill_tokens(found: FoundSkill, counter: TokenCounter, *, scope: str, max_bytes: int) -> int:
    """Return the tokens of a skill without front matter, as its index has them; the skill is read for it.

    Raises:
        SkillError: It cannot be read any more.
    """
    skill = found.read(scope=scope, max_bytes=max_bytes)
    return sum(counter.count(file.text[file.body_start :]) for file in skill.files)
