"""Infer the edges between typed nodes: one pure function per edge kind.

The default strategy reads no edges; the graph baselines and the drawings do. Only the cosines take quadratic
time, in blocked matrix products. Names of sections and files are looked up token by token in one dictionary,
so that the time depends on the length of the text and not on the number of headings.

Reference: paper §3.1, Edge Inference.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import pairwise
from posixpath import basename, dirname, join, normpath
from urllib.parse import unquote

import numpy as np

from skillpager.sections import Section, Trail, find_sections, trail_of
from skillpager.types import Edge, EdgeKind, FloatArray, Node, NodeType, TileKind

SEMANTIC_THRESHOLD = 0.85  # the τ of paper §3.1
MAX_NEIGHBOURS = 16  # without a limit, a document that repeats one line would give a dense graph
BLOCK_ROWS = 64  # whose cosines with all later nodes are computed at once
MICRO = 10**6  # cosines are compared in millionths: further digits depend on the machine

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

MIN_LETTERS, MIN_IDEOGRAPHS = 4, 3  # shorter names are everyday words
MAX_WORDS = 8  # longer headings are sentences, which are not cited word for word
MAX_TITLE = 200  # characters of a heading that are read, so that no pattern runs over a 2 MB line

_IDEOGRAPH = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
# Link destinations and URLs are single tokens, so that their words do not count as names; punctuation at the
# end of a phrase is a token, so that no name is found across it.
TOKEN = re.compile(
    r"\]\([^)\s]*|https?://\S+|(?<![\w-])--[^\W\d_][\w-]*"
    rf"|[{_IDEOGRAPH}]|[^\W{_IDEOGRAPH}]+|[.,;:!?](?=\s|$)|[()|]"
)
_SEPARATORS = r"(?:[^\w-]|-(?!-))*"  # all but the dashes of a flag
NUMBER = re.compile(
    rf"{_SEPARATORS}"
    r"(?P<label>(?:step|phase|stage|part|section|appendix|chapter|schritt|teil|abschnitt)\s+\d+\w?\b)?"
    rf"(?:\d+(?:\.\d+)*(?=[.):\s]))?{_SEPARATORS}",
    re.IGNORECASE,
)
ASIDE = re.compile(r"\([^)]*\)\s*$")
WORD = re.compile(r"--[a-z][\w-]+|\w+(?:\.\w+)*(?:\(\))?")
CODE_LIKE = re.compile(r"^--|\w_\w|\.[^\W\d]|\(\)|[a-z]\d*[A-Z]")
LINK = re.compile(r"\]\(\s*<?([^)>\s]+)|^ {0,3}\[[^\]\n]+\]:\s*<?([^>\s]+)", re.MULTILINE)

FOLDERS = frozenset({"assets", "references", "resources", "scripts"})  # parts of paths that name nothing
# headings of many documents count as named only with one of these pointers
POINTERS = ("see {}", "see the {}", "see section {}", "{} section", "section {}", "siehe {}")
GENERIC = frozenset(
    files(__package__).joinpath("generic_headings.txt").read_text(encoding="utf-8").splitlines()
)


def infer_edges(nodes: Sequence[Node], embeddings: FloatArray) -> tuple[Edge, ...]:
    """Return the edges of all four kinds, sorted by source, target and kind.

    `nodes` are those of one skill, in document order, `embeddings` their `(n, dim)` unit rows.
    """
    if len(embeddings) != len(nodes):
        raise ValueError(f"{len(nodes)} nodes need as many rows, not {len(embeddings)}")
    semantic = semantic_edges(embeddings)
    edges = (*sequence_edges(nodes), *semantic, *reference_edges(nodes), *condition_edges(nodes))
    return tuple(sorted(edges, key=lambda edge: (edge.source, edge.target, edge.kind)))


def sequence_edges(nodes: Sequence[Node]) -> tuple[Edge, ...]:
    """Return an edge from each node to the next one of the same file."""
    return tuple(
        Edge(before.ordinal, after.ordinal, EdgeKind.SEQUENCE, 1.0)
        for before, after in pairwise(nodes)
        if before.span.file == after.span.file
    )


def semantic_edges(embeddings: FloatArray) -> tuple[Edge, ...]:
    """Return an edge from the earlier to the later node of each pair whose cosine exceeds the threshold.

    `embeddings` are those of `infer_edges`. The weight is the cosine, rounded to millionths. A node is
    linked to its `MAX_NEIGHBOURS` most similar later nodes; ties go to the earlier one.
    """
    floor, edges = round(SEMANTIC_THRESHOLD * MICRO), []
    for start in range(0, len(embeddings), BLOCK_ROWS):
        cosines = np.minimum(embeddings[start : start + BLOCK_ROWS] @ embeddings[start:].T, 1)
        block = np.rint(cosines * np.float64(MICRO)).astype(np.int64)
        for place in np.flatnonzero((np.triu(block, 1) > floor).any(1)).tolist():
            later = place + 1 + np.flatnonzero(block[place, place + 1 :] > floor)
            best = later[np.argsort(-block[place, later], kind="stable")[:MAX_NEIGHBOURS]]
            edges += [
                Edge(start + place, start + other, EdgeKind.SEMANTIC, micros / MICRO)
                for other, micros in zip(best.tolist(), block[place, best].tolist(), strict=True)
            ]
    return tuple(edges)


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


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the sections of a skill, tokens joined by spaces, and their beginnings in tokens.

    `places` has the first section with a name within a trail; the empty trail is the whole skill. `anchors`
    has sections by file and anchor, built as code hosts do; a file has the anchor "".
    """

    places: dict[tuple[Trail, str], Section] = field(default_factory=dict)
    beginnings: set[str] = field(default_factory=set)
    anchors: dict[tuple[str, str], Section] = field(default_factory=dict)


