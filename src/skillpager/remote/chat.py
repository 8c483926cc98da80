"""A chat completion as JSON: what a request says besides the messages, and what its answer holds.

For whatever asks a chat model through an `Endpoint`.
"""

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from skillpager.remote.endpoint import EndpointError, sendable

logger = logging.getLogger(__name__)

_REASONING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"```(?:json)?\s*\n(.*)```", re.DOTALL)


class RefusedError(ValueError):
    """The model, or a filter before it, would not answer this question."""


class CutOffError(ValueError):
    """The answer ended at the model's length limit."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """Which optional parts of the protocol are used.

    Attributes:
        schema: Whether the answer is bound to a JSON schema, else only to be a JSON object.
        temperature: Whether temperature 0 is asked for.
    """

    schema: bool = True
    temperature: bool = True


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    Attributes:
        role: `system`, `user` or `assistant`.
        content: Its text.
    """

    role: str
    content: str


class Negotiation:
    """What one endpoint was found to insist on. Safe for many threads."""

    def __init__(self) -> None:
        """Begin with all optional parts."""
        self._dialect = Dialect()

    def send(self, post: Callable[[Dialect], object]) -> object:
        """Return what `post` returns, called again without each optional part that the endpoint complains of.

        Raises:
            EndpointError: It failed for another reason.
        """
        while True:
            dialect = self._dialect
            try:
                return post(dialect)
            except EndpointError as error:
                simpler = simpler_dialect(dialect, error.complaint)
                if simpler is None:
                    raise
                if self._dialect == dialect:  # else another thread has learnt it already
                    logger.warning("%s; asking without that", error)
                    self._dialect = simpler


def completion_body(
    messages: Sequence[Message], *, schema: Mapping[str, object], schema_name: str, dialect: Dialect
) -> dict[str, object]:
    """Return what a chat request holds besides the model: JSON is asked for, and temperature 0."""
    strict = {"name": schema_name, "strict": True, "schema": schema}
    body: dict[str, object] = {
        "messages": [{"role": said.role, "content": sendable(said.content)} for said in messages],
        "response_format": (
            {"type": "json_schema", "json_schema": strict} if dialect.schema else {"type": "json_object"}
        ),
    }
    if dialect.temperature:
        body["temperature"] = 0
    return body


def simpler_dialect(dialect: Dialect, complaint: str) -> Dialect | None:
    """Return the dialect without what the endpoint complains of; None when that is no optional part."""
    if dialect.temperature and re.search(r"temperature", complaint, re.IGNORECASE):
        return Dialect(schema=dialect.schema, temperature=False)
    if dialect.schema and re.search(
        r"response.?format|json.?schema|structured.output", complaint, re.IGNORECASE
    ):
        return Dialect(schema=False, temperature=dialect.temperature)
    return None


def content_in(answer: object) -> str:
    """Return what the model wrote.

    Raises:
        RefusedError: It would not answer.
        CutOffError: The answer is not whole.
        ValueError: It wrote nothing usable.
    """
    match answer:
        case {"choices": [{"message": {"refusal": str(refusal)}}, *_]} if refusal:
            raise RefusedError(f'the model refused: "{refusal}"')
        case {"choices": [{"finish_reason": "content_filter"}, *_]}:
            raise RefusedError("it was withheld by the endpoint's content filter")
        case {"choices": [{"finish_reason": "length"}, *_]}:
            raise CutOffError("it was cut off at the model's length limit")
        case {"choices": [{"message": {"content": str(content)}}, *_]}:
            return content
        case {"error": {"message": str(message)}}:
            raise ValueError(f'an error under status 200: "{message}"')
    raise ValueError("there is no message in it")


def json_in(content: str) -> object:
    """Return the JSON that a model wrote, decoded.

    Reasoning and a code fence around it are left out, and so is prose around a single object.

    Raises:
        ValueError: There is no JSON, or there are several objects; nothing is guessed.
    """
    answer = _REASONING.sub("", content).strip()
    fenced = _FENCED.fullmatch(answer)
    try:
        decoded: object = json.loads(fenced[1] if fenced else answer)
    except (ValueError, RecursionError) as error:
        found = list(_objects_in(answer))
        if len(found) > 1:
            raise ValueError("it holds several JSON objects") from None
        if not found:
            raise ValueError(f"there is no JSON in it ({error})") from None
        decoded = found[0]
    return decoded


def _objects_in(text: str) -> Iterator[object]:
    """Yield the JSON objects that stand in prose, outermost ones only."""
    decoder, start = json.JSONDecoder(), text.find("{")
    while start >= 0:
        try:
            decoded, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield decoded
        start = text.find("{", end)
