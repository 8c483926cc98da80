"""The words of a library's skills, their index by tantivy, and what keeps it in step with the skills.

Scores of the fields of a skill are summed, never their texts mixed: a word in a name is rarer, and says more,
than the same word in a body.
"""

import hashlib
import json
import logging
import os
import re
import shutil
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import cast

import numpy as np
import tantivy
from numpy.typing import NDArray

from skillpager.errors import SkillError, StoreError, is_panic
from skillpager.files import make_private_folder
from skillpager.library.discovery import FoundSkill, Progress, no_progress, skill_faults
from skillpager.strategies.navigator.lexical import terms_of

logger = logging.getLogger(__name__)

HashArray = NDArray[np.uint32]

# the opening of a body tells what a skill does; phrases are pairs of neighbouring terms of description,
# headings and opening
SEARCHED = ("name", "description", "body", "opening", "phrases")
# counted only: what a description says that a skill is not for; its words count against it
NEGATED = "negated"
FIELDS = (*SEARCHED, NEGATED)
OPENING_CHARS, OPENING_TERMS = 3_000, 250
MOST_COUNTED = 255  # occurrences of a term in a text: BM25 is flat long before
# no term holds it, and the index splits texts at spaces
PAIR_JOINT = "+"

KEY, COUNTS = "key", "counts"
# a field with one term in every skill: how many hold it tells whether skills that were deleted still count
ALL = "all"
WRITER_BYTES = 32_000_000
# skills that are committed together; what is done is not lost when the process ends
BATCH = 1_000
# seconds to wait for a process that writes: half an hour is enough for 100,000 skills
BUSY_SECONDS = 1800.0

Terms = tuple[list[str], ...]
# yields the key and the terms of each field of skills, of those that can still be read
Read = Callable[[Sequence[int]], Iterable[tuple[int, Terms]]]

# in a description, up to the end of the sentence
_NEGATED = re.compile(
    r"\b(?:(?:do|does|should|must|can) ?n[o']t (?:be )?(?:use|used|trigger|invoke|activate|apply|load)\b"
    r"|(?:don['’]t|never|avoid|not) (?:to be )?(?:use|used|using|trigger|triggering|invoke|activate)\b"
    r"|not (?:intended |meant |suitable |designed |needed |required |applicable )?(?:for|when|if)\b"
    r"|skip (?:this |it |the skill )*(?:for|when|if)\b)"
    r".*?(?:[.!?](?=\s|$)|$)",
    re.IGNORECASE | re.MULTILINE,
)
_CODE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+)$", re.MULTILINE)


def field_terms(name: str, description: str, body: str) -> tuple[list[str], ...]:
    """Return the terms of the fields of a skill, repetitions included, in the order of `FIELDS`."""
    prose = _CODE.sub(" ", body)
    described = terms_of(_NEGATED.sub(" ", description))
    opening = terms_of(prose[:OPENING_CHARS])[:OPENING_TERMS]
    headings = terms_of("\n".join(_HEADING.findall(prose)))
    return (
        terms_of(name),
        described,
        terms_of(body),
        opening,
        [pair for terms in (described, headings, opening) for pair in pairs_of(terms)],
        terms_of("\n".join(_NEGATED.findall(description))),
    )


def pairs_of(terms: Sequence[str]) -> list[str]:
    """Return the pairs of neighbouring terms."""
    return [f"{first}{PAIR_JOINT}{second}" for first, second in pairwise(terms)]


def hash_in(field: str, term: str) -> int:
    """Return the 32-bit number that stands for a term in a field."""
    # the start values differ in all bytes: no other first letter makes up for another field
    start = (FIELDS.index(field) + 1) * 0x9E3779B1 & 0xFFFFFFFF
    return zlib.crc32(term.encode("utf-8", "surrogatepass"), start)


def pack_counts(fields: Sequence[Sequence[str]]) -> bytes:
    """Return the number of terms of each field, the hashes of distinct terms, and how often each stands."""
    hashes = [hash_in(field, term) for field, terms in zip(FIELDS, fields, strict=True) for term in terms]
    distinct, counts = np.unique(np.array(hashes, np.uint32), return_counts=True)
    lengths = np.array([len(terms) for terms in fields], np.uint32)
    capped = np.minimum(counts, MOST_COUNTED).astype(np.uint8)
    return b"".join([lengths.tobytes(), distinct.tobytes(), capped.tobytes()])


