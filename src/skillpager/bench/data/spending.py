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


class SpendLimitError(Exception):
    """The next question might cost more than is left."""


class Spending:
    """Counts the cost of requests, and refuses those that would exceed a limit. Safe for many threads.

    The expected price of a request is reserved before it is sent, and a request whose expected price does
    not fit beside what is paid and reserved is refused. So the bill exceeds `max_cost` by at most the
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
        self._paid = self.estimate(())

    @property
    def bill(self) -> Bill:
        """The bill so far."""
        return self._paid

    def estimate(self, expected: Iterable[Usage]) -> Bill:
        """Return the bill for requests of the expected tokens."""
        usages = list(expected)
        return self._bill(len(usages), sum(usages, Usage()))

    def reserve(self, expected: Usage) -> None:
        """Set the expected price of a request aside.

        Raises:
            SpendLimitError: It is more than is left.
        """
        price = self._cost(expected) or 0.0
        with self._lock:
            paid = self._paid.cost or 0.0
            if self._max_cost is not None and paid + self._reserved + price > self._max_cost:
                raise SpendLimitError(
                    f"the limit of {self._max_cost:g} is reached: {paid:.4g} is spent, and the next question "
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
            paid = self._paid
            uncounted = paid.uncounted + (not counted)
            self._paid = self._bill(paid.requests + 1, paid.usage + usage, uncounted)

    def _bill(self, requests: int, usage: Usage, uncounted: int = 0) -> Bill:
        return Bill(requests, usage, self._cost(usage), uncounted)

    def _cost(self, usage: Usage) -> float | None:
        return None if self._prices is None else self._prices.cost(usage)
