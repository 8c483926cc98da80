"""Downloads: the documents of the published annotations, and SkillRouter-Eval-Core.

Documents come from their public repositories: from a web server that has the raw files, or from clones on
this machine. `pooch` checks the SHA-256 of each before it is stored.
"""

import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import IO
from urllib.parse import quote

from skillpager.bench.data.evidence import (
    ANNOTATION,
    DOCUMENT,
    MANIFEST,
    SHORT,
    Published,
    read_published_short,
)
from skillpager.bench.data.skillrouter import DATASET, PARTITION, RELEVANCE, TASKS
from skillpager.bench.data.skillrouter import MANIFEST as ROUTER_MANIFEST
from skillpager.errors import BenchError, require_extra
from skillpager.files import write_file
from skillpager.json_types import JsonObject
from skillpager.remote.endpoint import MAX_RETRY_AFTER, RETRYABLE_STATUSES, Endpoint, EndpointError
from skillpager.settings import MAX_SKILL_BYTES

PURPOSE = "`bench data fetch`"
GITHUB_RAW = "https://raw.githubusercontent.com"
# the servers of public repositories slow down those who ask for more at once
JOBS = 8
TIMEOUT = 30.0
MAX_RETRIES = 4
# the file, or the repository, was taken away
MISSING_STATUSES = (404, 410, 451)
SKILLROUTER_FILES = (ROUTER_MANIFEST, TASKS, RELEVANCE, f"{PARTITION}/*.jsonl.gz")


@dataclass(frozen=True, slots=True)
class Missing:
    """A document that could not be restored, and why, in one sentence."""

    document: Published
    problem: str

    @property
    def json(self) -> JsonObject:
        """Place and problem, as a JSON-ready dict."""
        document = self.document
        place = {"repo": document.repo, "commit": document.commit, "path": document.path}
        return {"skill": document.skill, **place, "problem": self.problem}


def fetch_documents(
    published: Sequence[Published],
    out: Path,
    origin: "RawFiles | Clones",
    *,
    jobs: int = JOBS,
    progress: Callable[[int, int], None] | None = None,
) -> list[Missing]:
    """Write a folder of evidence data, documents included; return what is missing, in the order of input.

    A document that is there already, and right, is not fetched again. Nothing is written whose SHA-256 is
    not the one that was annotated. `manifest.json` names all documents, missing ones too. `origin` is
    abandoned at the end. `progress` is called with the documents done or missing, and all documents.

    Raises:
        MissingExtraError: The `pooch` package is not installed.
    """
    pooch = require_extra("pooch", extra="bench", purpose=PURPOSE)
    # it reports each file on stderr
    pooch.get_logger().setLevel("CRITICAL")
    short = read_published_short()
    lines = ",\n".join(f" {document.provenance.to_json()}" for document in published)
    write_file(out / MANIFEST, f"[\n{lines}\n]\n")

    def restore(document: Published) -> None:
        path = out / (document.skill + DOCUMENT)
        if not path.is_file() or pooch.file_hash(path) != document.sha256:
            write_file(path, _fetch(document, origin, pooch))
        write_file(out / (document.skill + ANNOTATION), document.annotation.to_json() + "\n")
        if document.sha256 in short:
            write_file(out / (document.skill + SHORT), short[document.sha256].to_json() + "\n")

    missing: dict[str, Missing] = {}
    pool = ThreadPoolExecutor(jobs)
    pending = {pool.submit(restore, document): document for document in published}
    try:
        for done, future in enumerate(as_completed(pending), 1):
            document = pending[future]
            try:
                future.result()
            except BenchError as error:
                missing[document.skill] = Missing(document, str(error))
            if progress:
                progress(done, len(published))
    finally:
        # an interruption does not wait for servers that are slow
        if isinstance(origin, RawFiles):
            origin.abandon()
        pool.shutdown(wait=False, cancel_futures=True)
    return [missing[document.skill] for document in published if document.skill in missing]


def _fetch(document: Published, origin: "RawFiles | Clones", pooch: ModuleType) -> bytes:
    """Return the bytes of a document if they are those that were annotated; else raise a `BenchError`."""
    # a killed process must leave nothing beside the documents: the file is checked elsewhere
    with tempfile.TemporaryDirectory(prefix="skillpager-", ignore_cleanup_errors=True) as scratch:
        try:
            fetched = pooch.retrieve(
                url=document.path,
                known_hash=f"sha256:{document.sha256}",
                fname="document",
                path=scratch,
                downloader=lambda _url, output, _pooch: origin.save(document, output),
            )
        except ValueError as error:
            raise BenchError(
                f"{_place(document)} is not the document that was annotated: its SHA-256 is not "
                f"{document.sha256}."
            ) from error
        return Path(fetched).read_bytes()


