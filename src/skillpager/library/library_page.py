"""A page from the skills of a library as a value: its parts, and the skills without a part."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import StrEnum

from typing_extensions import TypedDict

from skillpager.json_types import INLINE, ROUNDED
from skillpager.library.discovery import FoundSkill, Progress
from skillpager.library.routing.routes import Route
from skillpager.types import Page, Strategy, Style

MAX_SKILLS = 3  # on a page


class LibraryPageOptions(TypedDict, total=False):
    """Options of `Library.page`; all are optional.

    Attributes:
        k: Skills in the route of the query.
        max_skills: Most skills on the page.
        max_tokens: Ceiling on the tokens of the page, the names of skills and all marks included.
        sufficiency: As for `SkillPager.page`; the chance that all parts hold what is needed of their skills.
        fill: As for `SkillPager.page`.
        strategy: As for `SkillPager.page`.
        scope: As for `SkillPager.page`.
        style: As for `SkillPager.page`. Style `plain` has no names of skills.
        show: Returns the command that reads lines of a skill; see `show` of `PageOptions`.
        folder: As for `SkillPager.page`.
        known: Returns the ids of the nodes of an index that the reader has, given its key.
        progress: As for `Library.route`.
    """

    k: int
    max_skills: int
    max_tokens: int | None
    sufficiency: float | None
    fill: bool | None
    strategy: Strategy | str | None
    scope: str | None
    style: Style | str | None
    show: Callable[[FoundSkill], str]
    folder: bool
    known: Callable[[str], Collection[str]]
    progress: Progress


@dataclass(frozen=True, slots=True)
class SkillPart:
    """The part of a page that is of one skill.

    Attributes:
        skill: The skill.
        chance: The chance that the query needs the skill.
        page: The part as a page: its text, nodes, gaps and selection.
        key: Key of the index of its nodes.
        show: Command that reads its lines; empty if there is none.
    """

    skill: FoundSkill = field(metadata=INLINE)
    chance: float = field(metadata=ROUNDED)
    page: Page
    key: str
    show: str


class RefusalReason(StrEnum):
    """Reasons why a routed skill has no part of a page."""

    CHANCE = "chance"
    NOT_COVERED = "not_covered"
    BUDGET = "budget"
    UNREADABLE = "unreadable"
    USER_ONLY = "user_only"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A routed skill without a part of the page, and why.

    Attributes:
        skill: The skill.
        chance: The chance that the query needs the skill.
        reason: Why it has no part.
        detail: The reason in a sentence.
    """

    skill: FoundSkill = field(metadata=INLINE)
    chance: float = field(metadata=ROUNDED)
    reason: RefusalReason
    detail: str


@dataclass(frozen=True, slots=True)
class LibraryPage:
    """A page from the skills of a library.

    Attributes:
        text: The rendered page; if no skill fits, a line that says so.
        style: How it was rendered.
        parts: Its parts, in the order in which they stand; one for a single skill, none if no skill fits.
        tokens: Tokens of `text`.
        full_tokens: Tokens of the skills of its parts, without front matter.
        tokens_exact: Whether the counts are a tokenizer's; False for estimates.
        sufficiency: Estimated chance that each part holds all that is needed of its skill; None if the
            strategy does not estimate it.
        covered: The least of the estimated chances that a skill answers the query at all; None if one is
            not known.
        route: The skills that routing found for the query.
        refused: The skills that were found and have no part, the most likely first.
        least_tokens: If not a single node fits: the least `max_tokens` with which the page can hold one.
            Else None.
    """

    text: str
    style: Style
    parts: tuple[SkillPart, ...]
    tokens: int
    full_tokens: int
    tokens_exact: bool
    sufficiency: float | None
    covered: float | None
    route: Route
    refused: tuple[Refusal, ...]
    least_tokens: int | None = None

    @property
    def token_reduction(self) -> float:
        """As of `Page`."""
        return 1.0 - self.tokens / self.full_tokens if self.full_tokens else 0.0

    @property
    def has_fit(self) -> bool:
        """Whether any skill fits."""
        return bool(self.parts) or self.least_tokens is not None
