"""The result of routing a query: skills with their chances and reasons, and whether any skill fits."""

from dataclasses import dataclass, replace

from skillpager.json_types import RoutedSkillJson, RouteJson
from skillpager.library.discovery import FoundSkill, found_json
from skillpager.library.licences import UNKNOWN

DIGITS = 4  # of chances and cosines in JSON


@dataclass(frozen=True, slots=True)
class RoutedSkill:
    """A skill that routing found for a query, with its reasons.

    Attributes:
        skill: The skill.
        chance: Calibrated chance, 0 to 1, that the query needs this skill.
        terms: The terms of the query that the skill holds, most telling first.
        fields: The fields that hold any of them: `name`, `description`, `body`, in this order.
        node_cosine: Cosine of the query and the nearest node of the skill's stored index; None without one.
        node: Heading of that node; empty without one.
        features: What the chance was computed from, by name.
        licence: SPDX expression of the skill's licence; `LicenseRef-Proprietary`, or `unknown`.
        copies: Other skills with nearly the same text and the same description, which are not listed.
    """

    skill: FoundSkill
    chance: float
    terms: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    node_cosine: float | None = None
    node: str = ""
    features: tuple[tuple[str, float], ...] = ()
    licence: str = UNKNOWN
    copies: tuple[FoundSkill, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """The skills of a library for a query, best first.

    Attributes:
        query: The query.
        skills: The best skills, at most as many as were asked for.
        fits: Calibrated chance, 0 to 1, that any skill of the library fits the query.
        searched: Number of skills that were compared.
        threshold: Where `fits` is lower, front ends say that perhaps no skill fits.
    """

    query: str
    skills: tuple[RoutedSkill, ...]
    fits: float
    searched: int
    threshold: float = 0.5

    @property
    def has_fit(self) -> bool:
        """Whether a skill of the library is likely enough to fit the query."""
        return bool(self.skills) and self.fits >= self.threshold


def for_models(route: Route, k: int) -> Route:
    """Return the first `k` skills of a route that a model may start.

    What fits may be a skill that is left out: then no other skill is likelier than its own chance.
    """
    skills = tuple(routed for routed in route.skills if not routed.skill.user_only)
    best = skills[0].chance if skills else 0.0
    fits = route.fits if skills[:1] == route.skills[:1] else min(route.fits, best)
    return replace(route, skills=skills[:k], fits=fits)


def route_json(route: Route, *, explain: bool = False) -> RouteJson:
    """Return the JSON of a route, the same for every front end; `explain` adds what chances come from."""
    return {
        "query": route.query,
        "fits": round(route.fits, DIGITS),
        "has_fit": route.has_fit,
        "searched": route.searched,
        "skills": [_routed_json(routed, explain=explain) for routed in route.skills],
    }


def _routed_json(routed: RoutedSkill, *, explain: bool) -> RoutedSkillJson:
    form: RoutedSkillJson = {
        **found_json(routed.skill),  # type: ignore[typeddict-item] # its other fields follow
        "chance": round(routed.chance, DIGITS),
        "terms": list(routed.terms),
        "fields": list(routed.fields),
        "node_cosine": None if routed.node_cosine is None else round(routed.node_cosine, DIGITS),
        "node": routed.node,
        "folder": None if routed.skill.folder is None else str(routed.skill.folder),
        "licence": routed.licence,
        "copies": [str(copy.path) for copy in routed.copies],
    }
    if explain:
        form["features"] = {name: round(value, DIGITS) for name, value in routed.features}
    return form
