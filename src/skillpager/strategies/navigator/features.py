"""What the navigator knows of a node and a query: one row of numbers for each node.

Signals come in groups (`GROUPS`): what the texts mean (cosines of embeddings), the words they share, how well
the node answers a clause of the query by itself, the section, list and neighbours of the node, and what the
node and the query are by themselves. Everything but the query's part is computed once for an index.

Reference: paper §3.2 has one signal, the cosine; the others are this package's.
"""

import math
import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skillpager.sections import sections_of
from skillpager.strategies.navigator.runs import Runs
from skillpager.strategies.navigator.terms import terms_of
from skillpager.strategies.navigator.words import Words, stems_of
from skillpager.strategies.picking import cosines
from skillpager.types import FloatArray, Node, NodeType, Query, SkillIndex, TileKind

IntArray = NDArray[np.intp]

# how many of the best nodes stand for what the query is about (pseudo-relevance feedback)
FEEDBACK_NODES = 3
# how much of a node is looked at for words and cues
MAX_CHARS = 4000
# rows whose cosines with all others are computed at once
BLOCK_ROWS = 1024

KINDS = (TileKind.SENTENCE, TileKind.LIST_ITEM, TileKind.CODE, TileKind.TABLE)
TYPES = tuple(NodeType)

QUERY_CUES = {
    "asks_what": r"\b(?:what|which|who)\b",
    "asks_how": r"\bhow\b",
    "asks_why": r"\bwhy\b|\breason",
    "asks_value": (
        r"\b(?:value|default|limit|maximum|minimum|option|flag|parameter|setting|threshold|name|number|many|much"
        r"|long)\b"
    ),
    "before": r"\b(?:before|need|require|prerequisite|install|set ?up|credential|key|first|allowed|must)\w*",
    "trouble": (
        r"\b(?:error|fail|wrong|fix|broken|instead|keeps?|crash|problem|issue|why does|stuck|avoid|mistake"
        r"|never)\w*"
    ),
    "make": r"\b(?:write|create|build|make|generate|implement|add|draft|design|plan|prepare|convert)\b",
    "show": r"\b(?:example|code|snippet|command|script|function|call|syntax|query|template)\b",
    "several": r"\band\b|;|\balso\b|,",
}
NODE_CUES = {
    "colon": r":\s*$",
    "if": r"^\W*(?:if|when|unless|otherwise|before|after)\b",
    "never": r"\b(?:never|do not|don't|avoid|must|always|only|required?)\b",
    "trouble": r"\b(?:errors?|fail\w*|wrong|invalid|missing|fix|mistakes?|issue)\b",
    "number": r"\d",
    "code_span": r"`[^`]+`",
    "import": r"^\s*(?:import|from|using|require|use)\b",
    "link": r"\]\(|https?://",
}
_QUERY_CUES = tuple(re.compile(pattern, re.IGNORECASE) for pattern in QUERY_CUES.values())
_NODE_CUES = tuple(re.compile(pattern, re.IGNORECASE | re.MULTILINE) for pattern in NODE_CUES.values())

