"""Conversations with a chat model that calls tools: one turn of the model at a time."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from skillpager.json_types import JsonObject
from skillpager.remote.chat import RefusedError, post_in_dialect
from skillpager.remote.endpoint import Dialect, Endpoint, sendable


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model asks for; the arguments are as it wrote them, possibly no JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a model.

    Attributes:
        text: What it wrote; may be empty.
        calls: The tools that it calls; none if it is done.
        cut_off: Whether it ended at the model's length limit.
    """

    text: str
    calls: tuple[ToolCall, ...]
    cut_off: bool

    @property
    def message(self) -> JsonObject:
        """The turn as a message of the conversation."""
        message: JsonObject = {"role": "assistant", "content": self.text}
        if self.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in self.calls
            ]
        return message


def said(role: str, text: str, **fields: str) -> JsonObject:
    """Return a message of a conversation; `tool_call_id` is among the fields of a tool's result."""
    return {"role": role, "content": sendable(text), **fields}


def function_tool(name: str, description: str, parameters: JsonObject) -> JsonObject:
    """Return a tool as the chat protocol describes it; `parameters` is the JSON schema of its arguments."""
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


def next_turn(
    endpoint: Endpoint,
    messages: Sequence[JsonObject],
    *,
    tools: Sequence[JsonObject],
    post: Callable[[Mapping[str, object]], object] | None = None,
    abandoned: threading.Event | None = None,
) -> tuple[Turn, object]:
    """Return the next turn of a conversation, and the decoded answer that it was read from.

    Failed requests and bad answers are asked again.

    Args:
        endpoint: The model.
        messages: The conversation.
        tools: The tools that the model may call.
        post: Sends the body of one request and returns the decoded answer; None for the endpoint's own.
        abandoned: When set, nothing is asked again.

    Raises:
        EndpointError: No usable answer came; `complaint` is not empty if this very conversation was refused.
        MissingExtraError: The `httpx` package is not installed.
    """

    def body(dialect: Dialect) -> dict[str, object]:
        # an empty list of tools is an error to some endpoints
        offered = {"tools": list(tools)} if tools else {}
        steady = {"temperature": 0} if dialect.temperature else {}
        return {"messages": list(messages), **offered, **steady}

    def attempt() -> tuple[Turn, object]:
        answer = post_in_dialect(endpoint, body, post=post)
        try:
            return turn_in(answer), answer
        except ValueError as error:
            refusal = str(error) if isinstance(error, RefusedError) else ""
            failure = endpoint.bad_answer(error, complaint=refusal)
            failure.retryable = not refusal
            raise failure from None

    return endpoint.persist(attempt, abandoned=abandoned)


def turn_in(answer: object) -> Turn:
    """Return the turn that a decoded answer holds.

    A call without an id gets one, and arguments that came as an object are written as JSON.

    Raises:
        RefusedError: The model, or a filter before it, refused to answer.
        ValueError: There is no message in it.
    """
    match answer:
        case {"choices": [{"message": {"refusal": str(refusal)}}, *_]} if refusal:
            raise RefusedError(f'the model refused: "{refusal}"')
        case {"choices": [{"finish_reason": "content_filter"}, *_]}:
            raise RefusedError("it was withheld by the endpoint's content filter")
        case {"choices": [{"message": dict(message), **choice}, *_]}:
            text, asked = message.get("content"), message.get("tool_calls")
            calls = tuple(_call(each, number) for number, each in enumerate(asked or ()))
            if not calls and not isinstance(text, str):
                raise ValueError("there is neither text nor a call of a tool in it")
            written = sendable(text) if isinstance(text, str) else ""
            return Turn(written, calls, choice.get("finish_reason") == "length")
        case {"error": {"message": str(message)}}:
            raise ValueError(f'an error under status 200: "{message}"')
    raise ValueError("there is no message in it")


def _call(asked: object, number: int) -> ToolCall:
    """Return a call; one that lacks a part is read as far as it goes, so that the model is told of it."""
    match asked:
        case {"function": {"name": str(name), **function}, **rest}:
            arguments = function.get("arguments")
            if not isinstance(arguments, str):
                arguments = json.dumps(arguments or {})
            identity = rest.get("id")
            named = identity if isinstance(identity, str) and identity else f"call_{number}"
            return ToolCall(sendable(named), sendable(name), sendable(arguments))
    raise ValueError("it calls a tool without a name")
