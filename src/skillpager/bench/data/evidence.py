"""Evidence data: annotated skill documents in a folder; the format is `docs/evidence-format.md`."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import TypeAdapter, ValidationError

from skillpager.bench.data.records import LineRange, QueryRecord, Record, SkillRecord
from skillpager.errors import BenchError, SkillError
from skillpager.parsing.markdown import LINE_END
from skillpager.parsing.skill import ENTRY_FILE, skill_from_files
from skillpager.types import NodeType

DOCUMENT, ANNOTATION, MANIFEST = ".md", ".ann.json", "manifest.json"
ANNOTATOR = "annotator"

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
    """What an `.ann.json` file says of one document.

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
        annotation: What was annotated.
        provenance: Where it comes from; its `sha256` is that of the text.
        text: The file, to the byte.
    """

    annotation: Annotation
    provenance: Provenance
    text: str


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
        queries += _queries(document.annotation)
    return skills, queries


def read_documents(folder: Path) -> Iterator[Document]:
    """Yield the annotated documents of a folder, in the order of file names.

    Raises:
        BenchError: As `read_evidence`.
    """
    files = sorted(folder.glob(f"*{ANNOTATION}"))
    if not files:
        raise BenchError(
            f"{folder} holds no evidence data (*{ANNOTATION}): `skillpager bench data fetch` restores the "
            "documents of the published annotations."
        )
    known = _read_manifest(folder / MANIFEST)
    owners: dict[str, Path] = {}
    for file in files:
        document = _read_document(file, known)
        for query in document.annotation.queries:
            owner = owners.setdefault(query.id, file)
            if owner != file or _repeats(query.id, document.annotation):
                raise BenchError(f"{file}: the query id {query.id!r} is there twice, first in {owner.name}.")
        yield document


def _repeats(identifier: str, annotation: Annotation) -> bool:
    return sum(query.id == identifier for query in annotation.queries) > 1


def _read_document(file: Path, known: Mapping[str, Provenance]) -> Document:
    annotation = _read_annotation(file)
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


def _read_annotation(file: Path) -> Annotation:
    try:
        annotation = Annotation.from_json(file.read_bytes())
    except ValueError as error:
        raise BenchError(f"{file} is no annotation ({error}): see docs/evidence-format.md.") from error
    if annotation.skill + ANNOTATION != file.name:
        raise BenchError(
            f'{file} annotates "{annotation.skill}": its "skill" must be the name of the file, '
            f"{file.name.removesuffix(ANNOTATION)!r}."
        )
    return annotation


def _read_manifest(path: Path) -> dict[str, Provenance]:
    if not path.exists():
        return {}
    try:
        entries = TypeAdapter(tuple[Provenance, ...]).validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise BenchError(
            f"{path} is no manifest ({place}: {first['msg']}): see docs/evidence-format.md."
        ) from error
    known: dict[str, Provenance] = {}
    for entry in entries:
        if known.setdefault(entry.id, entry) != entry:
            raise BenchError(f"{path}: the id {entry.id!r} is there twice, with different documents.")
    return known


def _check_ranges(file: Path, annotation: Annotation, *, lines: int) -> None:
    for place, (first, last) in _ranges(annotation):
        if not 1 <= first <= last <= lines:
            raise BenchError(
                f"{file}: {place} has the lines {first} to {last}, but {annotation.skill}{DOCUMENT} has the "
                f"lines 1 to {lines}: lines are 1-based and inclusive, front matter counted."
            )


def _ranges(annotation: Annotation) -> Iterator[tuple[str, LineRange]]:
    """Yield each line range with where it stands."""
    for name, typed in (("types", annotation.types), ("types_second", annotation.types_second)):
        for number, (first, last, _) in enumerate(typed):
            yield f"{name}[{number}]", (first, last)
    for query in annotation.queries:
        for name, evidence in (("critical", query.critical), ("supporting", query.supporting)):
            for number, lines in enumerate(evidence):
                yield f"query {query.id!r}, {name}[{number}]", lines


def _skill(document: Document, subset: str) -> SkillRecord:
    annotation, origin = document.annotation, document.provenance
    files = ((PurePosixPath(origin.path).name or ENTRY_FILE, document.text),)
    try:
        skill = skill_from_files(files, name=annotation.skill)
    except SkillError as error:
        raise BenchError(f"{annotation.skill}{DOCUMENT} is no skill: {error}") from error
    fields = ("repo", "commit", "path", "license", "sha256")
    return SkillRecord(
        id=annotation.skill,
        name=skill.name,
        description=skill.description,
        files=files,
        subset=subset,
        source={field: value for field in fields if (value := getattr(origin, field))},
        types=tuple((first, last, kind.value) for first, last, kind in annotation.types),
        types_second=tuple((first, last, kind.value) for first, last, kind in annotation.types_second),
    )


def _queries(annotation: Annotation) -> Iterator[QueryRecord]:
    for query in annotation.queries:
        yield QueryRecord(
            id=query.id,
            skill=annotation.skill,
            query=query.query,
            origin=ANNOTATOR,
            difficulty=query.difficulty,
            angle=query.angle,
            critical=query.critical,
            supporting=query.supporting,
        )