class RawFiles:
    """A server of `<base URL>/<repo>/<commit>/<path>`, such as raw.githubusercontent.com.

    Once it has failed on a document for good, no other is tried: each would wait as long. `timeout` is in
    seconds without a byte; `sleep` waits so many seconds, None for a wait that `abandon` cuts short.

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
        # it checks the address and repeats requests to a busy server
        self._endpoint = Endpoint(
            "documents",
            base_url=base_url,
            api_key=None,
            key_variable="",
            purpose=PURPOSE,
            timeout=timeout,
            max_retries=max_retries,
            sleep=sleep,
        )
        self._timeout = timeout
        self._abandoned = threading.Event()

    def save(self, document: Published, path: str) -> None:
        """Write the file at its commit to `path`.

        Raises:
            BenchError: It is not there, too large, or the server does not give it.
        """
        if self._abandoned.is_set():
            raise BenchError(f"{_place(document)} was not tried: {self._endpoint.address} fails.")
        parts = [quote(part) for part in (document.repo, document.commit, document.path)]
        url = "/".join([self._endpoint.address, *parts])
        try:
            self._endpoint.persist(lambda: self._download(url, path), abandoned=self._abandoned)
        except (EndpointError, _GoneError) as error:
            if isinstance(error, EndpointError):
                self.abandon()
            raise BenchError(f"{_place(document)} cannot be fetched: {error}.") from error

    def abandon(self) -> None:
        """Make waiting reads end soon."""
        self._abandoned.set()

    def _download(self, url: str, path: str) -> None:
        pooch = require_extra("pooch", extra="bench", purpose=PURPOSE)
        requests = require_extra("requests", extra="bench", purpose=PURPOSE)
        # the document is not named, so that a log of many that wait at once shows one message
        address = self._endpoint.address
        get = pooch.HTTPDownloader(timeout=self._timeout, headers={"User-Agent": "skillpager"})
        try:
            with Path(path).open("wb") as file:
                get(url, _Bounded(file), None)
        except requests.HTTPError as error:
            answer = error.response
            with answer:
                status = answer.status_code
                if status in MISSING_STATUSES:
                    raise _GoneError(f"{address} has none (status {status})") from error
                after = answer.headers.get("Retry-After", "")
                wait = float(after) if after.isdecimal() else 0.0
                raise EndpointError(
                    f"{address} answered with status {status}",
                    retryable=status in RETRYABLE_STATUSES and wait <= MAX_RETRY_AFTER,
                    retry_after=wait,
                ) from error
        except requests.RequestException as error:
            reason: BaseException = error
            while reason.__context__:  # the first one knows best: the others wrap it
                reason = reason.__context__
            raise EndpointError(f"{address} cannot be read ({reason})", retryable=True) from error


class _GoneError(Exception):
    """A document that a working server does not have: it is not tried again, the others still are."""


class _Bounded:
    """A file that refuses more bytes than a document may have."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.flush = file.flush

    def write(self, data: bytes) -> int:
        if self._file.tell() + len(data) > MAX_SKILL_BYTES:
            raise _GoneError(f"it is larger than {MAX_SKILL_BYTES:,} bytes, which no document is")
        return self._file.write(data)


class Clones:
    """Git repositories in one folder, each as `<owner>/<name>`, `<owner>+<name>` or `<name>`, bare or not."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def save(self, document: Published, path: str) -> None:
        """Write the file at its commit to `path`.

        Raises:
            BenchError: The repository, the commit or the file is not there, or git is missing.
        """
        repo = document.repo
        names = (repo, repo.replace("/", "+"), repo.rpartition("/")[2])
        candidates = [self._folder / f"{name}{end}" for name in names for end in ("", ".git")]
        clone = next((c for c in candidates if (c / ".git").exists() or (c / "HEAD").is_file()), None)
        if clone is None:
            raise BenchError(
                f"{self._folder} has no clone of {repo}: run "
                f"`git clone https://github.com/{repo} {self._folder / repo}`."
            )
        command = ["git", "-C", str(clone), "cat-file", "blob", f"{document.commit}:{document.path}"]
        try:
            done = subprocess.run(command, capture_output=True)
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
        Path(path).write_bytes(done.stdout)


def _place(document: Published) -> str:
    return f"{document.path} of {document.repo} at {document.commit}"


def download_skillrouter(folder: Path, *, revision: str = "main", bars: bool = False) -> None:
    """Fetch a branch, tag or commit of the data set into a folder; existing files stay.

    `HF_ENDPOINT` names a mirror; `bars` shows progress bars on stderr.

    Raises:
        BenchError: It cannot be fetched.
        MissingExtraError: The `huggingface_hub` package is not installed.
    """
    hub = require_extra("huggingface_hub", extra="hub", purpose="`--download`")
    if not bars:
        require_extra("huggingface_hub.utils", extra="hub", purpose="`--download`").disable_progress_bars()
    files = list(SKILLROUTER_FILES)
    try:
        hub.snapshot_download(
            DATASET, repo_type="dataset", revision=revision, local_dir=folder, allow_patterns=files
        )
    # exceptions of the HTTP library underneath come through, which varies by version
    except Exception as error:
        raise BenchError(
            f"The data set {DATASET} cannot be downloaded ({' '.join(str(error).split())}): check the "
            f"network or HF_ENDPOINT, or copy the files {', '.join(files)} to {folder} yourself."
        ) from error
