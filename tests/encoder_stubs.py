"""Encoders for tests of servers: one that holds every query, and one that panics."""

import threading

from skillpager.encoders.hashing import HashingEncoder
from skillpager.types import FloatArray

TIME_LIMIT = 240.0  # a process that hangs; a busy machine is no failure


class HeldEncoder(HashingEncoder):
    """Encodes queries only when it is let go: a request that takes as long as a test likes."""

    def __init__(self) -> None:
        super().__init__()
        self.started = threading.Event()
        self.let_go = threading.Event()
        self.queries = 0

    def encode_query(self, text: str) -> FloatArray:
        """Return the embedding of a query, once it may."""
        self.started.set()
        self.queries += 1
        assert self.let_go.wait(TIME_LIMIT)
        return super().encode_query(text)


class PanicError(BaseException):
    """What extensions written in Rust raise: no `Exception`."""


class PanickingEncoder(HashingEncoder):
    """Panics at every query."""

    def encode_query(self, text: str) -> FloatArray:
        """Raise as a Rust extension does."""
        raise PanicError("secret detail")
