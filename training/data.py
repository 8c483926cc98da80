"""Reader of annotated skills, of one file or several, for the training scripts."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
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
from skillpager.bench.judge.node_types import label_text, types_by_line
from skillpager.classifiers.local import TYPES
from skillpager.encoders.builtin import BuiltinEncoder
from skillpager.enrichment.notes import NodeNotes, digest_of, notes_on
from skillpager.parsing.fragments import split_skill
from skillpager.parsing.lines import LINE_END
from skillpager.parsing.skill import skill_from_files
from skillpager.strategies.navigator.lexical import clauses_of
from skillpager.types import FloatArray, Fragment, Heading, IndexNotes, Query, Skill

TEXT_FORM = "context"
# what a node that only helps is worth beside one that is needed; 0 would make it as wrong as any other
SUPPORTING = 0.3
# share of a label that goes to the second annotator's type where there is one
SECOND_SHARE = 0.3
SPLITS = ("train", "dev", "train2")
# the long queries that every document has; those after them are further ones
FIRST_SERIES = 5
LONG, FURTHER, SHORT, BROAD, UNANSWERED = "long", "further", "short", "broad", "unanswered"
ASKED, STRANGER = "asked", "stranger"
# what readers who saw no query wrote that each node is asked for (docs/measured.md)
ASKS = Path(__file__).with_name("asks.jsonl")
TOPICS = Path(__file__).with_name("topics.jsonl")
# collections of many authors' skills: where in a path the author stands
COLLECTIONS = {"openclaw/skills": 1, "AgentWorkers/skills": 1, "gabrielmoreira/agent-skills-mirror": 2}


@dataclass(frozen=True)
class Asked:
    """A query and what it needs.

    Attributes:
        query: As annotated.
        needs: `(n,)` 1 for nodes with a critical line, `SUPPORTING` for those with a supporting one, else 0.
        series: `long` for the five long ones that every document has, `further` for more of the kind,
            `short`, `broad` for a short one about whole procedures, or `unanswered` if the document does not
            answer it; `stranger` for a query of another document.
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
        asks: What its nodes are asked for, each with what it needs: `SUPPORTING` for what must come with a
            node that is asked for; none where no reader wrote any.
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
    asks: tuple[Asked, ...]

    @property
    def name(self) -> str:
        """Id of the document."""
        return self.document.annotation.skill

    @property
    def repository(self) -> str:
        """Where it comes from: a repository, or an author in a collection of many."""
        origin = self.document.provenance
        place = COLLECTIONS.get(origin.repo)
        return (
            origin.repo if place is None else f"{origin.repo}/{origin.path.split('/')[place].split('@')[0]}"
        )


def load(folders: Iterable[Path]) -> list[Example]:
    """Return all skills of some folders of evidence data, with every published annotation of each.

    Raises:
        BenchError: As `read_documents`.
    """
    published = {record.sha256: record for split in SPLITS for record in read_published(split)}
    published_short = read_published_short()
    examples = []
    for folder in folders:
        for document in read_documents(folder):
            digest = document.provenance.sha256
            annotation = published.get(digest, document.annotation)
            short = document.short or published_short.get(digest)
            queries = [
                (query, LONG if _number(query.id) <= FIRST_SERIES else FURTHER)
                for query in annotation.queries
            ]
            if short:
                queries += [(query, BROAD if query.style == BROAD else SHORT) for query in short.queries]
            unanswered = [
                *annotation.missing,
                *(request.query for request in (short.unanswered if short else ())),
            ]
            examples.append(_example(document, queries, unanswered, annotation.types_second))
    return [example for example in examples if example.fragments]


def _example(
    document: Document,
    queries: Sequence[tuple[AnnotatedQuery, str]],
    unanswered: Sequence[str],
    second: Sequence[TypedRange],
) -> Example:
    annotation = document.annotation
    skill = skill_from_files(document.files)
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
        tuple(
            Asked(query, needs, series)
            for (query, series), needs in zip(queries, _needs(document, fragments, queries), strict=True)
        ),
        tuple(unanswered),
        tuple(_asks(document, len(fragments))),
    )


def is_typical(example: Example) -> bool:
    """Return whether a skill is of the data with broad requests, by nearly as many authors, or a folder."""
    return len(example.document.files) > 1 or any(asked.series == BROAD for asked in example.asked)


@cache
def about_any_topic() -> Mapping[str, Mapping[str, list[str]]]:
    """Return by SHA-256, for each skill about any topic, the requests it answers and those it does not."""
    lines = TOPICS.read_text(encoding="utf-8").splitlines()
    return {record["sha256"]: record for record in map(json.loads, lines)}


