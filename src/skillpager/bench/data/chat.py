"""Many questions to a chat model: parallel requests, retries, corrections, costs."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Generic, TypeVar

from pydantic import BaseModel, Field, ValidationError

from skillpager.bench.data.records import first_fault
from skillpager.bench.data.spending import Bill, Spending, SpendLimitError, Usage
from skillpager.errors import SettingsError
from skillpager.json_types import JsonObject
from skillpager.remote.chat import Message, chat_json, completion_body, content_in
from skillpager.remote.endpoint import Dialect, Endpoint, EndpointError
from skillpager.settings import Settings
from skillpager.tokens import default_counter

Item = TypeVar("Item")
Value = TypeVar("Value")
Shape = TypeVar("Shape", bound=BaseModel)

KEY_VARIABLE = "SKILLPAGER_LLM_API_KEY"
# reasoning models think for minutes
TIMEOUT = 180.0
# an endpoint that is down, or a model that cannot keep to the form, fails every question, each after its
# own repetitions; one bad stretch must not end a long run
MAX_FAILURES_IN_A_ROW = 10
# tokens that the chat format adds to each request: roles and separators
FORMAT_TOKENS = 10
TAG_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Question:
    """A request for one answer.

    Attributes:
        system: The instructions.
        user: The material.
        schema: JSON schema of the answer.
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

    def body(self, dialect: Dialect) -> dict[str, object]:
        """Return the body of the request, without the model."""
        return completion_body(
            self.messages, schema=self.schema, schema_name=self.schema_name, dialect=dialect
        )


@dataclass(frozen=True, slots=True)
class Answer(Generic[Value]):
    """A usable answer.

    Attributes:
        value: The value that was read from it.
        model: The model, as the endpoint calls it; may be empty.
        raw_usage: The endpoint's own account of the tokens; None when it gave none.
    """

    value: Value
    model: str
    usage: Usage
    raw_usage: JsonObject | None


class Blame(StrEnum):
    """The cause of a missing answer: shows whether the other questions will fail too."""

    QUESTION = "question"
    """No others will fail: the model refused this question, or the endpoint rejected it."""
    ENDPOINT = "endpoint"
    """Others may fail in the same way: no answer, or none that could be read."""
    ACCESS = "access"
    """All others will fail: key, model, quota or address."""


class NoAnswerError(Exception):
    """A question that got no usable answer; the message is a clause without full stop."""

    def __init__(self, message: str, *, blame: Blame) -> None:
        super().__init__(message)
        self.blame = blame


class ChatModel:
    """A model behind an endpoint, for many questions. Safe for many threads.

    An endpoint that asks for a pause gets it from all threads.

    Attributes:
        spending: Counts what is paid.
        id: Endpoint and model.
        model: Name of the model, as the endpoint knows it.
        halt: When set, no failed request is repeated.
    """

    def __init__(self, endpoint: Endpoint, *, spending: Spending | None = None) -> None:
        self.spending = spending or Spending()
        self.id = endpoint.id
        self.model = endpoint.model
        self.halt = threading.Event()
        self._endpoint = endpoint

    def estimate(self, questions: Iterable[Question]) -> Bill:
        """Return what questions would cost if each were answered at once and in the usual length."""
        return self.spending.estimate(question.expected for question in questions)

    def ask(self, question: Question, read: Callable[[object], Value]) -> Answer[Value]:
        """Return the answer to a question; a second attempt names the fault of the first.

        `read` makes the value of the decoded JSON, and raises `ValueError` for JSON that cannot be used.

        Raises:
            NoAnswerError: No usable answer came, however often it was asked.
            SpendLimitError: It might cost more than is left.
            MissingExtraError: The `httpx` package is not installed.
        """
        expected = question.expected

        def post(body: Mapping[str, object]) -> object:
            """Send one request if the limit allows, and pay for it."""
            if self.halt.is_set():
                raise EndpointError("it was not asked, because the run has stopped")
            self.spending.reserve(expected)
            try:
                reply = self._endpoint.post("chat", body)
                usage, counted = _usage_of(reply, expected)
                self.spending.pay(usage, counted=counted)
                return reply
            finally:
                self.spending.release(expected)

        try:
            value, answer = chat_json(
                self._endpoint,
                question.messages,
                schema=question.schema,
                schema_name=question.schema_name,
                read=read,
                post=post,
                correct=True,
                abandoned=self.halt,
            )
        except EndpointError as error:
            blame = Blame.ENDPOINT if error.retryable else Blame.ACCESS
            raise NoAnswerError(str(error), blame=Blame.QUESTION if error.complaint else blame) from None
        fields = answer if isinstance(answer, dict) else {}
        model, raw = fields.get("model"), fields.get("usage")
        return Answer(
            value,
            model if isinstance(model, str) else "",
            _usage_of(answer, expected)[0],
            raw if isinstance(raw, dict) else None,
        )


