"""The value types and plug-point Protocols of the package, in pipeline order; no logic.

Embeddings are C-contiguous float32 arrays, one row a text, of unit length: a dot product is a cosine. Lines
are 1-based and inclusive, character offsets 0-based and half-open; both are counted in their file, which is a
POSIX path relative to the skill's root. Ordinals and ranks are 0-based. Probabilities run from 0 to 1.

Reference: paper §3; names and contracts in `docs/design.md`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, ForwardRef, Protocol

from typing_extensions import TypedDict

from skillpager.display_text import too_few_tokens
from skillpager.json_types import HIDDEN, INLINE, ON_REQUEST, shown_as

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float32]
else:
    # the import of numpy takes 70 ms, for which the commands without arrays need not wait
    FloatArray = ForwardRef("NDArray[np.float32]")

# metadata: JSON names nodes by their ids
_BY_ID = shown_as(attrgetter("id"), str)
_ID_OF_ORDINAL = shown_as("n{}".format, str)

# the variable by which a skill names its root, see https://code.claude.com/docs/en/skills
SKILL_DIR = "CLAUDE_SKILL_DIR"
# which files of a skill are read, and which text of a node is embedded; see `Settings`
SCOPES = ("skill", "body")
TEXT_FORMS = ("context", "heading", "bare")


@dataclass(frozen=True, slots=True)
class Span:
    """A range of one file, in lines and in character offsets."""

    file: str
    start_line: int
    end_line: int
    start: int = field(metadata=HIDDEN)
    end: int = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One Markdown file of a skill, exactly as it was read.

    Attributes:
        path: Its path from the skill's folder.
        text: Its whole text.
        digest: SHA-256 of its UTF-8 bytes, hexadecimal.
        body_start: Offset after front matter.
        description: What the skill says where it mentions the file; empty if it does not.
        same_as: Path of the file whose text it repeats, or of the folder (`rules/`) if it repeats several;
            empty if it is no copy. A copy has no nodes.
    """

    path: str
    text: str
    digest: str
    body_start: int
    description: str = ""
    same_as: str = ""


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as its author wrote it.

    Attributes:
        name: That of the front matter, else of the folder or file.
        description: That of the front matter, else empty.
        metadata: The other fields of the front matter, as text.
        files: The Markdown files in scope: the entry file first, then those that it mentions, in that order,
            then the others by path.
        root: Folder that paths are relative to; None for a skill from a string.
        warnings: Problems that did not prevent reading, one sentence each.
    """

    name: str
    description: str
    metadata: Mapping[str, str]
    files: tuple[SourceFile, ...] = field(
        metadata=shown_as(lambda files: [file.path for file in files], list[str])
    )
    root: Path | None
    warnings: tuple[str, ...] = ()


class TileKind(StrEnum):
    """Kinds of tiles; all but the first four are fragments. A file that repeats others is one `COPY`."""

    FRONT_MATTER = "front_matter"
    BLANK = "blank"
    COPY = "copy"
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
    """A piece of source text; the tiles of a file, joined, are the file. `text` is the exact source slice."""

    kind: TileKind
    span: Span = field(metadata=INLINE)
    text: str


@dataclass(frozen=True, slots=True)
class Heading(Tile):
    """A heading tile of level 1 to 6; `title` is its text without markup."""

    kind: TileKind = field(metadata=HIDDEN)
    text: str = field(metadata=HIDDEN)
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class ListContext:
    """The context that a list item, or a part of a table, needs to be understood by itself.

    Attributes:
        lead_in: Source of the sentence that introduces the list, of the parent item, or of the table's
            header; empty if there is none.
        lead_in_span: Its place.
        position: Place in the list, or of the first row in the table.
        size: Number of items or rows.
    """

    lead_in: str
    lead_in_span: Span | None
    position: int
    size: int


@dataclass(frozen=True, slots=True)
class Fragment(Tile):
    """A structural piece before typing, the smallest part that a page can hold (paper §3.1).

    Attributes:
        ordinal: Its place in the skill.
        heading_path: Titles of the headings above it, outermost first.
        list_context: Set for list items and parts of tables, else None.
    """

    ordinal: int = field(metadata=HIDDEN)
    heading_path: tuple[str, ...]
    list_context: ListContext | None = field(metadata=HIDDEN)


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
    """A classifier's verdict on one fragment: its type, and the estimated probability that it is right."""

    type: NodeType
    confidence: float


