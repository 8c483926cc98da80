"""Many questions to a chat model: parallel requests, retries, corrections, and a limit on the cost."""

import hashlib
import json
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from pydantic import BaseModel, Field, ValidationError

from skillpager.bench.data.records import first_fault
from skillpager.errors import SettingsError
from skillpager.json_types import JsonObject
from skillpager.remote.chat import Message, chat_json, content_in
from skillpager.remote.endpoint import Endpoint, EndpointError
from skillpager.tokens import default_counter

Item = TypeVar("Item")
Value = TypeVar("Value")
Shape = TypeVar("Shape", bound=BaseModel)

# price lists are in money for so many tokens
PRICED_TOKENS = 1_000_000
# an endpoint that is down, or a model that cannot keep to the form, fails every question, each after its
# own repetitions; one bad stretch must not end a long run
MAX_FAILURES_IN_A_ROW = 10
# tokens that the chat format adds to each request: roles and separators
FORMAT_TOKENS = 10
TAG_DIGITS = 10


class Blame(StrEnum):
    """The cause of a missing answer.

    QUESTION: the model refused this question; others may be answered. ENDPOINT: no answer, or none that could
    be read; others may fail in the same way. ACCESS: key, quota, address or money; all others will fail.
    """

    QUESTION = "question"
    ENDPOINT = "endpoint"
    ACCESS = "access"


class NoAnswerError(Exception):
    """A question that got no usable answer; the message is a clause without full stop."""

    def __init__(self, message: str, *, blame: Blame) -> None:
        super().__init__(message)
        self.blame = blame


class SpendLimitError(NoAnswerError):
    """The next question might cost more than is left."""

    def __init__(self, message: str) -> None:
        super().__init__(message, blame=Blame.ACCESS)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens sent and received; reasoning is part of the latter where the endpoint counts it."""

    tokens_in: int = 0
    tokens_out: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out)


@dataclass(frozen=True, slots=True)
class Prices:
    """Money for a million tokens sent and received, in the currency of the price list."""

    tokens_in: float
    tokens_out: float

    def cost(self, usage: Usage) -> float:
        """Return the money for some tokens."""
        return (usage.tokens_in * self.tokens_in + usage.tokens_out * self.tokens_out) / PRICED_TOKENS


@dataclass(frozen=True, slots=True)
class Bill:
    """The requests that were, or would be, sent, and their cost.

    Attributes:
        cost: None without prices.
        uncounted: Requests whose tokens were counted here, because the endpoint did not.
    """

    requests: int
    usage: Usage
    cost: float | None
    uncounted: int = 0


class Spending:
    """Counts the cost of requests, and refuses those that would exceed a limit. Safe for many threads.

    The expected price of a request is reserved while it is under way, and a request whose expected price
    does not fit beside what is paid and reserved is refused. So the bill exceeds `max_cost` by at most the
    amounts by which the requests under way together cost more than was reserved for them.

    Args:
        prices: Prices; None if the model costs nothing or its prices are not given.
        max_cost: Limit in the currency of the prices; None for no limit.

    Raises:
        SettingsError: There is a limit without prices, or a number is negative or not finite.
    """

    def __init__(self, prices: Prices | None = None, *, max_cost: float | None = None) -> None:
        if max_cost is not None and prices is None:
            raise SettingsError(
                "A limit on the cost needs prices: add --price-in and --price-out, both for a million tokens."
            )
        given = [max_cost or 0.0] + ([prices.tokens_in, prices.tokens_out] if prices else [])
        if not all(math.isfinite(number) and number >= 0 for number in given):
            raise SettingsError(f"Prices and limits must be numbers, 0 or more: {given}.")
        self._prices = prices
        self._max_cost = max_cost
        self._lock = threading.Lock()
        self._reserved = 0.0
        self.bill = self.estimate(())

    def estimate(self, expected: Iterable[Usage]) -> Bill:
        """Return the bill for requests of the expected tokens."""
        usages = list(expected)
        total = sum(usages, Usage())
        return Bill(len(usages), total, self._prices.cost(total) if self._prices else None)

    @contextmanager
    def reserve(self, expected: Usage) -> Iterator[None]:
        """Set the expected price of a request aside while it is under way.

        Raises:
            SpendLimitError: It is more than is left.
        """
        price = self._prices.cost(expected) if self._prices else 0.0
        with self._lock:
            paid = self.bill.cost or 0.0
            if self._max_cost is not None and paid + self._reserved + price > self._max_cost:
                raise SpendLimitError(
                    f"the limit of {self._max_cost:g} is reached: {paid:.4g} is spent, and the next question "
                    f"may cost {price:.2g}"
                )
            self._reserved += price
        try:
            yield
        finally:
            with self._lock:
                self._reserved -= price

    def pay(self, usage: Usage, *, counted: bool) -> None:
        """Add an answer; `counted` is True where the endpoint itself counted the tokens."""
        with self._lock:
            total = self.bill.usage + usage
            cost = self._prices.cost(total) if self._prices else None
            self.bill = Bill(self.bill.requests + 1, total, cost, self.bill.uncounted + (not counted))


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
    def expected(self) -> Usage:
        """The tokens that the request and a usual answer have."""
        count = default_counter().count
        return Usage(FORMAT_TOKENS + count(self.system) + count(self.user), self.expected_out)


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
            MissingExtraError: The `openai` package is not installed.
        """
        expected = question.expected

        def post(body: Mapping[str, object]) -> object:
            """Send one request if the limit allows, and pay for it."""
            if self.halt.is_set():
                raise EndpointError("it was not asked, because the run has stopped")
            with self.spending.reserve(expected):
                reply = self._endpoint.post("chat", body)
                usage, counted = _usage_of(reply, expected)
                self.spending.pay(usage, counted=counted)
                return reply

        try:
            value, answer = chat_json(
                self._endpoint,
                (Message("system", question.system), Message("user", question.user)),
                schema=question.schema,
                schema_name=question.schema_name,
                read=read,
                post=post,
                correct=True,
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
    lost: `ask` stores its answer itself. It raises `NoAnswerError`; anything else ends the run. `halt` is set
    when the run stops, so that no failed request is repeated any more. `progress` is called in the calling
    thread with finished and all items.
    """
    asked: Asked[Item] = Asked()
    lock = threading.Lock()
    in_a_row = 0

    def ask_one(item: Item) -> None:
        nonlocal in_a_row
        if halt.is_set():
            return
        failure, stop = None, ""
        try:
            ask(item)
        except NoAnswerError as error:
            failure = error
        with lock:
            if failure is None:
                asked.done += 1
                in_a_row = 0
            elif failure.blame is Blame.ACCESS:
                stop = str(failure)
            # failures after a stop were cut short: they say nothing about their questions
            elif not halt.is_set():
                asked.failures.append((item, str(failure)))
                in_a_row += failure.blame is Blame.ENDPOINT
                if in_a_row == MAX_FAILURES_IN_A_ROW:
                    stop = f"{in_a_row} failures in a row, the last: {failure}"
            if stop and not asked.stopped:
                asked.stopped = stop
                halt.set()

    with ThreadPoolExecutor(max(1, jobs), "skillpager-bench") as pool:
        try:
            for future in as_completed([pool.submit(ask_one, item) for item in items]):
                future.result()
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
