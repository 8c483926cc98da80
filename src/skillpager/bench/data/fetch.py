"""Downloads: the documents of the published annotations, and SkillRouter-Eval-Core.

Documents come from their public repositories: from a web server that has the raw files, or from clones on
this machine. `pooch` repeats what failed, and checks the SHA-256 of each before it is stored.
"""

import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
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
from skillpager.errors import BenchError, SettingsError, require_extra
from skillpager.files import write_file
from skillpager.json_types import JsonObject
from skillpager.settings import MAX_SKILL_BYTES

PURPOSE = "`bench data fetch`"
GITHUB_RAW = "https://raw.githubusercontent.com"
# the servers of public repositories slow down those who ask for more at once
JOBS = 8
# seconds without a byte
TIMEOUT = 30.0
# after 1, 2 and 3 seconds
MAX_RETRIES = 3
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
    not the one that was annotated. `manifest.json` names all documents, missing ones too. `progress` is
    called with the documents done or missing, and all documents.

    Raises:
        MissingExtraError: The `pooch` package is not installed.
    """
    pooch = require_extra("pooch", extra="bench", purpose=PURPOSE)
    requests = require_extra("requests", extra="bench", purpose=PURPOSE)
    # it reports each file on stderr
    pooch.get_logger().setLevel("CRITICAL")
    short = read_published_short()
    lines = ",\n".join(f" {document.provenance.to_json()}" for document in published)
    write_file(out / MANIFEST, f"[\n{lines}\n]\n")
    digests = {document.skill + DOCUMENT: f"sha256:{document.sha256}" for document in published}
    # pooch asks for an address of each file, which the origin knows
    addresses = {name: name for name in digests}
    store = pooch.create(out, base_url="", registry=digests, urls=addresses, retry_if_failed=MAX_RETRIES)

    def restore(document: Published) -> None:
        name = document.skill + DOCUMENT
        try:
            store.fetch(name, downloader=lambda _url, output, _pooch: origin.save(document, output))
        except requests.RequestException as error:
            origin.fails = True
            raise BenchError(f"{_place(document)} cannot be fetched: {_reason(error)}.") from error
        except ValueError as error:
            raise BenchError(
                f"{_place(document)} is not the document that was annotated: its SHA-256 is not "
                f"{document.sha256}."
            ) from error
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
        pool.shutdown(wait=False, cancel_futures=True)
    return [missing[document.skill] for document in published if document.skill in missing]


def _reason(error: BaseException) -> BaseException:
    """Return the first cause of an error of `requests`, which knows best: the others wrap it."""
    while error.__context__:
        error = error.__context__
    return error


class RawFiles:
    """A server of `<base URL>/<repo>/<commit>/<path>`, such as raw.githubusercontent.com.

    Attributes:
        fails: Set once it has failed for good: no other document is tried, for each would wait as long.

    Raises:
        SettingsError: `base_url` cannot be used.
    """

    def __init__(self, base_url: str = GITHUB_RAW, *, timeout: float = TIMEOUT) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise SettingsError(
                f'{PURPOSE} cannot use the base URL "{base_url}": it must begin with http:// or https://.'
            )
        self.fails = False
        self._base_url = base_url.rstrip("/")
        self._timeout = timeout

    def save(self, document: Published, path: str) -> None:
        """Write the file at its commit to `path`.

        Raises:
            BenchError: It is not there, or too large, or the server has failed before.
        """
        if self.fails:
            raise BenchError(f"{_place(document)} was not tried: {self._base_url} fails.")
        requests = require_extra("requests", extra="bench", purpose=PURPOSE)
        parts = [quote(part) for part in (document.repo, document.commit, document.path)]
        url = "/".join([self._base_url, *parts])
        agent = {"User-Agent": "skillpager"}
        with requests.get(url, headers=agent, timeout=self._timeout, stream=True) as answer:
            if answer.status_code in MISSING_STATUSES:
                has_none = f"{self._base_url} has none (status {answer.status_code})"
                raise BenchError(f"{_place(document)} cannot be fetched: {has_none}.")
            answer.raise_for_status()
            data = b""
            for block in answer.iter_content(MAX_SKILL_BYTES):
                data += block
                if len(data) > MAX_SKILL_BYTES:
                    raise BenchError(
                        f"{_place(document)} cannot be fetched: it is larger than {MAX_SKILL_BYTES:,} bytes, "
                        "which no document is."
                    )
        Path(path).write_bytes(data)


class Clones:
    """Git repositories in one folder, each as `<owner>/<name>`, `<owner>+<name>` or `<name>`, bare or not."""

    fails = False

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
            reason = " ".join(done.stderr.decode(errors="replace").split())
            raise BenchError(
                f"{_place(document)} is not in {clone} ({reason}): "
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
