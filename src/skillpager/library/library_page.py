"""The page of a query from the skills of a library: the pages of the best ones, under one budget."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import prod
from typing import TYPE_CHECKING, cast

from typing_extensions import TypedDict

from skillpager.display_text import not_covered, sufficiency_words
from skillpager.errors import SettingsError, SkillError, SkillPagerError
from skillpager.json_types import INLINE, ROUNDED
from skillpager.library.discovery import FoundSkill, Progress, no_progress, skill_faults
from skillpager.library.routing.routes import DEFAULT_ROUTED, Route, RoutedSkill, for_models
from skillpager.pages.render import HINT, skill_tag, tag_of
from skillpager.types import Budget, Page, PageOptions, SkillIndex, Strategy, Style

if TYPE_CHECKING:
    from skillpager.pager import SkillPager

MAX_SKILLS = 3  # on a page
# A skill joins the first one if its chance is this share of the first one's, or more: of training's queries
# 1 % lose a needed skill among the first three by it, and pages of single tasks are a third shorter.
LEAST_SHARE = 0.15
SURE = 0.96  # a first skill as likely as this stands alone
# skills of one query whose coverage is estimated: each costs some milliseconds, and is indexed if it is new
MAX_VERIFIED = 5
NEAREST_SKILLS = 3  # that a page names where none fits
UNLIKELY = "the query is not likely enough to need it"


class LibraryPageOptions(TypedDict, total=False):
    """Options of `Library.page`; those without a note are as for `SkillPager.page`.

    Attributes:
        k: Skills in the route of the query.
        max_skills: Most skills on the page.
        sufficiency: The chance that all parts hold what is needed of their skills.
        style: Style `plain` has no names of skills.
        force: Whether the page is of the nearest skill if none fits.
        hint: What a page of none says of how to get that page.
        show: Returns the command that reads lines of a skill; see `show` of `PageOptions`.
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
    force: bool
    hint: str
    context: str
    known: Callable[[str], Collection[str]]
    progress: Progress


@dataclass(frozen=True, slots=True)
class SkillPart:
    """The part of a page that is of one skill, and the chance that the query needs it.

    `key` is that of the index of its nodes, `show` the command that reads its lines, empty without one.
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
    """A routed skill without a part of the page, and why; `detail` is the reason in a sentence."""

    skill: FoundSkill = field(metadata=INLINE)
    chance: float = field(metadata=ROUNDED)
    reason: RefusalReason
    detail: str


@dataclass(frozen=True, slots=True)
class LibraryPage:
    """A page from the skills of a library. `str(page)` is the text.

    Attributes:
        text: The rendered page; if no skill fits, a line that says so.
        style: How it was rendered.
        parts: Its parts, in the order in which they stand; one for a single skill, none if no skill fits.
        tokens: Tokens of `text`.
        full_tokens: Tokens of the skills of its parts, without front matter.
        tokens_exact: Whether the counts are a tokenizer's; False for estimates.
        sufficiency: Estimated chance that all parts hold what is needed of their skills; None if unknown.
        covered: The least of the estimated chances that a skill answers the query at all; None if unknown.
        route: The skills that routing found for the query.
        refused: The skills that were found and have no part, the most likely first.
        least_tokens: The least `max_tokens` with which a node fits, if none does; else None.
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
    def promise(self) -> str:
        """As of `Page`; not empty for whole skills."""
        broad = any(part.page.selection and part.page.selection.broad for part in self.parts)
        return "" if not_covered(self.covered) else sufficiency_words(self.sufficiency, broad=broad)

    @property
    def has_fit(self) -> bool:
        """Whether any skill fits."""
        return bool(self.parts) or self.least_tokens is not None

    def __str__(self) -> str:
        return self.text


