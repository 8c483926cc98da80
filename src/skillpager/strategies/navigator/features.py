"""The features that the navigator reads: one row for each node, given a query.

They come in groups (`GROUPS`): the meaning of the texts (cosines of embeddings), the words they share, the
rarest of these words, how well the node answers a single clause of the query, the section, list and
neighbours of the node, what notes say that it is asked for, and the form of the node and of the query. What
does not depend on the query is computed once for an index.

Reference: paper §3.2 has one feature, the cosine; the others are this package's.
"""

import math
import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from itertools import groupby

import numpy as np

from skillpager.sections import sections_of
from skillpager.strategies.navigator.lexical import IntArray, TermIndex, stems_of, terms_of
from skillpager.strategies.picking import cosines, to_millionths
from skillpager.types import FloatArray, IndexNotes, Node, NodeType, Query, SkillIndex, TileKind

RARE = 0.6  # share of the greatest rarity from which on a word says where to look
FEEDBACK_NODES = 3  # whose mean represents the query's subject (pseudo-relevance feedback)
MAX_CHARS = 4000  # of a node that are read for words and cues
BLOCK_ROWS = 1024  # whose cosines with all before are computed at once

KINDS = (TileKind.SENTENCE, TileKind.LIST_ITEM, TileKind.CODE, TileKind.TABLE)
TYPES = tuple(NodeType)

_CUES = tomllib.loads(files(__package__).joinpath("cues.toml").read_text(encoding="utf-8"))
QUERY_CUES, NODE_CUES = _CUES["query"], _CUES["node"]
_QUERY_CUES = tuple(re.compile(pattern, re.IGNORECASE) for pattern in QUERY_CUES.values())
# of texts in lower case: to ignore the case takes twice as long
_NODE_CUES = tuple(re.compile(pattern, re.MULTILINE) for pattern in NODE_CUES.values())

# names of the features, by group, in the order of the columns: another order needs a new model
GROUPS: dict[str, tuple[str, ...]] = {
    "meaning": ("cosine", "cosine_z", "below_best", "rank", "feedback_z"),
    "words": ("bm25", "bm25_share", "coverage", "stem_share", "stem_coverage", "lead_in_coverage"),
    "names": ("rarest_term", "rarest_in_heading", "rarest_in_section", "named_nodes"),
    "clauses": (
        "clause_cosine", "clause_z", "clause_rank", "clause_below_best", "clause_section_z",
        "clause_section_best", "clause_section_mean", "clause_bm25", "clause_coverage",
        "clause_section_coverage", "clause_count",
    ),
    "section": (
        "section_best", "section_mean_z", "section_cosine_z", "section_rank", "section_bm25",
        "section_coverage", "chapter_best", "chapter_mean_z",
    ),
    "heading": ("heading_coverage", "path_coverage"),
    "neighbours": (
        "before", "after", "smooth", "around_best", "bm25_before", "bm25_after", "list_best", "list_mean",
    ),
    "notes": (
        "noted", "asked", "ask", "ask_z", "ask_below_best", "ask_rank", "ask_of_query", "ask_of_query_z",
        "ask_of_query_rank", "ask_mean", "along_below_best",
    ),
    "type": (*(f"type:{kind}" for kind in TYPES), "type_confidence"),
    "form": (
        *(f"kind:{kind}" for kind in KINDS), "log_tokens", *(f"text:{name}" for name in NODE_CUES),
    ),
    "place": (
        "place", "depth", "first_of_section", "last_of_section", "section_size", "list_size", "list_place",
        "code_before", "code_after", "document_size", "token_share", "centrality", "twin",
    ),
    "query": (
        "query_terms", "best_cosine", "cosine_spread", "query_centrality", "known_terms",
        *(f"query:{name}" for name in QUERY_CUES),
    ),
}  # fmt: skip
NAMES = tuple(name for names in GROUPS.values() for name in names)


