"""The JSON objects of all front ends: CLI, HTTP service, MCP server and adapters.

Fields have the names of the dataclasses in `types.py`; `output/json.py` makes the objects. The HTTP service's
OpenAPI document is made from these types. Lines are 1-based and inclusive. Fields are added, never removed.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, TypeAlias

# pydantic accepts the TypedDict of `typing` only from Python 3.12 on
from typing_extensions import TypedDict

# covariant, so that a list of objects is a JSON value
JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
JsonObject: TypeAlias = dict[str, JsonValue]

NodeTypeName = Literal["step", "example", "param", "precondition", "error_handling", "concept"]
EdgeKindName = Literal["sequence", "semantic", "reference", "condition"]
StyleName = Literal["marked", "plain", "xml"]
ScopeName = Literal["skill", "body"]


class PlaceJson(TypedDict):
    """A range of lines of a file."""

    file: str
    start_line: int
    end_line: int


class NodeJson(PlaceJson):
    """A node: its type, place and exact source text."""

    id: str
    type: NodeTypeName
    type_confidence: float
    kind: str
    heading_path: list[str]
    tokens: int
    text: str


class HeadingJson(PlaceJson):
    """A heading."""

    level: int
    title: str


class EdgeJson(TypedDict):
    """An edge of the graph; its ends are ids of nodes."""

    source: str
    target: str
    kind: EdgeKindName
    weight: float


class SummaryJson(TypedDict):
    """Metadata of a skill and how its index was made."""

    name: str
    description: str
    metadata: dict[str, str]
    root: str | None
    files: list[str]
    warnings: list[str]
    full_tokens: int
    token_counter: str
    encoder: str
    classifier: str
    key: str


class NodesJson(SummaryJson):
    """Nodes of a skill in document order."""

    nodes: list[NodeJson]


class OutlineJson(NodesJson):
    """A skill's headings and nodes in document order."""

    headings: list[HeadingJson]


class GraphJson(NodesJson):
    """A skill's nodes and the edges between them."""

    edges: list[EdgeJson]


class FileJson(TypedDict):
    """A file of a skill as its author wrote it; `body_start` is the offset after its front matter."""

    path: str
    text: str
    digest: str
    body_start: int


class SourceJson(SummaryJson):
    """A skill's files with their text, as `sources`; `files` are their paths."""

    sources: list[FileJson]


class SkillJson(TypedDict):
    """A skill that discovery found; `user_only` tells that its author keeps it from models."""

    name: str
    description: str
    path: str
    shadowed_by: str | None
    problem: str | None
    user_only: bool


class RoutedSkillJson(SkillJson):
    """A skill that routing found for a query, with its reasons."""

    chance: float
    terms: list[str]
    fields: list[str]
    node_cosine: float | None
    node: str
    folder: str | None
    licence: str
    copies: list[str]
    features: NotRequired[dict[str, float]]


class RouteJson(TypedDict):
    """The skills of a library for a query, best first, and the chance that any skill fits."""

    query: str
    fits: float
    has_fit: bool
    searched: int
    skills: list[RoutedSkillJson]


class FindingJson(TypedDict):
    """What `skillpager library check` found; `line` is null for a whole file."""

    kind: str
    severity: str
    file: str
    line: int | None
    value: str
    problem: str
    remedy: str


class LibraryCheckJson(TypedDict):
    """The findings about a library of skills, with their numbers."""

    skills: int
    errors: int
    warnings: int
    counts: dict[str, int]
    findings: list[FindingJson]


class OmissionJson(PlaceJson):
    """A gap of a page: what is left out, as ids of nodes, counts of node types and tokens."""

    nodes: list[str]
    types: dict[str, int]
    tokens: int
    known: bool


class BudgetJson(TypedDict):
    """The budget in force."""

    max_nodes: int | None
    max_tokens: int | None
    sufficiency: float | None
    fill: bool


class ScoresJson(TypedDict):
    """The numbers that decided about a node; `node` is its id, `score_kind` says what `marginal` is."""

    node: str
    relevance: float
    redundancy: float
    marginal: float


class PickJson(ScoresJson):
    """A node that was picked."""

    rank: int
    tokens: int
    total_tokens: int
    sufficiency: float | None


class SkipJson(ScoresJson):
    """A node that was left out, and why."""

    reason: str


class SelectionJson(TypedDict):
    """A strategy's selection; picks in pick order, skipped nodes in document order.

    `score_kind` says what `marginal` of a node is, such as `need`; `types.ScoreKind` lists the kinds.
    """

    strategy: str
    query: str
    budget: BudgetJson
    score_kind: str
    covered: float | None
    picks: list[PickJson]
    skipped: list[SkipJson]


class PageJson(TypedDict):
    """A page, or nodes that a page left out (without a selection). `explain` adds reasons by node.

    `sufficiency` is the estimated chance that the page holds all that is needed, `covered` that the skill
    answers the query at all. `least_tokens` is the least `max_tokens` with which the page can hold a node, if
    it holds none because none fits.
    """

    text: str
    style: StyleName
    tokens: int
    full_tokens: int
    tokens_exact: bool
    token_reduction: float
    complete: bool
    sufficiency: float | None
    covered: float | None
    least_tokens: int | None
    nodes: list[NodeJson]
    omitted: list[OmissionJson]
    selection: SelectionJson | None
    reasons: NotRequired[dict[str, dict[str, float]]]


class SkillPartJson(SkillJson):
    """The part of a page from several skills that is of one skill.

    `chance` is the chance that the query, or one of its `tasks`, needs the skill; `tasks` are those for which
    the part is there. `key` is that of the index of its nodes, `show` the command that reads its lines.
    """

    chance: float
    tasks: list[str]
    key: str
    show: str
    page: PageJson


class RefusedSkillJson(SkillJson):
    """A skill that routing found and that has no part of the page.

    `detail` is the reason in a sentence.
    """

    chance: float
    reason: Literal["chance", "not_covered", "no_task", "budget", "unreadable", "user_only"]
    detail: str


class LibraryPageJson(TypedDict):
    """A page from the skills of a library; `text` is the whole page, the parts have theirs again.

    `has_fit` is false if no skill fits, which `text` then says. `sufficiency` is the estimated chance that
    each part holds all that is needed of its skill. `tasks` are the tasks into which the query was split.
    """

    text: str
    style: StyleName
    tokens: int
    full_tokens: int
    tokens_exact: bool
    token_reduction: float
    has_fit: bool
    sufficiency: float | None
    covered: float | None
    least_tokens: int | None
    tasks: list[str]
    parts: list[SkillPartJson]
    refused: list[RefusedSkillJson]
    route: RouteJson


class EntryJson(TypedDict):
    """A stored index; size in bytes, times as Unix times."""

    key: str
    name: str
    root: str
    nodes: int
    size: int
    created: float
    used: float


class ErrorJson(TypedDict):
    """An error: the name of its class and its message."""

    type: str
    message: str


class FailureJson(TypedDict):
    """An answer that is an error."""

    error: ErrorJson
