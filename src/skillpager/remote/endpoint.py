"""A client of one model behind an OpenAI-compatible endpoint: requests, retries, error messages.

The remote classifier, the remote encoder and the benchmark use it. `httpx` is imported at the first request,
so that naming an endpoint costs nothing and needs no extra.
"""

import json
import logging
import re
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import TYPE_CHECKING, Literal, TypeVar
from urllib.parse import unquote, urlsplit

from skillpager.errors import SettingsError, require_extra
from skillpager.settings import hide_secrets

if TYPE_CHECKING:
    from httpx import Client, Response

logger = logging.getLogger(__name__)
Answer = TypeVar("Answer")

OPENAI_BASE_URL = "https://api.openai.com/v1"
# local servers require a key in the header but do not check it
NO_KEY = "none"
# waits before the repetitions: 1, 2, 4, 8, 16, 30, 30 … seconds
FIRST_DELAY = 1.0
MAX_DELAY = 30.0
# a longer wait is reported instead of waited for
MAX_RETRY_AFTER = 120.0
# connecting to an address without a server fails long before a slow model has answered
CONNECT_TIMEOUT = 10.0
MAX_QUOTED_CHARS = 300
HOST = re.compile(r"[\w.:%-]+")
# request timeout, conflict, too many requests, and errors on the server's side
RETRYABLE_STATUSES = frozenset({408, 409, 429, *range(500, 600)})
PATHS = {"chat": "chat/completions", "embeddings": "embeddings"}