def read_counts(packed: Sequence[bytes], wanted: HashArray) -> tuple[NDArray[np.uint8], HashArray]:
    """Return `(skills, wanted)`, counts of hashed terms, and `(skills, FIELDS)`, lengths of fields."""
    found = np.zeros((len(packed), len(wanted)), np.uint8)
    lengths = np.zeros((len(packed), len(FIELDS)), np.uint32)
    order = np.argsort(wanted)
    ascending, head = wanted[order], lengths.itemsize * len(FIELDS)
    for row, data in enumerate(packed):
        size = (len(data) - head) // (wanted.itemsize + found.itemsize)
        lengths[row] = np.frombuffer(data, np.uint32, len(FIELDS))
        if size:
            hashes = np.frombuffer(data, np.uint32, size, head)
            counts = np.frombuffer(data, np.uint8, size, head + hashes.nbytes)
            places = np.searchsorted(hashes, ascending).clip(max=size - 1)
            found[row, order] = np.where(hashes[places] == ascending, counts[places], 0)
    return found, lengths


class WordIndexError(StoreError):
    """An index that cannot be used: damaged, or in a folder that cannot be read or written."""


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field(KEY, indexed=True, fast=True)
    for field in (*SEARCHED, ALL):
        builder.add_text_field(field, tokenizer_name="whitespace", index_option="freq")
    builder.add_bytes_field(COUNTS, stored=True)
    return builder.build()


_SCHEMA = _schema()


