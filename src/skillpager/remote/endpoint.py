"""One model behind an OpenAI-compatible endpoint: requests by OpenAI's client, and clear error messages.

The client repeats what may succeed later (timeouts, lost connections, status 408, 409, 429 and 5xx), waits as
long as `Retry-After` asks, up to two minutes, and is imported at the first request.
"""

import json
import re
import threading
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from skillpager.errors import SettingsError, require_extra
from skillpager.settings import hide_secrets

if TYPE_CHECKING:
    from openai import APIStatusError, OpenAI

OPENAI_BASE_URL = "https://api.openai.com/v1"
# local servers require a key in the header but do not check it
NO_KEY = "none"
MAX_QUOTED_CHARS = 300


class EndpointError(Exception):
    """A failed call, as a clause without full stop for a stage to put into its own error.

    `retryable` says that the same call may succeed later; `complaint` is the objection to this very request
    (status 400, 413, 422, or the model's refusal), or empty.
    """

    def __init__(self, message: str, *, retryable: bool = False, complaint: str = "") -> None:
        super().__init__(message)
        self.retryable = retryable
        self.complaint = complaint


class Endpoint:
    """One model at one address, by default OpenAI's. Safe for many threads; never shows its key.

    Args:
        model: Name of the model, as the endpoint knows it.
        base_url: Where the API begins, such as `http://localhost:11434/v1`.
        api_key: Sent as bearer token; None where the endpoint needs none.
        key_variable: Environment variable that the key should come from, for messages.
        purpose: The feature that needs the endpoint, as the subject of a sentence.
        timeout: Seconds without an answer after which a request has failed.
        max_retries: Most repetitions of one request.

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
    ) -> None:
        if timeout <= 0 or max_retries < 0:
            raise ValueError(f"timeout must be positive, max_retries not negative: {timeout}, {max_retries}")
        if not model.strip():
            raise SettingsError(f"{purpose} needs the name of a model, and the name given is empty.")
        self.model = model
        self.address = _checked_address((base_url or OPENAI_BASE_URL).strip(), purpose)
        self.max_retries = max_retries
        self.dialect = frozenset({"schema", "temperature"})  # what requests ask for and it supports
        self.tokens = 0
        self._api_key = _checked_key(api_key, key_variable)
        self._key_source = f"the key is read from {key_variable}, else from OPENAI_API_KEY"
        self._purpose = purpose
        self._timeout = timeout
        self._lock = threading.Lock()

    @property
    def id(self) -> str:
        """Host, port, path unless it is `/v1`, and model: distinguishes one model from another."""
        parts = urlsplit(self.address)
        return f"{parts.netloc.lower()}{parts.path.removesuffix('/v1')}/{self.model}"

    def post(self, resource: Literal["chat", "embeddings"], body: Mapping[str, Any]) -> object:
        """Return the decoded JSON answer to one request, which is repeated; else an `EndpointError`."""
        package = require_extra("openai", extra="openai", purpose=self._purpose)
        with self._lock:
            client = self._client
        named = client.chat.completions if resource == "chat" else client.embeddings
        create = named.with_raw_response.create
        # `from None` each time: what a server says may repeat the key
        try:
            content = create(model=self.model, **body).http_response.content
        except package.APITimeoutError:
            hint = "is the model still loading, or the timeout too short?"
            raise self._passing(f"did not answer within {self._timeout:g} s ({hint})") from None
        except package.APIConnectionError as error:
            reason = self._scrubbed(str(error.__cause__ or error))
            hint = "is the server running, and is the base URL right?"
            raise self._passing(f"cannot be reached ({reason}; {hint})") from None
        except package.APIStatusError as error:
            raise self._refused(error) from None
        try:
            decoded: object = json.loads(content)
        except (ValueError, RecursionError):
            start = self._scrubbed(content.decode("utf-8", "replace"))
            raise self.bad_answer(f'no JSON but "{start}" (most base URLs end in /v1)') from None
        match decoded:
            case {"usage": {"total_tokens": int(tokens)}}:
                with self._lock:
                    self.tokens += tokens
        return decoded

    def bad_answer(self, reason: object, *, complaint: str = "") -> EndpointError:
        """Return the failure of an answer that came but cannot be used."""
        return self._passing(f"gave a bad answer: {self._scrubbed(str(reason))}", complaint)

    @cached_property
    def _client(self) -> "OpenAI":
        import openai

        if self._api_key is None and self.address == OPENAI_BASE_URL:
            raise EndpointError(f"the endpoint {self.address} wants an API key: {self._key_source}")
        try:
            return openai.OpenAI(
                api_key=self._api_key or NO_KEY,
                base_url=self.address,
                timeout=self._timeout,
                max_retries=self.max_retries,
            )
        except (ImportError, OSError, TypeError, ValueError) as error:
            raise EndpointError(
                f"no connection to the endpoint {self.address} can be set up ({self._scrubbed(str(error))}): "
                "check the proxy and certificate variables of the environment"
            ) from None

    def _passing(self, what: str, complaint: str = "") -> EndpointError:
        return EndpointError(f"the endpoint {self.address} {what}", retryable=True, complaint=complaint)

    def _refused(self, error: "APIStatusError") -> EndpointError:
        """Return the failure of a request that was answered with an error status."""
        status = error.status_code
        match error.body:
            case {"message": str(said)} | {"error": str(said)} | {"detail": str(said)} | str(said):
                said = self._scrubbed(said)
            case _:
                said = ""
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
        return EndpointError(
            f"the endpoint {self.address} {clause}",
            retryable=status in (408, 409, 429) or status >= 500,
            complaint=said if status in (400, 413, 422) else "",
        )

    def _scrubbed(self, text: str) -> str:
        return quoted(text.replace(self._api_key, "***") if self._api_key else text)


def quoted(text: str) -> str:
    """Return `text` on one line, cut to a length that suits an error."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_QUOTED_CHARS else f"{line[:MAX_QUOTED_CHARS]}…"


def sendable(text: str) -> str:
    """Return `text` with lone surrogates replaced, which no request can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def shortened(text: str, limit: int) -> str:
    """Return `text`, or three quarters of `limit` from its beginning and the rest from its end; sendable."""
    if len(text) <= limit:
        return sendable(text)
    head, tail = limit * 3 // 4, limit // 4
    left_out = len(text) - head - tail
    return sendable(f"{text[:head]} […{left_out} characters left out…] {text[-tail:]}")


def _checked_address(base_url: str, purpose: str) -> str:
    """Return `base_url` without a slash at the end, if it can be used."""
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in ("http", "https") and bool(re.fullmatch(r"[\w.:%-]+", parts.hostname or ""))
        usable = usable and parts.port != 0 and not (parts.username or parts.password or parts.query)
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError(
            f'{purpose} cannot use the base URL "{hide_secrets(base_url)}": it must be a full address '
            "such as http://localhost:11434/v1, without user, password and query."
        )
    return base_url.rstrip("/")


def _checked_key(api_key: str | None, key_variable: str) -> str | None:
    """Return the key without blank space around it; None when nothing is left."""
    key = (api_key or "").strip()
    if not all("!" <= letter <= "~" for letter in key):
        raise SettingsError(
            "The API key holds a space, a line break or a letter outside ASCII and cannot be sent: "
            f"copy it again into {key_variable} (or OPENAI_API_KEY)."
        )
    return key or None
