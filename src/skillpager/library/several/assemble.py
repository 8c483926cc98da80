"""One page from several skills: what a query needs of each, within one budget.

route   query, and each of its tasks → candidates → the set of skills that explains the tasks
verify  skill, its tasks → the chance that it answers them; a set of skills that do takes its place
page    skill, its tasks → picks; the picks of all skills → one pool, one budget → a part for each skill

If one skill suffices, the result is that skill's page.
"""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from skillpager.errors import SettingsError, SkillError, SkillPagerError
from skillpager.library.discovery import FoundSkill, skill_faults
from skillpager.library.library import DEFAULT_ROUTED
from skillpager.library.routing.routes import Route, for_models
from skillpager.library.several.choosing import (
    FULL_ROUTE,
    MAX_SKILLS,
    Candidate,
    find_candidates,
    share_tasks,
    tasks_of,
)
from skillpager.library.several.pages import (
    LibraryPage,
    LibraryPageOptions,
    Refusal,
    RefusalReason,
    SkillPart,
)
from skillpager.library.several.pooling import Share, Source, share_budget
from skillpager.library.several.verifying import choose_verified, is_likely
from skillpager.pages.assemble import choose_budget, estimates
from skillpager.pages.gaps import not_covered, skill_tag, tag_of
from skillpager.pages.render import NodeMeter
from skillpager.types import Budget, Page, PageOptions, SkillIndex, Style

if TYPE_CHECKING:
    from skillpager.library.library import Library
    from skillpager.pager import SkillPager

# skills in the route of a task: one with a part is seldom further down for any task
TASK_ROUTED = 50
# skills that a page names where none fits
NEAREST_SKILLS = 3


def make_library_page(library: "Library", query: str, options: LibraryPageOptions) -> LibraryPage:
    """Return the page of the skills that a query needs; `Library.page` has the contract."""
    if unknown := options.keys() - LibraryPageOptions.__annotations__.keys():
        raise TypeError(f"page() has no option {', '.join(sorted(unknown))}")
    most = options.get("max_skills", MAX_SKILLS)
    if most < 1:
        raise SettingsError(f"max_skills is {most}: it must be 1 or more.")
    desk = _Desk(library.pager, options)
    k = options.get("k", DEFAULT_ROUTED)
    route = library.route(query, k=max(k, FULL_ROUTE) if k > 0 else k, progress=options.get("progress"))
    tasks = tasks_of(query)
    of_tasks = [library.route(task, k=TASK_ROUTED) for task in tasks] if len(tasks) > 1 else []
    candidates = find_candidates(route, of_tasks)
    refused = [each.refusal(RefusalReason.USER_ONLY) for each in candidates if each.skill.user_only]
    usable = [each for each in candidates if not each.skill.user_only]
    # a skill that only the user may start makes no other skill fit
    offered = [for_models(each, 1) for each in (route, *of_tasks)]
    chosen, failed = choose_verified(
        usable,
        tasks,
        most,
        lambda each, own: desk.refusal_of(each, _asked(query, tasks, own), likely=is_likely(each, offered)),
    )
    refused += failed
    reason = RefusalReason.NO_TASK if chosen else RefusalReason.CHANCE
    left = [each for each in usable if each not in chosen and each.skill not in {no.skill for no in failed}]
    refused += [each.refusal(reason) for each in left]
    text, parts, least = desk.page_of(query, tasks, chosen)
    shown = {part.skill for part in parts}
    refused += [each.refusal(RefusalReason.BUDGET) for each in chosen if each.skill not in shown]
    if not chosen:
        broken = {each.skill for each in failed if each.reason is RefusalReason.UNREADABLE}
        nearest = [each for each in usable if each.skill not in broken]
        text = desk.within(_none_fits(route, nearest))
    return LibraryPage(
        text=text,
        style=desk.style,
        parts=tuple(parts),
        tokens=desk.count(text),
        full_tokens=sum(part.page.full_tokens for part in parts),
        tokens_exact=library.pager.token_counter.exact,
        sufficiency=_together([part.page.sufficiency for part in parts], prod),
        covered=_together([part.page.covered for part in parts], min),
        tasks=tasks,
        route=replace(route, skills=route.skills[:k]),
        refused=tuple(sorted(refused, key=lambda each: -each.chance)),
        least_tokens=least,
    )


def _asked(query: str, tasks: tuple[str, ...], own: tuple[str, ...]) -> str:
    """Return the text that a skill is asked: its own tasks, or the query as it is if that is all of them."""
    return query if own in (tasks, ()) else " ".join(own)


