"""What the HTTP service answers, for its OpenAPI description: the forms of `serialize.py` and a few more.

Answers are not made from these models, which would cost more than the page; the tests compare the two.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

NodeTypeName = Literal["step", "example", "param", "precondition", "error_handling", "concept"]


class _Answer(BaseModel):
    """An answer whose fields are all told."""

    model_config = ConfigDict(extra="forbid")


class _PlaceAnswer(_Answer):
    """Where something stands; lines are counted from 1 and inclusive."""

    file: str
    start_line: int
    end_line: int


class NodeAnswer(_PlaceAnswer):
    """A node: its role, place and exact source text."""

    id: str
    type: NodeTypeName
    type_confidence: float
    kind: str
    heading_path: list[str]
    tokens: int
    text: str


class HeadingAnswer(_PlaceAnswer):
    """A heading."""

    level: int
    title: str


class EdgeAnswer(_Answer):
    """An edge of the graph; its ends are ids of nodes."""

    source: str
    target: str
    kind: Literal["sequence", "semantic", "reference", "condition"]
    weight: float


class _SummaryAnswer(_Answer):
    """What an index is of and how it was made."""

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


class OutlineAnswer(_SummaryAnswer):
    """A skill's headings and nodes in document order."""

    headings: list[HeadingAnswer]
    nodes: list[NodeAnswer]


class GraphAnswer(_SummaryAnswer):
    """A skill's nodes and the edges between them."""

    nodes: list[NodeAnswer]
    edges: list[EdgeAnswer]


class NodesAnswer(_SummaryAnswer):
    """Nodes of a skill in document order."""

    nodes: list[NodeAnswer]


class FileAnswer(_Answer):
    """A file of a skill as its author wrote it; `body_start` is the offset behind its front matter."""

    path: str
    text: str
    digest: str
    body_start: int


class SourceAnswer(_SummaryAnswer):
    """A skill's files with their text; the `files` of the other answers are `sources` here."""

    sources: list[FileAnswer]


class SkillAnswer(_Answer):
    """A skill that was found."""

    name: str
    description: str
    path: str
    shadowed_by: str | None
    problem: str | None


class SkillsAnswer(_Answer):
    """The skills that can be paged, and those that were found and cannot: shadowed or not readable."""

    skills: list[SkillAnswer]
    left_out: list[SkillAnswer]


class OmissionAnswer(_PlaceAnswer):
    """A gap of a page."""

    nodes: list[str]
    types: dict[str, int]
    tokens: int
    known: bool


class BudgetAnswer(_Answer):
    """The budget in force."""

    max_nodes: int | None
    max_tokens: int | None
    sufficiency: float | None


class _NumbersAnswer(_Answer):
    """The numbers that decided about a node."""

    node: str
    relevance: float
    redundancy: float
    marginal: float


class PickAnswer(_NumbersAnswer):
    """A node that was picked."""

    rank: int
    tokens: int
    total_tokens: int
    sufficiency: float | None


class SkipAnswer(_NumbersAnswer):
    """A node that was left out, and why."""

    reason: str


class SelectionAnswer(_Answer):
    """What a strategy chose and why, picks in order of picking."""

    strategy: str
    query: str
    budget: BudgetAnswer
    picks: list[PickAnswer]
    skipped: list[SkipAnswer]


class PageAnswer(_Answer):
    """A page, or nodes that a page left out: those have no selection. `explain` adds the reasons by node."""

    text: str
    style: Literal["marked", "plain", "xml"]
    tokens: int
    full_tokens: int
    tokens_exact: bool
    token_reduction: float
    complete: bool
    sufficiency: float | None
    nodes: list[NodeAnswer]
    omitted: list[OmissionAnswer]
    selection: SelectionAnswer | None
    reasons: dict[str, dict[str, float]] = Field(default_factory=dict)


class ArgumentAnswer(_Answer):
    """What stands behind the colon of a strategy's name."""

    name: str
    kind: str
    sample: str
    required: bool


class StrategyAnswer(_Answer):
    """A strategy: which arguments of a page it heeds, and why it cannot be asked for, if so."""

    name: str
    heeds: list[Literal["max_nodes", "max_tokens", "sufficiency", "mmr_lambda"]]
    argument: ArgumentAnswer | None
    problem: str | None


class StrategiesAnswer(_Answer):
    """The strategies that `strategy` can name."""

    strategies: list[StrategyAnswer]


class AboutAnswer(_Answer):
    """What the service is and allows."""

    version: str
    encoder: str
    classifier: str
    token_counter: str
    tokens_exact: bool
    allow_uploads: bool
    allow_models: bool
    max_tokens: int | None
    max_request_bytes: int


class HealthAnswer(_Answer):
    """That the service answers."""

    status: Literal["ok"]


class MistakeAnswer(_Answer):
    """A field of a request that is wrong."""

    model_config = ConfigDict(title="Mistake")

    place: str = Field(alias="in", examples=["body"])
    field: str = Field(examples=["max_tokens"])
    detail: str


class ProblemAnswer(_Answer):
    """What went wrong (RFC 9457): `error` is the class of the error, `errors` name the wrong fields."""

    type: str = "about:blank"
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(
        examples=["There is no skill named 'postgres' among 10: did you mean postgres-backup?"]
    )
    error: str | None = Field(None, examples=["UnknownSkillError"])
    errors: list[MistakeAnswer] | None = None