def make_library_page(
    pager: "SkillPager", route: Callable[..., Route], query: str, options: LibraryPageOptions
) -> LibraryPage:
    """Return the page of the skills that a query needs; `Library.page` has the contract."""
    if unknown := options.keys() - LibraryPageOptions.__annotations__.keys():
        raise TypeError(f"page() has no option {', '.join(sorted(unknown))}")
    most = options.get("max_skills", MAX_SKILLS)
    if most < 1:
        raise SettingsError(f"max_skills is {most}: it must be 1 or more.")
    maker = _PageMaker(pager, query, options)
    found = route(query, k=options.get("k", DEFAULT_ROUTED), progress=options.get("progress", no_progress))
    chosen, refused = maker.choose(found, most)
    text, parts, least = maker.page_of(chosen)
    for routed in chosen[len(parts) :]:
        detail = "nothing of it fits behind the other skills: raise the limit of tokens"
        refused.append(Refusal(routed.skill, routed.chance, RefusalReason.BUDGET, detail))
    refused.sort(key=lambda each: -each.chance)
    if not chosen:
        passed_over = (RefusalReason.UNREADABLE, RefusalReason.USER_ONLY)
        nearest = [each.skill for each in refused if each.reason not in passed_over][:NEAREST_SKILLS]
        named = f"; the nearest are {_names(nearest)}; {options.get('hint', HINT)}" if nearest else ""
        searched = "1 skill" if found.searched == 1 else f"{found.searched} skills"
        line = f"[No skill fits the query: {searched} searched{named}.]\n"
        text = line if maker.fits(line) else ""
    pages = [part.page for part in parts]
    return LibraryPage(
        text=text,
        style=maker.style,
        parts=tuple(parts),
        tokens=maker.count(text),
        full_tokens=sum(page.full_tokens for page in pages),
        tokens_exact=pager.token_counter.exact,
        sufficiency=_combined([page.sufficiency for page in pages], prod),
        covered=_combined([page.covered for page in pages], min),
        route=found,
        refused=tuple(refused),
        least_tokens=least,
    )


def _combined(chances: list[float | None], combine: Callable[[list[float]], float]) -> float | None:
    known = [chance for chance in chances if chance is not None]
    return combine(known) if chances and len(known) == len(chances) else None


def _names(skills: Sequence[FoundSkill]) -> str:
    return ", ".join(json.dumps(skill.name, ensure_ascii=False) for skill in skills)


