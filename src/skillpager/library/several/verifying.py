"""Which of the likely skills answer their tasks: the set that is chosen, less those that seem not to.

The router reads words and knows little of whether any skill fits. A strategy that reads the nodes of a skill
estimates that much better, but of each skill by itself. So the best set is verified skill by skill, and
chosen again without those that fail.
"""

from collections.abc import Callable, Sequence

from skillpager.library.routing.routes import Route
from skillpager.library.several.choosing import Candidate, choose_set, share_tasks
from skillpager.library.several.pages import Refusal, RefusalReason

# skills of one query whose coverage is estimated: each costs some milliseconds, and is indexed if it is new
MAX_VERIFIED = 5

# why a candidate does not answer the tasks that are its own; None if it does
Judge = Callable[[Candidate, tuple[str, ...]], Refusal | None]


def choose_verified(
    candidates: Sequence[Candidate], tasks: Sequence[str], most: int, judge: Judge
) -> tuple[list[Candidate], list[Refusal]]:
    """Return the best set of candidates that answer their tasks, and the refusals of those that do not.

    Skills that cannot be read are passed over; of the others at most `MAX_VERIFIED` are judged, those of the
    best set first. The set is empty if none of these answers.
    """
    usable, passed, refused = list(candidates), list[Candidate](), list[Refusal]()
    failed = 0
    while usable:
        chosen = choose_set(usable, most)
        unknown = [(each, own) for each, own in share_tasks(chosen, tasks) if each not in passed]
        if not unknown:
            return chosen, refused
        for each, own in unknown:
            if len(passed) + failed == MAX_VERIFIED:
                usable = passed
                break
            if refusal := judge(each, own):
                usable.remove(each)
                refused.append(refusal)
                failed += refusal.reason is not RefusalReason.UNREADABLE
            else:
                passed.append(each)
    return [], refused


def is_likely(candidate: Candidate, routes: Sequence[Route]) -> bool:
    """Return whether the router alone would have a candidate fit: as the first of a route, or by its chance.

    Args:
        candidate: The candidate.
        routes: The routes of the query and its tasks, of skills that a model may start.
    """
    return any(
        (route.has_fit and route.skills[0].skill == candidate.skill) or candidate.chance >= route.threshold
        for route in routes
    )
