"""The records of IntraSkill-Bench, one JSON object a line, linked by ids.

    SkillRecord ──< QueryRecord ──< SelectionRecord (one for each method) ──< JudgmentRecord
         ├──< NodeRecord
         └─── IndexRecord

Field names are those of the files; fields are only ever added.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from skillpager.errors import require_extra

require_extra("pydantic", extra="bench", purpose="The benchmark")
# behind the check, which says what to install
from pydantic import TypeAdapter, ValidationError  # noqa: E402

LineRange = tuple[int, int]


class Record:
    """A frozen dataclass that is one line of a JSONL file."""

    __slots__ = ()

    def to_json(self) -> str:
        """Return the record on one line, keys in the order of the fields."""
        return _adapter(type(self)).dump_json(self).decode()

    @classmethod
    def from_json(cls, line: bytes | str) -> Self:
        """Return the record of a line; unknown fields are ignored.

        Raises:
            ValueError: The line is not a JSON object, or a field is missing or of another type.
        """
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


_ADAPTERS: dict[type[Record], TypeAdapter[Any]] = {}


def _adapter(kind: type[Record]) -> TypeAdapter[Any]:
    """Return the reader and writer of a kind of record, created on first use."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


@dataclass(frozen=True, slots=True)
class SkillRecord(Record):
    """A skill of the benchmark, with its text.

    Attributes:
        files: Path and text of each Markdown file, the entry file first; front matter included.
        subset: Part of the benchmark, such as `gt`, `pool`, `dev`.
        namespace: Subject area, where the source has one.
        source: Provenance: data set, repository, commit, path, license, sha256 …
        types: Node types by line range of the entry file, from people or annotators.
        types_second: Those of a second annotator.
    """

    id: str
    name: str
    description: str
    files: tuple[tuple[str, str], ...]
    subset: str = ""
    namespace: str = ""
    source: Mapping[str, str] = field(default_factory=dict)
    types: tuple[tuple[int, int, str], ...] = ()
    types_second: tuple[tuple[int, int, str], ...] = ()

    @property
    def text(self) -> str:
        """The entry file."""
        return self.files[0][1]

    @property
    def text_sha256(self) -> str:
        """SHA-256 of the entry file, hexadecimal: by it a document is known wherever it comes from."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def sha256(self) -> str:
        """SHA-256 over paths and texts, hexadecimal."""
        return hashlib.sha256(json.dumps(self.files).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class QueryRecord(Record):
    """A query about one skill.

    Attributes:
        origin: Who wrote it: `annotator`, `llm:<model>#<prompt digest>`, `evals`, `tasks` …
        difficulty: `easy`, `medium`, `hard`, or empty.
        angle: The part or use of the skill that it aims at, or empty.
        critical: Lines of the entry file, 1-based and inclusive, that the query cannot do without.
        supporting: Lines that help.
        expected: Description of a good answer, where the source has one.
    """

    id: str
    skill: str
    query: str
    origin: str
    difficulty: str = ""
    angle: str = ""
    critical: tuple[LineRange, ...] = ()
    supporting: tuple[LineRange, ...] = ()
    expected: str = ""


@dataclass(frozen=True, slots=True)
class NodeRecord(Record):
    """A node of a skill, as the parser made it.

    Attributes:
        confidence: The classifier's, 0 to 1.
        start_line: First line in `file`, 1-based.
        end_line: Last line, inclusive.
        start: Offset of its first character in the file.
        end: Offset after its last character.
    """

    skill: str
    id: str
    type: str
    confidence: float
    file: str
    start_line: int
    end_line: int
    start: int
    end: int
    tokens: int


@dataclass(frozen=True, slots=True)
class IndexRecord(Record):
    """What the offline stage made of a skill, apart from its nodes.

    Attributes:
        seconds: Time of parsing, embedding, typing and linking; None where the index was stored before.
    """

    skill: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class SelectionRecord(Record):
    """The choice of one method for one query.

    Attributes:
        method: Label, such as `mmr` or `mmr@lambda=0.9`.
        nodes: Ids of the nodes that the context shows, in document order.
        picks: Ids of the nodes that were picked, in the order of picking.
        types: Number of shown nodes by type.
        pool_nodes: Nodes of the skill, or chunks for a chunk method.
        full_tokens: Tokens of the skill without front matter.
        node_tokens: Tokens of the shown nodes alone.
        pool_tokens: Tokens of all typed nodes of the skill, for chunk methods too: the paper's full document.
        seconds: Time of selection and rendering, without query embedding.
        context: The text an agent would be given; None where a run keeps no texts.
    """

    query: str
    skill: str
    method: str
    nodes: tuple[str, ...]
    picks: tuple[str, ...]
    types: Mapping[str, int]
    pool_nodes: int
    tokens: int
    full_tokens: int
    node_tokens: int
    pool_tokens: int
    seconds: float
    context: str | None
    context_sha256: str


@dataclass(frozen=True, slots=True)
class JudgmentRecord(Record):
    """A judge's verdict on one selection.

    Attributes:
        judge: Id: `evidence`, `llm:<endpoint>/<model>#<prompt digest>`, `people:<name>` …
        votes: Single votes, in order; one for a deterministic judge.
        coverage: Share of the evidence that the context holds, 0 to 1; evidence judge only.
        reason: May be empty.
    """

    query: str
    skill: str
    method: str
    judge: str
    sufficient: bool
    votes: tuple[bool, ...]
    coverage: float | None
    reason: str
    context_sha256: str

    @property
    def pattern(self) -> str:
        """The vote pattern, larger side first, such as `3-0` or `2-1`."""
        agreeing = sum(vote == self.sufficient for vote in self.votes)
        return f"{agreeing}-{len(self.votes) - agreeing}"