def collect_names(sections: Sequence[Section]) -> Names:
    """Return the names of all sections; titles take precedence over identifiers, then earlier sections."""
    names = Names()
    for naming in (_titles, _identifiers):
        for section in sections:
            for plain in filter(_is_specific, naming(section)):
                for pointer in POINTERS if plain in GENERIC else ("{}",):
                    words = pointer.format(plain).split()
                    beginnings = [" ".join(words[: count + 1]) for count in range(len(words))]
                    names.beginnings.update(beginnings)
                    for depth in range(len(section.trail)):
                        names.places.setdefault((section.trail[:depth], beginnings[-1]), section)
    repeats: Counter[tuple[str, str]] = Counter()
    for section in sections:
        file, title = section.trail[0], section.trail[-1] if len(section.trail) > 1 else ""
        anchor = re.sub(r"[^\w\- ]", "", title.casefold()).replace(" ", "-")
        # the second heading with the same text gets `-1`, and so on
        count = repeats[file, anchor]
        repeats[file, anchor] += 1
        names.anchors.setdefault((file, f"{anchor}-{count}" if count else anchor), section)
    return names


def mentioned_sections(node: Node, names: Names) -> Iterator[Section]:
    """Yield the sections that the text of `node` names, except those that it is in; of a name the closest."""
    trail = trail_of(node)
    scopes = [trail[:depth] for depth in range(len(trail), -1, -1)]
    for name in _names_in(TOKEN.findall(node.text.casefold()), names):
        section = next(names.places[scope, name] for scope in scopes if (scope, name) in names.places)
        if not section.holds(node):
            yield section


def linked_sections(node: Node, names: Names) -> Iterator[Section]:
    """Yield the sections, or for unknown anchors the files, that links in `node` lead to from elsewhere."""
    if node.kind is TileKind.CODE:
        return
    for inline, definition in LINK.findall(node.text):
        path, _, anchor = unquote(inline or definition).partition("#")
        file = normpath(join(dirname(node.span.file), path)) if path else node.span.file
        section = names.anchors.get((file, anchor.casefold()), names.anchors.get((file, "")))
        if section and not section.holds(node):
            yield section


def _name(text: str) -> str:
    return " ".join(TOKEN.findall(text.casefold())).strip(" .,;:!?()|")


def _titles(section: Section) -> Iterator[str]:
    """Yield a file's path and name, or a heading without number or aside, and its label ("Step 3")."""
    title = section.trail[-1][:MAX_TITLE]
    number = NUMBER.match(title)
    if len(section.trail) == 1:
        yield from (_name(title), _name(basename(title)))
    elif number:
        bare = title[number.end() :]
        yield from (_name(bare), _name(ASIDE.sub("", bare)), _name(number["label"] or ""))


def _identifiers(section: Section) -> Iterator[str]:
    """Yield the words of a heading that look like code, as names."""
    words = WORD.findall(section.trail[-1]) if len(section.trail) > 1 else []
    yield from (_name(word) for word in words if CODE_LIKE.search(word))


def _is_specific(name: str) -> bool:
    """Return whether a name is long enough to be specific, and short enough to be cited."""
    words = name.split()
    ideographs = sum(len(word) == 1 and word > "\u3040" for word in words)
    long_enough = ideographs >= MIN_IDEOGRAPHS or len(name) - 2 * ideographs >= MIN_LETTERS
    return long_enough and len(words) <= MAX_WORDS + ideographs and name not in FOLDERS


def _names_in(tokens: Sequence[str], names: Names) -> list[str]:
    """Return the names in `tokens`, each once; the longest at each position, without names inside it."""
    found: dict[str, None] = {}
    end = 0
    for start in range(len(tokens)):
        if start < end:
            continue
        longest = candidate = ""
        for position in range(start, len(tokens)):
            candidate = f"{candidate} {tokens[position]}".lstrip()
            if candidate not in names.beginnings:
                break
            if ((), candidate) in names.places:
                longest, end = candidate, position + 1
        if longest:
            found[longest] = None
    return list(found)
