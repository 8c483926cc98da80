"""The documents of the published annotations, restored from their public repositories."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from skillpager.atomic_write import write_file
from skillpager.bench.data.evidence import ANNOTATION, DOCUMENT, MANIFEST
from skillpager.bench.data.origins import DocumentOrigin
from skillpager.bench.data.published import Published
from skillpager.errors import BenchError
from skillpager.output.json import JsonObject

# the servers of public repositories slow down those who ask for more at once
JOBS = 8


@dataclass(frozen=True, slots=True)
class Missing:
    """A document that could not be restored.

    Attributes:
        document: Its annotations and where it should be.
        problem: Why, one sentence.
    """

    document: Published
    problem: str

    @property
    def json(self) -> JsonObject:
        """The document's place and the problem, as a JSON-ready dict."""
        document = self.document
        place = {"repo": document.repo, "commit": document.commit, "path": document.path}
        return {"skill": document.skill, **place, "problem": self.problem}


def fetch_documents(
    published: Sequence[Published],
    out: Path,
    origin: DocumentOrigin,
    *,
    jobs: int = JOBS,
    progress: Callable[[int, int], None] | None = None,
) -> list[Missing]:
    """Write a folder of evidence data, documents included; return what is missing, in the order of input.

    A document that is there already, and right, is not fetched again. Nothing is kept whose SHA-256 is not
    the one that was annotated. `manifest.json` names all documents, missing ones too.

    Args:
        published: Annotations and provenance.
        out: Folder to write to; made if need be.
        origin: Where documents are read; abandoned at the end.
        jobs: Documents fetched at once.
        progress: Called with the documents done or missing, and all documents.
    """
    lines = ",\n".join(f" {document.provenance.to_json()}" for document in published)
    write_file(out / MANIFEST, f"[\n{lines}\n]\n")
    missing: dict[str, Missing] = {}
    pool = ThreadPoolExecutor(jobs)
    pending = {pool.submit(_restore, document, out, origin): document for document in published}
    try:
        for done, future in enumerate(as_completed(pending), 1):
            document = pending[future]
            if problem := _problem(future):
                missing[document.skill] = Missing(document, problem)
            if progress:
                progress(done, len(published))
    finally:
        # an interruption does not wait for servers that are slow
        origin.abandon()
        pool.shutdown(wait=False, cancel_futures=True)
    return [missing[document.skill] for document in published if document.skill in missing]


def _problem(future: Future[None]) -> str:
    try:
        future.result()
    except BenchError as error:
        return str(error)
    return ""


def _restore(document: Published, out: Path, origin: DocumentOrigin) -> None:
    path = out / (document.skill + DOCUMENT)
    if not path.is_file() or _digest(path.read_bytes()) != document.sha256:
        data = origin.read(document)
        if (digest := _digest(data)) != document.sha256:
            raise BenchError(
                f"{document.path} of {document.repo} at {document.commit} is not the document that was "
                f"annotated: its SHA-256 is {digest}, not {document.sha256}."
            )
        write_file(path, data)
    write_file(out / (document.skill + ANNOTATION), document.annotation.to_json() + "\n")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
