"""A chat model that is asked many things: retries, shared pauses, corrections, and what it all costs."""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from skillpager.bench.data.asking import Blame, NoAnswerError
from skillpager.bench.data.questions import Answer, Question, model_in, usage_in
from skillpager.bench.data.spending import Bill, Spending, Usage
from skillpager.errors import SettingsError
from skillpager.remote.chat import (
    Dialect,
    Message,
    Negotiation,
    RefusedError,
    completion_body,
    content_in,
    json_in,
)
from skillpager.remote.endpoint import Endpoint, EndpointError
from skillpager.settings import Settings
from skillpager.tokens import default_counter

Value = TypeVar("Value")

KEY_VARIABLE = "SKILLPAGER_LLM_API_KEY"
# reasoning models think for minutes
TIMEOUT = 180.0
# a longer bad answer is not shown to the model again
MAX_REPEATED_CHARS = 4_000

CORRECTION = "That answer cannot be used: {reason}. Answer again, in the form that was asked for."


class ChatModel:
    """A model behind an endpoint, for many questions. Safe for many threads.

    An endpoint that asks for a pause gets it from all threads.

    Args:
        endpoint: Where it is.
        spending: Counts what is paid.

    Attributes:
        spending: The same.
        halt: When set, no failed request is repeated.
    """

    def __init__(self, endpoint: Endpoint, *, spending: Spending | None = None) -> None:
        self.spending = spending or Spending()
        self.halt = threading.Event()
        self._endpoint = endpoint
        self._pause = _Pause(self.halt)
        self._negotiation = Negotiation()

    @property
    def id(self) -> str:
        """Endpoint and model: what tells one model from another."""
        return self._endpoint.id

    @property
    def model(self) -> str:
        """Name of the model, as the endpoint knows it."""
        return self._endpoint.model

    def estimate(self, questions: Iterable[Question]) -> Bill:
        """Return what questions would cost if each were answered at once and in the usual length."""
        return self.spending.estimate(question.expected for question in questions)

    def ask(self, question: Question, read: Callable[[object], Value]) -> Answer[Value]:
        """Return the answer to a question; the model is told what was wrong with an answer before.

        Args:
            question: The question.
            read: Makes the value of the decoded JSON. Raises `ValueError` for JSON that cannot be used.

        Raises:
            NoAnswerError: No usable answer came, however often it was asked.
            SpendLimitError: It might cost more than is left.
            MissingExtraError: The `openai` package is not installed.
        """
        conversation = _Conversation(question, read)
        try:
            return self._endpoint.persist(lambda: self._attempt(conversation), abandoned=self.halt)
        except EndpointError as error:
            raise NoAnswerError(str(error), blame=conversation.blame) from None

    def _attempt(self, conversation: "_Conversation[Value]") -> Answer[Value]:
        try:
            answer = self._post(conversation)
        except EndpointError as error:
            conversation.blame = _blame(error)
            if error.retryable:
                self._pause.hold(error.retry_after)
            raise
        try:
            value = conversation.value_in(answer)
        except (ValueError, RecursionError) as error:
            conversation.blame = Blame.QUESTION if isinstance(error, RefusedError) else Blame.ENDPOINT
            raise self._endpoint.bad_answer(error) from None
        told, raw_usage = usage_in(answer)
        return Answer(value, model_in(answer), told or conversation.counted(answer), raw_usage)

    def _post(self, conversation: "_Conversation[Value]") -> object:
        """Return the decoded answer, asked for in the way that the endpoint insists on."""

        def post(dialect: Dialect) -> object:
            self._pause.wait()
            if self.halt.is_set():
                raise EndpointError("it was not asked, because the run has stopped")
            self.spending.reserve(conversation.expected)
            try:
                answer = self._endpoint.post("chat", conversation.body(dialect))
                self._pay(conversation, answer)
                return answer
            finally:
                self.spending.release(conversation.expected)

        return self._negotiation.send(post)

    def _pay(self, conversation: "_Conversation[Value]", answer: object) -> None:
        told, _ = usage_in(answer)
        self.spending.pay(told or conversation.counted(answer), counted=told is not None)


class _Conversation(Generic[Value]):
    """A question and what became of it so far.

    Attributes:
        expected: Tokens of the question and of a usual answer.
        blame: What the last failure tells about other questions.
    """

    def __init__(self, question: Question, read: Callable[[object], Value]) -> None:
        self.expected = question.expected
        self.blame = Blame.ENDPOINT
        self._question = question
        self._read = read
        self._correction: list[Message] = []

    def body(self, dialect: Dialect) -> dict[str, object]:
        return completion_body(
            [*self._question.messages, *self._correction],
            schema=self._question.schema,
            schema_name=self._question.schema_name,
            dialect=dialect,
        )

    def value_in(self, answer: object) -> Value:
        """Return the value of an answer; remember what to say of one that cannot be used."""
        self._correction = []
        content = content_in(answer)
        try:
            return self._read(json_in(content))
        except (ValueError, RecursionError) as error:
            if content.strip() and len(content) <= MAX_REPEATED_CHARS:
                asked_again = CORRECTION.format(reason=error)
                self._correction = [Message("assistant", content), Message("user", asked_again)]
            raise

    def counted(self, answer: object) -> Usage:
        """Return the tokens of question and answer where the endpoint does not tell them."""
        try:
            written = default_counter().count(content_in(answer))
        except ValueError:
            written = 0
        return Usage(self.expected.tokens_in, written)


class _Pause:
    """A moment before which nobody asks."""

    def __init__(self, halt: threading.Event) -> None:
        self._halt = halt
        self._until = 0.0
        self._lock = threading.Lock()

    def hold(self, seconds: float) -> None:
        """Let nobody ask for so many seconds."""
        with self._lock:
            self._until = max(self._until, time.monotonic() + seconds)

    def wait(self) -> None:
        """Return when one may ask, or when the run stops."""
        while (left := self._until - time.monotonic()) > 0 and not self._halt.wait(left):
            pass


def open_chat_model(
    settings: Settings,
    *,
    purpose: str,
    spending: Spending,
    max_retries: int,
    timeout: float = TIMEOUT,
) -> ChatModel:
    """Return the chat model of the settings; nothing is sent.

    Args:
        settings: Endpoint, key and model.
        purpose: What needs it, as the subject of a sentence.
        spending: Counts what is paid.
        max_retries: Most repetitions of one question.
        timeout: Seconds without an answer after which a request has failed.

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


def _blame(error: EndpointError) -> Blame:
    if error.complaint:
        return Blame.QUESTION
    return Blame.ENDPOINT if error.retryable else Blame.ACCESS