class Segments:
    """Runs of neighbouring nodes with equal keys, such as the sections.

    Attributes:
        member: `(n,)` number of the segment of each node.
        starts: `(segments,)` first node of each segment.
    """

    def __init__(self, keys: Sequence[object]) -> None:
        lengths = [sum(1 for _ in segment) for _, segment in groupby(keys)]
        self.member: IntArray = np.repeat(np.arange(len(lengths)), lengths)
        self.starts: IntArray = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.intp)

    def best(self, values: FloatArray) -> FloatArray:
        """Return `(segments,)`: the largest value of each segment."""
        result: FloatArray = np.maximum.reduceat(values, self.starts)
        return result

    def mean(self, values: FloatArray, weights: FloatArray) -> FloatArray:
        """Return `(segments,)` or `(segments, k)`: the weighted mean of each segment."""
        weights = weights if values.ndim == 1 else weights[:, None]
        sums: FloatArray = np.add.reduceat(values * weights, self.starts)
        return np.divide(sums, np.add.reduceat(weights, self.starts), dtype=np.float32)


class IndexFeatures:
    """The part of the features that no query changes, for an index of at least one node."""

    def __init__(self, index: SkillIndex) -> None:
        nodes = index.nodes
        self.sections = sections = sections_of(index)
        self.rows, self.notes = index.embeddings, index.notes
        self.tokens = np.array([max(1, node.tokens) for node in nodes], np.float32)
        numbers = [number for number, section in enumerate(sections) for _ in section]
        self.section = Segments(numbers)
        self.file = Segments([node.span.file for node in nodes])
        self.chapter = Segments([(node.span.file, node.heading_path[:2]) for node in nodes])
        lists = [node.list_context for node in nodes]
        self.lists = Segments(
            [
                (number, item.lead_in_span or item.size) if item else (ordinal, -1)
                for ordinal, (item, number) in enumerate(zip(lists, numbers, strict=True))
            ]
        )
        terms = [terms_of(node.text[:MAX_CHARS]) for node in nodes]
        stems = [stems_of(of_node) for of_node in terms]
        self.words, self.stems = TermIndex(terms), TermIndex(stems)
        self.in_section = TermIndex(
            [[stem for ordinal in section for stem in stems[ordinal]] for section in sections]
        )
        paths = [nodes[section[0]].heading_path for section in sections]
        self.headings = TermIndex([stems_of(terms_of(" ".join(path[-1:]))) for path in paths])
        self.paths = TermIndex([stems_of(terms_of(" ".join(path))) for path in paths])
        self.lead_ins = TermIndex([stems_of(terms_of(item.lead_in)) if item else [] for item in lists])
        self.section_rows = unit(self.section.mean(self.rows, self.tokens))
        self.centre = unit((self.rows * self.tokens[:, None]).sum(0))
        type_and_form = [
            [
                *(node.type is kind for kind in TYPES),
                node.type_confidence,
                *(node.kind is kind for kind in KINDS),
                math.log1p(node.tokens),
                *(cue.search(text) is not None for cue in _NODE_CUES),
            ]
            for node in nodes
            for text in [node.text[:MAX_CHARS].lower()]
        ]
        # `(n, …)`: the features of the groups type, form and place
        self.fixed = np.concatenate([np.array(type_and_form), self._place(nodes)], 1, dtype=np.float32)

    def _place(self, nodes: Sequence[Node]) -> FloatArray:
        """Return `(n, …)`: the place of each node, and its likeness to the nodes before it."""
        count, member = len(nodes), self.section.member
        code = np.array([node.kind is TileKind.CODE for node in nodes], np.float32)
        edges = np.concatenate([[True], member[1:] != member[:-1], [True]]).astype(np.float32)
        lists = [node.list_context for node in nodes]
        twin = np.zeros(count, np.float32)  # the largest cosine with an earlier node
        for start in range(0, count, BLOCK_ROWS):
            block = self.rows[start : start + BLOCK_ROWS]
            earlier = np.tril(block @ self.rows[: start + len(block)].T, start - 1)
            twin[start : start + BLOCK_ROWS] = earlier.max(1)
        columns = [
            np.arange(count, dtype=np.float32) / max(1, count - 1),
            np.array([len(node.heading_path) for node in nodes]),
            edges[:-1],
            edges[1:],
            np.log1p(np.bincount(member)[member].astype(np.float32)),
            np.array([math.log1p(each.size) if each else 0.0 for each in lists]),
            np.array([each.position / max(1, each.size) if each else 0.0 for each in lists]),
            shifted(code, 1),
            shifted(code, -1),
            np.full(count, math.log1p(count)),
            self.tokens / self.tokens.sum(),
            cosines(self.rows, self.centre),
            to_millionths(twin),
        ]
        return np.stack(columns, axis=1)


