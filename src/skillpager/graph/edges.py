"""Infer the edges between typed nodes: one pure function per edge kind.

The default strategy reads no edges; the graph baselines and the drawings do. Each function takes a few passes
over the nodes with dictionary look-ups; only the cosines are quadratic, in blocked matrix products.

Reference: paper §3.1, Edge Inference.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from skillpager.graph.mentions import collect_names, linked_sections, mentioned_sections
from skillpager.sections import Section, find_sections
from skillpager.types import Edge, EdgeKind, FloatArray, Node, NodeType

SEMANTIC_THRESHOLD = 0.85  # paper §3.1
MAX_NEIGHBOURS = 16  # without a limit, a document that repeats one line would give a dense graph
BLOCK_ROWS = 1024  # a block of cosines is 4 MB
MICRO = 10**6  # cosines are compared in millionths: further digits depend on the machine
COLUMN_BITS = 32
LAST_COLUMN = 2**COLUMN_BITS - 1

CUE = re.compile(
    r"\b(?:before|after|once|until|till|unless|if|when|first|prior to|requir\w+|prerequisites?|must|mandatory"
    r"|only|ensur\w+|make sure|verify|confirm|check that|needs?|needed|depends? on|assum\w+|provided that"
    r"|as long as|never|do not|don't|install\w*|set ?up"
    r"|bevor|vorher|vor de[mr]|nachdem|sobald|solange|wenn|falls|nur|erst|muss|müssen|benötig\w+|erforder\w+"
    r"|voraussetzung\w*|sicherstellen|stellen sie sicher)\b"
    r"|之前|以前|之后|必须|需要|要求|确保|除非|只有|前提|如果|直到|当.{1,20}时",
    re.IGNORECASE,
)
CODE_SPAN = re.compile(r"(?<!`)`([^`\s]{4,80})`(?!`)")  # shorter ones occur everywhere


def infer_edges(nodes: Sequence[Node], embeddings: FloatArray) -> tuple[Edge, ...]:
    """Return the edges of all four kinds, sorted by source, target and kind.

    Args:
        nodes: All nodes of one skill, in document order.
        embeddings: `(len(nodes), dim)` float32, rows unit length, row i belongs to `nodes[i]`.

    Raises:
        ValueError: The number of rows is not that of the nodes.

    Reference: paper §3.1, Edge Inference.
    """
    semantic = semantic_edges(nodes, embeddings)
    edges = (*sequence_edges(nodes), *semantic, *reference_edges(nodes), *condition_edges(nodes))
    return tuple(sorted(edges, key=lambda edge: (edge.source, edge.target, edge.kind)))


def sequence_edges(nodes: Sequence[Node]) -> tuple[Edge, ...]:
    """Return an edge from each node to the next one of the same file."""
    return tuple(
        Edge(before.ordinal, after.ordinal, EdgeKind.SEQUENCE, 1.0)
        for before, after in pairwise(nodes)
        if before.span.file == after.span.file
    )


def semantic_edges(
    nodes: Sequence[Node],
    embeddings: FloatArray,
    *,
    threshold: float = SEMANTIC_THRESHOLD,
    max_neighbours: int = MAX_NEIGHBOURS,
) -> tuple[Edge, ...]:
    """Return an edge from the earlier to the later node of each pair whose cosine exceeds `threshold`.

    The weight is the cosine, rounded to millionths. A node is linked to its `max_neighbours` most
    similar later nodes; ties go to the earlier one. Memory is a few blocks for any number of nodes.

    Args:
        nodes: All nodes of one skill, in document order.
        embeddings: `(len(nodes), dim)` float32, rows unit length, row i belongs to `nodes[i]`.
        threshold: The paper's τ.
        max_neighbours: Most semantic edges that leave one node.

    Raises:
        ValueError: There is not one row per node, or `threshold` or `max_neighbours` is out of range.
    """
    if len(embeddings) != len(nodes):
        raise ValueError(f"{len(nodes)} nodes need as many rows, not {len(embeddings)}")
    if not 0 <= threshold <= 1 or max_neighbours < 1:
        raise ValueError(
            f"threshold {threshold} is not in [0, 1], or max_neighbours {max_neighbours} below 1"
        )
    floor = round(threshold * MICRO)
    return tuple(
        Edge(nodes[earlier].ordinal, nodes[later].ordinal, EdgeKind.SEMANTIC, micros / MICRO)
        for start in range(0, len(nodes), BLOCK_ROWS)
        for earlier, later, micros in _neighbours(embeddings, start, floor, max_neighbours)
    )


def _neighbours(embeddings: FloatArray, start: int, floor: int, count: int) -> Iterator[tuple[int, int, int]]:
    """Yield earlier row, later row and cosine in millionths, above `floor`, for the block from `start`."""
    block = embeddings[start : start + BLOCK_ROWS]
    best = np.zeros((len(block), count), dtype=np.int64)
    for column in range(start, len(embeddings), BLOCK_ROWS):
        cosines = block @ embeddings[column : column + BLOCK_ROWS].T
        if column == start:
            cosines = np.triu(cosines, 1)  # later nodes only; zeros are above no threshold
        least = np.maximum(best.min(axis=1) >> COLUMN_BITS, floor)
        rows = np.flatnonzero(_micros(cosines.max(axis=1)) > least)
        if not len(rows):
            continue
        # keys order by cosine, then by earlier column. They are distinct except for 0 (a cosine not above
        # `floor`), so that the partition, which is not stable, has the same result on any machine
        micros = _micros(cosines[rows])
        columns = np.arange(column, column + micros.shape[1])
        keys = np.where(micros > floor, (micros << COLUMN_BITS) + LAST_COLUMN - columns, 0)
        best[rows] = np.partition(np.hstack([best[rows], keys]), -count)[:, -count:]
    for row, slot in np.argwhere(best).tolist():
        key = int(best[row, slot])
        yield start + row, LAST_COLUMN - (key & LAST_COLUMN), key >> COLUMN_BITS


def _micros(cosines: FloatArray) -> NDArray[np.int64]:
    """Return cosines in millionths, at most one."""
    return np.rint(np.minimum(cosines, 1) * np.float64(MICRO)).astype(np.int64)


def reference_edges(nodes: Sequence[Node]) -> tuple[Edge, ...]:
    """Return an edge from each node to the first node of every section or file that it names.

    A node names a section by its heading without the number, by its numbered label ("Step 3"), by an
    identifier in its heading (`--flag`, `snake_case`, `CamelCase`, `file.ext`, `call()`) or by a
    Markdown link; it names a file by path or name. Whole words match, in any case. Headings that many
    documents have ("this overview") do not count, unless the text points at them ("see Overview"). If
    several sections have the name, the closest is taken: the first in the smallest section around the
    node that contains one. No node refers to a section that it is in.
    """
    names = collect_names(find_sections(nodes))
    found = {
        (node.ordinal, nodes[section.first].ordinal)
        for node in nodes
        for section in (*mentioned_sections(node, names), *linked_sections(node, names))
    }
    return tuple(Edge(source, target, EdgeKind.REFERENCE, 1.0) for source, target in sorted(found))


def condition_edges(nodes: Sequence[Node]) -> tuple[Edge, ...]:
    """Return edges from each precondition with a dependency cue to the steps that depend on it.

    The cue ("before", "requires", "only if", …) is in the node, in the lead-in of its list or in its
    nearest heading. The first of these rules that finds a step decides:

    1. the first step of every section that the node names, as for `reference_edges`;
    2. the next step of the file that contains a code span of the node;
    3. the next step of the node's section, subsections included;
    4. the nearest step before it in its section ("Run it. Requires Docker.");
    5. the next step of the section around its own, because a section "Prerequisites" has no steps.
    """
    sections = find_sections(nodes)
    names = collect_names(sections)
    around: list[list[Section]] = [[] for _ in nodes]  # the sections of each node, outermost first
    for section in sections:
        for position in range(section.first, section.end):
            around[position].append(section)
    steps = [position for position, node in enumerate(nodes) if node.type is NodeType.STEP]
    steps_with: defaultdict[str, list[int]] = defaultdict(list)
    for step in steps:
        for span in _code_spans(nodes[step]):
            steps_with[span].append(step)

    found: set[tuple[int, int]] = set()
    for position, node in enumerate(nodes):
        texts = [node.text, *node.heading_path[-1:]]
        if node.list_context:
            texts.append(node.list_context.lead_in)
        if node.type is not NodeType.PRECONDITION or not any(map(CUE.search, texts)):
            continue
        file, outer, own = around[position][0], around[position][-2:][0], around[position][-1]
        mentioned = mentioned_sections(node, names)
        with_same_span = (steps_with[span] for span in _code_spans(node) & steps_with.keys())
        rules = (
            [step for named in mentioned for step in _first(steps, named.first, named.end)],
            [step for positions in with_same_span for step in _first(positions, position, file.end)],
            _first(steps, position, own.end),
            _last(steps, own.first, position),
            _first(steps, position, outer.end),
        )
        found |= {(node.ordinal, nodes[step].ordinal) for step in next(filter(None, rules), [])}
    return tuple(Edge(source, target, EdgeKind.CONDITION, 1.0) for source, target in sorted(found))


def _code_spans(node: Node) -> set[str]:
    return set(CODE_SPAN.findall(node.text.casefold()))


def _first(positions: Sequence[int], start: int, end: int) -> list[int]:
    """Return the first of the ascending `positions` in `[start, end)`, if there is one."""
    index = bisect_left(positions, start)
    return [position for position in positions[index : index + 1] if position < end]


def _last(positions: Sequence[int], start: int, end: int) -> list[int]:
    """Return the last of the ascending `positions` in `[start, end)`, if there is one."""
    index = bisect_left(positions, end)
    return [position for position in positions[max(index - 1, 0) : index] if position >= start]