def open_chat_model(
    settings: Settings, *, purpose: str, spending: Spending, max_retries: int, timeout: float = TIMEOUT
) -> ChatModel:
    """Return the chat model of the settings; nothing is sent.

    `purpose` names the part that needs it, as the subject of a sentence; `max_retries` and `timeout` (in
    seconds without an answer) hold for each question.

    Raises:
        SettingsError: No model is set, or endpoint or key cannot be used.
    """
    if not settings.llm_model:
        raise SettingsError(
            f"{purpose} needs a model: give --model, or set SKILLPAGER_LLM_MODEL (and --base-url or "
            "SKILLPAGER_LLM_BASE_URL for another endpoint than OpenAI's)."
        )
    endpoint = Endpoint(
        settings.llm_model,
        base_url=settings.llm_base_url,
        api_key=settings.llm_api_key,
        key_variable=KEY_VARIABLE,
        purpose=purpose,
        timeout=timeout,
        max_retries=max_retries,
    )
    return ChatModel(endpoint, spending=spending)


@dataclass(slots=True)
class Asked(Generic[Item]):
    """The outcome of many questions.

    Attributes:
        done: Number of answers.
        failures: Items without an answer, each with the reason.
        stopped: Why the rest was not asked; empty when all were.
    """

    done: int = 0
    failures: list[tuple[Item, str]] = field(default_factory=list)
    stopped: str = ""


def ask_all(
    items: Sequence[Item],
    ask: Callable[[Item], object],
    *,
    jobs: int,
    halt: threading.Event,
    progress: Callable[[int, int], None] | None = None,
) -> Asked[Item]:
    """Call `ask` with each item in up to `jobs` threads; stop when going on is pointless.

    Items are asked in their order. Calls under way when a run stops are awaited, so that no paid answer is
    lost: `ask` stores its answer itself. It raises `NoAnswerError` or `SpendLimitError`; anything else ends
    the run. `halt` is set when the run stops, so that no failed request is repeated any more. `progress` is
    called in the calling thread with finished and all items.
    """
    asked: Asked[Item] = Asked()
    in_a_row = 0
    waiting, jobs = iter(items), max(1, jobs)
    pending: dict[Future[object], Item] = {}
    with ThreadPoolExecutor(jobs, "skillpager-bench") as pool:
        try:
            while True:
                if not halt.is_set():  # no more than can run: an answer is looked at before the next question
                    pending |= {pool.submit(ask, item): item for item in islice(waiting, jobs - len(pending))}
                if not pending:
                    break
                for future in wait(pending, return_when=FIRST_COMPLETED).done:
                    item = pending.pop(future)
                    reason = ""
                    try:
                        future.result()
                        asked.done += 1
                        in_a_row = 0
                    except SpendLimitError as reached:
                        reason = str(reached)
                    except NoAnswerError as failure:
                        if failure.blame is Blame.ACCESS:
                            reason = str(failure)
                        # failures after a stop were cut short: they say nothing about their questions
                        elif not halt.is_set():
                            asked.failures.append((item, str(failure)))
                            in_a_row += failure.blame is Blame.ENDPOINT
                            if in_a_row == MAX_FAILURES_IN_A_ROW:
                                reason = f"{in_a_row} failures in a row, the last: {failure}"
                    if reason and not asked.stopped:
                        asked.stopped = reason
                        halt.set()
                    if progress:
                        progress(asked.done + len(asked.failures), len(items))
        except BaseException:
            halt.set()
            raise
    return asked


def quote_as_data(texts: Mapping[str, str]) -> str:
    """Return untrusted texts for a prompt, each between tags that it cannot close.

    The tags contain a digest of all texts, which no text can contain: `<query-3f0c9a12be>`.
    """
    mark = hashlib.sha256(json.dumps(dict(texts)).encode()).hexdigest()[:TAG_DIGITS]
    return "\n\n".join(f"<{name}-{mark}>\n{text}\n</{name}-{mark}>" for name, text in texts.items())


def read_as(shape: type[Shape], data: object) -> Shape:
    """Return decoded JSON as a `shape`, validated without type conversion.

    Raises:
        ValueError: It does not fit; one line names the first difference.
    """
    try:
        # from JSON again, in which strictness knows no tuples or dates
        return shape.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise ValueError(first_fault(error)) from None


class _CountedTokens(BaseModel):
    """The fields of `usage` that mean the same at every endpoint."""

    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)


def _usage_of(answer: object, expected: Usage) -> tuple[Usage, bool]:
    """Return the tokens of an answer, and whether the endpoint counted them: else they are counted here."""
    try:
        counted = read_as(_CountedTokens, answer.get("usage") if isinstance(answer, dict) else None)
        return Usage(counted.prompt_tokens, counted.completion_tokens), True
    except ValueError:
        pass
    try:
        return Usage(expected.tokens_in, default_counter().count(content_in(answer))), False
    except ValueError:
        return Usage(expected.tokens_in, 0), False
