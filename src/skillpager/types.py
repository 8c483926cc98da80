"""Every value type and plug-point Protocol of the package, in pipeline order; no logic.

Array convention: embeddings are C-contiguous `(n, dim)` float32 with rows of unit length, so
that a dot product is a cosine. Lines are 1-based and inclusive, character offsets 0-based and
half-open, both counted in the file they belong to.

Reference: paper §3; names and contracts in `docs/design.md`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

FloatArray = NDArray[np.float32]

# ---- skill


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one file.

    Attributes:
        file: POSIX path of the file relative to the skill's root.
        start_line: First line, 1-based.
        end_line: Last line, inclusive.
        start: Offset of the first character.
        end: Offset behind the last character.
    """

    file: str
    start_line: int
    end_line: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One Markdown file of a skill, exactly as it was read.

    Attributes:
        path: POSIX path relative to the skill's root.
        text: The whole file, byte order mark and line endings included.
        digest: SHA-256 of the UTF-8 bytes, hexadecimal.
        body_start: Offset behind byte order mark and front matter.
    """

    path: str
    text: str
    digest: str
    body_start: int


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as its author wrote it.

    Attributes:
        name: `name` of the front matter, else the folder's or file's name.
        description: `description` of the front matter, else empty.
        metadata: The other front-matter fields, values as text.
        files: The Markdown files of the scope; the entry file first, the rest in link order.
        root: Folder that `files` are relative to; None for a skill from a string.
        warnings: What was odd but not fatal, one sentence each.
    """

    name: str
    description: str
    metadata: Mapping[str, str]
    files: tuple[SourceFile, ...]
    root: Path | None
    warnings: tuple[str, ...] = ()


# ---- fragments


class TileKind(StrEnum):
    """The kinds of tiles; the first three are never candidates for a page."""

    FRONT_MATTER = "front_matter"
    BLANK = "blank"
    HEADING = "heading"
    SENTENCE = "sentence"
    LIST_ITEM = "list_item"
    CODE = "code"
    TABLE = "table"
    QUOTE = "quote"
    HTML = "html"
    LINK_DEFINITION = "link_definition"


@dataclass(frozen=True, slots=True)
class Tile:
    """A stretch of source text; the tiles of a file, joined, are the file.

    Attributes:
        kind: Its kind.
        span: Its place.
        text: The exact source slice.
    """

    kind: TileKind
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Heading(Tile):
    """A heading tile.

    Attributes:
        level: 1 to 6.
        title: Its text without markup.
    """

    level: int
    title: str


@dataclass(frozen=True, slots=True)
class ListContext:
    """The introduction of a list item or table part, by which it is understood away from its list.

    Attributes:
        lead_in: Source of the sentence that introduces the list, of the parent item, or of the
            table's header rows; empty when there is none.
        lead_in_span: Place of that text; None when there is none.
        position: 0-based place of the item in its list, or of the row group in its table.
        size: Number of items in the list, or of row groups in the table.
    """

    lead_in: str
    lead_in_span: Span | None
    position: int
    size: int


@dataclass(frozen=True, slots=True)
class Fragment(Tile):
    """A structural piece before typing: a candidate for a page (paper §3.1).

    Attributes:
        ordinal: 0-based place among the fragments of the skill, in document order.
        heading_path: Titles of the headings it stands under, outermost first.
        list_context: Set for list items and parts of tables, else None.
    """

    ordinal: int
    heading_path: tuple[str, ...]
    list_context: ListContext | None


# ---- nodes, edges, index


class NodeType(StrEnum):
    """The six roles of paper §3.1; all but `CONCEPT` are executable."""

    STEP = "step"
    EXAMPLE = "example"
    PARAM = "param"
    PRECONDITION = "precondition"
    ERROR_HANDLING = "error_handling"
    CONCEPT = "concept"

    __hash__ = str.__hash__  # a member is the key that its text is; Enum's own hash differs and is slow