# names of the signals, by group; the order is that of the columns, and a change of it needs a new model
GROUPS: dict[str, tuple[str, ...]] = {
    "meaning": ("cosine", "cosine_z", "below_best", "rank", "feedback_z"),
    "words": ("bm25", "bm25_share", "coverage", "stem_share", "stem_coverage", "lead_in_coverage"),
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


class Place:
    """What is known of the nodes of one skill before any query.

    Args:
        index: The skill's index; it has at least one node.
    """

    def __init__(self, index: SkillIndex) -> None:
        nodes = index.nodes
        self.rows = index.embeddings
        self.tokens = np.array([max(1, node.tokens) for node in nodes], np.float32)
        numbers = {n: place for place, section in enumerate(sections_of(index)) for n in section}
        self.section = Runs.of([numbers[node.ordinal] for node in nodes])
        self.chapter = Runs.of([(node.span.file, node.heading_path[:2]) for node in nodes])
        self.lists = Runs.of([_list_key(node, numbers[node.ordinal]) for node in nodes])
        terms = [terms_of(node.text[:MAX_CHARS]) for node in nodes]
        self.words = Words.of(terms)
        self.stems = Words.of([stems_of(of_node) for of_node in terms])
        first = [nodes[start] for start in self.section.starts]
        self.in_section = Words.of(
            [
                stems_of(term for of_node in terms[start:stop] for term in of_node)
                for start, stop in zip(
                    self.section.starts, [*self.section.starts[1:], len(nodes)], strict=True
                )
            ]
        )
        self.headings = Words.of([stems_of(terms_of(" ".join(node.heading_path[-1:]))) for node in first])
        self.paths = Words.of([stems_of(terms_of(" ".join(node.heading_path))) for node in first])
        self.lead_ins = Words.of([stems_of(terms_of(_lead_in(node))) for node in nodes])
        self.section_rows = _unit(self.section.mean(self.rows, self.tokens))
        self.centre = _unit((self.rows * self.tokens[:, None]).sum(0))
        self.fixed = self._fixed(nodes)

    @cached_property
    def twin(self) -> FloatArray:
        """`(n,)`: the largest cosine with an earlier node, 0 for the first."""
        best = np.zeros(len(self.rows), np.float32)
        for start in range(0, len(self.rows), BLOCK_ROWS):
            block = cosines(self.rows, self.rows[start : start + BLOCK_ROWS].T).T
            earlier = np.tri(len(block), len(self.rows), start - 1, dtype=np.bool_)
            best[start : start + BLOCK_ROWS] = np.where(earlier, block, 0).max(1)
        return best

    def _fixed(self, nodes: Sequence[Node]) -> dict[str, FloatArray]:
        """Return the signals that no query changes, by group: `(n, …)` each."""
        count = len(nodes)
        code = np.array([node.kind is TileKind.CODE for node in nodes], np.float32)
        member = self.section.member
        sizes = np.bincount(member)[member].astype(np.float32)
        edges = np.concatenate([[True], member[1:] != member[:-1], [True]]).astype(np.float32)
        lists = np.array([_list_place(node) for node in nodes], np.float32)
        place = [
            np.arange(count, dtype=np.float32) / max(1, count - 1),
            np.array([len(node.heading_path) for node in nodes], np.float32),
            edges[:-1],
            edges[1:],
            np.log1p(sizes),
            lists[:, 0],
            lists[:, 1],
            shifted(code, 1),
            shifted(code, -1),
            np.full(count, math.log1p(count), np.float32),
            self.tokens / self.tokens.sum(),
            cosines(self.rows, self.centre),
            self.twin,
        ]
        types = [[float(node.type is kind) for kind in TYPES] + [node.type_confidence] for node in nodes]
        forms = [_form(node) for node in nodes]
        return {
            "type": np.array(types, np.float32),
            "form": np.array(forms, np.float32),
            "place": np.stack(place, axis=1).astype(np.float32),
        }


def signals_of(place: Place, query: Query) -> FloatArray:
    """Return `(n, len(NAMES))` float32: the signals of every node for a query, unscaled.

    Args:
        place: What is known of the nodes, at least one.
        query: The query.
    """
    cosine = cosines(place.rows, query.embedding)
    terms = list(dict.fromkeys(terms_of(query.text)))
    stems = list(dict.fromkeys(stems_of(terms)))
    words = _of_words(place, terms, stems)
    bm25_share = words[GROUPS["words"].index("bm25_share")]
    columns = [
        *_of_meaning(place, cosine),
        *words,
        *_of_clauses(place, query.clauses or (query,)),
        *_of_section(place, query, cosine, bm25_share, stems),
        *(headings.score(stems)[1][place.section.member] for headings in (place.headings, place.paths)),
        *_around(place.lists, cosine, bm25_share),
    ]
    of_query = np.array(_of_query(place, query, cosine, terms, stems), np.float32)
    return np.concatenate(
        [
            np.stack(columns, axis=1).astype(np.float32),
            place.fixed["type"],
            place.fixed["form"],
            place.fixed["place"],
            np.broadcast_to(of_query, (len(cosine), len(of_query))),
        ],
        axis=1,
    )


def _of_meaning(place: Place, cosine: FloatArray) -> list[FloatArray]:
    best = np.argsort(-cosine, kind="stable")[:FEEDBACK_NODES]
    feedback = cosines(place.rows, _unit(place.rows[best].mean(0)))
    return [cosine, _standard(cosine), cosine - cosine.max(), _ranks(cosine), _standard(feedback)]


def _of_words(place: Place, terms: Sequence[str], stems: Sequence[str]) -> list[FloatArray]:
    bm25, coverage = place.words.score(terms)
    stem_bm25, stem_coverage = place.stems.score(stems)
    return [
        np.log1p(bm25),
        bm25 / max(1e-6, float(bm25.max())),
        coverage,
        stem_bm25 / max(1e-6, float(stem_bm25.max())),
        stem_coverage,
        place.lead_ins.score(stems)[1],
    ]


def _of_clauses(place: Place, clauses: Sequence[Query]) -> list[FloatArray]:
    """Return what the clause that fits best says: each signal is the best over the clauses."""
    rows = np.stack([clause.embedding for clause in clauses], axis=1)
    cosine, section_cosine = cosines(place.rows, rows), cosines(place.section_rows, rows)
    standard = _standard(cosine)
    of_sections = [
        _standard(section_cosine),
        place.section.best(standard),
        place.section.mean(standard, place.tokens),
    ]
    stems = [list(dict.fromkeys(stems_of(terms_of(clause.text)))) for clause in clauses]
    words = [place.stems.score(of_clause) for of_clause in stems]
    in_section = [place.in_section.score(of_clause)[1] for of_clause in stems]
    member = place.section.member
    return [
        cosine.max(1),
        standard.max(1),
        _ranks(cosine).min(1),
        (cosine - cosine.max(0)).max(1),
        *(values.max(1)[member] for values in of_sections),
        np.max([bm25 / max(1e-6, float(bm25.max())) for bm25, _ in words], axis=0),
        np.max([coverage for _, coverage in words], axis=0),
        np.max(in_section, axis=0)[member],
        np.full(len(cosine), math.log1p(len(clauses)), np.float32),
    ]


def _of_section(
    place: Place, query: Query, cosine: FloatArray, bm25_share: FloatArray, stems: Sequence[str]
) -> list[FloatArray]:
    section, chapter = place.section, place.chapter
    section_cosine = cosines(place.section_rows, query.embedding)
    of_sections = [
        section.best(cosine),
        _standard(section.mean(cosine, place.tokens)),
        _standard(section_cosine),
        _ranks(section_cosine),
        section.best(bm25_share),
        place.in_section.score(stems)[1],
    ]
    of_chapters = [chapter.best(cosine), _standard(chapter.mean(cosine, place.tokens))]
    return [
        *(values[section.member] for values in of_sections),
        *(values[chapter.member] for values in of_chapters),
    ]


def _of_query(
    place: Place, query: Query, cosine: FloatArray, terms: Sequence[str], stems: Sequence[str]
) -> list[float]:
    return [
        math.log1p(len(terms)),
        float(cosine.max()),
        float(cosine.std()),
        float(cosines(place.centre[None], query.embedding)[0]),
        sum(stem in place.stems.rarity for stem in stems) / max(1, len(stems)),
        *(math.log1p(len(cue.findall(query.text))) for cue in _QUERY_CUES),
    ]


def shifted(values: FloatArray, by: int) -> FloatArray:
    """Return each row's neighbour: the row `by` places before it (after it when negative), zeros beyond."""
    moved = np.zeros_like(values)
    if by >= len(values) or -by >= len(values):
        return moved
    if by > 0:
        moved[by:] = values[:-by]
    else:
        moved[:by] = values[-by:]
    return moved


def _around(lists: Runs, cosine: FloatArray, bm25: FloatArray) -> list[FloatArray]:
    near = [shifted(cosine, by) for by in (1, -1, 2, -2)]
    smooth = (2 * cosine + near[0] + near[1] + 0.5 * (near[2] + near[3])) / 5
    return [
        near[0],
        near[1],
        smooth,
        np.max(near, axis=0),
        shifted(bm25, 1),
        shifted(bm25, -1),
        lists.best(cosine)[lists.member],
        lists.mean(cosine, np.ones_like(cosine))[lists.member],
    ]


def _standard(values: FloatArray) -> FloatArray:
    """Return values, or each column of them, with mean 0 and standard deviation 1."""
    centred = np.subtract(values, values.mean(0), dtype=np.float32)
    standard: FloatArray = np.divide(centred, np.maximum(values.std(0), 1e-6), dtype=np.float32)
    return standard


def _ranks(values: FloatArray) -> FloatArray:
    """Return 0 for the largest value, or that of each column, up to 1 for the smallest: logs of ranks."""
    order = np.argsort(-values, axis=0, kind="stable")
    places = np.arange(len(values), dtype=np.float32).reshape(-1, *[1] * (values.ndim - 1))
    ranks = np.empty(values.shape, np.float32)
    np.put_along_axis(ranks, order, np.broadcast_to(places, values.shape), axis=0)
    return np.divide(np.log1p(ranks), np.float32(math.log1p(max(1, len(values) - 1))), dtype=np.float32)


def _unit(rows: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.divide(rows, np.where(lengths == 0, 1, lengths), dtype=np.float32)


def _form(node: Node) -> list[float]:
    text = node.text[:MAX_CHARS]
    return [
        *(float(node.kind is kind) for kind in KINDS),
        math.log1p(node.tokens),
        *(float(bool(cue.search(text))) for cue in _NODE_CUES),
    ]


def _list_key(node: Node, section: int) -> object:
    context = node.list_context
    if context is None:
        return node.ordinal, -1
    return section, context.lead_in_span or context.size


def _list_place(node: Node) -> tuple[float, float]:
    context = node.list_context
    return (math.log1p(context.size), context.position / max(1, context.size)) if context else (0.0, 0.0)


def _lead_in(node: Node) -> str:
    return node.list_context.lead_in if node.list_context else ""
