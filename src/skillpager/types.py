"""The value types and plug-point Protocols of the package; those of the offline stage are in `index_types`.

Conventions are those of `index_types`. Ranks are 0-based.

Reference: paper §3.2; names and contracts in `docs/design.md`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import Protocol

from typing_extensions import TypedDict

from skillpager.display_text import not_covered, sufficiency_words, too_few_tokens
from skillpager.index_types import *
from skillpager.json_types import shown_as

# metadata: JSON names nodes by their ids
_BY_ID = shown_as(attrgetter("id"), str)


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A query for one skill, with its `(dim,)` embedding.

    `clauses` are its clauses, each as a query; empty if it has one, and for strategies that read none.
    `context` is that of `PageOptions`.
    """

    text: str
    embedding: FloatArray
    clauses: "tuple[Query, ...]" = ()
    context: str = ""


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
            its text names the folder as `${CLAUDE_SKILL_DIR}`, and, with sizes, up to six of its files that
            the nodes mention; not these where skills share a limit. Style `plain` has no such line.
        force: Whether a query that the skill hardly covers gets a page, too, in place of a short answer.
        hint: What a short answer says of how to get the page nevertheless.
        context: Words about the reader's situation, such as "TypeScript, Linux", no part of the query.
            Of folders that say the same for several languages or systems, `navigator` takes those that the
            query names, else those that these words name, else the one that fits best; the page says so.
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
    force: bool
    hint: str
    context: str
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
    NOT_COVERED = "not_covered"


@dataclass(slots=True)  # a page may have thousands, and frozen ones take four times as long
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
        variants: The other variants of each folder that was taken without being named, by its path.
        broad: Whether the query seems to be one of few words about whole procedures.
    """

    strategy: str
    query: str
    picks: tuple[Pick, ...]
    skipped: Sequence[Skip]
    budget: Budget
    score_kind: str = ScoreKind.OWN
    covered: float | None = None
    variants: Mapping[str, Sequence[str]] = field(default_factory=dict)
    broad: bool = False


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
    def promise(self) -> str:
        """What the page says of its chance to suffice; empty if unknown, complete, or hardly `covered`."""
        broad = self.selection is not None and self.selection.broad
        said = sufficiency_words(self.sufficiency, broad=broad)
        return "" if self.complete or not_covered(self.covered) else said

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
