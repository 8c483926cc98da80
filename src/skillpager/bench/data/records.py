"""The records of IntraSkill-Bench, one JSON object a line, linked by ids; and how they are read and written.

    SkillRecord ──< QueryRecord ──< SelectionRecord (one for each method) ──< JudgmentRecord
         └──< NodeRecord

Field names are those of the files; a field that a reader does not know is ignored.
"""

import gzip
import hashlib
import json
import logging
import lzma
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeVar

from skillpager.errors import BenchError, require_extra
from skillpager.files import write_file
from skillpager.parsing.skill import find_body
from skillpager.types import NodeType

require_extra("pydantic", extra="bench", purpose="The benchmark")
# behind the check, which says what to install
from pydantic import TypeAdapter, ValidationError  # noqa: E402

logger = logging.getLogger(__name__)

Value = TypeVar("Value")
AnyRecord = TypeVar("AnyRecord", bound="Record")
LineRange = tuple[int, int]
# first and last line, 1-based and inclusive, and type
TypedRange = tuple[int, int, NodeType]

JSONL = ".jsonl"
TAIL_BLOCK = 65_536
# larger than any skill, of which JSON may write a character as six; a longer line is not read
MAX_LINE_BYTES = 100_000_000
_OPENERS: Mapping[str, Any] = {".gz": gzip.open, ".xz": lzma.open}


class Record:
    """A frozen dataclass that is one line of a JSONL file."""

    __slots__ = ()

    def to_json(self) -> str:
        """Return the record on one line, keys in the order of the fields."""
        return _adapter(type(self)).dump_json(self).decode()

    @classmethod
    def from_json(cls, line: bytes | str) -> Self:
        """Return the record of a line; unknown fields are ignored."""
        try:
            record: Self = _adapter(cls).validate_json(line)
        except ValidationError as error:
            raise ValueError(first_fault(error)) from None
        return record


def first_fault(error: ValidationError) -> str:
    """Return the first difference that a validation found, on one line: place and reason."""
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def read_json(path: Path, kind: type[Value]) -> Value:
    """Return the value of a JSON file."""
    try:
        return TypeAdapter(kind).validate_json(path.read_bytes())
    except OSError as error:
        raise BenchError(f"{path} cannot be read ({error.strerror}): restore it.") from error
    except ValidationError as error:
        raise BenchError(f"{path} is damaged ({first_fault(error)}): restore it.") from error


def read_records(path: Path, kind: type[AnyRecord]) -> Iterator[AnyRecord]:
    """Yield the records of a JSONL file, also compressed (`.gz`, `.xz`); none when it is missing.

    A last line that was cut short, as a killed run leaves it, is dropped, with a warning.
    """
    if not path.exists():
        return
    number = 0
    try:
        with _OPENERS.get(path.suffix, open)(path, "rb") as lines:
            while line := lines.readline(MAX_LINE_BYTES):
                number += 1
                if not line.strip():
                    continue
                try:
                    yield kind.from_json(line)
                except ValueError as error:
                    if not line.endswith(b"\n") and path.suffix not in _OPENERS:
                        logger.warning("%s:%d was cut short and is dropped", path, number)
                        return
                    raise BenchError(
                        f"{path}:{number} is no {kind.__name__} ({error}): correct or remove the line."
                    ) from error
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise BenchError(f"{path}:{number + 1} is damaged ({error}): restore the file.") from error


def append_records(path: Path, records: Iterable[Record]) -> None:
    """Append records to a JSONL file, created if need be; a cut last line is removed first.

    A last line that lacks only its line break stays: readers count it as done.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        size, tail = file.tell(), b""
        # from the end, ever more, to the last line break
        while len(tail) < size and b"\n" not in tail:
            file.seek(-min(size, 2 * len(tail) + TAIL_BLOCK), os.SEEK_END)
            tail = file.read()
        if last_line := tail.rpartition(b"\n")[2]:
            try:
                json.loads(last_line)
                file.write(b"\n")
            except ValueError:
                file.truncate(size - len(last_line))
        file.write(to_jsonl(records))


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write a whole JSONL file, atomically."""
    write_file(path, to_jsonl(records))


def to_jsonl(records: Iterable[Record]) -> bytes:
    """Return the content of the JSONL file that holds the records."""
    return "".join(f"{record.to_json()}\n" for record in records).encode()


