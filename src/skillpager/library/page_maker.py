"""Makes the page of a query from the skills of a library: the pages of the best ones, under one budget.

Skills are taken in the order of the route. The first gets what the budget allows, the next ones what remains.
If one skill suffices, the result is that skill's page.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from skillpager.errors import SettingsError, SkillError, SkillPagerError
from skillpager.library.discovery import FoundSkill, skill_faults
from skillpager.library.library_page import (
    MAX_SKILLS,
    LibraryPage,
    LibraryPageOptions,
    Refusal,
    RefusalReason,
    SkillPart,
)
from skillpager.library.routing.routes import DEFAULT_ROUTED, Route, RoutedSkill, for_models
from skillpager.pages.assemble import choose_budget, estimates, leave_out, make_page
from skillpager.pages.gaps import not_covered, skill_tag, tag_of
from skillpager.pages.render import NodeMeter
from skillpager.strategies.baselines.simple import Full
from skillpager.strategies.picking import allows_all
from skillpager.types import Budget, PageOptions, SkillIndex, Style

if TYPE_CHECKING:
    from skillpager.pager import SkillPager

# A skill joins the first one if its chance is this share of the first one's, or more: of training's queries
# 1 % lose a needed skill among the first three by it, and pages of single tasks are a third shorter.
LEAST_SHARE = 0.15
SURE = 0.96  # a first skill as likely as this stands alone
# skills of one query whose coverage is estimated: each costs some milliseconds, and is indexed if it is new
MAX_VERIFIED = 5
NEAREST_SKILLS = 3  # that a page names where none fits
# what each reason means, in a sentence
WHY_REFUSED = {
    RefusalReason.CHANCE: "the query is not likely enough to need it",
    RefusalReason.NOT_COVERED: "it seems not to cover the query",
    RefusalReason.BUDGET: "nothing of it fits behind the other skills: raise the limit of tokens",
    RefusalReason.UNREADABLE: "it cannot be read",
    RefusalReason.USER_ONLY: "only the user may start it",
}


def make_library_page(
    pager: "SkillPager", route: Callable[..., Route], query: str, options: LibraryPageOptions
) -> LibraryPage:
    """Return the page of the skills that a query needs; `Library.page` has the contract.

    Args:
        pager: Indexes and pages the skills.
        route: `Library.route`.
        query: The query.
        options: The options.
    """
    if unknown := options.keys() - LibraryPageOptions.__annotations__.keys():
        raise TypeError(f"page() has no option {', '.join(sorted(unknown))}")
    most = options.get("max_skills", MAX_SKILLS)
    if most < 1:
        raise SettingsError(f"max_skills is {most}: it must be 1 or more.")
    maker = _PageMaker(pager, query, options)
    found = route(query, k=options.get("k", DEFAULT_ROUTED), progress=options.get("progress"))
    usable = for_models(found, len(found.skills))
    chosen, refused = maker.choose(usable, most)
    refused += [_refusal(each, RefusalReason.USER_ONLY) for each in found.skills if each.skill.user_only]
    text, parts, least = maker.page_of(chosen)
    refused += [_refusal(each, RefusalReason.BUDGET) for each in chosen[len(parts) :]]
    if not chosen:
        broken = {each.skill for each in refused if each.reason is RefusalReason.UNREADABLE}
        nearest = [each.skill for each in usable.skills if each.skill not in broken][:NEAREST_SKILLS]
        searched = f"{found.searched} skill{'' if found.searched == 1 else 's'}"
        named = f"; the nearest are {_names(nearest)}" if nearest else ""
        line = f"[No skill fits the query: {searched} searched{named}.]\n"
        text = line if maker.fits(line) else ""
    return LibraryPage(
        text=text,
        style=maker.style,
        parts=tuple(parts),
        tokens=maker.count(text),
        full_tokens=sum(part.page.full_tokens for part in parts),
        tokens_exact=pager.token_counter.exact,
        sufficiency=_together([part.page.sufficiency for part in parts], prod),
        covered=_together([part.page.covered for part in parts], min),
        route=found,
        refused=tuple(sorted(refused, key=lambda each: -each.chance)),
        least_tokens=least,
    )


def _refusal(routed: RoutedSkill, reason: RefusalReason, detail: str = "") -> Refusal:
    return Refusal(routed.skill, routed.chance, reason, detail or WHY_REFUSED[reason])


def _together(chances: Sequence[float | None], combine: Callable[[list[float]], float]) -> float | None:
    known = [chance for chance in chances if chance is not None]
    return combine(known) if known and len(known) == len(chances) else None


def _names(skills: Sequence[FoundSkill]) -> str:
    return ", ".join(json.dumps(skill.name, ensure_ascii=False) for skill in skills)


class _PageMaker:
    """Makes the page of one call.

    Args:
        pager: Indexes and pages the skills.
        query: The query.
        options: The options of the call.
    """

    def __init__(self, pager: "SkillPager", query: str, options: LibraryPageOptions) -> None:
        self._pager = pager
        self._options = options
        self._strategy = pager.strategy(options.get("strategy"))
        limits = PageOptions(
            max_tokens=options.get("max_tokens"),
            sufficiency=options.get("sufficiency"),
            fill=options.get("fill"),
        )
        self._budget = choose_budget(limits, pager.settings, self._strategy)
        self._query = query
        self._indexes: dict[FoundSkill, SkillIndex] = {}
        self.style = pager.style_of(options.get("style"))
        self.count = pager.token_counter.count

    def choose(self, route: Route, most: int) -> tuple[list[RoutedSkill], list[Refusal]]:
        """Return the skills that get a part, and the refusals of the others of a route.

        The strategy, which reads the nodes of a skill, estimates much better than the router whether the
        skill answers the query. Skills that cannot be read are passed over.
        """
        chosen: list[RoutedSkill] = []
        refused: list[Refusal] = []
        verified = 0
        for routed in route.skills:
            is_likely = not chosen or (
                chosen[0].chance < SURE and routed.chance >= LEAST_SHARE * chosen[0].chance
            )
            if len(chosen) == most or verified == MAX_VERIFIED or not is_likely:
                refused.append(_refusal(routed, RefusalReason.CHANCE))
                continue
            try:
                index = self._indexes[routed.skill] = self._index(routed.skill)
            except SkillPagerError as error:
                refused.append(_refusal(routed, RefusalReason.UNREADABLE, str(error)))
                continue
            verified += 1
            covered = self._covered(index)
            if said := not_covered(covered):
                refused.append(_refusal(routed, RefusalReason.NOT_COVERED, f"it {said}"))
            elif covered is None and not route.has_fit and routed.chance < route.threshold:
                refused.append(_refusal(routed, RefusalReason.CHANCE))
            else:
                chosen.append(routed)
        return chosen, refused

    def _index(self, skill: FoundSkill) -> SkillIndex:
        scope = self._options.get("scope") or self._pager.settings.scope
        with skill_faults(skill.path):
            index = self._pager.pool(skill.source(scope), self._strategy, scope=scope)
        if not index.nodes:
            raise SkillError(f"{skill.path} has nothing below its front matter.")
        return index

    def _covered(self, index: SkillIndex) -> float | None:
        """Return the estimated chance that a skill answers the query at all; None if it is not known."""
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
            part = self._part(first, self._budget)
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

    def _part(self, routed: RoutedSkill, budget: Budget, tag: str | None = None) -> SkillPart:
        """Return the page of a skill, as `SkillPager.page` makes it, with the tag of a page of several."""
        index, options = self._indexes[routed.skill], self._options
        show = options["show"](routed.skill) if "show" in options else ""
        renderer = self._pager.renderer(
            index, self.style, show, folder=options.get("folder", False), part_tag=tag
        )
        passes = allows_all(budget, len(index.nodes), estimating=estimates(self._strategy))
        asked = self._pager.query(self._query, self._strategy)
        page = make_page(renderer, self._strategy, asked, budget, whole=Full() if passes else None)
        page = leave_out(page, renderer, options["known"](index.key) if "known" in options else ())
        return SkillPart(routed.skill, routed.chance, page, index.key, show)


def common_tag(indexes: Sequence[SkillIndex]) -> str:
    """Return the tag of the marks of a page of several skills: none of them may imitate those of another."""
    skills = [index.skill for index in indexes]
    if not any(map(skill_tag, skills)):
        return ""
    texts = [skill.name for skill in skills]
    texts += [text for skill in skills for file in skill.files for text in (f"[{file.path}", file.text)]
    return tag_of(*texts)
