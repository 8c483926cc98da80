"""Rate limits: a token bucket for each caller, in the memory of a process or in files that several share."""

import hashlib
import math
import os
import re
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from skillpager.errors import SettingsError

_UNITS = {"s": 1, "m": 60, "h": 3600}
_FORM = re.compile(r"([1-9][0-9]{0,8})/([smh])")
# of a bucket in a file: requests left, and the time of that
_STATE = struct.Struct("<dd")


@dataclass(frozen=True, slots=True)
class Rate:
    """Requests in a number of seconds, which is also the most that can be made at once."""

    requests: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """A token bucket: how many requests were left at a time of `time.monotonic`."""

    left: float
    at: float


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a request may pass, and what its answer says about it.

    Attributes:
        allowed: Whether it may.
        rate: The rate.
        left: Requests that may follow at once.
        full: Seconds until as many may be made as the rate says.
        wait: Seconds until one may be made.
    """

    allowed: bool
    rate: Rate
    left: int
    full: int
    wait: int

    def headers(self) -> Mapping[str, str]:
        """Return the headers of the answer: draft-ietf-httpapi-ratelimit-headers-10, and RFC 9110."""
        told = {
            "RateLimit-Policy": f'"token";q={self.rate.requests};w={self.rate.seconds}',
            "RateLimit": f'"token";r={self.left};t={self.full}',
        }
        return told if self.allowed else {**told, "Retry-After": str(self.wait)}


def parse_rate(text: str) -> Rate:
    """Return a rate such as `600/m`.

    Raises:
        SettingsError: The text is no rate.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise SettingsError(
            f"{text!r} is no rate: write requests per second, minute or hour, such as 10/s, 600/m or 5000/h."
        )
    return Rate(int(match[1]), _UNITS[match[2]])


def take(bucket: Bucket | None, rate: Rate, now: float) -> tuple[Bucket, Decision]:
    """Return a bucket after one more request, and whether that may pass; None is a full bucket."""
    gain = rate.requests / rate.seconds
    left = float(rate.requests)
    if bucket is not None:
        left = min(left, bucket.left + max(0.0, now - bucket.at) * gain)
    allowed = left >= 1
    left -= allowed
    full = math.ceil((rate.requests - left) / gain)
    # less than a second is told as one: a client that comes back at once would be refused again
    wait = 0 if left >= 1 else max(1, math.ceil((1 - left) / gain))
    return Bucket(left, now), Decision(allowed, rate, int(left), full, wait)


class Buckets(Protocol):
    """The buckets of all callers."""

    def take(self, caller: str, rate: Rate) -> Decision:
        """Take one request of a caller's bucket, if there is one."""


class OwnBuckets:
    """The buckets of one process, in memory."""

    def __init__(self) -> None:
        self._buckets: dict[str, Bucket] = {}

    def take(self, caller: str, rate: Rate) -> Decision:
        """Take one request of a caller's bucket, if there is one."""
        self._buckets[caller], decision = take(self._buckets.get(caller), rate, time.monotonic())
        return decision


class SharedBuckets:
    """The buckets of several processes of a machine: a small file for each, locked while it is used.

    The system releases the lock of a process that is killed; all processes of a machine have the same
    monotonic clock.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, int] = {}

    def take(self, caller: str, rate: Rate) -> Decision:
        """Take one request of a caller's bucket, if there is one."""
        import fcntl  # not on Windows, where there is one process

        file = self._files.get(caller)
        if file is None:
            name = f"rate-{hashlib.sha256(caller.encode()).hexdigest()[:32]}"
            file = self._files[caller] = os.open(self._folder / name, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            state = os.pread(file, _STATE.size, 0)
            bucket = Bucket(*_STATE.unpack(state)) if len(state) == _STATE.size else None
            bucket, decision = take(bucket, rate, time.monotonic())
            os.pwrite(file, _STATE.pack(bucket.left, bucket.at), 0)
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)
        return decision
