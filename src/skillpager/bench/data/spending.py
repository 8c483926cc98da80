"""The cost of questions to a model: tokens, money, and the limit on it."""

import math
import threading
from collections.abc import Iterable
from dataclasses import dataclass

from skillpager.errors import SettingsError

# price lists are in money for so many tokens
PRICED_TOKENS = 1_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of requests and answers.

    Attributes:
        tokens_in: Tokens that were sent.
        tokens_out: Tokens that came back, reasoning included where the endpoint counts it.
    """

    tokens_in: int = 0
    tokens_out: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out)


@dataclass(frozen=True, slots=True)
class Prices:
    """Money for a million tokens, in whatever currency the price list has.

    Attributes:
        tokens_in: Price of tokens that are sent.
        tokens_out: Price of what comes back.
    """

    tokens_in: float
    tokens_out: float

    def cost(self, usage: Usage) -> float:
        """Return the money for some tokens."""
        return (usage.tokens_in * self.tokens_in + usage.tokens_out * self.tokens_out) / PRICED_TOKENS


@dataclass(frozen=True, slots=True)
class Bill:
    """The requests that were, or would be, sent, and their cost.

    Attributes:
        requests: Number of requests.
        usage: Their tokens.
        cost: Their money; None without prices.
        uncounted: Requests whose tokens the endpoint did not count, so that they are counted here.
    """

    requests: int
    usage: Usage
    cost: float | None
    uncounted: int = 0


class SpendLimitError(Exception):
    """The next question might cost more than is left."""


class Spending:
    """Counts the cost of requests, and refuses those that would exceed a limit. Safe for many threads.

    A request is reserved at its expected price before it is sent, so that those under way cannot
    carry the sum over the limit together; only an answer longer than expected can.

    Args:
        prices: Prices; None where nobody pays.
        max_cost: Limit in the currency of the prices; None for no limit.

    Raises:
        SettingsError: There is a limit without prices, or a number is negative or none.
    """

    def __init__(self, prices: Prices | None = None, *, max_cost: float | None = None) -> None:
        if max_cost is not None and prices is None:
            raise SettingsError(
                "A limit on the cost needs prices: add --price-in and --price-out, both for a million tokens."
            )
        given = [max_cost or 0.0] + ([prices.tokens_in, prices.tokens_out] if prices else [])
        if not all(math.isfinite(number) and number >= 0 for number in given):
            raise SettingsError(f"Prices and limits must be numbers, 0 or more: {given}.")
        self.prices = prices
        self.max_cost = max_cost
        self._lock = threading.Lock()
        self._reserved = 0.0
        self._requests = self._uncounted = 0
        self._usage = Usage()

    @property
    def bill(self) -> Bill:
        """The bill so far."""
        with self._lock:
            return Bill(self._requests, self._usage, self._cost(self._usage), self._uncounted)

    def estimate(self, expected: Iterable[Usage]) -> Bill:
        """Return what requests of the expected tokens would come to."""
        requests, total = 0, Usage()
        for usage in expected:
            requests, total = requests + 1, total + usage
        return Bill(requests, total, self._cost(total))

    def reserve(self, expected: Usage) -> None:
        """Set the expected price of a request aside.

        Raises:
            SpendLimitError: It is more than is left.
        """
        price = self._cost(expected) or 0.0
        with self._lock:
            paid = self._cost(self._usage) or 0.0
            if self.max_cost is not None and paid + self._reserved + price > self.max_cost:
                raise SpendLimitError(
                    f"the limit of {self.max_cost:g} is reached: {paid:.4g} is spent, and the next question "
                    f"may cost {price:.2g}"
                )
            self._reserved += price

    def release(self, expected: Usage) -> None:
        """Give back what `reserve` set aside, once the request is over."""
        with self._lock:
            self._reserved -= self._cost(expected) or 0.0

    def pay(self, usage: Usage, *, counted: bool) -> None:
        """Add an answer; `counted` is True where the endpoint itself counted the tokens."""
        with self._lock:
            self._requests += 1
            self._usage += usage
            self._uncounted += not counted

    def _cost(self, usage: Usage) -> float | None:
        return None if self.prices is None else self.prices.cost(usage)
