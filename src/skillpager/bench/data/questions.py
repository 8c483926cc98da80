"""A question to a chat model, its answer, and how to read what an endpoint says; pure functions."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, Field, ValidationError

from skillpager.bench.data.spending import Usage
from skillpager.output.json import JsonObject
from skillpager.remote.chat import Message
from skillpager.tokens import default_counter

Value = TypeVar("Value")
Shape = TypeVar("Shape", bound=BaseModel)

# what the chat format adds to each request: roles and separators
FORMAT_TOKENS = 10


@dataclass(frozen=True, slots=True)
class Question:
    """What one answer is asked for with.

    Attributes:
        system: The instructions.
        user: The material.
        schema: JSON schema of the answer.
        schema_name: Name of the schema.
        expected_out: Tokens that an answer usually has, for estimates.
    """

    system: str
    user: str
    schema: Mapping[str, object]
    schema_name: str
    expected_out: int

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the request."""
        return Message("system", self.system), Message("user", self.user)

    @property
    def expected(self) -> Usage:
        """The tokens that the request and a usual answer have."""
        count = default_counter().count
        return Usage(FORMAT_TOKENS + count(self.system) + count(self.user), self.expected_out)


@dataclass(frozen=True, slots=True)
class Answer(Generic[Value]):
    """A usable answer.

    Attributes:
        value: What was read from it.
        model: The model, as the endpoint calls it; may be empty.
        usage: Tokens of this answer.
        raw_usage: What the endpoint said of them; None when it said nothing.
    """

    value: Value
    model: str
    usage: Usage
    raw_usage: JsonObject | None


class _CountedTokens(BaseModel):
    """The part of `usage` that every endpoint means the same by."""

    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)


def read_as(shape: type[Shape], data: object) -> Shape:
    """Return decoded JSON as `shape`, types not converted.

    Raises:
        ValueError: It is no such thing; the message is one line on the first difference.
    """
    try:
        # from JSON again, in which strictness knows no tuples or dates
        return shape.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"{place}: {first['msg']}" if place else first["msg"]) from None


def usage_in(answer: object) -> tuple[Usage | None, JsonObject | None]:
    """Return the tokens that an endpoint counted, and all it said of them."""
    match answer:
        case {"usage": dict(raw)}:
            try:
                counted = read_as(_CountedTokens, raw)
            except ValueError:
                return None, raw
            return Usage(counted.prompt_tokens, counted.completion_tokens), raw
    return None, None


def model_in(answer: object) -> str:
    """Return what the endpoint calls the model that answered; may be empty."""
    match answer:
        case {"model": str(name)}:
            return name
    return ""
