"""The index of the words of a library's skills, by tantivy: in a folder, or in memory."""

import json
import logging
import os
import shutil
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import cast

import numpy as np
import tantivy
from numpy.typing import NDArray

from skillpager.errors import StoreError, is_panic
from skillpager.library.routing.words import FIELDS, PHRASES, TERM_FIELDS, pack_counts

logger = logging.getLogger(__name__)

KEY, COUNTS = "key", "counts"
# fields in which terms are searched; in the others they are only counted
SEARCHED = (*TERM_FIELDS[:4], PHRASES)
WRITER_BYTES = 32_000_000
# skills that are added together; what is done is not lost when the process ends
BATCH = 1_000
# seconds to wait for the process that writes
BUSY_SECONDS = 60.0
META = "meta.json"

Terms = tuple[list[str], ...]
# yields the key and the terms of each field of skills, of those that can still be read
Read = Callable[[Sequence[int]], Iterable[tuple[int, Terms]]]
Report = Callable[[int], None]


class DamagedIndexError(StoreError):
    """The files of an index are not what was written."""


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field(KEY, indexed=True, fast=True)
    for field in SEARCHED:
        builder.add_text_field(field, tokenizer_name="whitespace", index_option="freq")
    builder.add_bytes_field(COUNTS, stored=True)
    return builder.build()


