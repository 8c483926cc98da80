"""Tokens of the HTTP service: name, scopes, rate and end of each, from a file or text that holds only hashes.

A secret is random and long, so that one SHA-256 of it needs no salt and no slow function: nobody can try
2^256 values. Passwords chosen by people would need both, and are not for this file.
"""

import hashlib
import hmac
import logging
import re
import secrets
import stat
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from datetime import time as time_of_day
from pathlib import Path

from skillpager.errors import SettingsError, SkillPagerError
from skillpager.http.options import ServerOptions
from skillpager.http.rates import Rate, parse_rate

logger = logging.getLogger(__name__)

READ, UPLOAD, ADMIN = "read", "upload", "admin"
SCOPES = (READ, UPLOAD, ADMIN)
# the name of the token that is given as such
ONLY_TOKEN = "default"  # noqa: S105 - a name
# by which programs that search for leaked secrets, and people, know a token
PREFIX = "skp_"
SECRET_BYTES = 32
HASH = "sha256:"
# every token is compared with what a request sends: these take a third of a millisecond
MAX_TOKENS = 1000
MAX_FILE_BYTES = 1024 * 1024
# seconds between two looks at the file
LOOK_SECONDS = 1.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FIELDS = ("name", "hash", "scopes", "rate", "expires")


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret.

    Attributes:
        name: Whose it is, as the audit log says it.
        digest: SHA-256 of the secret.
        scopes: What it allows, of `SCOPES`.
        rate: Requests that it may make; None for the service's rate.
        expires: When it ends; None for never.
    """

    name: str
    digest: bytes
    scopes: frozenset[str]
    rate: Rate | None = None
    expires: datetime | None = None


class Tokens:
    """The tokens of a service; those of a file are read again when it changes.

    A changed file that cannot be read or is wrong changes nothing, and is an error in the log.

    Raises:
        SettingsError: The file or the text is wrong.
    """

    def __init__(self, options: ServerOptions) -> None:
        given = [] if options.token is None else [_given(options.token)]
        if options.tokens_text is not None:
            given += parse_tokens(options.tokens_text, "SKILLPAGER_SERVER_TOKENS")
        self._given, self._file = given, options.tokens_file
        self._tokens = given
        self._stamp: object = None
        self._looked = time.monotonic()
        if self._file is not None:
            self._stamp = _stamp(self._file)
            self._tokens = _joined([*given, *read_tokens(self._file)], str(self._file))

    def find(self, secret: str) -> Token | None:
        """Return the token with this secret; None if there is none, or it has ended."""
        self._look()
        digest = digest_of(secret)
        found = None
        for token in self._tokens:  # all of them, so that the time tells nothing
            if hmac.compare_digest(token.digest, digest):
                found = token
        ended = found is not None and found.expires is not None and found.expires <= datetime.now(UTC)
        return None if ended else found

    def _look(self) -> None:
        """Read the file again if it has changed."""
        now = time.monotonic()
        if self._file is None or now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        stamp = _stamp(self._file)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._tokens = _joined([*self._given, *read_tokens(self._file)], str(self._file))
        except SkillPagerError as error:
            logger.error("The tokens stay as they were: %s", error)


def digest_of(secret: str) -> bytes:
    """Return the SHA-256 of a secret."""
    return hashlib.sha256(secret.encode()).digest()


def make_token(
    name: str, scopes: Sequence[str], *, rate: str | None = None, expires: str | None = None
) -> tuple[str, str]:
    """Return a new secret, and the lines of its token for the file.

    Raises:
        SettingsError: A value is wrong.
    """
    secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    lines = [
        "[[token]]",
        f'name = "{name}"',
        f'hash = "{HASH}{digest_of(secret).hex()}"',
        f"scopes = [{', '.join(f'{chr(34)}{scope}{chr(34)}' for scope in scopes)}]",
    ]
    lines += [f'rate = "{rate}"'] if rate else []
    lines += [f"expires = {expires}"] if expires else []
    text = "\n".join(lines) + "\n"
    # before it is read as TOML, into which a name could write anything
    if not _NAME.fullmatch(name):
        raise _mistake(
            "the new token", f"the name {name!r} is not made of at most 64 letters, digits and ._@-"
        )
    if expires is not None and not re.fullmatch(r"[0-9:TZ+. -]+", expires):
        raise _mistake("the new token", f"expires is {expires!r}, which is no date such as 2030-01-31")
    if rate is not None:
        parse_rate(rate)
    parse_tokens(text, "the new token")
    return secret, text


def read_tokens(path: Path) -> list[Token]:
    """Return the tokens of a file.

    Raises:
        SettingsError: The file cannot be read, everybody may write it, or it is wrong.
    """
    try:
        with path.open("rb") as file:
            if path.stat().st_mode & stat.S_IWOTH:
                raise SettingsError(f"{path}: every user may write this file of tokens: `chmod o-w` it.")
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"{path}: the file of tokens cannot be read: {error.strerror}.") from error
    if len(data) > MAX_FILE_BYTES:
        raise SettingsError(f"{path}: the file of tokens is over {MAX_FILE_BYTES:,} bytes: make it smaller.")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: the file of tokens is not UTF-8: save it as UTF-8.") from error
    return parse_tokens(text, str(path))


def parse_tokens(text: str, place: str) -> list[Token]:
    """Return the tokens of a TOML text.

    Args:
        text: The text.
        place: Where it is from, for messages.

    Raises:
        SettingsError: It is no TOML, or a token is wrong.
    """
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{place}: not TOML: {error}.") from error
    entries = read.pop("token", [])
    if read:
        raise _mistake(place, f"unknown: {', '.join(sorted(read))}; tokens stand under [[token]]")
    if not isinstance(entries, list) or not entries or not all(isinstance(each, dict) for each in entries):
        raise _mistake(place, "no token: each stands under [[token]]")
    tokens = [_read_token(entry, f"{place}, token {number}") for number, entry in enumerate(entries, 1)]
    return _joined(tokens, place)


def _read_token(entry: Mapping[str, object], place: str) -> Token:
    name = entry.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _mistake(place, f"the name {name!r} is not made of at most 64 letters, digits and ._@-")
    place = f"{place} ({name})"
    if unknown := entry.keys() - set(_FIELDS):
        raise _mistake(place, f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(_FIELDS)}")
    digest = entry.get("hash")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest.removeprefix(HASH)):
        # not quoted: somebody may have put the secret there
        raise _mistake(place, f"hash is not {HASH} and 64 hexadecimal digits; `skillpager token` makes it")
    scopes = entry.get("scopes")
    if not isinstance(scopes, list) or not scopes or not all(scope in SCOPES for scope in scopes):
        raise _mistake(place, f"scopes is {scopes!r}: a list of one or more of {', '.join(SCOPES)}")
    rate = entry.get("rate")
    if rate is not None and not isinstance(rate, str):
        raise _mistake(place, f"rate is {rate!r}: write it as text, such as '600/m'")
    try:
        limit = None if rate is None else parse_rate(rate)
    except SettingsError as error:
        raise _mistake(place, f"rate: {error}") from error
    digest_bytes = bytes.fromhex(digest.removeprefix(HASH))
    return Token(name, digest_bytes, frozenset(scopes), limit, _read_end(entry.get("expires"), place))


def _read_end(value: object, place: str) -> datetime | None:
    """Return when a token ends: a date is its first moment, and a time without a zone is UTC."""
    if value is None:
        return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time_of_day())
    if not isinstance(value, datetime):
        raise _mistake(place, f"expires is {value!r}: write a date, such as 2030-01-31, without quotes")
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _joined(tokens: list[Token], place: str) -> list[Token]:
    """Return tokens of several places; raise if two have one name or secret, or there are too many."""
    if len(tokens) > MAX_TOKENS:
        raise _mistake(place, f"{len(tokens):,} tokens, over the limit of {MAX_TOKENS:,}")
    named: dict[object, str] = {}
    for token in tokens:
        for what, value in (("name", token.name), ("hash", token.digest)):
            if (what, value) in named:
                first = named[what, value]
                raise _mistake(place, f"the tokens {first!r} and {token.name!r} have the same {what}")
            named[what, value] = token.name
    return tokens


def _given(secret: str) -> Token:
    return Token(ONLY_TOKEN, digest_of(secret), frozenset(SCOPES))


def _stamp(path: Path) -> object:
    """Return what differs when a file has changed; None if it is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _mistake(place: str, reason: str) -> SettingsError:
    return SettingsError(f"{place}: {reason}.")
