"""Reader of annotated documents for the training scripts."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skillpager.bench.data.evidence import (
    AnnotatedQuery,
    Document,
    read_documents,
    read_published,
    read_published_short,
)
from skillpager.bench.data.records import LineRange, TypedRange
from skillpager.bench.judge.node_types import label_fragments
from skillpager.classifiers.local import TYPES
from skillpager.encoders.builtin import BuiltinEncoder
from skillpager.parsing.fragments import split_skill
from skillpager.parsing.skill import skill_from_text
from skillpager.strategies.navigator.lexical import clauses_of
from skillpager.types import FloatArray, Fragment, Heading, Query, Skill

TEXT_FORM = "context"
# what a node that only helps is worth beside one that is needed; 0 would make it as wrong as any other
SUPPORTING = 0.3
# share of a label that goes to the second annotator's type where there is one
SECOND_SHARE = 0.3
SPLITS = ("train", "dev", "train2")
# the long queries that every document has; those after them are further ones
FIRST_SERIES = 5
LONG, FURTHER, SHORT, UNANSWERED = "long", "further", "short", "unanswered"


@dataclass(frozen=True)
class Asked:
    """A query and what it needs.

    Attributes:
        query: As annotated.
        needs: `(n,)` 1 for nodes with a critical line, `SUPPORTING` for those with a supporting one, else 0.
        series: `long` for the five long ones that every document has, `further` for more of the kind,
            `short`, or `unanswered` if the document does not answer it.
    """

    query: AnnotatedQuery
    needs: FloatArray
    series: str


@dataclass(frozen=True)
class Example:
    """One document, split.

    Attributes:
        document: Annotations, origin and text.
        skill: The skill that it is.
        fragments: Its nodes before typing.
        headings: Its headings.
        types: `(n, 6)` shares of the types by the annotators, a row of zeros where there is no label.
        labels: `(n,)` the first annotator's type, -1 for none.
        second: `(n,)` the second annotator's type, -1 for none.
        asked: Its queries.
        unanswered: Requests near its subject that it does not answer.
    """

    document: Document
    skill: Skill
    fragments: tuple[Fragment, ...]
    headings: tuple[Heading, ...]
    types: FloatArray
    labels: np.ndarray
    second: np.ndarray
    asked: tuple[Asked, ...]
    unanswered: tuple[str, ...]

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
    """
    published = {record.sha256: record for split in SPLITS for record in read_published(split)}
    short = read_published_short()
    examples = []
    for folder in folders:
        for document in read_documents(folder):
            record = published.get(document.provenance.sha256)
            annotation = record or document.annotation
            further = document.short or short.get(document.provenance.sha256)
            queries = [
                *(
                    (query, LONG if _number(query.id) <= FIRST_SERIES else FURTHER)
                    for query in annotation.queries
                ),
                *((query, SHORT) for query in (further.queries if further else ())),
            ]
            unanswered = tuple(request.query for request in further.unanswered) if further else ()
            examples.append(_example(document, queries, unanswered, annotation.types_second))
    return [example for example in examples if example.fragments]


def _example(
    document: Document,
    queries: Sequence[tuple[AnnotatedQuery, str]],
    unanswered: tuple[str, ...],
    second: Sequence[TypedRange],
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
        _shares(labels, others),
        labels,
        others,
        tuple(Asked(query, _needs(fragments, query), series) for query, series in queries),
        unanswered,
    )


def embedded_queries(encoder: BuiltinEncoder, texts: Sequence[str]) -> tuple[Query, ...]:
    """Return queries as `SkillPager` embeds them for the navigator: each with its clauses."""
    queries = []
    for text in texts:
        clauses = clauses_of(text)
        row, *rows = encoder.encode_query_parts(text, clauses)
        queries.append(Query(text, row, tuple(map(Query, clauses, rows))))
    return tuple(queries)


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


def repository_folds(examples: Sequence[Example], folds: int) -> np.ndarray:
    """Return `(n,)` the fold of each document: all of a repository in one, folds of about equal size."""
    sizes = Counter(example.repository for example in examples)
    held = [0] * folds
    fold_of = {}
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        fold_of[name] = held.index(min(held))
        held[fold_of[name]] += sizes[name]
    return np.array([fold_of[example.repository] for example in examples])