class WordIndex:
    """The words of a library's skills, for any number of threads and processes at once.

    One process writes at a time, the others wait for it; readers see the last commit.

    Args:
        folder: Folder of the index, made when first needed; None keeps it in memory.
        busy_seconds: Seconds to wait for a process that writes.
    """

    def __init__(self, folder: Path | None, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.folder = folder
        self._busy_seconds = busy_seconds
        self._lock = threading.Lock()
        self._index: tantivy.Index | None = None
        self._deleted = False

    def update(self, wanted: Collection[int], read: Read, report: Report | None = None) -> None:
        """Bring the index in step with a library: skills that it lacks are added, others deleted.

        Args:
            wanted: Keys of the library's skills.
            read: Reads skills by key; it is not called if none is missing.
            report: Called with the number of wanted skills that are in the index.

        Raises:
            DamagedIndexError: The index cannot be read.
            StoreError: It cannot be written, or another process has written for too long.
        """
        with self._lock, _faults(self.folder):
            index = self._open()
            index.reload()
            if keys_of(index.searcher()) == set(wanted):
                return
            writer = self._writer(index)
            try:
                index.reload()  # another process may have done it meanwhile
                held = keys_of(index.searcher())
                for key in held - set(wanted):
                    writer.delete_documents_by_query(tantivy.Query.term_query(_SCHEMA, KEY, key))
                    self._deleted = True
                missing = [key for key in wanted if key not in held]
                for start in range(0, len(missing), BATCH):
                    if report is not None:
                        report(len(wanted) - len(missing) + start)
                    for key, terms in read(missing[start : start + BATCH]):
                        writer.add_document(_document(key, terms))
                    writer.commit()
                if not missing:
                    writer.commit()
                writer.wait_merging_threads()
            finally:
                del writer  # it holds the lock
            index.reload()

    def search(self, keys: Iterable[int]) -> "WordSearch":
        """Return the index as it is now, for a library whose skills have these keys."""
        with self._lock, _faults(self.folder):
            return WordSearch(self._open().searcher(), keys, has_gone=self._has_gone())

    def _has_gone(self) -> bool:
        """Return whether files still hold skills that were deleted."""
        if self.folder is None or self._deleted:
            return self._deleted
        meta = json.loads((self.folder / META).read_text(encoding="utf-8"))
        return any(segment["deletes"] for segment in meta["segments"])

    def delete(self) -> None:
        """Delete the index; using it again makes another."""
        with self._lock:
            self._index = None
            if self.folder is not None:
                shutil.rmtree(self.folder, ignore_errors=True)

    def _open(self) -> tantivy.Index:
        if self._index is None:
            if self.folder is None:
                index = tantivy.Index(_SCHEMA)
            else:
                for folder in (self.folder.parent, self.folder):
                    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                os.utime(self.folder)  # it is in use
                if problem := next(damaged_files(self.folder), ""):
                    raise DamagedIndexError(f"{self.folder} is damaged: {problem}")
                index = tantivy.Index(_SCHEMA, str(self.folder))
            index.config_reader("manual")
            self._index = index
        return self._index

    def _writer(self, index: tantivy.Index) -> tantivy.IndexWriter:
        """Return the writer of the index, which one process has at a time."""
        until, seen = 0.0, -1.0
        while True:
            try:
                return index.writer(WRITER_BYTES, 1)
            except ValueError as error:
                if "Lock" not in str(error):
                    raise
                stamp = 0.0 if self.folder is None else (self.folder / META).stat().st_mtime
                if stamp != seen:  # it is getting on
                    until, seen = time.monotonic() + self._busy_seconds, stamp
                if time.monotonic() > until:
                    raise StoreError(
                        f"Another process has written {self.folder} for {self._busy_seconds:.0f} s: wait for "
                        "it, or end it."
                    ) from error
            time.sleep(0.05)


class WordSearch:
    """The words of a library's skills as they were at one time.

    Args:
        searcher: The index.
        keys: Key of each skill, in the order in which equally good ones are listed. Skills of the index that
            are not among them are not found.
        has_gone: Whether skills that were deleted still count among the holders of a term, unless these are
            counted one by one.
    """

    def __init__(self, searcher: tantivy.Searcher, keys: Iterable[int], *, has_gone: bool = False) -> None:
        self._searcher = searcher
        self._has_gone = has_gone
        self._places = {key: place for place, key in enumerate(keys)}
        self.size = len(self._places)
        self.is_any = searcher.num_docs > 0

    def holders(self, field: str, terms: Iterable[str]) -> NDArray[np.int64]:
        """Return `(t,)`: how many skills hold each term in a field."""
        search, count = self._searcher.search, self._searcher.doc_freq
        if self._has_gone:
            asked = [tantivy.Query.term_query(_SCHEMA, field, term, "freq") for term in terms]
            # `count` is missing in the types of tantivy
            return np.array([search(each, 1).count for each in asked], np.int64)  # type: ignore[attr-defined]
        return np.array([count(field, term) for term in terms], np.int64)

    def best(self, weighted: Iterable[tuple[str, str, float]], most: int) -> set[tuple[int, int]]:
        """Return the addresses of at most `most` skills with the greatest sums of weighted BM25.

        Args:
            weighted: Fields, a term that is searched in each, and its weight.
            most: Number of skills.
        """
        query = tantivy.Query
        asked = [
            (
                tantivy.Occur.Should,
                term if weight == 1 else query.boost_query(term, weight),
            )
            for field, text, weight in weighted
            for term in (query.term_query(_SCHEMA, field, text, "freq"),)
        ]
        if not asked:
            return set()
        hits = self._searcher.search(query.boolean_query(asked), most, count=False).hits
        return {(address.segment_ord, address.doc) for _, address in hits}

    def read(self, found: Collection[tuple[int, int]]) -> tuple[NDArray[np.intp], list[bytes]]:
        """Return the places of the found skills in the library, ascending, and the packed counts of each."""
        addresses = [tantivy.DocAddress(*each) for each in found]
        keys = cast("list[int]", self._searcher.fast_field_values(KEY, addresses))
        known = sorted((self._places[key], number) for number, key in enumerate(keys) if key in self._places)
        packed = [self._searcher.doc(addresses[number])[COUNTS][0] for _, number in known]
        return np.array([place for place, _ in known], np.intp), packed


def keys_of(searcher: tantivy.Searcher) -> set[int]:
    """Return the keys of all skills of an index."""
    if not searcher.num_docs:
        return set()
    hits = searcher.search(tantivy.Query.all_query(), searcher.num_docs, count=False).hits
    return set(cast("list[int]", searcher.fast_field_values(KEY, [address for _, address in hits])))


def damaged_files(folder: Path) -> Iterator[str]:
    """Yield which files of an index differ from their checksums.

    tantivy itself compares no checksums when it opens an index, and panics in the middle of damaged data.
    """
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        names = {each["segment_id"].replace("-", "") for each in meta["segments"]}
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError) as error:
        yield f"{META} cannot be read ({error})"
        return
    for path in sorted(folder.iterdir()):
        if path.stem in names and path.suffix != ".del":
            try:
                with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
                    # behind the data stand a note with their checksum, its size, and a number
                    size = int.from_bytes(data[-8:-4], "little")
                    note = json.loads(data[-8 - size : -8])
                    with memoryview(data) as view, view[: -8 - size] as content:
                        if zlib.crc32(content) != note["crc"]:
                            yield f"the checksum of {path.name} differs"
            except FileNotFoundError:
                continue  # another process has merged it
            except (OSError, ValueError, KeyError, TypeError):
                yield f"{path.name} is cut off"


def _document(key: int, fields: Sequence[Sequence[str]]) -> tantivy.Document:
    document = tantivy.Document()
    document.add_unsigned(KEY, key)
    document.add_bytes(COUNTS, pack_counts(fields))
    for name, terms in zip(FIELDS, fields, strict=True):
        if name in SEARCHED:
            document.add_text(name, " ".join(terms))
    return document


@contextmanager
def _faults(folder: Path | None) -> Iterator[None]:
    """Raise what tantivy raises as an error that names the index."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"The words of skills cannot be stored in {folder}: {error}.") from error
    except BaseException as error:
        if not isinstance(error, ValueError) and not is_panic(error):
            raise
        raise DamagedIndexError(f"The words of skills in {folder} cannot be used: {error}.") from error


_SCHEMA = _schema()