def features_of(known: IndexFeatures, query: Query) -> FloatArray:
    """Return `(n, len(NAMES))` float32: the features of every node for a query, unscaled."""
    cosine = cosines(known.rows, query.embedding)
    feedback = known.rows[np.argsort(-cosine, kind="stable")[:FEEDBACK_NODES]].mean(0)
    terms, stems = _words_of(query)
    bm25, coverage = known.words.score(terms)
    bm25_share = share(bm25)
    stem_bm25, stem_coverage = known.stems.score(stems)
    columns = [
        cosine,
        standard(cosine),
        cosine - cosine.max(),
        ranks(cosine),
        standard(cosines(known.rows, unit(feedback))),
        np.log1p(bm25),
        bm25_share,
        coverage,
        share(stem_bm25),
        stem_coverage,
        known.lead_ins.score(stems)[1],
        *_of_names(known, terms, stems),
        *_of_clauses(known, query.clauses or (query,)),
        *_of_section(known, query, cosine, bm25_share, stems),
        *(headings.score(stems)[1][known.section.member] for headings in (known.headings, known.paths)),
        *_of_neighbours(known.lists, cosine, bm25_share),
        *_of_notes(known.notes, query, len(cosine)),
    ]
    of_query = [
        math.log1p(len(terms)),
        float(cosine.max()),
        float(cosine.std()),
        float(cosines(known.centre[None], query.embedding)[0]),
        sum(stem in known.stems for stem in stems) / max(1, len(stems)),
        *(math.log1p(len(cue.findall(query.text))) for cue in _QUERY_CUES),
    ]
    same = np.broadcast_to(np.array(of_query, np.float32), (len(cosine), len(of_query)))
    return np.column_stack([*columns, known.fixed, same]).astype(np.float32)


# what `coverage_signals` returns, in its order: another order needs a new model
COVERAGE_NAMES = (
    "best_need", "needs", "best_needs", "best_cosine", "clause_cosine", "worst_clause_cosine", "known_stems",
    "section_coverage", "heading_coverage", "nodes", "cosine_spread", "best_cosine_z", "unknown_stems",
    "clause_stems", "worst_clause_stems", "subject", "above_subject", "fourth_need",
)  # fmt: skip
BEST_NEEDS = 3  # whose mean is a signal
LEAST_NEED = 1e-6  # smaller signals count as this: 0 has no logarithm


