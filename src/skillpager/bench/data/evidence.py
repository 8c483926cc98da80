"""Evidence data: annotated skill documents in a folder; the format is `docs/evidence-format.md`.

The project's own annotations come with the package, without the documents: `fetch` restores those.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from skillpager.bench.data.records import LineRange, QueryRecord, Record, SkillRecord, first_fault
from skillpager.errors import BenchError, SkillError
from skillpager.parsing.markdown import LINE_END
from skillpager.parsing.skill import ENTRY_FILE, skill_from_files
from skillpager.types import NodeType

DOCUMENT, ANNOTATION, MANIFEST = ".md", ".ann.json", "manifest.json"
ANNOTATOR = "annotator"
SUFFIX = ".jsonl"

TypedRange = tuple[int, int, NodeType]


@dataclass(frozen=True, slots=True)
class AnnotatedQuery:
    """A query with its evidence, as an annotator wrote it; fields as in `QueryRecord`."""

    id: str
    query: str
    difficulty: str = ""
    angle: str = ""
    critical: tuple[LineRange, ...] = ()
    supporting: tuple[LineRange, ...] = ()


@dataclass(frozen=True, slots=True)
class Annotation(Record):
    """The content of an `.ann.json` file: the annotations of one document.

    Attributes:
        skill: Id of the document, the name of its file without `.md`.
        types: Node types by line range.
        types_second: Those of a second annotator.
        queries: Queries with their evidence.
    """

    skill: str
    types: tuple[TypedRange, ...] = ()
    types_second: tuple[TypedRange, ...] = ()
    queries: tuple[AnnotatedQuery, ...] = ()


@dataclass(frozen=True, slots=True)
class Provenance(Record):
    """Where a document comes from: an entry of `manifest.json`; empty where it is not known.

    Attributes:
        id: Id of the document.
        repo: Owner and name on GitHub.
        commit: Commit, hexadecimal.
        path: Path in the repository.
        sha256: SHA-256 of the file's bytes, hexadecimal.
        license: SPDX identifier.
    """

    id: str
    repo: str = ""
    commit: str = ""
    path: str = ""
    sha256: str = ""
    license: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """One annotated document.

    Attributes:
        annotation: Its annotations.
        provenance: Where it comes from; its `sha256` is that of the text.
        text: The file, to the byte.
    """

    annotation: Annotation
    provenance: Provenance
    text: str


@dataclass(frozen=True, slots=True)
class Published(Record):
    """The annotations of one document, and where the document is: a line of `annotations/<split>.jsonl`.

    Fields are those of `Annotation` and `Provenance`.
    """

    skill: str
    repo: str
    commit: str
    path: str
    sha256: str
    license: str
    types: tuple[TypedRange, ...]
    types_second: tuple[TypedRange, ...]
    queries: tuple[AnnotatedQuery, ...]

    @property
    def annotation(self) -> Annotation:
        """The annotations."""
        return Annotation(self.skill, self.types, self.types_second, self.queries)

    @property
    def provenance(self) -> Provenance:
        """Where the document comes from."""
        return Provenance(self.skill, self.repo, self.commit, self.path, self.sha256, self.license)


def read_published(split: Literal["train", "dev"]) -> tuple[Published, ...]:
    """Return the published annotations of a split, sorted by id."""
    text = files("skillpager.bench").joinpath("annotations", f"{split}{SUFFIX}").read_text(encoding="utf-8")
    return tuple(Published.from_json(line) for line in text.splitlines())


def without_text(documents: Iterable[Document]) -> Iterator[Published]:
    """Yield annotated documents as they may be published: without their text."""
    for document in documents:
        annotation, origin = document.annotation, document.provenance
        place = {field.name: getattr(origin, field.name) for field in fields(origin) if field.name != "id"}
        yield Published(
            annotation.skill,
            types=annotation.types,
            types_second=annotation.types_second,
            queries=annotation.queries,
            **place,
        )


def read_evidence(folder: Path, *, subset: str = "") -> tuple[list[SkillRecord], list[QueryRecord]]:
    """Return the skills and queries of a folder of evidence data, in the order of file names.

    Args:
        folder: Holds `<id>.md` with `<id>.ann.json`, and `manifest.json` where provenance is known.
        subset: Name for this part of the benchmark.

    Raises:
        BenchError: A file is missing or damaged, a line range is not in its document, an id is there
            twice, or a document is not the one that the manifest names.
    """
    skills: list[SkillRecord] = []
    queries: list[QueryRecord] = []
    for document in read_documents(folder):
        skills.append(_skill(document, subset))
        name = document.annotation.skill
        queries += [
            QueryRecord(skill=name, origin=ANNOTATOR, **asdict(query))
            for query in document.annotation.queries
        ]
    return skills, queries


def read_documents(folder: Path) -> Iterator[Document]:
    """Yield the annotated documents of a folder, in the order of file names.

    Raises:
        BenchError: As `read_evidence`.
    """
    found = sorted(folder.glob(f"*{ANNOTATION}"))
    if not found:
        raise BenchError(
            f"{folder} holds no evidence data (*{ANNOTATION}): `skillpager bench data fetch` restores the "
            "documents of the published annotations."
        )
    known = _read_manifest(folder / MANIFEST)
    owners: dict[str, Path] = {}
    for file in found:
        document = _read_document(file, known)
        for name, times in Counter(query.id for query in document.annotation.queries).items():
            owner = owners.setdefault(name, file)
            if owner != file or times > 1:
                raise BenchError(f"{file}: the query id {name!r} is there twice, first in {owner.name}.")
        yield document


def _read_document(file: Path, known: dict[str, Provenance]) -> Document:
    try:
        annotation = Annotation.from_json(file.read_bytes())
    except ValueError as error:
        raise BenchError(f"{file} is no annotation ({error}): see docs/evidence-format.md.") from error
    if annotation.skill + ANNOTATION != file.name:
        raise BenchError(
            f'{file} annotates "{annotation.skill}": its "skill" must be the name of the file, '
            f"{file.name.removesuffix(ANNOTATION)!r}."
        )
    path = file.with_name(annotation.skill + DOCUMENT)
    try:
        data = path.read_bytes()
        text = data.decode()
    except FileNotFoundError as error:
        raise BenchError(f"{file} annotates {path.name}, which is not there: restore it.") from error
    except UnicodeDecodeError as error:
        raise BenchError(f"{path} is not UTF-8 (offset {error.start}): restore the file.") from error
    digest = hashlib.sha256(data).hexdigest()
    provenance = known.get(annotation.skill, Provenance(annotation.skill, sha256=digest))
    if provenance.sha256 != digest:
        raise BenchError(
            f"{path} has the SHA-256 {digest}, but {MANIFEST} names {provenance.sha256}: restore the file "
            "that was annotated."
        )
    _check_ranges(file, annotation, lines=len(LINE_END.findall(text)) + 1)
    return Document(annotation, provenance, text)


def _read_manifest(path: Path) -> dict[str, Provenance]:
    if not path.exists():
        return {}
    try:
        entries = TypeAdapter(tuple[Provenance, ...]).validate_json(path.read_bytes())
    except ValidationError as error:
        raise BenchError(
            f"{path} is no manifest ({first_fault(error)}): see docs/evidence-format.md."
        ) from error
    known: dict[str, Provenance] = {}
    for entry in entries:
        if known.setdefault(entry.id, entry) != entry:
            raise BenchError(f"{path}: the id {entry.id!r} is there twice, with different documents.")
    return known


def _check_ranges(file: Path, annotation: Annotation, *, lines: int) -> None:
    """Make sure that every line range lies in the document."""
    typed = (("types", annotation.types), ("types_second", annotation.types_second))
    ranges = [(name, [entry[:2] for entry in entries]) for name, entries in typed]
    for query in annotation.queries:
        ranges.append((f"query {query.id!r}, critical", list(query.critical)))
        ranges.append((f"query {query.id!r}, supporting", list(query.supporting)))
    for name, entries in ranges:
        for number, (first, last) in enumerate(entries):
            if not 1 <= first <= last <= lines:
                raise BenchError(
                    f"{file}: {name}[{number}] has the lines {first} to {last}, but "
                    f"{annotation.skill}{DOCUMENT} has the lines 1 to {lines}: lines are 1-based and "
                    "inclusive, front matter counted."
                )


def _skill(document: Document, subset: str) -> SkillRecord:
    annotation, origin = document.annotation, document.provenance
    named = ((PurePosixPath(origin.path).name or ENTRY_FILE, document.text),)
    try:
        skill = skill_from_files(named, name=annotation.skill)
    except SkillError as error:
        raise BenchError(f"{annotation.skill}{DOCUMENT} is no skill: {error}") from error
    return SkillRecord(
        id=annotation.skill,
        name=skill.name,
        description=skill.description,
        files=named,
        subset=subset,
        source={
            field: value
            for field in ("repo", "commit", "path", "license", "sha256")
            if (value := getattr(origin, field))
        },
        types=tuple((first, last, kind.value) for first, last, kind in annotation.types),
        types_second=tuple((first, last, kind.value) for first, last, kind in annotation.types_second),
    )
