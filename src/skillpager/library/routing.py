"""The router: which skills of a library a query needs."""

from collections.abc import Sequence

import numpy as np

from skillpager.errors import SkillPagerError
from skillpager.library.discovery import FoundSkill
from skillpager.library.routes import Route, RoutedSkill
from skillpager.parsing.skill import read_skill
from skillpager.strategies.navigator.lexical import TermIndex, stems_of, terms_of

FIELDS = ("name", "description", "body")


class Router:
    """Routes queries among the given skills.

    Args:
        skills: The skills, in the order in which equally good ones are listed.
    """

    def __init__(self, skills: Sequence[FoundSkill]) -> None:
        self.skills = skills
        texts = [(found.name, found.description, _body(found)) for found in skills]
        self._fields = [
            TermIndex([stems_of(terms_of(text)) for text in of]) for of in zip(*texts, strict=True)
        ]
        self._held = [[set(stems_of(terms_of(text))) for text in of] for of in texts]

    def route(self, query: str, *, k: int) -> Route:
        """Return the `k` best skills for a query."""
        words = list(dict.fromkeys(terms_of(query)))
        stems = dict(zip(stems_of(words), words, strict=True))
        if not self.skills:
            return Route(query, (), 0.0, 0)
        found = [field.score(stems) for field in self._fields]
        scores = np.sum([scores for scores, _ in found], axis=0)
        held = np.max([held for _, held in found], axis=0)
        best = np.argsort(-scores, kind="stable")[:k]
        rarity = self._fields[-1].rarity_of
        routed = []
        for place in best[scores[best] > 0]:
            mine = [stem for stem in stems if any(stem in field for field in self._held[place])]
            fields = [name for name, of in zip(FIELDS, self._held[place], strict=True) if of & stems.keys()]
            terms = [stems[stem] for stem in sorted(mine, key=rarity, reverse=True)]
            routed.append(
                RoutedSkill(self.skills[place], float(held[place]), terms=tuple(terms), fields=tuple(fields))
            )
        return Route(query, tuple(routed), float(held.max()), len(self.skills))


def _body(found: FoundSkill) -> str:
    try:
        file = read_skill(found.path, scope="body").files[0]
    except SkillPagerError:
        return ""
    return file.text[file.body_start :]