class _PageMaker:
    def __init__(self, pager: "SkillPager", query: str, options: LibraryPageOptions) -> None:
        from skillpager.pages.assemble import choose_budget  # numpy, which a list of names need not load

        self._pager = pager
        self._query = query
        self._options = options
        self._strategy = pager.strategy(options.get("strategy"))
        # several skills share one budget
        is_default = not options.get("strategy") and self._strategy.name == "navigator"
        self._shared = pager.strategy("lean") if is_default else self._strategy
        self._budget = choose_budget(cast(PageOptions, options), pager.settings, self._strategy)
        self._indexes: dict[FoundSkill, SkillIndex] = {}
        self.style = pager.style_of(options.get("style"))
        self.count = pager.token_counter.count

    def choose(self, route: Route, most: int) -> tuple[list[RoutedSkill], list[Refusal]]:
        """Return the skills that get a part, and the refusals of the others of a route.

        The strategy, which reads nodes, estimates much better than the router whether a skill fits.
        """
        likely = for_models(route, len(route.skills))
        chosen: list[RoutedSkill] = []
        refused: list[Refusal] = []
        verified = 0

        def refuse(reason: RefusalReason, detail: str) -> None:
            refused.append(Refusal(routed.skill, routed.chance, reason, detail))

        for routed in route.skills:
            if routed.skill.user_only:
                refuse(RefusalReason.USER_ONLY, "only the user may start it")
                continue
            is_likely = not chosen or (
                chosen[0].chance < SURE and routed.chance >= LEAST_SHARE * chosen[0].chance
            )
            if len(chosen) == most or verified == MAX_VERIFIED or not is_likely:
                refuse(RefusalReason.CHANCE, UNLIKELY)
                continue
            try:
                index = self._indexes[routed.skill] = self._index(routed.skill)
            except SkillPagerError as error:
                refuse(RefusalReason.UNREADABLE, str(error))
                continue
            verified += 1
            covered = self._covered(index)
            if said := not_covered(covered):
                refuse(RefusalReason.NOT_COVERED, f"it {said}")
            elif covered is None and not likely.has_fit and routed.chance < route.threshold:
                refuse(RefusalReason.CHANCE, UNLIKELY)
            else:
                chosen.append(routed)
        if self._options.get("force") and not chosen:
            chosen = [routed for routed in route.skills if routed.skill in self._indexes][:1]
            refused = [each for each in refused if each.skill not in [routed.skill for routed in chosen]]
        return chosen, refused

    def _index(self, skill: FoundSkill) -> SkillIndex:
        scope = self._options.get("scope") or self._pager.settings.scope
        with skill_faults(skill.path):
            index = self._pager.pool(skill.source(scope), self._strategy, scope=scope, query=self._query)
        if not index.nodes:
            raise SkillError(f"{skill.path} has nothing below its front matter.")
        return index

    def _covered(self, index: SkillIndex) -> float | None:
        """Return the estimated chance that a skill answers the query at all; None if unknown."""
        from skillpager.pages.assemble import NodeMeter, estimates

        if not estimates(self._strategy):
            return None
        # the chance is that of the skill, whatever is picked: so nothing is
        nothing = Budget(max_nodes=0, fill=True)
        query, meter = self._pager.query(self._query, self._strategy), NodeMeter(index.nodes)
        return self._strategy.select(index, query, budget=nothing, meter=meter).covered

    def page_of(self, chosen: Sequence[RoutedSkill]) -> tuple[str, list[SkillPart], int | None]:
        """Return text and parts of the page of the skills that fit, and the least tokens if none does."""
        for count in range(len(chosen), 1, -1):
            if made := self._page_of_all(chosen[:count]):
                return *made, None
        for first in chosen[:1]:
            part = self._part(first, self._budget, None)
            least = part.page.least_tokens
            return part.page.text, [part] if least is None else [], least
        return "", [], None

    def _page_of_all(self, chosen: Sequence[RoutedSkill]) -> tuple[str, list[SkillPart]] | None:
        """Return text and parts of the page of several skills; None if one has no room."""
        text, parts, budget = "", list[SkillPart](), self._budget
        tag = "" if self.style is Style.PLAIN else common_tag([self._indexes[each.skill] for each in chosen])
        if self.style is Style.MARKED:  # tags of style `xml` name the skills themselves
            text = f"[Page{tag} of {len(chosen)} skills: {_names([each.skill for each in chosen])}.]\n"
        if budget.sufficiency is not None:
            budget = replace(budget, sufficiency=budget.sufficiency ** (1 / len(chosen)))
        for routed in chosen:
            rest = None if budget.max_tokens is None else budget.max_tokens - self.count(text)
            if rest is not None and rest <= 0:
                return None
            part = self._part(routed, replace(budget, max_tokens=rest), tag)
            text += f"{chr(10) if text else ''}{part.page.text.rstrip()}\n"
            if part.page.least_tokens is not None or not self.fits(text):
                return None
            parts.append(part)
        return text, parts

    def fits(self, text: str) -> bool:
        """Return whether a text is within the ceiling on tokens."""
        return self._budget.max_tokens is None or self.count(text) <= self._budget.max_tokens

    def _part(self, routed: RoutedSkill, budget: Budget, tag: str | None) -> SkillPart:
        """Return the page of a skill; `tag` is that of the marks of a page of several."""
        index, options = self._indexes[routed.skill], self._options
        show = options["show"](routed.skill) if "show" in options else ""
        page_options = PageOptions(
            max_tokens=budget.max_tokens,
            sufficiency=budget.sufficiency,
            fill=budget.fill,
            strategy=self._strategy if tag is None else self._shared,
            style=self.style,
            show=show,
            folder=options.get("folder", False),
            force=options.get("force", False),
            context=options.get("context", ""),
            known=options["known"](index.key) if "known" in options else (),
        )
        page = self._pager.page_part(index, self._query, page_options, tag=tag)
        return SkillPart(routed.skill, routed.chance, page, index.key, show)


def common_tag(indexes: Sequence[SkillIndex]) -> str:
    """Return the tag of the marks of a page of several skills: none of them may imitate those of another."""
    skills = [index.skill for index in indexes]
    if not any(map(skill_tag, skills)):
        return ""
    texts = [skill.name for skill in skills]
    texts += [text for skill in skills for file in skill.files for text in (f"[{file.path}", file.text)]
    return tag_of(*texts)