def _together(chances: Sequence[float | None], combine: Callable[[list[float]], float]) -> float | None:
    known = [chance for chance in chances if chance is not None]
    return combine(known) if known and len(known) == len(chances) else None


def _none_fits(route: Route, nearest: Sequence[Candidate]) -> str:
    """Return the line in place of a page if no skill fits: how many were searched, which are the nearest."""
    named = _names([each.skill for each in nearest[:NEAREST_SKILLS]])
    searched = f"{route.searched} skill{'' if route.searched == 1 else 's'}"
    return f"[No skill fits the query: {searched} searched{f'; the nearest are {named}' if named else ''}.]\n"


def _names(skills: Sequence[FoundSkill]) -> str:
    return ", ".join(json.dumps(skill.name, ensure_ascii=False) for skill in skills)


class _Desk:
    """Makes the page of one call.

    Args:
        pager: Indexes and pages the skills.
        options: The options of the call.
    """

    def __init__(self, pager: "SkillPager", options: LibraryPageOptions) -> None:
        self._pager = pager
        self._options = options
        self._strategy = pager.strategy(options.get("strategy"))
        self._scope = options.get("scope") or pager.settings.scope
        limits = PageOptions(
            max_tokens=options.get("max_tokens"),
            sufficiency=options.get("sufficiency"),
            fill=options.get("fill"),
        )
        self._budget = choose_budget(limits, pager.settings, self._strategy)
        self._indexes: dict[FoundSkill, SkillIndex] = {}
        self.style = pager.style_of(options.get("style"))
        self.count = pager.token_counter.count

    def refusal_of(self, candidate: Candidate, asked: str, *, likely: bool) -> Refusal | None:
        """Return why a skill does not answer what it is asked; None if it does.

        Args:
            candidate: The skill.
            asked: The query, or the tasks of it that are the skill's.
            likely: What the router says, which counts if the coverage is not known.
        """
        if problem := self._problem_of(candidate.skill):
            return candidate.refusal(RefusalReason.UNREADABLE, problem)
        covered = self._covered(self._indexes[candidate.skill], asked)
        if said := not_covered(covered):
            return candidate.refusal(RefusalReason.NOT_COVERED, f"it {said}")
        return None if likely or covered is not None else candidate.refusal(RefusalReason.CHANCE)

    def _covered(self, index: SkillIndex, asked: str) -> float | None:
        """Return the estimated chance that a skill answers a text at all; None if it is not known."""
        if not estimates(self._strategy):
            return None
        # the chance is that of the skill, whatever is picked: so nothing is
        nothing = Budget(max_nodes=0, fill=True)
        query, meter = self._pager.query(asked, self._strategy), NodeMeter(index.nodes)
        return self._strategy.select(index, query, budget=nothing, meter=meter).covered

    def _problem_of(self, skill: FoundSkill) -> str:
        """Return why a skill cannot be paged; empty if it can, and its index is kept."""
        try:
            with skill_faults(skill.path):
                source = skill.source(self._scope)
                index = self._pager.pool(source, self._strategy, scope=self._scope)
            if not index.nodes:
                raise SkillError(f"{skill.path} has nothing below its front matter.")
        except SkillPagerError as error:
            return str(error)
        self._indexes[skill] = index
        return ""

    def page_of(
        self, query: str, tasks: tuple[str, ...], chosen: Sequence[Candidate]
    ) -> tuple[str, list[SkillPart], int | None]:
        """Return text and parts of the page of the chosen skills, and the least tokens if nothing fits."""
        if len(chosen) > 1:
            text, parts = self._several(query, tasks, chosen)
            if len(parts) > 1:
                return text, parts, None
            # a single skill has its own page, with all of the budget
            chosen = [each for each in chosen if each.skill in {part.skill for part in parts}] or chosen
        for each in chosen:
            page = self._single(query, each.skill)
            # what the reader has already has a part, too, which names it
            parts = [self._part(each, tasks, page)] if page.least_tokens is None else []
            return page.text, parts, page.least_tokens
        return "", [], None

    def within(self, text: str) -> str:
        """Return a text, or nothing if it exceeds the ceiling on tokens."""
        limit = self._budget.max_tokens
        return text if limit is None or self.count(text) <= limit else ""

    def _single(self, query: str, skill: FoundSkill) -> Page:
        """Return the page of one skill, as its pager makes it."""
        index = self._indexes[skill]
        return self._pager.page(
            skill.source(self._scope),
            query,
            max_tokens=self._budget.max_tokens,
            sufficiency=self._options.get("sufficiency"),
            fill=self._budget.fill,
            strategy=self._strategy,
            scope=self._scope,
            style=self.style,
            show=self._show(skill),
            folder=self._options.get("folder", False),
            known=self._known(index),
        )

    def _several(
        self, query: str, tasks: tuple[str, ...], chosen: Sequence[Candidate]
    ) -> tuple[str, list[SkillPart]]:
        """Return text and parts of a page of several skills; those of which nothing fits have no part."""
        shared = share_tasks(chosen, tasks)
        tag = ""
        if self.style is not Style.PLAIN:
            tag = common_tag([self._indexes[each.skill] for each, _ in shared])
        sources = [self._source(each, _asked(query, tasks, own), tag, len(shared)) for each, own in shared]
        limit = self._budget.max_tokens
        shares = share_budget(sources, limit, self.count(self._heading(shared, tag)))
        while True:
            held = [place for place, share in enumerate(shares) if share.shown]
            pages = [self._rendered(shares[place]) for place in held]
            bodies = [f"{page.text.rstrip()}\n" for page in pages]
            text = self._heading([shared[place] for place in held], tag) + "\n".join(bodies)
            if limit is None or self.count(text) <= limit or not held:
                break
            # the limit is for the rendered page: remove the pick that came last
            last = max(held, key=lambda place: (shares[place].picks[-1].total_tokens, place))
            shares[last].drop_last()
        parts = [self._part(*shared[place], page) for place, page in zip(held, pages, strict=True)]
        return text, parts

    def _source(self, chosen: Candidate, query: str, tag: str, skills: int) -> Source:
        """Return the picks of a skill without a limit on tokens."""
        index, skill = self._indexes[chosen.skill], chosen.skill
        renderer = self._pager.renderer(
            index,
            self.style,
            self._show(skill),
            folder=self._options.get("folder", False),
            part_tag=tag,
        )
        target = self._budget.sufficiency
        each = None if target is None else target ** (1 / skills)
        budget = replace(self._budget, max_tokens=None, sufficiency=each)
        meter = NodeMeter(index.nodes, gap_tokens=renderer.gap_tokens)
        asked = self._pager.query(query, self._strategy)
        selection = self._strategy.select(index, asked, budget=budget, meter=meter)
        return Source(renderer, selection)

    def _rendered(self, share: Share) -> Page:
        """Return a part as a page: marks stand for what the reader has, if they are shorter."""
        renderer, selection = share.source.renderer, share.selection(self._budget.max_tokens)
        nodes = renderer.index.nodes
        before = frozenset(share.repeated) & {pick.node.ordinal for pick in share.picks}
        with_marks = renderer.knowing(before) if before else renderer
        page = with_marks.render(share.shown, selection=selection)
        had = {node.ordinal for node in nodes if node.id in self._known(renderer.index)}
        if had and self.style is not Style.PLAIN:
            rest = [ordinal for ordinal in share.shown if ordinal not in had]
            shorter = renderer.knowing(before | had).render(rest, selection=selection)
            page = shorter if shorter.tokens < page.tokens else page
        return replace(page, sufficiency=1.0 if page.complete else share.sufficiency)

    def _part(self, chosen: Candidate, tasks: tuple[str, ...], page: Page) -> SkillPart:
        key, show = self._indexes[chosen.skill].key, self._show(chosen.skill)
        return SkillPart(chosen.skill, chosen.chance, tasks, page, key, show)

    def _show(self, skill: FoundSkill) -> str:
        show = self._options.get("show")
        return show(skill) if show else ""

    def _known(self, index: SkillIndex) -> Collection[str]:
        known = self._options.get("known")
        return known(index.key) if known else ()

    def _heading(self, shared: Sequence[tuple[Candidate, tuple[str, ...]]], tag: str) -> str:
        """Return the first line of a page of several skills, which names them; tags of style `xml` do."""
        if self.style is not Style.MARKED or len(shared) < 2:
            return ""
        return f"[Page{tag} of {len(shared)} skills: {_names([each.skill for each, _ in shared])}.]\n\n"


def common_tag(indexes: Sequence[SkillIndex]) -> str:
    """Return the tag of the marks of a page of several skills, of which none may imitate those of another."""
    skills = [index.skill for index in indexes]
    if not any(map(skill_tag, skills)):
        return ""
    texts = [skill.name for skill in skills]
    texts += [text for skill in skills for file in skill.files for text in (f"[{file.path}", file.text)]
    return tag_of(*texts)