def expand(ranges: Iterable[LineRange]) -> set[int]:
    """Return the lines of ranges."""
    return {line for first, last in ranges for line in range(first, last + 1)}


def words_sha256(text: str) -> str:
    """Return the SHA-256 of the words of a document, hexadecimal: without front matter and white space.

    Copies that differ in line breaks, a final line or their front matter have the same.
    """
    return hashlib.sha256(" ".join(text[find_body(text) :].split()).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class SkillRecord(Record):
    """A skill of the benchmark, with its text."""

    id: str
    name: str
    description: str
    # path and text of each Markdown file, the entry file first; front matter included
    files: tuple[tuple[str, str], ...]
    subset: str = ""  # part of the benchmark, such as `gt`, `pool`, `dev`
    namespace: str = ""  # subject area, where the source has one
    # provenance: data set, repository, commit, path, license, sha256 …
    source: Mapping[str, str] = field(default_factory=dict)
    # node types by line range of the entry file, from people or annotators
    types: tuple[TypedRange, ...] = ()
    types_second: tuple[TypedRange, ...] = ()  # those of a second annotator

    @property
    def text(self) -> str:
        """Its files, one behind the other: annotations count the lines of this."""
        return "\n".join(text for _, text in self.files)

    @property
    def text_sha256(self) -> str:
        """SHA-256 of the entry file, hexadecimal: by it a document is known wherever it comes from."""
        return hashlib.sha256(self.files[0][1].encode()).hexdigest()

    @property
    def digests(self) -> tuple[str, str]:
        """SHA-256 of the entry file and of its words: by either it is known as learned from."""
        return self.text_sha256, words_sha256(self.files[0][1])


@dataclass(frozen=True, slots=True)
class QueryRecord(Record):
    """A query about one skill."""

    id: str
    skill: str
    query: str
    origin: str  # who wrote it: `annotator`, `llm:<model>#<prompt digest>`, `people` …
    difficulty: str = ""  # `easy`, `medium`, `hard`, or empty
    angle: str = ""  # the part or use of the skill that it aims at, or empty
    # lines of the skill's files, one behind the other, that the query cannot do without; 1-based and
    # inclusive
    critical: tuple[LineRange, ...] = ()
    supporting: tuple[LineRange, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeRecord(Record):
    """A node of a skill, as the parser made it."""

    skill: str
    id: str
    type: NodeType
    confidence: float  # the classifier's, 0 to 1
    file: str
    start_line: int  # first line in `file`, 1-based
    end_line: int  # last line, inclusive
    start: int  # offset of its first character in the file
    end: int  # offset after its last character
    tokens: int
    edges: int = 0  # of reference or condition, to or from it


@dataclass(frozen=True, slots=True)
class SelectionRecord(Record):
    """The choice of one method for one query."""

    query: str
    skill: str
    method: str  # label, such as `mmr` or `mmr@lambda=0.9`
    nodes: tuple[str, ...]  # ids of the nodes that the context shows, in document order
    picks: tuple[str, ...]  # ids of the nodes that were picked, in the order of picking
    types: Mapping[str, int]  # number of shown nodes by type
    pool_nodes: int  # nodes of the skill, or chunks for a chunk method
    tokens: int
    full_tokens: int  # tokens of the skill without front matter
    node_tokens: int  # tokens of the shown nodes alone
    # tokens of all typed nodes of the skill, for chunk methods too: the paper's full document
    pool_tokens: int
    seconds: float  # time of selection and rendering, without query embedding
    context: str | None  # the text an agent would be given; None where a run keeps no texts
    context_sha256: str


@dataclass(frozen=True, slots=True)
class JudgmentRecord(Record):
    """A judge's verdict on one selection."""

    query: str
    skill: str
    method: str
    judge: str  # id: `evidence`, `llm:<endpoint>/<model>#<prompt digest>`, `people:<name>` …
    sufficient: bool
    votes: tuple[bool, ...]  # single votes, in order; one for a deterministic judge
    coverage: float | None  # share of the evidence that the context holds, 0 to 1; evidence judge only
    reason: str
    context_sha256: str

    @property
    def pattern(self) -> str:
        """The vote pattern, larger side first, such as `3-0` or `2-1`."""
        agreeing = sum(vote == self.sufficient for vote in self.votes)
        return f"{agreeing}-{len(self.votes) - agreeing}"
