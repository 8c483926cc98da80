"""Chat completions as JSON: `chat_json` asks a model behind an `Endpoint` and reads its answer."""

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from skillpager.errors import SettingsError
from skillpager.remote.endpoint import Endpoint, EndpointError, sendable
from skillpager.settings import Settings

logger = logging.getLogger(__name__)
Value = TypeVar("Value")

KEY_VARIABLE = "SKILLPAGER_LLM_API_KEY"
# a longer bad answer is not shown to the model again
MAX_REPEATED_CHARS = 4_000
CORRECTION = "That answer cannot be used: {reason}. Answer again, in the form that was asked for."

_NO_SCHEMA = re.compile(r"response.?format|json.?schema|structured.output")
_REASONING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"```(?:json)?\s*\n(.*)```", re.DOTALL)


class RefusedError(ValueError):
    """The model, or a filter before it, refused to answer this question."""


class Message(NamedTuple):
    """One message of a conversation; its role is `system`, `user` or `assistant`."""

    role: str
    content: str


def chat_endpoint(settings: Settings, *, purpose: str, max_retries: int) -> Endpoint:
    """Return the endpoint of the settings' chat model; a `SettingsError` if it is not set or not valid."""
    if not settings.llm_model:
        raise SettingsError(
            f"{purpose} needs a model: set SKILLPAGER_LLM_MODEL (and SKILLPAGER_LLM_BASE_URL, "
            "SKILLPAGER_LLM_API_KEY for another endpoint than OpenAI's)."
        )
    return Endpoint(
        settings.llm_model,
        base_url=settings.llm_base_url,
        api_key=settings.llm_api_key,
        key_variable=KEY_VARIABLE,
        purpose=purpose,
        timeout=settings.llm_timeout,
        max_retries=max_retries,
    )


def chat_json(
    endpoint: Endpoint,
    messages: Sequence[Message],
    *,
    schema: Mapping[str, object],
    schema_name: str,
    read: Callable[[object], Value],
    correct: bool = False,
) -> Value:
    """Return what `read` makes of a chat model's JSON answer; it raises `ValueError` for a useless one.

    A bad answer is asked for again, as often as failed requests are; with `correct` the model then sees it,
    and the fault in it. What the endpoint does not support of the protocol is left out and remembered.

    Raises:
        EndpointError: No usable answer came; `complaint` is not empty if this very question was refused.
        MissingExtraError: The `openai` package is not installed.
    """
    correction: list[Message] = []
    for attempt in range(endpoint.max_retries + 1):
        answer = _post_in_dialect(endpoint, [*messages, *correction], schema, schema_name)
        content = ""
        try:
            content = content_in(answer)
            return read(json_in(content))
        except (ValueError, RecursionError) as error:
            complaint = str(error) if isinstance(error, RefusedError) else ""
            failure = endpoint.bad_answer(error, complaint=complaint)
            logger.warning("%s (attempt %d of %d)", failure, attempt + 1, endpoint.max_retries + 1)
            correction.clear()
            if correct and content.strip() and len(content) <= MAX_REPEATED_CHARS:
                asked_again = CORRECTION.format(reason=error)
                correction += [Message("assistant", content), Message("user", asked_again)]
    raise failure


def _post_in_dialect(
    endpoint: Endpoint, messages: Sequence[Message], schema: Mapping[str, object], schema_name: str
) -> object:
    """Return the answer to one request, sent again without each option that the endpoint objects to.

    JSON is asked for, and temperature 0.
    """
    sent = [{"role": said.role, "content": sendable(said.content)} for said in messages]
    strict = {"type": "json_schema", "json_schema": {"name": schema_name, "strict": True, "schema": schema}}
    while True:
        dialect = endpoint.dialect
        form = strict if "schema" in dialect else {"type": "json_object"}
        body: dict[str, object] = {"messages": sent, "response_format": form}
        if "temperature" in dialect:
            body["temperature"] = 0
        try:
            return endpoint.post("chat", body)
        except EndpointError as error:
            complaint = error.complaint.lower()
            if "temperature" in dialect and "temperature" in complaint:
                simpler = dialect - {"temperature"}
            elif "schema" in dialect and _NO_SCHEMA.search(complaint):
                simpler = dialect - {"schema"}
            else:
                raise
            logger.warning("%s; asking without that", error)
            endpoint.dialect = simpler


def object_schema(**properties: object) -> dict[str, object]:
    """Return the JSON schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def content_in(answer: object) -> str:
    """Return the text that the model wrote; a `ValueError` says why it cannot be used."""
    match answer:
        case {"choices": [{"message": {"refusal": str(refusal)}}, *_]} if refusal:
            raise RefusedError(f'the model refused: "{refusal}"')
        case {"choices": [{"finish_reason": "content_filter"}, *_]}:
            raise RefusedError("it was withheld by the endpoint's content filter")
        case {"choices": [{"finish_reason": "length"}, *_]}:
            raise ValueError("it was cut off at the model's length limit")
        case {"choices": [{"message": {"content": str(content)}}, *_]}:
            return content
        case {"error": {"message": str(message)}}:
            raise ValueError(f'an error under status 200: "{message}"')
    raise ValueError("there is no message in it")


def json_in(content: str) -> object:
    """Return the JSON that a model wrote, decoded, without reasoning before it and a code fence around it."""
    answer = _REASONING.sub("", content).strip()
    fenced = _FENCED.fullmatch(answer)
    try:
        decoded: object = json.loads(fenced[1] if fenced else answer)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"there is no JSON in it ({error})") from None
    return decoded