def places_about_any_topic(examples: Sequence[Example]) -> frozenset[int]:
    """Return the places of the documents that are skills about any topic that a user brings."""
    digests = [example.document.provenance.sha256 for example in examples]
    return frozenset(place for place, sha256 in enumerate(digests) if sha256 in about_any_topic())


@cache
def readers_notes() -> Mapping[str, list[tuple[int, int, list[str], list[int]]]]:
    """Return by SHA-256 of a document, for each node: lines, asks, and ordinals of what comes with it."""
    lines = ASKS.read_text(encoding="utf-8").splitlines()
    return {record["sha256"]: record["nodes"] for record in map(json.loads, lines)}


def notes_of(example: Example, encoder: BuiltinEncoder, folder: Path) -> IndexNotes | None:
    """Return the notes of readers on the nodes of a skill, kept in a folder; None where none were written."""
    sha256 = example.document.provenance.sha256
    written = readers_notes().get(sha256, [])
    if len(written) != len(example.fragments):
        return None
    digests = [digest_of(fragment) for fragment in example.fragments]
    notes = {
        digest: NodeNotes(tuple(asks), tuple(digests[other] for other in along))
        for digest, (_, _, asks, along) in zip(digests, written, strict=True)
    }
    return notes_on(example.fragments, notes, encoder, folder / f"{sha256}.npz")


def _asks(document: Document, count: int) -> Iterable[Asked]:
    """Yield what the nodes of a document are asked for; the same words for several nodes are one request."""
    nodes = readers_notes().get(document.provenance.sha256, [])
    if len(nodes) != count:
        return
    asked: dict[str, tuple[list[int], set[int]]] = {}
    for ordinal, (_, _, texts, along) in enumerate(nodes):
        for text in texts:
            needed, helping = asked.setdefault(text, ([], set()))
            needed.append(ordinal)
            helping.update(along)
    for number, (text, (needed, helping)) in enumerate(asked.items()):
        needs = np.zeros(count, np.float32)
        needs[list(helping)] = SUPPORTING
        needs[needed] = 1.0
        yield Asked(AnnotatedQuery(f"{document.annotation.skill}#a{number}", text), needs, ASKED)


def embedded_queries(encoder: BuiltinEncoder, texts: Sequence[str]) -> tuple[Query, ...]:
    """Return queries as `SkillPager` embeds them for the navigator: each with its clauses."""
    queries = []
    for text in texts:
        clauses = clauses_of(text)
        row, *rows = encoder.encode_query_parts(text, clauses)
        queries.append(Query(text, row, tuple(map(Query, clauses, rows))))
    return tuple(queries)


def _numbers(fragments: Sequence[Fragment], ranges: Sequence[TypedRange]) -> np.ndarray:
    by_line = types_by_line(ranges)
    types = [label_text(each.text, each.span.start_line, by_line) for each in fragments]
    return np.array([-1 if kind is None else TYPES.index(kind) for kind in types], int)


def _shares(first: np.ndarray, second: np.ndarray) -> FloatArray:
    shares = np.zeros((len(first), len(TYPES)), np.float32)
    both = (first >= 0) & (second >= 0)
    known = np.flatnonzero(first >= 0)
    shares[known, first[known]] = np.where(both[known], 1 - SECOND_SHARE, 1)
    shares[np.flatnonzero(both), second[both]] += SECOND_SHARE
    return shares


def _needs(
    document: Document, fragments: Sequence[Fragment], queries: Sequence[tuple[AnnotatedQuery, str]]
) -> list[FloatArray]:
    """Return `(n,)` for each query; its lines are those of all files, one behind the other."""
    counts = [len(LINE_END.findall(text)) + 1 for _, text in document.files]
    paths = [path for path, _ in document.files]
    before = dict(zip(paths, accumulate(counts, initial=0), strict=False))
    spans = [
        (before[each.span.file] + each.span.start_line, before[each.span.file] + each.span.end_line)
        for each in fragments
    ]

    def touched(ranges: Iterable[LineRange]) -> np.ndarray:
        return np.array(
            [any(start <= end and last >= first for first, end in ranges) for start, last in spans]
        )

    return [
        np.where(touched(query.critical), 1.0, np.where(touched(query.supporting), SUPPORTING, 0.0)).astype(
            np.float32
        )
        for query, _ in queries
    ]


def _number(identifier: str) -> int:
    """Return 6 for `name#6`."""
    return int(identifier.rpartition("#")[2])


def repository_folds(examples: Sequence[Example], folds: int) -> np.ndarray:
    """Return `(n,)` the fold of each document: all of a repository in one, folds of about equal size."""
    sizes = Counter(example.repository for example in examples)
    held = [0] * folds
    fold_of = {}
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        fold_of[name] = held.index(min(held))
        held[fold_of[name]] += sizes[name]
    return np.array([fold_of[example.repository] for example in examples])
