"""Where documents are read at a commit: a web server that has the raw files, or clones on this machine."""

import subprocess
import threading
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Protocol
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from skillpager.bench.data.published import Published
from skillpager.errors import BenchError
from skillpager.remote.endpoint import MAX_RETRY_AFTER, RETRYABLE_STATUSES, Endpoint, EndpointError
from skillpager.settings import MAX_SKILL_BYTES

GITHUB_RAW = "https://raw.githubusercontent.com"
TIMEOUT = 30.0
MAX_RETRIES = 4
# the file, or the repository, was taken away
MISSING_STATUSES = (404, 410, 451)


class DocumentOrigin(Protocol):
    """Gives the bytes of a document. Safe for many threads."""

    def read(self, document: Published) -> bytes:
        """Return the file at its commit.

        Raises:
            BenchError: It is not there, too large, or cannot be read.
        """

    def abandon(self) -> None:
        """Make waiting reads end soon."""


class RawFiles:
    """A server that gives `<base URL>/<repo>/<commit>/<path>`, as raw.githubusercontent.com does.

    Once it has failed on a document for good, no other is tried: each would wait as long.

    Args:
        base_url: Begins with http:// or https://.
        timeout: Seconds without a byte after which a request has failed.
        max_retries: Most repetitions for one document.
        sleep: Waits so many seconds; None for a wait that `abandon` cuts short.

    Raises:
        SettingsError: `base_url` cannot be used.
    """

    def __init__(
        self,
        base_url: str = GITHUB_RAW,
        *,
        timeout: float = TIMEOUT,
        max_retries: int = MAX_RETRIES,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        # what is wanted of it: the check of the address, and the patience with a server that is busy
        self._endpoint = Endpoint(
            "documents",
            base_url=base_url,
            api_key=None,
            key_variable="",
            purpose="`bench data fetch`",
            timeout=timeout,
            max_retries=max_retries,
            sleep=sleep,
        )
        self._timeout = timeout
        self._abandoned = threading.Event()

    def read(self, document: Published) -> bytes:
        """Return the file at its commit.

        Raises:
            BenchError: It is not there, too large, or the server does not give it.
        """
        if self._abandoned.is_set():
            raise BenchError(f"{_place(document)} was not tried: {self._endpoint.address} fails.")
        path = "/".join(quote(part) for part in (document.repo, document.commit, document.path))
        url = f"{self._endpoint.address}/{path}"
        try:
            return self._endpoint.persist(lambda: self._get(url), abandoned=self._abandoned)
        except _GoneError as error:
            raise BenchError(f"{_place(document)} cannot be fetched: {error}.") from error
        except EndpointError as error:
            self.abandon()
            raise BenchError(f"{_place(document)} cannot be fetched: {error}.") from error

    def abandon(self) -> None:
        """Make waiting reads end soon."""
        self._abandoned.set()

    def _get(self, url: str) -> bytes:
        # the scheme is http or https: `Endpoint` has checked it
        request = Request(url, headers={"User-Agent": "skillpager"})  # noqa: S310
        try:
            with urlopen(request, timeout=self._timeout) as answer:  # noqa: S310
                return self._read_whole(answer)
        except HTTPError as error:
            with error:
                if error.code in MISSING_STATUSES:
                    raise _GoneError(f"{self._endpoint.address} has none (status {error.code})") from error
                raise self._refused(error) from error
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise self._failing(f"cannot be reached ({reason})") from error

    def _read_whole(self, answer: HTTPResponse) -> bytes:
        data = answer.read(MAX_SKILL_BYTES + 1)
        if len(data) > MAX_SKILL_BYTES:
            raise _GoneError(f"it is larger than {MAX_SKILL_BYTES:,} bytes, which no document is")
        if answer.length:
            raise self._failing("broke off before the end of a file")
        return data

    def _refused(self, error: HTTPError) -> EndpointError:
        after = error.headers.get("Retry-After", "")
        return self._failing(
            f"answered with status {error.code}",
            retryable=error.code in RETRYABLE_STATUSES,
            retry_after=float(after) if after.isdecimal() else 0.0,
        )

    def _failing(self, what: str, *, retryable: bool = True, retry_after: float = 0.0) -> EndpointError:
        # the same words whatever the document: a log of many that wait at once says them once
        return EndpointError(
            f"{self._endpoint.address} {what}",
            retryable=retryable and retry_after <= MAX_RETRY_AFTER,
            retry_after=retry_after,
        )


class _GoneError(Exception):
    """A document that a working server does not give; no reason to try again, or to give up the others."""


class Clones:
    """Git repositories in one folder, each as `<owner>/<name>`, `<owner>+<name>` or `<name>`, bare or not.

    Args:
        folder: Holds them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, document: Published) -> bytes:
        """Return the file at its commit.

        Raises:
            BenchError: The repository, the commit or the file is not there, or git is missing.
        """
        clone = self._find(document.repo)
        blob = f"{document.commit}:{document.path}"
        try:
            done = subprocess.run(["git", "-C", clone, "cat-file", "blob", blob], capture_output=True)
        except FileNotFoundError as error:
            raise BenchError(
                "git is not installed: install it, or fetch over HTTPS without --git."
            ) from error
        if done.returncode:
            said = " ".join(done.stderr.decode(errors="replace").split())
            raise BenchError(
                f"{_place(document)} is not in {clone} ({said}): "
                f"run `git -C {clone} fetch origin {document.commit}`."
            )
        return done.stdout

    def abandon(self) -> None:
        """Do nothing: git does not wait."""

    def _find(self, repo: str) -> Path:
        name = repo.rpartition("/")[2]
        for candidate in (repo, repo.replace("/", "+"), name):
            for clone in (self._folder / candidate, self._folder / f"{candidate}.git"):
                if (clone / ".git").exists() or (clone / "HEAD").is_file():
                    return clone
        raise BenchError(
            f"{self._folder} has no clone of {repo}: run "
            f"`git clone https://github.com/{repo} {self._folder / repo}`."
        )


def _place(document: Published) -> str:
    return f"{document.path} of {document.repo} at {document.commit}"
