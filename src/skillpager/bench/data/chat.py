"""Many questions to a chat model: parallel requests, retries, corrections, and a limit on the cost."""

import hashlib
import json
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from skillpager.bench.data.records import first_fault
from skillpager.errors import SettingsError
from skillpager.library.discovery import Progress
from skillpager.remote.chat import Message, chat_json
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


class Prices(NamedTuple):
    """Money for a million tokens sent and received, in the currency of the price list."""

    tokens_in: float
    tokens_out: float


@dataclass(frozen=True, slots=True)
class Bill:
    """The requests that were, or would be, sent; `cost` is None without prices."""

    requests: int
    tokens_in: int
    tokens_out: int
    cost: float | None


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
    def tokens_in(self) -> int:
        """The tokens of the request."""
        count = default_counter().count
        return FORMAT_TOKENS + count(self.system) + count(self.user)


@dataclass(frozen=True, slots=True)
class Answer(Generic[Value]):
    """A usable answer: its value, the model as the endpoint calls it, and tokens sent and received."""

    value: Value
    model: str
    tokens_in: int
    tokens_out: int


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


class ChatModel:
    """A model behind an endpoint, for many questions. Safe for many threads.

    Nothing is sent that may exceed `max_cost`, but for requests that are under way at the same time.

    Attributes:
        id: Endpoint and model.
        bill: The requests so far.

    Raises:
        SettingsError: There is a limit without prices, or a number is negative or not finite.
    """

    def __init__(
        self, endpoint: Endpoint, *, prices: Prices | None = None, max_cost: float | None = None
    ) -> None:
        if max_cost is not None and prices is None:
            raise SettingsError(
                "A limit on the cost needs prices: add --price-in and --price-out, both for a million tokens."
            )
        given = [max_cost or 0.0, *(prices or ())]
        if not all(math.isfinite(number) and number >= 0 for number in given):
            raise SettingsError(f"Prices and limits must be numbers, 0 or more: {given}.")
        self.id = endpoint.id
        self._endpoint = endpoint
        self._prices = prices
        self._max_cost = max_cost
        self._halt = threading.Event()
        self._lock = threading.Lock()
        self.bill = self._bill(0, 0, 0)

    def _bill(self, requests: int, tokens_in: int, tokens_out: int) -> Bill:
        cost = None
        if self._prices:
            money = tokens_in * self._prices.tokens_in + tokens_out * self._prices.tokens_out
            cost = money / PRICED_TOKENS
        return Bill(requests, tokens_in, tokens_out, cost)

    def estimate(self, questions: Iterable[Question]) -> Bill:
        """Return what questions would cost if each were answered at once and in the usual length."""
        tokens = [(question.tokens_in, question.expected_out) for question in questions]
        return self._bill(len(tokens), sum(sent for sent, _ in tokens), sum(out for _, out in tokens))

    def ask(self, question: Question, read: Callable[[object], Value]) -> Answer[Value]:
        """Return the answer to a question; a second attempt names the fault of the first.

        `read` makes the value of the decoded JSON, and raises `ValueError` for JSON that cannot be used.

        Raises:
            EndpointError: No usable answer came, however often it was asked, or it might cost more than is
                left.
            MissingExtraError: The `openai` package is not installed.
        """
        expected = question.tokens_in, question.expected_out
        price = self._bill(1, *expected).cost or 0.0

        def post(body: Mapping[str, object]) -> object:
            """Send one request if the limit allows, and add it to the bill."""
            if self._halt.is_set():
                raise EndpointError("it was not asked, because the run has stopped")
            paid = self.bill.cost or 0.0
            if self._max_cost is not None and paid + price > self._max_cost:
                raise EndpointError(
                    f"the limit of {self._max_cost:g} is reached: {paid:.4g} is spent, and the next "
                    f"question may cost {price:.2g}"
                )
            reply = self._endpoint.post("chat", body)
            sent, received = _counted_tokens(reply) or expected
            with self._lock:
                bill = self.bill
                self.bill = self._bill(bill.requests + 1, bill.tokens_in + sent, bill.tokens_out + received)
            return reply

        value, answer = chat_json(
            self._endpoint,
            (Message("system", question.system), Message("user", question.user)),
            schema=question.schema,
            schema_name=question.schema_name,
            read=read,
            post=post,
            correct=True,
        )
        model = answer.get("model") if isinstance(answer, dict) else None
        return Answer(value, model if isinstance(model, str) else "", *(_counted_tokens(answer) or expected))

    def ask_all(
        self, items: Sequence[Item], ask: Callable[[Item], object], *, jobs: int, progress: Progress | None
    ) -> Asked[Item]:
        """Call `ask` with each item in up to `jobs` threads; stop when going on is pointless.

        `ask` calls `ChatModel.ask` and stores the answer, or raises `EndpointError`. Calls under way when a
        run stops are awaited, so that no paid answer is lost. `progress` is called in the calling thread.
        """
        asked: Asked[Item] = Asked()

        def ask_one(item: Item) -> EndpointError | Literal["done"] | None:
            """Return the failure, or None if a stop came first."""
            if self._halt.is_set():
                return None
            try:
                ask(item)
            except EndpointError as error:
                if self._halt.is_set():
                    return None
                if error.retryable or error.complaint:
                    return error
                # key, quota, address or money: all others would fail, too
                asked.stopped = str(error)
                self._halt.set()
                return None
            return "done"

        in_a_row = 0
        with ThreadPoolExecutor(max(1, jobs), "skillpager-bench") as pool:
            try:
                for number, (item, outcome) in enumerate(
                    zip(items, pool.map(ask_one, items), strict=True), 1
                ):
                    if outcome == "done":
                        asked.done += 1
                        in_a_row = 0
                    elif outcome is not None:
                        asked.failures.append((item, str(outcome)))
                        # a refusal says nothing about the next question
                        in_a_row += not outcome.complaint
                        if in_a_row == MAX_FAILURES_IN_A_ROW and not self._halt.is_set():
                            asked.stopped = f"{in_a_row} failures in a row, the last: {outcome}"
                            self._halt.set()
                    if progress:
                        progress(number, len(items))
            except BaseException:
                self._halt.set()
                raise
        return asked


def _counted_tokens(answer: object) -> tuple[int, int] | None:
    """Return the tokens sent and received, as the endpoint counted them; None if it did not."""
    match answer:
        case {"usage": {"prompt_tokens": int(sent), "completion_tokens": int(received)}}:
            return max(0, sent), max(0, received)
    return None


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
