"""A chat model that is asked many things: retries, shared pauses, corrections, and what it all costs."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from skillpager.bench.data.asking import Blame, NoAnswerError
from skillpager.bench.data.questions import Answer, Question, model_in, usage_in
from skillpager.bench.data.spending import Bill, Spending, Usage
from skillpager.errors import SettingsError
from skillpager.remote.chat import chat_json, content_in
from skillpager.remote.endpoint import Endpoint, EndpointError
from skillpager.settings import Settings
from skillpager.tokens import default_counter

Value = TypeVar("Value")

KEY_VARIABLE = "SKILLPAGER_LLM_API_KEY"
# reasoning models think for minutes
TIMEOUT = 180.0


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
            MissingExtraError: The `httpx` package is not installed.
        """
        expected = question.expected

        def post(body: Mapping[str, object]) -> object:
            if self.halt.is_set():
                raise EndpointError("it was not asked, because the run has stopped")
            self.spending.reserve(expected)
            try:
                answer = self._endpoint.post("chat", body)
                told, _ = usage_in(answer)
                self.spending.pay(told or _counted(answer, expected), counted=told is not None)
                return answer
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
        told, raw_usage = usage_in(answer)
        return Answer(value, model_in(answer), told or _counted(answer, expected), raw_usage)


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


def _counted(answer: object, expected: Usage) -> Usage:
    """Return the tokens of question and answer where the endpoint does not give them."""
    try:
        written = default_counter().count(content_in(answer))
    except ValueError:
        written = 0
    return Usage(expected.tokens_in, written)
