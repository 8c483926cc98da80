"""Arguments of MCP tools as pydantic models, and the JSON schemas of arguments and replies."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from skillpager.errors import SettingsError
from skillpager.json_types import JsonObject
from skillpager.output.formatting import snippet

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Mode = Literal["auto", "page", "outline", "full"]
Form = TypeVar("Form", bound="Arguments")

# longest quotation of a value in an error
SHOWN_VALUE = 80
DEFAULT_SEARCHED = 5
# most skills that one search returns
MAX_SEARCHED = 50
# digits of a number that a model may write as text
MAX_DIGITS = 9


def _number(value: object) -> object:
    """Return the number that a text such as `"200"` or a float such as 200.0 stands for."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value.strip()) <= MAX_DIGITS:
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _flag(value: object) -> object:
    """Return the truth value that the text `"true"` or `"false"` stands for."""
    if not isinstance(value, str):
        return value
    return {"true": True, "false": False}.get(value.strip().lower(), value)


# models write numbers and truth values as text, too, and hosts pass them on
Number = Annotated[int | None, BeforeValidator(_number)]
Flag = Annotated[bool, BeforeValidator(_flag)]


class Arguments(BaseModel):
    """Arguments of a tool; unknown names and other types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


SkillName = Annotated[str, Field(description="A name that list_skills shows.")]


class ListSkills(Arguments):
    """Arguments of `list_skills`."""

    start: str | None = Field(None, description="To read on: begin with this name.")


class SearchSkills(Arguments):
    """Arguments of `search_skills`."""

    query: str = Field(description="What you are about to do, in a sentence.")
    k: Annotated[int, BeforeValidator(_number)] = Field(
        DEFAULT_SEARCHED, ge=1, le=MAX_SEARCHED, description="Most skills."
    )


class LoadSkill(Arguments):
    """Arguments of `load_skill`."""

    name: str | None = Field(
        None, description="A name that list_skills or search_skills shows. Without it: those the query needs."
    )
    query: str | None = Field(None, description="What you are about to do, in a sentence.")
    budget_tokens: Number = Field(None, ge=1, description="Most tokens of the text.")
    fill: Flag = Field(False, description="Use budget_tokens up, beyond what the query needs.")
    mode: Mode = Field(
        "auto",
        description="auto: a page for the query; without a query the whole skill if it fits, else outline.",
    )
    resend: Flag = Field(False, description="Also send parts that you were sent before.")


class ReadNodes(Arguments):
    """Arguments of `read_skill_nodes`: one of `ids`, `section`, `lines`, `file`; `file` may have `lines`."""

    name: SkillName
    ids: str | None = Field(None, description='Ids, ranges and lines, such as "n3-n5, n9, L30-57".')
    section: str | None = Field(None, description="Title of a heading.")
    lines: str | None = Field(None, description='Such as "30-57" or "references/api.md:30-57".')
    file: str | None = Field(None, description='Another text file of the skill, as "scripts/run.sh".')


class GetOutline(Arguments):
    """Arguments of `get_skill_outline`."""

    name: SkillName
    nodes: Flag = Field(False, description="List every node instead: id, type, lines, tokens, first words.")
    start: str | None = Field(None, description='To read on in that list: begin with this node, as "n120".')


def checked(form: type[Form], values: Mapping[str, object]) -> Form:
    """Return the arguments of a call; null counts as not given.

    Raises:
        SettingsError: Arguments are unknown, missing or not valid; the message names each.
    """
    given = {name: each for name, each in values.items() if each is not None or name not in form.model_fields}
    try:
        return form.model_validate(given)
    except ValidationError as error:
        known = ", ".join(form.model_fields)
        wrong = "; ".join(map(_fault, error.errors()))
        raise SettingsError(f"{wrong[0].upper()}{wrong[1:]}. The arguments are {known}.") from error


def _fault(fault: "ErrorDetails") -> str:
    name = snippet(".".join(map(str, fault["loc"])), SHOWN_VALUE)
    if fault["type"] == "extra_forbidden":
        return f"there is no argument {name!r}"
    if fault["type"] == "missing":
        return f"the argument {name!r} is missing"
    value = snippet(repr(fault["input"]), SHOWN_VALUE)
    return f"{name} is {value}, but {fault['msg'].replace('Input should be', 'it must be')}"


def input_schema(form: type[Arguments], names: Sequence[str] = ()) -> JsonObject:
    """Return the JSON schema of a tool's arguments, without what a model need not read, such as titles.

    With `names` the argument `name` must be one of them.
    """
    schema = form.model_json_schema()
    properties: JsonObject = {}
    for name, value in schema["properties"].items():
        # null counts as an absent argument; a model need not know
        plain = {
            key: each
            for key, each in value.items()
            if key not in ("title", "anyOf") and (key, each) != ("default", None)
        }
        for choice in value.get("anyOf", ()):
            plain |= choice if choice != {"type": "null"} else {}
        properties[name] = plain
    if names and "name" in properties:
        properties["name"] = {"type": "string", "enum": list(names)}
    return _object(properties, properties.keys() - schema.get("required", []))


def _object(properties: JsonObject, optional: Collection[str] = ()) -> JsonObject:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_TEXT: JsonObject = {"type": "string"}
_COUNT: JsonObject = {"type": "integer"}
_FLAG: JsonObject = {"type": "boolean"}
_NUMBER: JsonObject = {"type": "number"}
_PLACE: JsonObject = {"file": _TEXT, "start_line": _COUNT, "end_line": _COUNT}

SKILLS_SCHEMA = _object(
    {
        "text": _TEXT,
        "skills": {"type": "array", "items": _object({"name": _TEXT, "description": _TEXT})},
        "complete": _FLAG,
    }
)
SEARCH_SCHEMA = _object(
    {
        "text": _TEXT,
        "fits": _NUMBER,
        "has_fit": _FLAG,
        "searched": _COUNT,
        "skills": {
            "type": "array",
            "items": _object(
                {
                    "name": _TEXT,
                    "description": _TEXT,
                    "chance": _NUMBER,
                    "reason": _TEXT,
                    "tokens": _COUNT,
                }
            ),
        },
        "complete": _FLAG,
    }
)
READING_SCHEMA = _object(
    {
        "text": _TEXT,
        "skill": _TEXT,
        "kind": {"enum": ["page", "full", "outline", "nodes", "file", "none"]},
        "complete": _FLAG,
        "tokens": _COUNT,
        "full_tokens": _COUNT,
        "nodes": {
            "type": "array",
            "items": _object(
                {"skill": _TEXT, "id": _TEXT, "type": _TEXT, **_PLACE, "tokens": _COUNT, "score": _NUMBER},
                ["skill", "score"],
            ),
        },
        "omitted": {
            "type": "array",
            "items": _object(
                {"skill": _TEXT, "nodes": _TEXT, **_PLACE, "tokens": _COUNT, "known": _FLAG}, ["skill"]
            ),
        },
        "parts": {
            "type": "array",
            "items": _object(
                {
                    "skill": _TEXT,
                    "chance": _NUMBER,
                    "tasks": {"type": "array", "items": _TEXT},
                    "tokens": _COUNT,
                    "full_tokens": _COUNT,
                }
            ),
        },
        "refused": {
            "type": "array",
            "items": _object({"skill": _TEXT, "chance": _NUMBER, "detail": _TEXT}),
        },
        "sufficiency": _NUMBER,
        "covered": _NUMBER,
        "least_tokens": _COUNT,
        "score_kind": _TEXT,
    },
    ["parts", "refused", "sufficiency", "covered", "least_tokens", "score_kind"],
)