def coverage_signals(known: IndexFeatures, query: Query, needs: FloatArray) -> FloatArray:
    """Return `(len(COVERAGE_NAMES),)` float32: what tells whether the skill answers the query at all.

    None is about the query's length: it tells how annotators write, and not what a skill holds. `needs` are
    `(n,)`: the chance that the query needs each node, below 1.
    """
    cosine = cosines(known.rows, query.embedding)
    clauses = query.clauses or (query,)
    of_clauses = cosines(known.rows, np.stack([clause.embedding for clause in clauses], axis=1)).max(0)
    stems = _words_of(query)[1]
    known_of_clauses = [_known_share(known, _words_of(clause)[1]) for clause in clauses]
    falling_needs = np.sort(needs)[::-1]
    subject = float(cosines(known.centre[None], query.embedding)[0])
    best, spread = max(float(needs.max()), LEAST_NEED), float(cosine.std())
    signals = [
        math.log(best / (1 - best)),
        math.log(max(float(needs.sum()), LEAST_NEED)),
        float(falling_needs[:BEST_NEEDS].mean()),
        float(cosine.max()),
        float(of_clauses.mean()),
        float(of_clauses.min()),
        _known_share(known, stems),
        float(known.in_section.score(stems)[1].max()),
        float(known.headings.score(stems)[1].max()),
        math.log1p(len(cosine)),
        spread,
        float(cosine.max() - cosine.mean()) / max(spread, 1e-6),
        sum(stem not in known.stems for stem in stems) / max(1, len(stems)),
        sum(known_of_clauses) / len(clauses),
        min(known_of_clauses),
        subject,
        float(of_clauses.max()) - subject,
        float(falling_needs[min(3, len(needs) - 1)]),
    ]
    return np.array(signals, np.float32)


def _known_share(known: IndexFeatures, stems: Sequence[str]) -> float:
    """Return the share of stems, weighted by rarity, that the skill has."""
    rarities = {stem: known.stems.rarity_of(stem) for stem in stems}
    held = sum(rarity for stem, rarity in rarities.items() if stem in known.stems)
    return held / (sum(rarities.values()) or 1.0)


def _words_of(query: Query) -> tuple[list[str], list[str]]:
    """Return the terms of a query and their stems, each once."""
    terms = list(dict.fromkeys(terms_of(query.text)))
    return terms, list(dict.fromkeys(stems_of(terms)))


def _of_names(known: IndexFeatures, terms: Sequence[str], stems: Sequence[str]) -> list[FloatArray]:
    """Return features of names: a word of the query that stands in few places brings its place."""
    member = known.section.member
    rarest = known.words.rarest(terms)
    return [
        rarest,
        known.headings.rarest(stems)[member],
        known.in_section.rarest(stems)[member],
        np.full(len(rarest), math.log1p(int((rarest >= RARE).sum()))),
    ]


def _of_clauses(known: IndexFeatures, clauses: Sequence[Query]) -> list[FloatArray]:
    """Return the features of the clause that fits best: each is the best over the clauses."""
    rows = np.stack([clause.embedding for clause in clauses], axis=1)
    cosine, section_cosine = cosines(known.rows, rows), cosines(known.section_rows, rows)
    scaled = standard(cosine)
    of_sections = [
        standard(section_cosine),
        known.section.best(scaled),
        known.section.mean(scaled, known.tokens),
    ]
    stems = [_words_of(clause)[1] for clause in clauses]
    words = [known.stems.score(of_clause) for of_clause in stems]
    in_section = [known.in_section.score(of_clause)[1] for of_clause in stems]
    member = known.section.member
    return [
        cosine.max(1),
        scaled.max(1),
        ranks(cosine).min(1),
        (cosine - cosine.max(0)).max(1),
        *(values.max(1)[member] for values in of_sections),
        np.max([share(bm25) for bm25, _ in words], axis=0),
        np.max([coverage for _, coverage in words], axis=0),
        np.max(in_section, axis=0)[member],
        np.full(len(cosine), math.log1p(len(clauses))),
    ]


def _of_section(
    known: IndexFeatures, query: Query, cosine: FloatArray, bm25_share: FloatArray, stems: Sequence[str]
) -> list[FloatArray]:
    """Return the features of the section and the chapter of a node."""
    section, chapter = known.section, known.chapter
    section_cosine = cosines(known.section_rows, query.embedding)
    of_sections = [
        section.best(cosine),
        standard(section.mean(cosine, known.tokens)),
        standard(section_cosine),
        ranks(section_cosine),
        section.best(bm25_share),
        known.in_section.score(stems)[1],
    ]
    of_chapters = [chapter.best(cosine), standard(chapter.mean(cosine, known.tokens))]
    return [
        *(values[section.member] for values in of_sections),
        *(values[chapter.member] for values in of_chapters),
    ]


