"""Training data of the router: libraries with and without the skills that queries need.

Queries are the annotated ones of every document; longer texts that are composed of them: queries of one to
four skills, paragraphs of other skills as background, and remarks about files; and tasks, written for
one to four of the skills, with short queries for each (`tasks.jsonl`).
"""

import json
import lzma
import pickle
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer

from skillpager.library.routing.features import Candidates, features_of
from skillpager.library.routing.word_index import WordIndex, field_terms
from skillpager.parsing.skill import skill_from_text
from skillpager.types import Skill

LONG, SHORT, COMPOSED, TASK, PART = "long", "short", "composed", "task", "part"
REMARKS = (
    "Write the result to `/root/output.json` as JSON with the fields `id`, `name` and `value`.",
    "The input files are in `/root/data`.",
    "Do not change any other file.",
    "The result is checked with a tolerance of 0.1%.",
    "Save the output as `/root/results.csv`, one row per entry, with a header.",
    "You may install what you need.",
    "Keep the original format and file names.",
    "Round all numbers to 2 decimal places.",
    "Your script must run without arguments and finish within ten minutes.",
)
# skills as like each other as these are copies; the same name needs less. Copies of what a query needs are
# taken out of the library: they are as good
COPY, NAMESAKE = 0.5, 0.2
# and skills as near as these may fit as well: training takes them for neither right nor wrong
NEAR_TEXT, NEAR_DESCRIBED = 0.3, 0.4
Places = NDArray[np.intp]


@dataclass(frozen=True)
class Question:
    """A query and the skills that it needs.

    Attributes:
        kind: `long`, `short`, `composed`, `task`, or `part` of a task.
        text: The query.
        needs: Ids of the skills.
        group: What folds keep together: repositories, and those whose skills one task needs.
        background: Ids of skills that paragraphs in it are from.
    """

    kind: str
    text: str
    needs: tuple[str, ...]
    group: str
    background: tuple[str, ...] = ()


def read_tasks(path: Path, groups: Mapping[str, str]) -> tuple[list[Question], dict[str, str]]:
    """Return the tasks of a file and their short queries; and all groups, those that share a task as one.

    Args:
        path: JSON lines: `text`, `needs` (ids of skills), and `short`, each with `text` and `needs`.
        groups: Group of each skill, by id.
    """
    tasks = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    joined = {group: group for group in groups.values()}
    for task in tasks:
        together = {joined[groups[id]] for id in task["needs"]}
        joined = {name: min(together) if group in together else group for name, group in joined.items()}
    questions = [
        Question(kind, each["text"], tuple(each["needs"]), joined[groups[each["needs"][0]]])
        for task in tasks
        for kind, each in ((TASK, task), *((PART, part) for part in task["short"]))
    ]
    return questions, joined


def read_pool(path: Path) -> Iterator[tuple[str, Skill]]:
    """Yield the ids and skills of a file of JSON lines, xz-compressed or not."""
    with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            yield record["id"], skill_from_text(record["skill_md"], name=Path(record["path"]).parent.name)


class Corpus:
    """All skills of which libraries are made, with their words.

    Args:
        skills: Ids and skills.
        stored: File of their terms, which is made if it is missing.
    """

    def __init__(self, skills: Sequence[tuple[str, Skill]], stored: Path) -> None:
        self.ids = [id for id, _ in skills]
        self.places = {id: place for place, id in enumerate(self.ids)}
        self.names = [skill.name for _, skill in skills]
        if not stored.exists():
            terms = [" | ".join(map(" ".join, _terms(skill))) for _, skill in skills]
            stored.write_bytes(pickle.dumps(terms))
        self._terms: list[str] = pickle.loads(stored.read_bytes())
        self.described = _weighed(terms.split(" | ")[1] for terms in self._terms)

    def bodies(self) -> Any:
        """Return `(n, terms)`, sparse: the body of each skill, as a unit row of the rarity of its terms."""
        return _weighed(terms.split(" | ")[2] for terms in self._terms)

    def index(self, places: Iterable[int]) -> WordIndex:
        """Return the index of a library, in which the key of a skill is its place."""
        index = WordIndex(None)
        index.update(
            list(places),
            lambda keys: ((key, [each.split() for each in self._terms[key].split(" | ")]) for key in keys),
        )
        return index


def _terms(skill: Skill) -> tuple[list[str], ...]:
    entry = skill.files[0]
    return field_terms(skill.name, skill.description, entry.text[entry.body_start :])


def _weighed(texts: Iterable[str]) -> Any:
    return TfidfVectorizer(analyzer=str.split, binary=True, dtype=np.float32).fit_transform(texts)


@dataclass(frozen=True)
class Case:
    """A query in a library: its candidates, and which of them it needs.

    Attributes:
        question: The query.
        found: Its candidates and their features.
        needed: `(c,)`: whether the query needs a candidate.
        ignored: `(c,)`: whether a candidate may fit as well, so that nothing is learned of it.
        count: How many skills of the library the query needs; 0 if they were taken out.
        size: Skills of the library.
    """

    question: Question
    found: Candidates
    needed: NDArray[np.bool_]
    ignored: NDArray[np.bool_]
    count: int
    size: int