@dataclass(frozen=True, slots=True)
class Classification:
    """A classifier's verdict on one fragment.

    Attributes:
        type: The node type.
        confidence: Estimated probability that it is right, 0 to 1.
    """

    type: NodeType
    confidence: float


@dataclass(frozen=True, slots=True)
class Node(Fragment):
    """A typed fragment.

    Attributes:
        id: `n` and the ordinal, such as `n12`.
        type: Its role.
        type_confidence: The classifier's confidence, 0 to 1.
        tokens: Tokens of `text` by the index's token counter.
    """

    id: str
    type: NodeType
    type_confidence: float
    tokens: int


class EdgeKind(StrEnum):
    """The four edge kinds of paper §3.1."""

    SEQUENCE = "sequence"
    SEMANTIC = "semantic"
    REFERENCE = "reference"
    CONDITION = "condition"


@dataclass(frozen=True, slots=True)
class Edge:
    """A directed link between two nodes.

    Attributes:
        source: Ordinal of the node it leaves.
        target: Ordinal of the node it enters.
        kind: The kind of link.
        weight: Cosine for semantic edges, else 1.
    """

    source: int
    target: int
    kind: EdgeKind
    weight: float


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that an index depends on besides the files: one half of its cache key.

    Attributes:
        splitter: Version of the fragment splitter.
        classifier: Id of the classifier.
        encoder: Id of the encoder.
        embedded_text: The text of a node that is embedded: `context`, `heading` or `bare`.
        token_counter: Id of the token counter.
        format: Version of the stored format.
    """

    splitter: str
    classifier: str
    encoder: str
    embedded_text: str
    token_counter: str
    format: int


@dataclass(frozen=True, slots=True, eq=False)
class SkillIndex:
    """The stored result of the offline stage.

    Attributes:
        skill: The skill.
        nodes: Typed nodes in document order; `nodes[i].ordinal == i`.
        headings: Every heading in document order.
        edges: Typed links, sorted by source, target and kind.
        embeddings: `(len(nodes), dim)` float32, rows unit length, row i belongs to `nodes[i]`.
        recipe: The parts that made it.
        key: Cache key: SHA-256 over file digests and recipe, hexadecimal.
        full_tokens: Tokens of the skill without front matter.
    """

    skill: Skill
    nodes: tuple[Node, ...]
    headings: tuple[Heading, ...]
    edges: tuple[Edge, ...]
    embeddings: FloatArray
    recipe: Recipe
    key: str
    full_tokens: int


# ---- query, options


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A question put to one skill.

    Attributes:
        text: As the user wrote it.
        embedding: `(dim,)` float32, unit length.
        clauses: Its clauses, as queries by themselves; empty for a query of one clause and for strategies
            that do not ask for them.
    """

    text: str
    embedding: FloatArray
    clauses: "tuple[Query, ...]" = ()


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a page may hold.

    Attributes:
        max_nodes: Most nodes to pick (the paper's k); None for the dynamic 20 / 60.
        max_tokens: Ceiling on the tokens of the page, markers included; None for no ceiling.
        sufficiency: Estimated chance of holding all that is needed at which an `EstimatingStrategy` stops,
            0 to 1; None to go on to the limits. Other strategies do not read it.
    """

    max_nodes: int | None = None
    max_tokens: int | None = None
    sufficiency: float | None = None


class Style(StrEnum):
    """The ways to render a page."""

    MARKED = "marked"
    PLAIN = "plain"
    XML = "xml"


class PageOptions(TypedDict, total=False):
    """The options of `SkillPager.page`; each may be left out.

    Attributes:
        max_nodes: Most nodes to pick, small gaps between them not counted; strategies may add nodes that
            these depend on. Without it `navigator` has no such limit; others pick 20, or 60 above 100 nodes.
        max_tokens: Ceiling on the page's tokens, markers included.
        sufficiency: Estimated chance, above 0 and up to 1, of holding all that the query needs, at which
            the page ends; for strategies that estimate it. Without any limit the page ends when the best
            value per token falls below a fixed threshold.
        strategy: A `name` or `name:ARGUMENT` of `docs/strategies.md`, or a strategy. Without it `navigator`;
            `mmr` with `mmr_lambda` or with an encoder other than the built-in one.
        mmr_lambda: Weight of relevance against redundancy, 0 to 1; 0.7 without it.
        scope: `skill` for SKILL.md and the files it links to, `body` for SKILL.md alone.
        style: `marked` (the default), `plain` or `xml`.
        show: Command that reads omitted nodes when their ids follow it, or replace `{ids}` in it; named by
            the markers.
        known: Ids of nodes that the reader has already: a marker names them where the page would show them,
            unless that takes as many tokens. Style `plain` shows them.
    """

    max_nodes: int | None
    max_tokens: int | None
    sufficiency: float | None
    strategy: "Strategy | str | None"
    mmr_lambda: float | None
    scope: str | None
    style: Style | str | None
    show: str
    known: Collection[str]


# ---- selection, page


@dataclass(frozen=True, slots=True)
class Pick:
    """One pick of a selection, with the numbers that decided it.

    Attributes:
        node: The node.
        rank: 0-based order of picking.
        relevance: Cosine of query and node.
        redundancy: Largest cosine with an earlier pick; 0 for the first.
        marginal: `mmr_lambda * relevance - (1 - mmr_lambda) * redundancy`, or the strategy's own score.
        tokens: Tokens this pick adds to the page.
        total_tokens: Tokens of the page up to and with this pick.
        sufficiency: Estimated chance that the picks up to and with this one hold all that the query needs,
            0 to 1; None from a strategy that does not estimate it.
    """

    node: Node
    rank: int
    relevance: float
    redundancy: float
    marginal: float
    tokens: int
    total_tokens: int
    sufficiency: float | None = None


class SkipReason(StrEnum):
    """The reasons for which a node is left out."""

    MAX_NODES = "max_nodes"
    MAX_TOKENS = "max_tokens"
    NEGATIVE_MARGINAL = "negative_marginal"
    SUFFICIENCY = "sufficiency"
    BELOW_THRESHOLD = "below_threshold"
    NOT_REACHED = "not_reached"
    NOT_CHOSEN = "not_chosen"
    NOT_IN_POOL = "not_in_pool"


@dataclass(frozen=True, slots=True)
class Skip:
    """A node that was left out, with its numbers when the selection ended.

    Attributes:
        node: The node.
        reason: Why it was left out.
        relevance: Cosine of query and node.
        redundancy: Largest cosine with a pick; 0 when nothing was picked.
        marginal: Its marginal value when it was refused.
    """

    node: Node
    reason: SkipReason
    relevance: float
    redundancy: float
    marginal: float


@dataclass(frozen=True, slots=True)
class Selection:
    """The nodes that a strategy chose, and why.

    Attributes:
        strategy: Name of the strategy.
        query: The query's text.
        picks: In order of picking.
        skipped: Every other node, in document order.
        budget: The budget in force, `max_nodes` resolved.
    """

    strategy: str
    query: str
    picks: tuple[Pick, ...]
    skipped: Sequence[Skip]
    budget: Budget


@dataclass(frozen=True, slots=True)
class Omission:
    """A gap of a page.

    Attributes:
        file: File it lies in.
        start_line: First omitted line, 1-based.
        end_line: Last omitted line, inclusive.
        nodes: Ids of the omitted nodes, in document order.
        types: How many nodes of each type.
        tokens: Tokens of the omitted nodes.
        known: Whether they are left out because the reader has them already.
    """

    file: str
    start_line: int
    end_line: int
    nodes: tuple[str, ...]
    types: Mapping[NodeType, int]
    tokens: int
    known: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A page: the text that an agent is given, and how it came about.

    Attributes:
        text: The rendered page.
        style: How it was rendered.
        nodes: The nodes it holds, in document order: the picks, and small gaps between them.
        tokens: Tokens of `text`.
        full_tokens: Tokens of the whole skill without front matter.
        tokens_exact: Whether the counts are o200k_base counts; False for estimates.
        omitted: The gaps, in document order; empty when `complete`.
        complete: Whether the page is the whole skill.
        selection: Why these nodes; None for a page fault.
        sufficiency: Estimated chance that the page holds all that the query needs, 0 to 1; None where the
            strategy does not estimate it.
    """

    text: str
    style: Style
    nodes: tuple[Node, ...]
    tokens: int
    full_tokens: int
    tokens_exact: bool
    omitted: tuple[Omission, ...]
    complete: bool
    selection: Selection | None
    sufficiency: float | None = None


# the name of `Page` before 0.2; goes with the release after that
Context = Page


# ---- plug points


class Encoder(Protocol):
    """Texts to unit rows."""

    @property
    def id(self) -> str:
        """Name of weights and settings; part of the cache key."""

    @property
    def dim(self) -> int:
        """Length of a row."""

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        """Return `(len(texts), dim)` float32, rows unit length, in the order of `texts`."""

    def encode_query(self, text: str) -> FloatArray:
        """Return `(dim,)` float32, unit length."""


class Classifier(Protocol):
    """Fragments to node types."""

    @property
    def id(self) -> str:
        """Name of model and prompt version; part of the cache key."""

    @property
    def embedding(self) -> str | None:
        """Which rows it reads: encoder id, `/` and the text form; None when it reads none."""

    def classify(self, fragments: Sequence[Fragment], rows: FloatArray | None) -> list[Classification]:
        """Return one verdict per fragment, in order.

        `fragments` are all those of one skill; `rows` are their `(n, dim)` unit rows by `embedding`.
        """


class TokenCounter(Protocol):
    """Text to a number of tokens."""

    @property
    def id(self) -> str:
        """Name of the vocabulary, or of the estimate."""

    @property
    def exact(self) -> bool:
        """Whether `count` is a real tokenizer's count."""

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`."""


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """One stored index, as `skillpager cache` lists it.

    Attributes:
        key: Cache key.
        name: Name of the skill.
        root: Folder of the skill, or empty for a skill from a string.
        nodes: Number of nodes.
        size: Bytes it takes.
        created: Unix time when it was written.
        used: Unix time when it was last read.
    """

    key: str
    name: str
    root: str
    nodes: int
    size: int
    created: float
    used: float


class Store(Protocol):
    """Saves and loads indexes. Safe for many threads and processes."""

    def load(self, key: str, skill: Skill) -> SkillIndex | None:
        """Return the index of `skill` stored under `key`, or None; damage is reported and None."""

    def save(self, index: SkillIndex) -> None:
        """Write `index` atomically, replacing one of the same key."""

    def entries(self) -> list[StoreEntry]:
        """Return every entry, most recently used first."""

    def remove(self, keys: Sequence[str]) -> int:
        """Delete entries; return how many there were."""


class TokenMeter(Protocol):
    """Counts the tokens of a growing page, separators and markers included."""

    @property
    def gap_tokens(self) -> int:
        """About how many tokens a gap between two picks takes."""

    def cost(self, ordinal: int) -> int:
        """Return the tokens of the page if node `ordinal` were added."""

    def add(self, ordinal: int) -> None:
        """Add node `ordinal` to the page."""


class Strategy(Protocol):
    """Query and index to a selection."""

    @property
    def name(self) -> str:
        """Name on the command line and in the benchmark."""

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return the nodes to show. Deterministic; ties go to the earlier node.

        `max_tokens` is never exceeded. `max_nodes` bounds the nodes picked for the query; a strategy may
        add nodes that those depend on, and then documents it.
        """


class EstimatingStrategy(Strategy, Protocol):
    """A strategy that estimates the chance that its picks suffice, and can stop when it is high enough."""

    @property
    def embedding(self) -> str:
        """Which rows it reads: encoder id, `/` and text form; the index that it is given has these."""

    def clauses(self, query: str) -> Sequence[str]:
        """Return the clauses of a query that are embedded besides the whole."""

    def reasons(self, index: SkillIndex, query: Query) -> Sequence[Mapping[str, float]]:
        """Return for each node the share of each group of features in its need; shares add up to 1."""
