"""A model behind an OpenAI-compatible endpoint: its requests, retries and failures in plain words.

What the remote classifier and the remote encoder share. The `openai` client is imported and built at
the first request, so that naming an endpoint costs nothing and needs no extra.
"""

import json
import logging
import re
import threading
import weakref
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar
from urllib.parse import urlsplit

from skillpager.errors import SettingsError, require_extra

if TYPE_CHECKING:
    from openai import OpenAI

logger = logging.getLogger(__name__)
Answer = TypeVar("Answer")

OPENAI_BASE_URL = "https://api.openai.com/v1"
# local servers want a key in the header but do not look at it
NO_KEY = "none"
# waits before the repetitions: 1, 2, 4, 8, 16, 30, 30 … seconds
FIRST_DELAY = 1.0
MAX_DELAY = 30.0
# a longer wait is reported instead of waited for
MAX_RETRY_AFTER = 120.0
# an address where nobody listens shows long before a slow model has answered
CONNECT_TIMEOUT = 10.0
MAX_QUOTED_CHARS = 300
HOST = re.compile(r"[\w.:%-]+")
# request timeout, conflict, too many requests, and whatever fails on the server's side
RETRYABLE_STATUSES = frozenset({408, 409, 429, *range(500, 600)})


class EndpointError(Exception):
    """A failed call, as a clause without full stop for a stage to put into its own error.

    Attributes:
        retryable: Whether the same call may succeed later.
        retry_after: Seconds the endpoint asked to wait, 0 when it did not ask.
        complaint: What the endpoint said against the request (status 400, 413 or 422), else empty.
    """

    def __init__(
        self, message: str, *, retryable: bool = False, retry_after: float = 0.0, complaint: str = ""
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after
        self.complaint = complaint


class _RawAnswer(Protocol):
    @property
    def content(self) -> bytes: ...


class Endpoint:
    """One model at one address. Safe for many threads; never shows its key.

    Args:
        model: Name of the model, as the endpoint knows it.
        base_url: Where the API begins, such as `http://localhost:11434/v1`; None for OpenAI's own.
        api_key: Sent as bearer token; None where the endpoint wants none.
        key_variable: Environment variable that the key should come from, for messages.
        purpose: What needs the endpoint, as the subject of a sentence.
        timeout: Seconds without an answer after which a request has failed.
        max_retries: Most repetitions of one call.
        sleep: Waits so many seconds; None for a wait that an interruption cuts short.

    Raises:
        SettingsError: The model is empty, or `base_url` or `api_key` cannot be used.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        api_key: str | None,
        key_variable: str,
        purpose: str,
        timeout: float,
        max_retries: int,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        if timeout <= 0 or max_retries < 0:
            raise ValueError(f"timeout must be positive, max_retries not negative: {timeout}, {max_retries}")
        if not model.strip():
            raise SettingsError(f"{purpose} needs the name of a model, and the name given is empty.")
        self.model = model
        self._base_url = (base_url or OPENAI_BASE_URL).strip()
        self.address = _checked_address(self._base_url, purpose)
        self._api_key = _checked_key(api_key, key_variable)
        self._key_source = f"the key is read from {key_variable}, else from OPENAI_API_KEY"
        self._purpose = purpose
        self._timeout = timeout
        self._max_retries = max_retries
        self._sleep = sleep
        self._client: OpenAI | None = None
        self._lock = threading.Lock()

    @property
    def id(self) -> str:
        """Host, port, path unless it is `/v1`, and model: what tells one model from another."""
        parts = urlsplit(self.address)
        return f"{parts.netloc.lower()}{parts.path.removesuffix('/v1')}/{self.model}"

    def post(self, resource: Literal["chat", "embeddings"], body: Mapping[str, object]) -> object:
        """Return the decoded JSON answer to one request; not retried.

        Raises:
            EndpointError: No usable answer came.
            MissingExtraError: The `openai` package is not installed.
        """
        openai = require_extra("openai", extra="openai", purpose=self._purpose)
        client = self._connected(openai)
        api = client.chat.completions if resource == "chat" else client.embeddings
        create: Callable[..., _RawAnswer] = api.with_raw_response.create
        try:
            return self._decoded(create(model=self.model, **body).content)
        # `from None` each time: what a server says may repeat the key
        except openai.APITimeoutError:
            hint = "is the model still loading, or the timeout too short?"
            raise self._passing(f"did not answer within {self._timeout:g} s ({hint})") from None
        except openai.APIConnectionError as error:
            reason = self._scrubbed(str(error.__cause__ or error))
            hint = "is the server running, and is the base URL right?"
            raise self._passing(f"cannot be reached ({reason}; {hint})") from None
        except openai.APIStatusError as error:
            raise self._refused(error.status_code, error.body, error.response.headers) from None

    def persist(self, attempt: Callable[[], Answer], *, abandoned: threading.Event | None = None) -> Answer:
        """Return what `attempt` returns, repeated with growing waits until `abandoned` is set.

        Raises:
            EndpointError: The last failure, or the first that no repetition can mend.
        """
        gone = abandoned or threading.Event()
        wait = self._sleep or gone.wait
        for attempts in range(1, self._max_retries + 2):
            try:
                return attempt()
            except EndpointError as error:
                failure = error
            if not failure.retryable or attempts > self._max_retries:
                break
            # without jitter: at most a handful of requests are ever in flight
            delay = max(min(FIRST_DELAY * 2.0 ** (attempts - 1), MAX_DELAY), failure.retry_after)
            logger.warning("%s; trying again in %g s (%d of %d)", failure, delay, attempts, self._max_retries)
            wait(delay)
            if gone.is_set():
                break
        raise EndpointError(f"{failure} (tried {attempts} times)" if attempts > 1 else str(failure))

    def bad_answer(self, reason: object) -> EndpointError:
        """Return the failure of an answer that came but cannot be used."""
        return self._passing(f"gave a bad answer: {self._scrubbed(str(reason))}")

    def _connected(self, openai: ModuleType) -> "OpenAI":
        if self._api_key is None and self.address == OPENAI_BASE_URL:
            raise EndpointError(f"the endpoint {self.address} wants an API key: {self._key_source}")
        with self._lock:
            if self._client is None:
                self._client = self._new_client(openai)
                # left to the garbage collector, its sockets may go before it can close them
                weakref.finalize(self, self._client.close)
            return self._client

    def _new_client(self, openai: ModuleType) -> "OpenAI":
        try:
            client: OpenAI = openai.OpenAI(
                # never None, for which the client would take OPENAI_API_KEY to whatever address this is
                api_key=self._api_key or NO_KEY,
                base_url=self._base_url,
                timeout=openai.Timeout(self._timeout, connect=min(self._timeout, CONNECT_TIMEOUT)),
                # the client's own repetitions are jittered, unlogged and blind to bad answers
                max_retries=0,
            )
        except (ImportError, OSError, TypeError, ValueError) as error:
            raise EndpointError(
                f"no connection to the endpoint {self.address} can be set up ({self._scrubbed(str(error))}): "
                "check the proxy and certificate variables of the environment"
            ) from None
        return client

    def _decoded(self, content: bytes) -> object:
        try:
            decoded: object = json.loads(content)
        except (ValueError, RecursionError):
            start = self._scrubbed(content.decode("utf-8", "replace"))
            raise self.bad_answer(f'no JSON but "{start}" (most base URLs end in /v1)') from None
        return decoded

    def _passing(self, what: str) -> EndpointError:
        return EndpointError(f"the endpoint {self.address} {what}", retryable=True)

    def _refused(self, status: int, body: object, headers: Mapping[str, str]) -> EndpointError:
        said = self._scrubbed(_server_message(body))
        cause = f"the endpoint {self.address} {self._clause(status, said)}"
        wait = _asked_wait(headers)
        if wait > MAX_RETRY_AFTER:
            cause += f"; it asks to be left alone for {wait:.0f} s: try again after that"
        quota_spent = isinstance(body, Mapping) and body.get("code") == "insufficient_quota"
        return EndpointError(
            cause,
            retryable=status in RETRYABLE_STATUSES and wait <= MAX_RETRY_AFTER and not quota_spent,
            retry_after=wait,
            complaint=said if status in (400, 413, 422) else "",
        )

    def _clause(self, status: int, said: str) -> str:
        words = f': "{said}"' if said else ""
        match status:
            case 401:
                # without the server's words: OpenAI's repeat part of the key
                given = "refused the API key" if self._api_key else "wants an API key and none was given"
                return f"{given} (status 401): {self._key_source}"
            case 403:
                return f"denied access (status 403){words}; may the key use the model? {self._key_source}"
            case 404:
                return (
                    f'does not know the model "{self.model}", or the address is wrong (status 404){words}; '
                    "check that the server has the model and that the base URL is right: most end in /v1"
                )
            case 429:
                return f"limits the rate of requests, or the quota is used up (status 429){words}"
        return f"answered with an error (status {status}){words}"

    def _scrubbed(self, text: str) -> str:
        return quoted(text.replace(self._api_key, "***") if self._api_key else text)


def quoted(text: str) -> str:
    """Return `text` on one line, cut to a length that suits an error."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_QUOTED_CHARS else f"{line[:MAX_QUOTED_CHARS]}…"


def sendable(text: str) -> str:
    """Return `text` with lone surrogates replaced, which no request can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _asked_wait(headers: Mapping[str, str]) -> float:
    """Return the seconds that a `Retry-After` header asks for, as number or date; 0 without one."""
    value = headers.get("retry-after", "")
    try:
        if re.fullmatch(r"[\d.]+", value):
            return float(value)
        moment = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _server_message(body: object) -> str:
    """Return what an error body says, whatever the dialect; empty when it says nothing."""
    match body:
        case str(text) | {"message": str(text)} | {"error": str(text)} | {"detail": str(text)}:
            return text
    return ""


def _checked_address(base_url: str, purpose: str) -> str:
    """Return `base_url` as it may be shown: without credentials, query and slash at the end."""
    shown = re.sub(r"//[^/]*@", "//", base_url).partition("?")[0].rstrip("/")
    try:
        parts = urlsplit(shown)
        host = (parts.hostname or "").encode("idna").decode()
        usable = parts.scheme in ("http", "https") and bool(HOST.fullmatch(host)) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError(
            f'{purpose} cannot use the base URL "{shown}": it must be a full address that begins with '
            "http:// or https://, such as http://localhost:11434/v1."
        )
    return shown


def _checked_key(api_key: str | None, key_variable: str) -> str | None:
    """Return the key without blank space around it; None when nothing is left."""
    key = (api_key or "").strip()
    if not all("!" <= letter <= "~" for letter in key):
        raise SettingsError(
            "The API key holds a space, a line break or a letter outside ASCII and cannot be sent: "
            f"copy it again into {key_variable} (or OPENAI_API_KEY)."
        )
    return key or None