def _of_neighbours(lists: Segments, cosine: FloatArray, bm25: FloatArray) -> list[FloatArray]:
    """Return the features of the nodes around a node, and of its list."""
    before, after, *further = near = [shifted(cosine, by) for by in (1, -1, 2, -2)]
    return [
        before,
        after,
        (2 * cosine + before + after + 0.5 * (further[0] + further[1])) / 5,
        np.max(near, axis=0),
        shifted(bm25, 1),
        shifted(bm25, -1),
        lists.best(cosine)[lists.member],
        lists.mean(cosine, np.ones_like(cosine))[lists.member],
    ]


def _of_notes(notes: IndexNotes | None, query: Query, count: int) -> FloatArray:
    """Return `(features, count)`: how what nodes are asked for is like the query; zeros without notes.

    Each ask is compared with the query and with its clause that fits best. A node that is asked for nothing
    counts as the farthest of all; one without notes as their mean, and as the farthest to come along.
    """
    if notes is None:
        return np.zeros((len(GROUPS["notes"]), count), np.float32)
    parts = np.stack([part.embedding for part in (query, *query.clauses)], axis=1)
    of_asks = cosines(notes.rows, parts)
    asks = np.bincount(notes.owners, minlength=count)
    unknown = np.bincount(notes.noted, minlength=count) == 0
    scores = np.full((3, count), of_asks.min(), np.float32)
    for score, values in zip(scores[:2], (of_asks.max(1), of_asks[:, 0]), strict=True):
        np.maximum.at(score, notes.owners, values)
        score[unknown] = score[~unknown].mean()
    nearest, of_query, along = scores
    np.maximum.at(along, notes.along[:, 1], nearest[notes.along[:, 0]])
    mean = np.bincount(notes.owners, of_asks[:, 0], count) / np.maximum(asks, 1)
    return np.stack(
        [
            ~unknown,
            asks > 0,
            nearest,
            standard(nearest),
            nearest - nearest.max(),
            ranks(nearest),
            of_query,
            standard(of_query),
            ranks(of_query),
            np.where(asks > 0, mean, of_query),
            along - nearest.max(),
        ],
        dtype=np.float32,
        casting="unsafe",
    )


def shifted(values: FloatArray, by: int) -> FloatArray:
    """Return each row's neighbour: the row `by` rows before it (after it if negative), zeros beyond."""
    moved = np.zeros_like(values)
    if by > 0:
        moved[by:] = values[:-by]
    else:
        moved[:by] = values[-by:]
    return moved


def share(bm25: FloatArray) -> FloatArray:
    """Return BM25 scores as shares of the largest."""
    return bm25 / max(1e-6, float(bm25.max()))


def standard(values: FloatArray) -> FloatArray:
    """Return values, or each column of them, with mean 0 and standard deviation 1."""
    scaled: FloatArray = np.subtract(
        values, np.add.reduce(values) / np.float32(len(values)), dtype=np.float32
    )
    deviation = np.sqrt(np.add.reduce(np.square(scaled)) / np.float32(len(values)))
    scaled /= np.maximum(deviation, np.float32(1e-6))
    return scaled


def ranks(values: FloatArray) -> FloatArray:
    """Return 0 for the largest value, or that of each column, up to 1 for the smallest: logs of ranks."""
    if values.ndim > 1:
        return np.stack([ranks(column) for column in values.T], axis=1)
    steps = np.log1p(np.arange(len(values), dtype=np.float32))
    steps /= np.float32(math.log1p(max(1, len(values) - 1)))
    found = np.empty_like(steps)
    found[np.argsort(-values, kind="stable")] = steps
    return found


def unit(rows: FloatArray) -> FloatArray:
    """Return rows of length 1, or zeros."""
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.divide(rows, np.where(lengths == 0, 1, lengths), dtype=np.float32)