class WordIndex:
    """The words of a library's skills in a folder, or in memory, for any number of threads and processes.

    One process writes at a time, the others wait for it; readers see the last commit.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._lock = threading.RLock()
        self._index: tantivy.Index | None = None
        self._skills: Sequence[FoundSkill] = ()
        self._search: WordSearch | None = None
        self._is_away = False  # a store, of which there is at most one

    def update(self, wanted: Collection[int], read: Read) -> None:
        """Bring the index in step with a library: wanted keys that it lacks are read, others deleted.

        A process that writes for too long is a `StoreError`, any other fault a `WordIndexError`.
        """
        with self._lock, index_faults(self.folder):
            index = self._open()
            index.reload()
            if _keys_of(index) == set(wanted):
                return
            writer = self._writer(index)
            try:
                index.reload()  # another process may have done it meanwhile
                held = _keys_of(index)
                for key in held - set(wanted):
                    writer.delete_documents_by_query(tantivy.Query.term_query(_SCHEMA, KEY, key))
                missing = [key for key in wanted if key not in held]
                for number, (key, terms) in enumerate(read(missing), 1):
                    texts = dict(zip(SEARCHED, map(" ".join, terms), strict=False))
                    form = {KEY: key, COUNTS: pack_counts(terms), ALL: ALL, **texts}
                    writer.add_document(tantivy.Document.from_dict(form, _SCHEMA))
                    if number % BATCH == 0:
                        writer.commit()
                writer.commit()
                writer.wait_merging_threads()
            finally:
                del writer  # it holds the lock
            index.reload()

    def search(self, keys: Iterable[int]) -> "WordSearch":
        """Return the index as it is now, for a library whose skills have these keys."""
        with self._lock, index_faults(self.folder):
            return WordSearch(self._open().searcher(), keys)

    def search_skills(self, skills: Sequence[FoundSkill], progress: Progress = no_progress) -> "WordSearch":
        """Return the words of all skills that can be read; while a store is away, of those that were before.

        An index that cannot be used is deleted, and the words stay in memory.
        """
        with self._lock:
            if self._search is None or skills != self._skills:
                try:
                    self._search = self._updated(skills, progress)
                except WordIndexError as error:
                    logger.warning("%s They are read again, and stay in memory.", error)
                    if self.folder is not None:
                        shutil.rmtree(self.folder, ignore_errors=True)
                    self.folder = self._index = None
                    self._search = self._updated(skills, progress)
                # a store may be back the next time
                self._skills = () if self._is_away else skills
            progress(len(skills), len(skills))
            return self._search

    def _updated(self, skills: Sequence[FoundSkill], progress: Progress) -> "WordSearch":
        by_key = {key_of(skill): skill for skill in skills}
        self._is_away = False

        def read(keys: Sequence[int]) -> Iterator[tuple[int, Terms]]:
            for done, key in enumerate(keys, len(skills) - len(keys)):
                progress(done, len(skills))
                found = by_key[key]
                if self._is_away and found.published is not None:
                    continue  # each might wait for the store
                try:
                    with skill_faults(found.path):
                        file = found.read(scope="body").files[0]
                except (SkillError, StoreError) as error:
                    logger.warning("routing does not find %r: %s", found.name, error)
                    self._is_away |= isinstance(error, StoreError)
                    continue
                if file.digest == found.digest:  # else the next search finds what it is now
                    yield key, field_terms(found.name, found.description, file.text[file.body_start :])

        self.update(by_key.keys(), read)
        return self.search(by_key)

    def _open(self) -> tantivy.Index:
        if self._index is None:
            if self.folder is not None:
                make_private_folder(self.folder)
                os.utime(self.folder)  # it is in use
            index = tantivy.Index(_SCHEMA, None if self.folder is None else str(self.folder))
            index.config_reader("manual")
            self._index = index
        return self._index

    def _writer(self, index: tantivy.Index) -> tantivy.IndexWriter:
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return index.writer(WRITER_BYTES, 1)
            except ValueError as error:
                if "Lock" not in str(error):
                    raise
                if time.monotonic() > until:
                    raise StoreError(
                        f"Another process has written {self.folder} for {BUSY_SECONDS:.0f} s: "
                        "wait for it, or end it."
                    ) from error
            time.sleep(0.05)


class WordSearch:
    """The words of the skills with some keys, whose order decides between equally good ones, at one time."""

    def __init__(self, searcher: tantivy.Searcher, keys: Iterable[int]) -> None:
        self._searcher = searcher
        self._places = {key: place for place, key in enumerate(keys)}
        self.size = len(self._places)
        self._has_gone = searcher.doc_freq(ALL, ALL) > searcher.num_docs

    def holders(self, field: str, terms: Iterable[str]) -> NDArray[np.int64]:
        """Return `(t,)`: how many skills hold each term in a field."""
        if self._has_gone:
            asked = [tantivy.Query.term_query(_SCHEMA, field, term, "freq") for term in terms]
            # `count` is missing in the types of tantivy
            counts = [self._searcher.search(each, 1).count for each in asked]  # type: ignore[attr-defined]
            return np.array(counts, np.int64)
        return np.array([self._searcher.doc_freq(field, term) for term in terms], np.int64)

    def best(self, weighted: Iterable[tuple[str, str, float]], most: int) -> set[tuple[int, int]]:
        """Return the addresses of at most `most` skills with the greatest sums of weighted BM25 of terms."""
        query = tantivy.Query
        asked = [
            (tantivy.Occur.Should, query.boost_query(query.term_query(_SCHEMA, field, term, "freq"), weight))
            for field, term, weight in weighted
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


def _keys_of(index: tantivy.Index) -> set[int]:
    searcher = index.searcher()
    if not searcher.num_docs:
        return set()
    hits = searcher.search(tantivy.Query.all_query(), searcher.num_docs, count=False).hits
    return set(cast("list[int]", searcher.fast_field_values(KEY, [address for _, address in hits])))


def key_of(skill: FoundSkill) -> int:
    """Return the key of a skill: 64 bits of a hash of its name and of the digest of its SKILL.md."""
    content = json.dumps([skill.name, skill.digest]).encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


@contextmanager
def index_faults(folder: Path | None) -> Iterator[None]:
    """Raise what tantivy raises as an error that names the index."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, (OSError, ValueError)) and not is_panic(error):
            raise
        raise WordIndexError(f"The words of skills in {folder} cannot be used: {error}.") from error
