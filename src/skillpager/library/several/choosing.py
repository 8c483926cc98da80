"""Which skills a query needs together: a set that explains its tasks, not the top of a ranking.

A query may hold several tasks, and the skill of one is far down in the ranking of the whole. So each task is
routed by itself, too, and the set S of skills is chosen that has the largest

    worth(S) = Σ_t max_(s in S) (odds(s, t) + WHOLE_SHARE * odds(s, query)) - SKILL_COST * |S|

over the tasks t, where odds(s, t) is the chance that t needs the skill s, as log odds. A second skill for
the same task adds little; a skill for another task adds much.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import log

from skillpager.library.discovery import FoundSkill
from skillpager.library.routing.routes import Route, RoutedSkill
from skillpager.library.several.pages import WHY_REFUSED, Refusal, RefusalReason
from skillpager.strategies.navigator.lexical import clauses_of, terms_of

# chosen on composed queries of the training data with an earlier training of the router, see
# benchmarks/several.py
SKILL_COST = 2.0
WHOLE_SHARE = 0.5
MAX_SKILLS = 3
MAX_TASKS = 6  # further ones are joined, the shortest neighbours first: each is routed
LEAST_TASK_TERMS = 3  # a shorter sentence is part of the one before it
TASK_SKILLS = 3  # the best skills of each task, and
QUERY_SKILLS = 5  # of the whole query, are candidates
FULL_ROUTE = 10  # skills; a shorter route lists all that share a word with its query
LEAST_ODDS, MOST_ODDS = -6.0, 6.0  # beyond which chances say nothing
LEAST_CHANCE = 0.2  # of a skill beside another
TIE_ODDS = 1.0  # a task is that of every chosen skill whose odds are so near to the best

_SENTENCE_SEAM = re.compile(r"(?<=[.?!;。？！；])\s+|\s*\n\s*(?=[-*+•]|\d+[.)]\s)|\s*\n\s*\n\s*")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A skill that routing found for a query or a task of it.

    Attributes:
        routed: The skill as it was found first.
        chance: The largest chance that the query, or a task of it, needs the skill.
        odds: Log odds that the query needs it, and each task, with `WHOLE_SHARE` of the query's.
    """

    routed: RoutedSkill
    chance: float
    odds: tuple[float, ...]

    @property
    def skill(self) -> FoundSkill:
        """The skill."""
        return self.routed.skill

    def refusal(self, reason: RefusalReason, detail: str = "") -> Refusal:
        """Return the candidate as one without a part; `detail` is a sentence in place of the usual one."""
        return Refusal(self.skill, self.chance, reason, detail or WHY_REFUSED[reason])


def tasks_of(query: str) -> tuple[str, ...]:
    """Return the tasks of a query, at most `MAX_TASKS`: its sentences and items, or the clauses of one."""
    parts = [part.strip() for part in _SENTENCE_SEAM.split(query) if part.strip()]
    tasks = list(clauses_of(query.strip())) if len(parts) == 1 else []
    for part in [] if tasks else parts:
        # what is too short to be routed belongs to its neighbour
        if tasks and min(len(terms_of(part)), len(terms_of(tasks[-1]))) < LEAST_TASK_TERMS:
            tasks[-1] = f"{tasks[-1]} {part}"
        else:
            tasks.append(part)
    while len(tasks) > MAX_TASKS:
        lengths = [len(left) + len(right) for left, right in pairwise(tasks)]
        shortest = lengths.index(min(lengths))
        tasks[shortest : shortest + 2] = [f"{tasks[shortest]} {tasks[shortest + 1]}"]
    return tuple(tasks)


def find_candidates(whole: Route, of_tasks: Sequence[Route]) -> list[Candidate]:
    """Return the skills from which a set is chosen, the best of the whole query first.

    Args:
        whole: The route of the query, of `FULL_ROUTE` skills or more.
        of_tasks: The routes of its tasks, as long; empty for a query of one task.
    """
    found: dict[FoundSkill, RoutedSkill] = {}
    for route, most in [(whole, QUERY_SKILLS), *((each, TASK_SKILLS) for each in of_tasks)]:
        for routed in route.skills[:most]:
            found.setdefault(routed.skill, routed)
    chances = [{each.skill: each.chance for each in route.skills} for route in (whole, *of_tasks)]
    # a skill that a full route does not list has no larger chance than the last that it lists
    rest = [min(each.values()) if len(each) >= FULL_ROUTE else 0.0 for each in chances]
    candidates = []
    for skill, routed in found.items():
        known = [each.get(skill, least) for each, least in zip(chances, rest, strict=True)]
        own = [each[skill] for each in chances if skill in each]
        first, *others = map(_odds, known)
        odds = [WHOLE_SHARE * first + each for each in others or [first]]
        candidates.append(Candidate(routed, max(own), tuple(odds)))
    return candidates


def _odds(chance: float) -> float:
    """Return a chance as log odds, within `LEAST_ODDS` and `MOST_ODDS`."""
    if not 0.0 < chance < 1.0:
        return LEAST_ODDS if chance <= 0.0 else MOST_ODDS
    return min(MOST_ODDS, max(LEAST_ODDS, log(chance / (1 - chance))))


def choose_set(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """Return the set of at most `most` candidates that is worth most, in their order.

    Ties go to the smaller set, then to the earlier candidates.
    """
    best: tuple[int, ...] = ()
    largest = float("-inf")
    able = [place for place, each in enumerate(candidates) if each.chance >= LEAST_CHANCE]
    for size in range(1, most + 1):
        for places in combinations(able if size > 1 else range(len(candidates)), size):
            odds = zip(*(candidates[place].odds for place in places), strict=True)
            worth = round(sum(map(max, odds)) - SKILL_COST * size, 6)
            if worth > largest:
                best, largest = places, worth
    return [candidates[place] for place in best]


def share_tasks(chosen: Sequence[Candidate], tasks: Sequence[str]) -> list[tuple[Candidate, tuple[str, ...]]]:
    """Return the chosen skills in the order of their tasks, each with its own.

    A task is that of the skill with the best odds for it, and of those whose odds are nearly as good.
    """
    shares: list[list[int]] = [[] for _ in chosen]
    for number in range(len(tasks)):
        odds = [each.odds[number] for each in chosen]
        for share, mine in zip(shares, odds, strict=True):
            if mine >= max(odds) - TIE_ODDS:
                share.append(number)
    order = sorted(range(len(chosen)), key=lambda place: (shares[place][:1] or [len(tasks)], place))
    return [(chosen[place], tuple(tasks[number] for number in shares[place])) for place in order]