@dataclass(frozen=True, slots=True)
class Node(Fragment):
    """A typed fragment; its id is `n` and its ordinal, such as `n12`."""

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
    """A directed link between two ordinals; `weight` is the cosine for semantic edges, else 1."""

    source: int = field(metadata=_ID_OF_ORDINAL)
    target: int = field(metadata=_ID_OF_ORDINAL)
    kind: EdgeKind
    weight: float


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything except the files that an index depends on; part of its cache key.

    Versions of the splitter and of the stored format; ids of classifier, encoder and token counter; which
    text of a node is embedded (`context`, `heading` or `bare`).
    """

    splitter: str = field(metadata=HIDDEN)
    classifier: str
    encoder: str
    embedded_text: str = field(metadata=HIDDEN)
    token_counter: str
    format: int = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True, eq=False)
class IndexNotes:
    """What the nodes of an index are asked for, by the notes of a language model.

    Attributes:
        noted: Ordinals of the nodes that have notes.
        rows: `(asks, dim)` float32 unit rows of what nodes are asked for, at least one.
        owners: `(asks,)` ordinal of the node of each row.
        along: `(pairs, 2)` ordinals of a node and of one that must come with it.
    """

    noted: "NDArray[np.intp]"
    rows: FloatArray
    owners: "NDArray[np.intp]"
    along: "NDArray[np.intp]"


@dataclass(frozen=True, slots=True, eq=False)
class SkillIndex:
    """The stored result of the offline stage.

    Attributes:
        skill: The skill as it was read.
        nodes: In document order; `nodes[i].ordinal == i`.
        headings: In document order.
        edges: Sorted by source, target and kind.
        embeddings: `(len(nodes), dim)`; row i belongs to `nodes[i]`.
        recipe: The parts that made it.
        key: SHA-256 over name, file digests and recipe, hexadecimal.
        full_tokens: Tokens of the skill without front matter.
        notes: What nodes are asked for; for strategies that estimate needs, if anybody wrote it.
    """

    skill: Skill = field(metadata=INLINE)
    nodes: tuple[Node, ...] = field(metadata=ON_REQUEST)
    headings: tuple[Heading, ...] = field(metadata=ON_REQUEST)
    edges: tuple[Edge, ...] = field(metadata=ON_REQUEST)
    embeddings: FloatArray = field(metadata=HIDDEN)
    recipe: Recipe = field(metadata=INLINE)
    key: str
    full_tokens: int
    notes: IndexNotes | None = field(default=None, metadata=HIDDEN)


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A query for one skill, with its `(dim,)` embedding.

    `clauses` are its clauses, each as a query; empty if it has one, and for strategies that read none.
    """

    text: str
    embedding: FloatArray
    clauses: "tuple[Query, ...]" = ()


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a page may hold; see `PageOptions`.

    The limits are ceilings; None leaves one to the strategy. An `EstimatingStrategy` stops below them where
    it would stop without them, unless it is to `fill` them. Others always do, and read no `sufficiency`.
    """

    max_nodes: int | None = None
    max_tokens: int | None = None
    sufficiency: float | None = None
    fill: bool = False


class Style(StrEnum):
    """The ways to render a page."""

    MARKED = "marked"
    PLAIN = "plain"
    XML = "xml"


class PageOptions(TypedDict, total=False):
    """Options of `SkillPager.page`; all are optional.

    Attributes:
        max_nodes: Most nodes to pick (the paper's k); small gaps that are shown do not count, nor nodes that
            a pick depends on. Default: no limit for `navigator`; for others 20, or 60 if the skill has more
            than 100 nodes.
        max_tokens: Ceiling on the page's tokens, marks included.
        sufficiency: Estimated probability, above 0 and up to 1, of holding all that the query needs, at
            which the page ends; for strategies that estimate it. By default their page ends where
            more tokens cost more than they add to it.
        fill: Whether a page goes on to `max_nodes` and `max_tokens`, for strategies that would end it
            earlier; it is the whole skill if that fits. `sufficiency` still ends it.
        strategy: A `name` or `name:ARGUMENT` of `docs/strategies.md`, or a strategy. Default: `navigator`;
            `mmr` with `mmr_lambda` or with an encoder other than the built-in one.
        mmr_lambda: Weight of relevance against redundancy, 0 to 1; default 0.7.
        scope: `skill` for all Markdown of the skill's folder, `body` for SKILL.md alone.
        style: `marked` (the default), `plain` or `xml`.
        show: Command that reads omitted lines. The first line of a page names it; the lines follow it, or
            replace `{ids}` in it.
        folder: Whether a line names the skill's folder, if it has other files than those that pages show or
            its text names the folder as `${CLAUDE_SKILL_DIR}`; style `plain` has no such line.
        known: Ids of nodes that the reader has already. A mark replaces them on the page if it takes fewer
            tokens; style `plain` shows them.
    """

    max_nodes: int | None
    max_tokens: int | None
    sufficiency: float | None
    fill: bool | None
    strategy: "Strategy | str | None"
    mmr_lambda: float | None
    scope: str | None
    style: Style | str | None
    show: str
    folder: bool
    known: Collection[str]


@dataclass(frozen=True, slots=True)
class Pick:
    """One pick of a selection, with the numbers that decided it.

    Attributes:
        rank: Order of picking.
        relevance: Cosine of query and node.
        redundancy: Largest cosine with an earlier pick; 0 for the first.
        marginal: The number by which the strategy decides; `Selection.score_kind` says what it is.
        tokens: Tokens that this pick adds to the page.
        total_tokens: Tokens of the page after this pick.
        sufficiency: Estimated probability that the picks so far hold all that the query needs, if estimated.
    """

    node: Node = field(metadata=_BY_ID)
    rank: int
    relevance: float
    redundancy: float
    marginal: float
    tokens: int
    total_tokens: int
    sufficiency: float | None = None


class ScoreKind(StrEnum):
    """Kinds of the number by which a strategy decides, `marginal`."""

    NEED = "need"  # estimated probability that the query needs the node, 0 to 1
    MMR_MARGIN = "mmr_margin"  # `mmr_lambda * relevance - (1 - mmr_lambda) * redundancy`, -1 to 1
    COSINE = "cosine"  # of the query and the node, -1 to 1; the same as `relevance`
    SECTION = "section"  # cosine of the query and the node's section, -1 to 1
    BM25 = "bm25"  # 0 or more
    RANK_FUSION = "rank_fusion"  # sum of reciprocal ranks
    DIVERSITY = "diversity"  # pyversity's score when it ranked the node
    OWN = "own"  # a score of the strategy's own


class SkipReason(StrEnum):
    """Reasons why a node is left out."""

    MAX_NODES = "max_nodes"
    MAX_TOKENS = "max_tokens"
    NEGATIVE_MARGINAL = "negative_marginal"
    SUFFICIENCY = "sufficiency"
    BELOW_THRESHOLD = "below_threshold"
    NOT_REACHED = "not_reached"
    NOT_IN_POOL = "not_in_pool"


@dataclass(frozen=True, slots=True)
class Skip:
    """A node that was left out, and why.

    Its numbers, as in `Pick`, are those at its refusal or at the end of the selection.
    """

    node: Node = field(metadata=_BY_ID)
    reason: SkipReason
    relevance: float
    redundancy: float
    marginal: float


@dataclass(frozen=True, slots=True)
class Selection:
    """The nodes that a strategy chose, and why.

    Attributes:
        picks: In order of picking.
        skipped: Every other node, in document order.
        budget: The budget in force, with the strategy's default for `max_nodes`.
        score_kind: What `marginal` is: a `ScoreKind`, or what a strategy of your own calls it.
        covered: Estimated probability that the skill answers the query at all, if estimated.
    """

    strategy: str
    query: str
    picks: tuple[Pick, ...]
    skipped: Sequence[Skip]
    budget: Budget
    score_kind: str = ScoreKind.OWN
    covered: float | None = None


@dataclass(frozen=True, slots=True)
class Omission:
    """A gap of a page.

    Attributes:
        nodes: Ids of the omitted nodes, in document order.
        types: Number of omitted nodes by type, the most frequent first.
        tokens: Tokens of the omitted nodes.
        known: Whether they are omitted because the reader has them already.
    """

    file: str
    start_line: int
    end_line: int
    nodes: tuple[str, ...]
    types: Mapping[NodeType, int]
    tokens: int
    known: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Page:
    """A page: the text that an agent is given, and how it was made. `str(page)` is the text.

    Attributes:
        nodes: The nodes it shows, in document order: the picks, and small gaps between them.
        full_tokens: Tokens of the whole skill without front matter.
        tokens_exact: Whether the counts are a tokenizer's; False for estimates.
        omitted: The gaps, in document order; empty if `complete`.
        complete: Whether the page is the whole skill.
        selection: Why these nodes; None for a page fault.
        sufficiency: Estimated probability that the page holds all that the query needs, if estimated.
        covered: Estimated probability that the skill answers the query at all, if estimated.
        least_tokens: If not a single node fits: the least `max_tokens` with which the page can hold one.
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
    covered: float | None = None
    least_tokens: int | None = None

    @property
    def token_reduction(self) -> float:
        """The share of tokens that the page saves, `1 - tokens / full_tokens`; negative if it is longer."""
        return 1.0 - self.tokens / self.full_tokens if self.full_tokens else 0.0

    @property
    def problem(self) -> str:
        """Why no node is shown, and the remedy, if `max_tokens` is too small; else empty."""
        return "" if self.least_tokens is None else too_few_tokens(self.least_tokens)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        total = len(self.nodes) + sum(len(gap.nodes) for gap in self.omitted)
        size = f"{len(self.nodes)} of {total} nodes, {self.tokens:,} of {self.full_tokens:,} tokens"
        return f"Page({self.problem or size})"


class Encoder(Protocol):
    """An embedding model: texts to rows of unit length.

    It may also have `encode_in_context(fragments)`, which returns `(len(fragments), dim)`: the rows of all
    fragments of a skill, each read among the others; and `encode_query_parts(text, parts)`, which returns
    `(1 + len(parts), dim)`: the row of a query, then those of slices of it, read within the query.
    """

    @property
    def id(self) -> str:
        """Name of weights and settings; part of the cache key."""

    @property
    def dim(self) -> int:
        """Length of a row."""

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        """Return `(len(texts), dim)`, in the order of `texts`."""

    def encode_query(self, text: str) -> FloatArray:
        """Return `(dim,)`."""


class Classifier(Protocol):
    """A node classifier: fragments to node types."""

    @property
    def id(self) -> str:
        """Name of model and prompt version; part of the cache key."""

    @property
    def embedding(self) -> str | None:
        """The embeddings it reads, as encoder id, `/` and text form; None if it reads none."""

    def classify(self, fragments: Sequence[Fragment], rows: FloatArray | None) -> list[Classification]:
        """Return one verdict per fragment, in order.

        `fragments` are all fragments of one skill; `rows` are their embeddings, `(len(fragments), dim)`.
        """


class TokenCounter(Protocol):
    """A token counter."""

    @property
    def id(self) -> str:
        """Name of the vocabulary, or of the estimate."""

    @property
    def exact(self) -> bool:
        """Whether `count` is a tokenizer's count; False for an estimate."""

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`."""


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """A stored index, as `skillpager cache` lists it: cache key, name and folder of the skill, if it has one.

    `size` is in bytes; `created` is the Unix time when it was written.
    """

    key: str
    name: str
    root: str
    nodes: int
    size: int
    created: float


@dataclass(frozen=True, slots=True)
class PublishedSkill:
    """A skill in the library of a shared store, as lists and routing need it; its text is stored with it.

    `digest` is that of its SKILL.md, `stated_licence` that of its front matter or empty, `licence` an SPDX
    expression or `unknown`, `key` the cache key of its index, `state` the SHA-256 of all that was published.
    """

    name: str
    digest: str
    description: str
    user_only: bool
    stated_licence: str
    licence: str
    key: str
    state: str


class Store(Protocol):
    """A store of indexes, safe for many threads and processes."""

    def load(self, key: str, skill: Skill) -> SkillIndex | None:
        """Return the index of `skill` under `key`; None if it is missing, or damaged (a warning)."""

    def save(self, index: SkillIndex) -> None:
        """Write `index` atomically; one that is stored under the same key may stay in its place."""

    def entries(self) -> list[StoreEntry]:
        """Return every entry, the newest first."""


class TokenMeter(Protocol):
    """Counts the tokens of a growing page, separators and marks included."""

    @property
    def gap_tokens(self) -> int:
        """Tokens that the mark of a gap takes, about."""

    def cost(self, ordinal: int) -> int:
        """Return the tokens of the page if node `ordinal` were added."""

    def add(self, ordinal: int) -> None:
        """Add node `ordinal` to the page."""


class Strategy(Protocol):
    """A page strategy: chooses the nodes of a page."""

    @property
    def name(self) -> str:
        """Name on the command line and in benchmark results."""

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return the nodes to show. Deterministic; ties go to the earlier node.

        `max_tokens` is never exceeded. `max_nodes` limits the nodes picked for the query; a strategy that
        adds nodes which these depend on says so in its documentation.
        """


class EstimatingStrategy(Strategy, Protocol):
    """A strategy that estimates the probability that its picks suffice, and can stop at a given one."""

    @property
    def embedding(self) -> str:
        """The embeddings that its index must have, as encoder id, `/` and text form."""

    def clauses(self, query: str) -> Sequence[str]:
        """Return the clauses of a query that are embedded in addition to the whole query."""

    def reasons(self, index: SkillIndex, query: Query) -> Sequence[Mapping[str, float]]:
        """Return for each node the share of each group of features in its need; shares sum to 1."""
