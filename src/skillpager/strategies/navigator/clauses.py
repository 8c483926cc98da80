"""The clauses of a query: of several things asked in one sentence, each can be looked for by itself.

One embedding of the whole leans to what most of it is about; a section that answers a clause of its own is
then not found (docs/models.md, "a clause is drowned").
"""

import re
from itertools import pairwise

from skillpager.strategies.navigator.terms import terms_of

# a clause of fewer terms that say something joins the next one
LEAST_TERMS = 2
# further clauses are joined, the shortest neighbours first
MOST_CLAUSES = 8

_STOP = r"[.?!;:,]+\s+|\s+[-—–]\s+"
_SEAM = re.compile(rf"(?:{_STOP}|\s+)(?:and|but|or|then|plus|also)\s+|{_STOP}", re.IGNORECASE)
# words of questions and requests, which say nothing about a skill; stop words are no terms anyway
_ASKING = frozenset(
    """
    am can d do does from get give have how i it ll m me my need one our re s show t tell that ve want we what
    when where which who why would you
    """.split()  # noqa: SIM905 - thirty-three lines otherwise
)


def clauses_of(text: str) -> tuple[str, ...]:
    """Return the clauses of a query in order, at most `MOST_CLAUSES`; none if it is one clause."""
    clauses: list[str] = []
    waiting = ""
    for part in _SEAM.split(text):
        waiting = f"{waiting} {part.strip(' .?!,;:')}".strip()
        if len([term for term in terms_of(waiting) if term not in _ASKING]) >= LEAST_TERMS:
            clauses.append(waiting)
            waiting = ""
    if waiting and clauses:
        clauses[-1] += f" {waiting}"
    _join(clauses)
    return tuple(clauses) if len(clauses) > 1 else ()


def _join(clauses: list[str]) -> None:
    while len(clauses) > MOST_CLAUSES:
        lengths = [len(one) + len(next_one) for one, next_one in pairwise(clauses)]
        place = lengths.index(min(lengths))
        clauses[place : place + 2] = [", ".join(clauses[place : place + 2])]