class Likeness:
    """The copies of annotated skills, and the skills that may do as well.

    Args:
        corpus: All skills.
        annotated: Places of the annotated ones.
    """

    def __init__(self, corpus: Corpus, annotated: Places) -> None:
        bodies, described = corpus.bodies(), corpus.described
        texts = (bodies[annotated] @ bodies.T).toarray()
        cosines = (described[annotated] @ described.T).toarray()
        names = np.array([re.sub(r"[^a-z0-9]", "", name.lower()) for name in corpus.names])
        self.copies: dict[int, Places] = {}
        self.near: dict[int, Places] = {}
        for place, text, cosine in zip(annotated.tolist(), texts, cosines, strict=True):
            namesake = names == names[place]
            copies = (text >= COPY) | (namesake & (text >= NAMESAKE))
            near = (cosine >= NEAR_DESCRIBED) | (text >= NEAR_TEXT) | namesake
            copies[place] = near[place] = False
            self.copies[place], self.near[place] = np.flatnonzero(copies), np.flatnonzero(near)


def compose(
    questions: Sequence[Question],
    corpus: Corpus,
    backgrounds: Sequence[tuple[str, str]],
    count: int,
    random: np.random.Generator,
) -> list[Question]:
    """Return `count` longer queries, each composed of queries of one to four skills of one repository.

    Args:
        questions: The queries.
        corpus: All skills, by whose descriptions related ones are found.
        backgrounds: Ids of skills that nothing is asked of, each with a paragraph of it.
        count: Number of queries.
        random: Draws.
    """
    by_skill: dict[str, list[Question]] = {}
    for question in questions:
        by_skill.setdefault(question.needs[0], []).append(question)
    skills = list(by_skill)
    rows = corpus.described[[corpus.places[skill] for skill in skills]]
    alike = (rows @ rows.T).toarray()
    composed = []
    for first in random.integers(len(skills), size=count).tolist():
        group = by_skill[skills[first]][0].group
        others = [
            place
            for place, skill in enumerate(skills)
            if place != first and by_skill[skill][0].group == group
        ]
        if random.random() < 0.6:  # a task needs related skills more often than any
            others = sorted(others, key=lambda place: -float(alike[place, first]))[:25]
        number = int(random.choice([1, 2, 3, 4], p=[0.25, 0.3, 0.25, 0.2]))
        chosen = [skills[place] for place in (first, *random.permutation(others)[: number - 1])]
        composed.append(_composed(chosen, by_skill, group, backgrounds, random))
    return composed


def _composed(
    chosen: Sequence[str],
    by_skill: dict[str, list[Question]],
    group: str,
    backgrounds: Sequence[tuple[str, str]],
    random: np.random.Generator,
) -> Question:
    parts = []
    for skill in chosen:
        asked = by_skill[skill]
        most = int(random.integers(1, 4) if len(chosen) > 1 else random.integers(2, 5))
        parts += [asked[place].text.rstrip(".") + "." for place in random.permutation(len(asked))[:most]]
    if random.random() < 0.5:
        parts = [parts[place] for place in random.permutation(len(parts))]
    background = []
    for _ in range(int(random.choice([0, 1, 2], p=[0.4, 0.4, 0.2]))):
        skill, paragraph = backgrounds[int(random.integers(len(backgrounds)))]
        background.append(skill)
        parts.insert(int(random.integers(len(parts) + 1)), paragraph)
    if random.random() < 0.7:
        parts += [REMARKS[place] for place in random.permutation(len(REMARKS))[: int(random.integers(1, 4))]]
    separator = random.choice(["\n\n", "\n", " "], p=[0.3, 0.35, 0.35])
    return Question(COMPOSED, str(separator).join(parts), tuple(chosen), group, tuple(background))


def paragraphs(skills: Iterable[tuple[str, Skill]], random: np.random.Generator) -> list[tuple[str, str]]:
    """Return a paragraph of prose of each skill that has one, 20 to 120 words long, with the skill's id."""
    found = []
    for id, skill in skills:
        entry = skill.files[0]
        texts = re.split(r"\n\s*\n", entry.text[entry.body_start :])
        prose = [text for text in texts if 20 <= len(text.split()) <= 120 and "```" not in text]
        if prose:
            found.append((id, prose[int(random.integers(len(prose)))]))
    return found


def cases_of(
    question: Question,
    corpus: Corpus,
    library: Places,
    index: WordIndex,
    likeness: Likeness,
    *,
    most_terms: int,
    without: bool,
) -> Iterator[Case]:
    """Yield a query in a library without the copies of what it needs; then, if asked, without that either.

    Args:
        question: The query.
        corpus: All skills.
        library: Places of the library's skills, ascending.
        index: Its index.
        likeness: Copies of annotated skills.
        most_terms: Terms of a query that are searched.
        without: Ask for the second case.
    """
    needs = np.array([corpus.places[id] for id in question.needs])
    copies = np.setdiff1d(np.concatenate([likeness.copies[place] for place in needs.tolist()]), needs)
    near = np.concatenate([likeness.near[place] for place in needs.tolist()])
    ignored = np.union1d(near, [corpus.places[id] for id in question.background])
    kept = np.setdiff1d(library, copies)
    here = np.intersect1d(kept, needs)
    variants = [(kept, here)]
    if without and len(here):
        variants.append((np.setdiff1d(kept, needs), here[:0]))
    for places, needed in variants:
        found = features_of(
            index.search(places.tolist()),
            question.text,
            most_terms=most_terms,
            name_at=lambda place, places=places: corpus.names[places[place]],
        )
        candidates = places[found.skills]
        is_needed = np.isin(candidates, needed)
        yield Case(
            question, found, is_needed, np.isin(candidates, ignored) & ~is_needed, len(needed), len(places)
        )
