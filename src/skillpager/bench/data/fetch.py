"""Downloads the documents of the published annotations from their public repositories.

`pooch` repeats what failed, and checks the SHA-256 of each document before it is stored.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
from skillpager.errors import BenchError, SettingsError, require_extra
from skillpager.files import write_file

PURPOSE = "`bench data fetch`"
GITHUB_RAW = "https://raw.githubusercontent.com"
# the servers of public repositories slow down those who ask for more at once
JOBS = 8
# seconds without a byte
TIMEOUT = 30.0
# after 1, 2 and 3 seconds
MAX_RETRIES = 3


def fetch_documents(
    published: Sequence[Published],
    out: Path,
    *,
    base_url: str = GITHUB_RAW,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, str]:
    """Write a folder of evidence data, documents included; return why documents are missing, by their ids.

    A document that is there already, and right, is not fetched again. `manifest.json` names all documents,
    missing ones too.

    Args:
        published: The documents.
        out: The folder.
        base_url: Server of `<base URL>/<repo>/<commit>/<path>`.
        progress: Called with the documents done or missing, and all documents.

    Raises:
        BenchError: The server cannot be reached.
        SettingsError: `base_url` is not a web address.
        MissingExtraError: The `pooch` package is not installed.
    """
    if not base_url.startswith(("http://", "https://")):
        raise SettingsError(
            f'{PURPOSE} cannot use the base URL "{base_url}": it must begin with http:// or https://.'
        )
    pooch = require_extra("pooch", extra="bench", purpose=PURPOSE)
    requests = require_extra("requests", extra="bench", purpose=PURPOSE)
    # it reports each file on stderr
    pooch.get_logger().setLevel("CRITICAL")
    lines = ",\n".join(f" {document.provenance.to_json()}" for document in published)
    write_file(out / MANIFEST, f"[\n{lines}\n]\n")
    short = read_published_short()
    store = pooch.create(
        out,
        base_url="",
        registry={document.skill + DOCUMENT: f"sha256:{document.sha256}" for document in published},
        urls={
            document.skill + DOCUMENT: "/".join(
                [base_url.rstrip("/"), *map(quote, (document.repo, document.commit, document.path))]
            )
            for document in published
        },
        retry_if_failed=MAX_RETRIES,
    )
    download = pooch.HTTPDownloader(timeout=TIMEOUT, headers={"User-Agent": "skillpager"})

    def restore(document: Published) -> str:
        """Write one document and its annotations; return why that is not possible, or an empty text."""
        place = f"{document.path} of {document.repo} at {document.commit}"
        try:
            store.fetch(document.skill + DOCUMENT, downloader=download)
        except requests.HTTPError as error:
            return f"{place} cannot be fetched: {error}."
        except requests.RequestException as error:
            raise BenchError(
                f"{place} cannot be fetched: {error}. Try again later: documents that are there stay."
            ) from error
        except ValueError:
            return f"{place} is not the document that was annotated: its SHA-256 is not {document.sha256}."
        write_file(out / (document.skill + ANNOTATION), document.annotation.to_json() + "\n")
        if document.sha256 in short:
            write_file(out / (document.skill + SHORT), short[document.sha256].to_json() + "\n")
        return ""

    missing: dict[str, str] = {}
    pool = ThreadPoolExecutor(JOBS)
    try:
        for number, (document, problem) in enumerate(
            zip(published, pool.map(restore, published), strict=True), 1
        ):
            if problem:
                missing[document.skill] = problem
            if progress:
                progress(number, len(published))
    finally:
        # an interruption does not wait for servers that are slow
        pool.shutdown(wait=False, cancel_futures=True)
    return missing
