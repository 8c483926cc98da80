"""The requests of the HTTP service. Their fields are keyword arguments of the library."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from skillpager.library.routing.routes import DEFAULT_ROUTED
from skillpager.settings import MAX_QUERY_CHARS

MAX_NAME_CHARS = 512
MAX_SHOW_CHARS = 200
MAX_ADDRESSES = 1_000
# skills of one answer, and of one page
MAX_ROUTED = 100
MAX_PARTS = 10
# larger than any skill; no sum of such counts overflows
MAX_COUNT = 1_000_000_000

ScopeName = Literal["skill", "body"]
StyleName = Literal["marked", "plain", "xml"]
Address = Annotated[str, Field(min_length=1, max_length=500)]
Addresses = Annotated[list[Address], Field(max_length=MAX_ADDRESSES)]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
SkillName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_NAME_CHARS,
        description="Name of a skill that `/v1/skills` lists.",
        examples=["postgres-backup"],
    ),
]
ScopeField = Annotated[
    ScopeName | None,
    Field(description="`skill`: all Markdown of the skill's folder. `body`: SKILL.md alone."),
]
StyleField = Annotated[StyleName | None, Field(description="How the page is rendered; `marked` by default.")]


class _Fields(BaseModel):
    """A request: unknown fields and values of another JSON type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SkillFields(_Fields):
    """The skill of the library that a request is about."""

    skill: SkillName


class QueryFields(_Fields):
    """A query."""

    query: str = Field(
        min_length=1,
        max_length=MAX_QUERY_CHARS,
        description="The task that the agent is about to do.",
        examples=["Restore a single table from last night's dump."],
    )


class BudgetFields(QueryFields):
    """A query, and the options that pages of one skill and of several share."""

    max_tokens: Count | None = Field(
        None, description="Ceiling on the page's tokens, names and marks included.", examples=[1500]
    )
    sufficiency: float | None = Field(
        None,
        gt=0,
        le=1,
        allow_inf_nan=False,
        description="Estimated chance of holding all that is needed; picking stops there.",
    )
    fill: bool | None = Field(
        None,
        description="Go on to `max_nodes` and `max_tokens` where the strategy `navigator` would end the page "
        "below them; other strategies always do.",
    )
    force: bool = Field(False, description="Make a page even of a skill that seems not to cover the query.")
    context: str = Field(
        "",
        max_length=MAX_QUERY_CHARS,
        description="The reader's situation, such as `TypeScript, Linux`: which of several variants to read.",
    )
    strategy: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_NAME_CHARS,
        description="A strategy of `/v1/strategies`; its argument follows a colon.",
    )
    scope: ScopeField = None
    style: StyleField = None
    show: str = Field(
        "",
        max_length=MAX_SHOW_CHARS,
        description="Command or tool of the client that reads omitted lines when their address follows it, "
        "after the name of the skill on a page of several; the first line of the page names it.",
    )


class PageRequest(BudgetFields, SkillFields):
    """A request for a page. Its options are those of `types.PageOptions`, with the library's defaults.

    `folder` is not among them: a client may be on another machine, where the path leads nowhere.
    """

    max_nodes: Count | None = Field(None, description="Most nodes to pick.")
    mmr_lambda: float | None = Field(
        None, ge=0, le=1, allow_inf_nan=False, description="Weight of relevance (1) against variety (0)."
    )
    known: Addresses = Field(
        [], description="Ids of nodes that the reader has already: a mark names them in place of their text."
    )
    explain: bool = Field(False, description="Also report which groups of features support each node.")


class ExpandRequest(SkillFields):
    """A request for nodes that a page left out."""

    nodes: Addresses | Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARS)] = Field(
        description="Ids (`n12`), ranges (`n12-n16`), lines (`L30-57`) or titles of sections.",
        examples=["n3-n5", ["n3-n5", "L40-52"]],
    )
    max_tokens: Count | None = Field(None, description="Ceiling on the tokens; the rest is left out.")
    scope: ScopeField = None
    style: StyleField = None


class RouteRequest(QueryFields):
    """A query to a library: which skills it needs."""

    k: int = Field(DEFAULT_ROUTED, ge=1, le=MAX_ROUTED, description="Most skills.")
    for_model: bool = Field(
        False, description="Leave out skills that only the user may start (`disable-model-invocation`)."
    )


class AskRequest(BudgetFields):
    """A query to a library, and the options of its page (`library.pages.LibraryPageOptions`).

    `folder` and `known` are not among them: a client may be on another machine, and ids are those of one
    skill.
    """

    max_skills: int | None = Field(None, ge=1, le=MAX_PARTS, description="Most skills on the page.")
    k: int = Field(DEFAULT_ROUTED, ge=1, le=MAX_ROUTED, description="Most skills of the route.")


class ScopeQuery(_Fields):
    """The files of a skill that a request by GET is about."""

    scope: ScopeField = None
