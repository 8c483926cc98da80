"""Reader of annotated documents for the training scripts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skillpager.bench.data.evidence import AnnotatedQuery, Document, read_documents, read_published
from skillpager.bench.data.records import LineRange
from skillpager.bench.validate.node_types import label_fragments
from skillpager.classifiers.local import TYPES
from skillpager.node_text import embedded_text
from skillpager.parsing.fragments import split_skill
from skillpager.parsing.skill import skill_from_text
from skillpager.strategies.navigator.lexical import clauses_of
from skillpager.types import Encoder, FloatArray, Fragment, Heading, Query, Skill

TEXT_FORM = "context"
# what a node that only helps is worth beside one that is needed; 0 would make it as wrong as any other
SUPPORTING = 0.3
# share of a label that goes to the second annotator's type where there is one
SECOND_SHARE = 0.3
SPLITS = ("train", "dev")
# the queries that every document has; those after them are the second series
FIRST_SERIES = 5


@dataclass(frozen=True)
class Asked:
    """A query and what it needs.

    Attributes:
        query: As annotated.
        needs: `(n,)` 1 for nodes with a critical line, `SUPPORTING` for those with a supporting one, else 0.
        first_series: Whether it is one of the five that every document has.
    """

    query: AnnotatedQuery
    needs: FloatArray
    first_series: bool


@dataclass(frozen=True)
class Example:
    """One document, split.

    Attributes:
        document: Annotations, origin and text.
        skill: The skill that it is.
        fragments: Its nodes before typing.
        headings: Its headings.
        texts: What of each node is embedded.
        types: `(n, 6)` shares of the types by the annotators, a row of zeros where there is no label.
        labels: `(n,)` the first annotator's type, -1 for none.
        second: `(n,)` the second annotator's type, -1 for none.
        asked: Its queries.
    """

    document: Document
    skill: Skill
    fragments: tuple[Fragment, ...]
    headings: tuple[Heading, ...]
    texts: tuple[str, ...]
    types: FloatArray
    labels: np.ndarray
    second: np.ndarray
    asked: tuple[Asked, ...]

    @property
    def name(self) -> str:
        """Id of the document."""
        return self.document.annotation.skill

    @property
    def repository(self) -> str:
        """Where it comes from."""
        return self.document.provenance.repo


def load(folders: Iterable[Path]) -> list[Example]:
    """Return all documents of some folders of evidence data, with every published annotation of each.

    Raises:
        BenchError: As `read_documents`.
        SystemExit: No document has a node.
    """
    published = {record.sha256: record for split in SPLITS for record in read_published(split)}
    examples = []
    for folder in folders:
        for document in read_documents(folder):
            record = published.get(document.provenance.sha256)
            annotation = record.annotation if record else document.annotation
            examples.append(_example(document, annotation.queries, annotation.types_second))
    return [example for example in examples if example.fragments]


def _example(
    document: Document, queries: Sequence[AnnotatedQuery], second: Sequence[tuple[int, int, str]]
) -> Example:
    annotation = document.annotation
    skill = skill_from_text(document.text)
    tiles = split_skill(skill)
    fragments = tuple(tile for tile in tiles if isinstance(tile, Fragment))
    labels, others = _numbers(fragments, annotation.types), _numbers(fragments, second)
    return Example(
        document,
        skill,
        fragments,
        tuple(tile for tile in tiles if isinstance(tile, Heading)),
        tuple(embedded_text(fragment, TEXT_FORM) for fragment in fragments),
        _shares(labels, others),
        labels,
        others,
        tuple(Asked(query, _needs(fragments, query), _number(query.id) <= FIRST_SERIES) for query in queries),
    )


def embedded_queries(encoder: Encoder, texts: Sequence[str]) -> tuple[Query, ...]:
    """Return queries as `SkillPager` embeds them for the navigator: each with its clauses."""
    clauses = [clauses_of(text) for text in texts]
    every = [*texts, *(clause for of_query in clauses for clause in of_query)]
    rows = dict(zip(every, encoder.encode_documents(every), strict=True))
    return tuple(
        Query(text, rows[text], tuple(Query(clause, rows[clause]) for clause in of_query))
        for text, of_query in zip(texts, clauses, strict=True)
    )


def _numbers(fragments: Sequence[Fragment], ranges: Sequence[tuple[int, int, str]]) -> np.ndarray:
    types = label_fragments(list(fragments), list(ranges))
    return np.array([-1 if kind is None else TYPES.index(kind) for kind in types], int)


def _shares(first: np.ndarray, second: np.ndarray) -> FloatArray:
    shares = np.zeros((len(first), len(TYPES)), np.float32)
    both = (first >= 0) & (second >= 0)
    known = np.flatnonzero(first >= 0)
    shares[known, first[known]] = np.where(both[known], 1 - SECOND_SHARE, 1)
    shares[np.flatnonzero(both), second[both]] += SECOND_SHARE
    return shares


def _needs(fragments: Sequence[Fragment], query: AnnotatedQuery) -> FloatArray:
    return np.array(
        [
            1.0 if _touches(each, query.critical) else SUPPORTING if _touches(each, query.supporting) else 0.0
            for each in fragments
        ],
        np.float32,
    )


def _number(identifier: str) -> int:
    """Return 6 for `name#6`."""
    return int(identifier.rpartition("#")[2])


def _touches(fragment: Fragment, ranges: Iterable[LineRange]) -> bool:
    span = fragment.span
    return any(span.start_line <= end and span.end_line >= start for start, end in ranges)


def skill_folds(examples: Sequence[Example], folds: int, seed: int) -> np.ndarray:
    """Return `(n,)` the fold of each document, drawn at random: cross-validation over skills."""
    order = np.random.default_rng(seed).permutation(len(examples))
    numbers = np.empty(len(examples), int)
    numbers[order] = np.arange(len(examples)) % folds
    return numbers


def repository_folds(examples: Sequence[Example], smallest: int) -> tuple[np.ndarray, list[str]]:
    """Return the fold of each document, and the folds' names: a repository each, small ones together.

    Args:
        examples: The documents.
        smallest: Repositories with fewer documents than this share the last fold.
    """
    counts: dict[str, int] = {}
    for example in examples:
        counts[example.repository] = counts.get(example.repository, 0) + 1
    large = sorted((name for name in counts if counts[name] >= smallest), key=lambda name: -counts[name])
    small = sorted(name for name in counts if counts[name] < smallest)
    numbers = [
        large.index(example.repository) if example.repository in large else len(large) for example in examples
    ]
    return np.array(numbers), [*large, *([" + ".join(small)] if small else [])]
