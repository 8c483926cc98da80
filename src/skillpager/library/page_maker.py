"""Makes the page of a query from the skills of a library: the pages of the best ones, one after the other."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from skillpager.errors import SettingsError, SkillError, SkillPagerError
from skillpager.library.discovery import FoundSkill, skill_faults
from skillpager.library.library_page import (
    LEAST_SHARE,
    MAX_SKILLS,
    MAX_VERIFIED,
    NEAREST_SKILLS,
    SURE,
    WHY_REFUSED,
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
from skillpager.types import Budget, Page, PageOptions, SkillIndex, Style

if TYPE_CHECKING:
    from skillpager.pager import SkillPager


def make_library_page(
    pager: "SkillPager", route: Callable[[int], Route], query: str, options: LibraryPageOptions
) -> LibraryPage:
    """Return the page of the skills that a query needs; `Library.page` has the contract.

    Args:
        pager: Indexes and pages the skills.
        route: Returns the route of the query, with a number of skills.
        query: The query.
        options: The options.
    """
    if unknown := options.keys() - LibraryPageOptions.__annotations__.keys():
        raise TypeError(f"page() has no option {', '.join(sorted(unknown))}")
    most, k = options.get("max_skills", MAX_SKILLS), options.get("k", DEFAULT_ROUTED)
    if most < 1:
        raise SettingsError(f"max_skills is {most}: it must be 1 or more.")
    maker = _PageMaker(pager, query, options)
    found = route(max(k, DEFAULT_ROUTED) if k > 0 else k)
    usable = for_models(found, len(found.skills))
    chosen, refused = maker.choose(usable, most)
    refused += [_refusal(each, RefusalReason.USER_ONLY) for each in found.skills if each.skill.user_only]
    text, parts, least = maker.page_of(chosen)
    shown = {part.skill for part in parts}
    refused += [_refusal(each, RefusalReason.BUDGET) for each in chosen if each.skill not in shown]
    if not chosen:
        broken = {each.skill for each in refused if each.reason is RefusalReason.UNREADABLE}
        nearest = [each.skill for each in usable.skills if each.skill not in broken][:NEAREST_SKILLS]
        text = maker.within_limit(_none_fits(found, nearest))
    return LibraryPage(
        text=text,
        style=maker.style,
        parts=tuple(parts),
        tokens=maker.count(text),
        full_tokens=sum(part.page.full_tokens for part in parts),
        tokens_exact=pager.token_counter.exact,
        sufficiency=_together([part.page.sufficiency for part in parts], prod),
        covered=_together([part.page.covered for part in parts], min),
        route=replace(found, skills=found.skills[:k]),
        refused=tuple(sorted(refused, key=lambda each: -each.chance)),
        least_tokens=least,
    )


def _refusal(routed: RoutedSkill, reason: RefusalReason, detail: str = "") -> Refusal:
    return Refusal(routed.skill, routed.chance, reason, detail or WHY_REFUSED[reason])


def _together(chances: Sequence[float | None], combine: Callable[[list[float]], float]) -> float | None:
    known = [chance for chance in chances if chance is not None]
    return combine(known) if known and len(known) == len(chances) else None


def _none_fits(route: Route, nearest: Sequence[FoundSkill]) -> str:
    """Return the line in place of a page if no skill fits: how many were searched, which are the nearest."""
    searched = f"{route.searched} skill{'' if route.searched == 1 else 's'}"
    named = f"; the nearest are {_names(nearest)}" if nearest else ""
    return f"[No skill fits the query: {searched} searched{named}.]\n"


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
            if problem := self._problem_of(routed.skill):
                refused.append(_refusal(routed, RefusalReason.UNREADABLE, problem))
                continue
            verified += 1
            covered = self._covered(self._indexes[routed.skill])
            if said := not_covered(covered):
                refused.append(_refusal(routed, RefusalReason.NOT_COVERED, f"it {said}"))
            elif covered is None and not route.has_fit and routed.chance < route.threshold:
                refused.append(_refusal(routed, RefusalReason.CHANCE))
            else:
                chosen.append(routed)
        return chosen, refused

    def _problem_of(self, skill: FoundSkill) -> str:
        """Return why a skill cannot be paged; empty if it can, and its index is kept."""
        scope = self._options.get("scope") or self._pager.settings.scope
        try:
            with skill_faults(skill.path):
                index = self._pager.pool(skill.source(scope), self._strategy, scope=scope)
            if not index.nodes:
                raise SkillError(f"{skill.path} has nothing below its front matter.")
        except SkillPagerError as error:
            return str(error)
        self._indexes[skill] = index
        return ""

    def _covered(self, index: SkillIndex) -> float | None:
        """Return the estimated chance that a skill answers the query at all; None if it is not known."""
        if not estimates(self._strategy):
            return None
        # the chance is that of the skill, whatever is picked: so nothing is
        nothing = Budget(max_nodes=0, fill=True)
        query, meter = self._pager.query(self._query, self._strategy), NodeMeter(index.nodes)
        return self._strategy.select(index, query, budget=nothing, meter=meter).covered

    def page_of(self, chosen: Sequence[RoutedSkill]) -> tuple[str, list[SkillPart], int | None]:
        """Return text and parts of the page of the chosen skills, and the least tokens if nothing fits."""
        limit, least = self._budget.max_tokens, None
        while len(chosen) > 1:
            heading = self._heading(chosen)
            text, parts = heading, list[SkillPart]()
            for routed in chosen:
                rest = None if limit is None else limit - self.count(text)
                page = None if rest is not None and rest <= 0 else self._page(chosen, routed, rest)
                if page is not None and page.least_tokens is None:
                    joined = f"{text}{'' if text == heading else chr(10)}{page.text.rstrip()}\n"
                    if limit is None or self.count(joined) <= limit:
                        text, parts = joined, [*parts, self._part(routed, page)]
            if len(parts) == len(chosen):
                return text, parts, None
            # the heading names what is on the page; a single skill has its own page, with all of the budget
            chosen = [each for each in chosen if each.skill in {part.skill for part in parts}] or chosen[:1]
        for routed in chosen:
            page = self._page(chosen, routed, limit)
            least = page.least_tokens
            return page.text, [self._part(routed, page)] if least is None else [], least
        return "", [], None

    def within_limit(self, text: str) -> str:
        """Return a text, or nothing if it exceeds the ceiling on tokens."""
        limit = self._budget.max_tokens
        return text if limit is None or self.count(text) <= limit else ""

    def _page(self, chosen: Sequence[RoutedSkill], routed: RoutedSkill, limit: int | None) -> Page:
        """Return the page of one of the chosen skills, as `SkillPager.page` makes it."""
        index, several = self._indexes[routed.skill], len(chosen) > 1
        tag = None
        if several:
            is_tagged = self.style is not Style.PLAIN
            tag = common_tag([self._indexes[each.skill] for each in chosen]) if is_tagged else ""
        folder = self._options.get("folder", False)
        renderer = self._pager.renderer(
            index, self.style, self._show(routed.skill), folder=folder, part_tag=tag
        )
        target = self._budget.sufficiency
        budget = replace(
            self._budget,
            max_tokens=limit,
            sufficiency=None if target is None else target ** (1 / len(chosen)),
        )
        passes = allows_all(budget, len(index.nodes), estimating=estimates(self._strategy))
        asked = self._pager.query(self._query, self._strategy)
        page = make_page(renderer, self._strategy, asked, budget, whole=Full() if passes else None)
        known = self._options.get("known")
        return leave_out(page, renderer, known(index.key) if known else ())

    def _part(self, routed: RoutedSkill, page: Page) -> SkillPart:
        key = self._indexes[routed.skill].key
        return SkillPart(routed.skill, routed.chance, page, key, self._show(routed.skill))

    def _show(self, skill: FoundSkill) -> str:
        show = self._options.get("show")
        return show(skill) if show else ""

    def _heading(self, chosen: Sequence[RoutedSkill]) -> str:
        """Return the first line of a page of several skills, which names them; tags of style `xml` do."""
        if self.style is not Style.MARKED:
            return ""
        tag = common_tag([self._indexes[each.skill] for each in chosen])
        return f"[Page{tag} of {len(chosen)} skills: {_names([each.skill for each in chosen])}.]\n\n"


def common_tag(indexes: Sequence[SkillIndex]) -> str:
    """Return the tag of the marks of a page of several skills: none of them may imitate those of another."""
    skills = [index.skill for index in indexes]
    if not any(map(skill_tag, skills)):
        return ""
    texts = [skill.name for skill in skills]
    texts += [text for skill in skills for file in skill.files for text in (f"[{file.path}", file.text)]
    return tag_of(*texts)