class EndpointError(Exception):
    """A failed call, as a clause without full stop for a stage to put into its own error.

    Attributes:
        retryable: Whether the same call may succeed later.
        retry_after: Seconds the endpoint asked to wait, 0 when it did not ask.
        complaint: The objection to this very request (status 400, 413, 422, or the model's refusal), else "".
        about_this: Whether it says something of this question alone: a bad answer, a passing failure or an
            objection to it, and not that the endpoint cannot be used at all.
        cut_off: Whether the answer ended at the model's length limit.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float = 0.0,
        complaint: str = "",
        cut_off: bool = False,
    ) -> None:
        super().__init__(message)
        self.about_this = retryable or bool(complaint)
        self.cut_off = cut_off
        self.retryable = retryable
        self.retry_after = retry_after
        self.complaint = complaint


@dataclass(frozen=True, slots=True)
class Dialect:
    """The optional parts of the chat protocol that are used with an endpoint.

    Attributes:
        schema: Whether the answer is bound to a JSON schema, else only to be a JSON object.
        temperature: Whether temperature 0 is asked for.
    """

    schema: bool = True
    temperature: bool = True


class Endpoint:
    """One model at one address. Safe for many threads; never shows its key or password.

    When the endpoint asks for a pause (`Retry-After`), every thread that repeats or begins a call waits.

    Args:
        model: Name of the model, as the endpoint knows it.
        base_url: Where the API begins, such as `http://localhost:11434/v1`; None for OpenAI's own.
        api_key: Sent as bearer token; None where the endpoint needs none.
        key_variable: Environment variable that the key should come from, for messages.
        purpose: The feature that needs the endpoint, as the subject of a sentence.
        timeout: Seconds without an answer after which a request has failed.
        max_retries: Most repetitions of one call.
        sleep: Waits so many seconds; None for a wait that an interruption cuts short.

    Attributes:
        address: The base URL as it may be shown: without credentials, query and slash at the end.
        dialect: Parts of the chat protocol that the endpoint accepts, as far as is known.

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
        self.dialect = Dialect()
        self._base_url = (base_url or OPENAI_BASE_URL).strip()
        self.address = _checked_address(self._base_url, purpose)
        self._api_key = _checked_key(api_key, key_variable)
        self._key_source = f"the key is read from {key_variable}, else from OPENAI_API_KEY"
        self._purpose = purpose
        self._timeout = timeout
        self._max_retries = max_retries
        self._sleep = sleep
        self._password = ""
        self._paused_until = 0.0
        self._client: Client | None = None
        self._lock = threading.Lock()

    @property
    def id(self) -> str:
        """Host, port, path unless it is `/v1`, and model: distinguishes one model from another."""
        parts = urlsplit(self.address)
        return f"{parts.netloc.lower()}{parts.path.removesuffix('/v1')}/{self.model}"

    def post(self, resource: Literal["chat", "embeddings"], body: Mapping[str, object]) -> object:
        """Return the decoded JSON answer to one request; not retried.

        Raises:
            EndpointError: No usable answer came.
            MissingExtraError: The `httpx` package is not installed.
        """
        httpx = require_extra("httpx", extra="openai", purpose=self._purpose)
        client = self._connected(httpx)
        try:
            response = client.post(f"{self.address}/{PATHS[resource]}", json={"model": self.model, **body})
        # `from None` each time: what a server says may repeat the key
        except httpx.TimeoutException:
            hint = "is the model still loading, or the timeout too short?"
            raise self._passing(f"did not answer within {self._timeout:g} s ({hint})") from None
        except httpx.RequestError as error:
            hint = "is the server running, and is the base URL right?"
            raise self._passing(f"cannot be reached ({self._scrubbed(str(error))}; {hint})") from None
        if not response.is_success:
            raise self._refused(response)
        try:
            decoded: object = json.loads(response.content)
        except (ValueError, RecursionError):
            start = self._scrubbed(response.content.decode("utf-8", "replace"))
            raise self.bad_answer(f'no JSON but "{start}" (most base URLs end in /v1)') from None
        return decoded

    def persist(self, attempt: Callable[[], Answer], *, abandoned: threading.Event | None = None) -> Answer:
        """Return what `attempt` returns, repeated with growing waits until `abandoned` is set.

        Raises:
            EndpointError: The last failure, or the first that no repetition can change.
        """
        gone = abandoned or threading.Event()
        delay = 0.0
        for attempts in range(1, self._max_retries + 2):
            self._wait(delay, gone)
            if attempts > 1 and gone.is_set():
                attempts -= 1
                break
            try:
                return attempt()
            except EndpointError as error:
                failure = error
            if not failure.retryable or attempts > self._max_retries:
                break
            with self._lock:
                self._paused_until = max(self._paused_until, time.monotonic() + failure.retry_after)
            # without jitter: at most a handful of requests are ever in flight
            delay = max(min(FIRST_DELAY * 2.0 ** (attempts - 1), MAX_DELAY), failure.retry_after)
            logger.warning("%s; trying again in %g s (%d of %d)", failure, delay, attempts, self._max_retries)
        if attempts > 1:
            failure.args = (f"{failure} (tried {attempts} times)",)
        raise failure

    def bad_answer(self, reason: object, *, complaint: str = "", cut_off: bool = False) -> EndpointError:
        """Return the failure of an answer that came but cannot be used."""
        failure = self._passing(f"gave a bad answer: {self._scrubbed(str(reason))}", complaint=complaint)
        failure.cut_off = cut_off
        return failure

    def _wait(self, delay: float, gone: threading.Event) -> None:
        """Wait `delay` seconds, or longer if the pause that the endpoint asked for is longer."""
        until = time.monotonic() + delay
        if self._sleep:
            if seconds := max(delay, self._paused_until - time.monotonic(), 0):
                self._sleep(seconds)
            return
        while (left := max(until, self._paused_until) - time.monotonic()) > 0 and not gone.wait(left):
            pass

    def _connected(self, httpx: ModuleType) -> "Client":
        if self._api_key is None and self.address == OPENAI_BASE_URL:
            raise EndpointError(f"the endpoint {self.address} wants an API key: {self._key_source}")
        with self._lock:
            if self._client is None:
                # credentials of the address replace the key
                parts = urlsplit(self._base_url)
                user, password = (unquote(part or "") for part in (parts.username, parts.password))
                self._password = password
                try:
                    self._client = httpx.Client(
                        headers={"Authorization": f"Bearer {self._api_key or NO_KEY}"},
                        auth=(user, password) if user or password else None,
                        timeout=httpx.Timeout(self._timeout, connect=min(self._timeout, CONNECT_TIMEOUT)),
                        follow_redirects=True,
                    )
                except (ImportError, OSError, TypeError, ValueError) as error:
                    raise EndpointError(
                        f"no connection to the endpoint {self.address} can be set up "
                        f"({self._scrubbed(str(error))}): check the proxy and certificate variables of the "
                        "environment"
                    ) from None
                # left to the garbage collector, its sockets may go before it can close them
                weakref.finalize(self, self._client.close)
            return self._client

    def _passing(self, what: str, *, complaint: str = "") -> EndpointError:
        return EndpointError(f"the endpoint {self.address} {what}", retryable=True, complaint=complaint)

    def _refused(self, response: "Response") -> EndpointError:
        status, said, quota_spent = response.status_code, response.text, False
        try:
            body = response.json()
        except (ValueError, RecursionError):
            body = said
        body = body.get("error", body) if isinstance(body, dict) else body
        match body:
            case str(said) | {"message": str(said)} | {"error": str(said)} | {"detail": str(said)}:
                quota_spent = isinstance(body, dict) and body.get("code") == "insufficient_quota"
            case _:
                said = ""
        said = self._scrubbed(said)
        words = f': "{said}"' if said else ""
        match status:
            case 401:
                # without the server's words: OpenAI's repeat part of the key
                given = "refused the API key" if self._api_key else "wants an API key and none was given"
                clause = f"{given} (status 401): {self._key_source}"
            case 403:
                clause = f"denied access (status 403){words}; may the key use the model? {self._key_source}"
            case 404:
                clause = (
                    f'does not know the model "{self.model}", or the address is wrong (status 404){words}; '
                    "check that the server has the model and that the base URL is right: most end in /v1"
                )
            case 429:
                clause = f"limits the rate of requests, or the quota is used up (status 429){words}"
            case _:
                clause = f"answered with an error (status {status}){words}"
        wait = _asked_wait(response.headers)
        if wait > MAX_RETRY_AFTER:
            clause += f"; it sent Retry-After: {wait:.0f} s; try again later"
        return EndpointError(
            f"the endpoint {self.address} {clause}",
            retryable=status in RETRYABLE_STATUSES and wait <= MAX_RETRY_AFTER and not quota_spent,
            retry_after=wait,
            complaint=said if status in (400, 413, 422) else "",
        )

    def _scrubbed(self, text: str) -> str:
        for secret in (self._api_key, self._password):
            text = text.replace(secret, "***") if secret else text
        return quoted(text)


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


def _checked_address(base_url: str, purpose: str) -> str:
    """Return `base_url` as it may be shown: without credentials, query and slash at the end."""
    shown = re.split(r"[?#]", re.sub(r"//[^/]*@", "//", base_url))[0].rstrip("/")
    try:
        parts = urlsplit(shown)
        host = (parts.hostname or "").encode("idna").decode()
        usable = parts.scheme in ("http", "https") and bool(HOST.fullmatch(host)) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError(
            f'{purpose} cannot use the base URL "{hide_secrets(base_url)}": it must be a full address that '
            "begins with http:// or https://, such as http://localhost:11434/v1."
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
