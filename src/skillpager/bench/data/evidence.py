"""Evidence data: annotated skill documents in a folder; the format is `docs/measured.md`.

The package has the project's own annotations without the documents, which `fetch_documents` restores.
"""

import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import quote

from skillpager.bench.data.records import (
    JSONL,
    LineRange,
    QueryRecord,
    Record,
    SkillRecord,
    TypedRange,
    read_json,
)
from skillpager.errors import BenchError, SkillError, require_extra
from skillpager.files import ENTRY_FILE, write_file
from skillpager.library.discovery import Progress, no_progress
from skillpager.parsing.lines import LINE_END
from skillpager.parsing.skill import skill_from_files
from skillpager.settings import MAX_SKILL_BYTES

logger = logging.getLogger(__name__)

DOCUMENT, ANNOTATION, SHORT, MANIFEST = ".md", ".ann.json", ".short.json", "manifest.json"
# annotations of a skill of several files, in the folder beside it that has its name
FOLDER_ANNOTATION = ".mf.json"

PURPOSE = "`bench data fetch`"
GITHUB_RAW = "https://raw.githubusercontent.com"
# the servers of public repositories slow down those who ask for more at once
JOBS = 8
# seconds without a byte
TIMEOUT = 30.0
# after 1, 2 and 3 seconds
MAX_RETRIES = 3

Split = Literal["skillsbench", "test", "train", "train2", "dev"]
# what the shipped models learned from, and what nothing was trained, tuned or chosen on
TRAINING_SPLITS: tuple[Split, ...] = ("train", "dev", "train2")
REPORT_SPLITS: tuple[Split, ...] = ("skillsbench", "test")


@dataclass(frozen=True, slots=True)
class AnnotatedQuery:
    """A query with its evidence, as an annotator wrote it; fields as in `QueryRecord`.

    `style` of a short query of 2 to 12 words is keyword, question, command or symptom.
    """

    id: str
    query: str
    difficulty: str = ""
    angle: str = ""
    style: str = ""
    critical: tuple[LineRange, ...] = ()
    supporting: tuple[LineRange, ...] = ()


@dataclass(frozen=True, slots=True)
class Annotation(Record):
    """The annotations of one document: the content of an `.ann.json` or `.short.json` file.

    A line of `annotations/<split>.jsonl` also says where the document comes from (fields as in `Provenance`);
    in `short.jsonl` only `sha256` does.
    """

    skill: str  # name of the document's file without `.md`
    types: tuple[TypedRange, ...] = ()
    types_second: tuple[TypedRange, ...] = ()  # node types by a second annotator
    queries: tuple[AnnotatedQuery, ...] = ()
    # queries in the field of the document that it does not answer
    unanswered: tuple[AnnotatedQuery, ...] = ()
    missing: tuple[str, ...] = ()  # the same as plain texts
    repo: str = ""
    commit: str = ""
    path: str = ""
    sha256: str = ""
    license: str = ""


FileRange = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class FolderQuery:
    """A query about a skill of several files; each range names its file."""

    id: str
    kind: Literal["long", "short"]
    query: str
    critical: tuple[FileRange, ...]
    supporting: tuple[FileRange, ...] = ()
    difficulty: str = ""


@dataclass(frozen=True, slots=True)
class FolderAnnotation(Record):
    """The annotations of a skill of several files: the content of an `.mf.json` file."""

    skill: str
    queries: tuple[FolderQuery, ...]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Provenance(Record):
    """Where a document comes from: an entry of `manifest.json`; empty where it is not known."""

    id: str
    repo: str = ""  # owner and name on GitHub
    commit: str = ""
    path: str = ""
    sha256: str = ""  # SHA-256 of the file's bytes, hexadecimal
    license: str = ""  # SPDX identifier
    # a document that it is an edited copy of, and that models have learned from; nothing is reported on such
    # a copy
    near_copy_of: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """One annotated skill."""

    annotation: Annotation
    provenance: Provenance
    files: tuple[tuple[str, str], ...]  # path and text of each file, byte for byte, the entry file first
    short: Annotation | None = None

    @property
    def text(self) -> str:
        """Its files, one behind the other: annotations count the lines of this."""
        return "\n".join(text for _, text in self.files)


def read_published(split: Split | Literal["short"]) -> tuple[Annotation, ...]:
    """Return the published annotations of a split, sorted by id."""
    file = files("skillpager.bench").joinpath("annotations", f"{split}{JSONL}")
    return tuple(map(Annotation.from_json, file.read_text(encoding="utf-8").splitlines()))


def read_published_short() -> dict[str, Annotation]:
    """Return the published short queries, by the SHA-256 of the document."""
    return {short.sha256: short for short in read_published("short")}


def read_evidence(
    folder: Path, *, subset: str = "", short: bool = False
) -> tuple[list[SkillRecord], list[QueryRecord]]:
    """Return the skills and queries of a folder of evidence data, in the order of file names.

    The folder holds `<id>.md` with `<id>.ann.json`, or the folder `<id>` with `<id>.mf.json` for a skill of
    several files, and `manifest.json` where provenance is known; documents that it calls near copies of
    others (`near_copy_of`) are left out. With `short` the queries are the short ones, their style as `angle`;
    of skills of several files both kinds are read otherwise, with the kind as `angle`.
    """
    skills: list[SkillRecord] = []
    queries: list[QueryRecord] = []
    for document in read_documents(folder):
        note, origin = document.annotation, document.provenance
        if origin.near_copy_of:
            logger.warning("%s is left out: it is a near copy of %s", note.skill, origin.near_copy_of)
            continue
        try:
            skill = skill_from_files(document.files, name=note.skill)
        except SkillError as error:
            raise BenchError(f"{note.skill} of {folder} is no skill: {error}") from error
        places = ("repo", "commit", "path", "license", "sha256")
        skills.append(
            SkillRecord(
                id=note.skill,
                name=skill.name,
                description=skill.description,
                files=document.files,
                subset=subset,
                source={place: value for place in places if (value := getattr(origin, place))},
                types=note.types,
                types_second=note.types_second,
            )
        )
        asked = (document.short,) if short else (note, document.short if len(document.files) > 1 else None)
        for query in (query for part in asked if part for query in part.queries):
            fields = asdict(query)
            fields["angle"] = fields.pop("style") or query.angle
            queries.append(QueryRecord(skill=note.skill, origin="annotator", **fields))
    if short and not queries:
        raise BenchError(f"{folder} holds no short queries (*{SHORT}): see docs/measured.md.")
    return skills, queries


def read_documents(folder: Path) -> Iterator[Document]:
    """Yield the annotated documents of a folder, in the order of file names."""
    found = sorted([*folder.glob(f"*{ANNOTATION}"), *folder.glob(f"*{FOLDER_ANNOTATION}")])
    if not found:
        raise BenchError(
            f"{folder} holds no evidence data (*{ANNOTATION}): `skillpager bench data fetch` restores the "
            "documents of the published annotations."
        )
    manifest = folder / MANIFEST
    known: dict[str, Provenance] = {}
    for entry in read_json(manifest, tuple[Provenance, ...]) if manifest.exists() else ():
        if known.setdefault(entry.id, entry) != entry:
            raise BenchError(f"{manifest}: the id {entry.id!r} is there twice, with different documents.")
    owners: dict[str, Path] = {}
    for file in found:
        read = _read_folder if file.name.endswith(FOLDER_ANNOTATION) else _read_document
        document = read(file, known)
        for note in filter(None, (document.annotation, document.short)):
            for query in (*note.queries, *note.unanswered):
                if query.id in owners:
                    first = owners[query.id].name
                    raise BenchError(f"{file}: the query id {query.id!r} is there twice, first in {first}.")
                owners[query.id] = file
        yield document


def _read_document(file: Path, known: Mapping[str, Provenance]) -> Document:
    annotation = _read_annotation(file, ANNOTATION)
    short_file = file.with_name(annotation.skill + SHORT)
    short = _read_annotation(short_file, SHORT) if short_file.is_file() else None
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
    for place, note in ((file, annotation), (short_file, short)):
        if note:
            ranges: dict[str, Iterable[LineRange]] = {
                "types": [entry[:2] for entry in note.types],
                "types_second": [entry[:2] for entry in note.types_second],
            }
            for query in note.queries:
                ranges |= evidence_ranges(query)
            check_ranges(place, ranges, document=path.name, text=text)
    entry = PurePosixPath(provenance.path).name or ENTRY_FILE
    return Document(annotation, provenance, ((entry, text),), short)


def _read_folder(file: Path, known: Mapping[str, Provenance]) -> Document:
    """Return a skill of several files; ranges count the lines of all files, one behind the other."""
    note = read_json(file, FolderAnnotation)
    root = file.with_name(note.skill)
    paths = sorted(
        (path.relative_to(root).as_posix() for path in root.rglob(f"*{DOCUMENT}")),
        key=lambda path: (path != ENTRY_FILE, path),
    )
    try:
        files = tuple((path, (root / path).read_bytes().decode()) for path in paths)
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"{root}: a file cannot be read ({error}): restore it.") from error
    counts = {path: len(LINE_END.findall(text)) + 1 for path, text in files}
    first = dict(zip(counts, accumulate(counts.values(), initial=0), strict=False))

    def joined(query: FolderQuery, ranges: Iterable[FileRange]) -> tuple[LineRange, ...]:
        for path, start, end in ranges:
            if not 1 <= start <= end <= counts.get(path, 0):
                raise BenchError(
                    f"{file}: query {query.id!r} names the lines {start} to {end} of {path}, which has the "
                    f"lines 1 to {counts.get(path, 0)}."
                )
        return tuple((first[path] + start, first[path] + end) for path, start, end in ranges)

    queries: dict[str, list[AnnotatedQuery]] = {"long": [], "short": []}
    for query in note.queries:
        critical, supporting = joined(query, query.critical), joined(query, query.supporting)
        asked = AnnotatedQuery(query.id, query.query, query.difficulty, query.kind, "", critical, supporting)
        queries[query.kind].append(asked)
    long, short = (
        Annotation(note.skill, queries=tuple(queries[kind]), missing=note.missing)
        for kind in ("long", "short")
    )
    digest = hashlib.sha256(files[0][1].encode()).hexdigest()
    origin = replace(known.get(note.skill, Provenance(note.skill)), sha256=digest)
    return Document(long, origin, files, short)


def _read_annotation(file: Path, suffix: str) -> Annotation:
    note = read_json(file, Annotation)
    if note.skill + suffix != file.name:
        raise BenchError(
            f'{file} annotates "{note.skill}": its "skill" must be the name of the file, '
            f"{file.name.removesuffix(suffix)!r}."
        )
    return note


def evidence_ranges(query: AnnotatedQuery | QueryRecord) -> dict[str, Iterable[LineRange]]:
    """Return the evidence of a query, by the name that messages give it."""
    return {
        f"query {query.id!r}, critical": query.critical,
        f"query {query.id!r}, supporting": query.supporting,
    }


def check_ranges(file: Path, ranges: Mapping[str, Iterable[LineRange]], *, document: str, text: str) -> None:
    """Make sure that line ranges in `file`, each list under its name, are in the text of a document."""
    lines = len(LINE_END.findall(text)) + 1
    for name, entries in ranges.items():
        for number, (first, last) in enumerate(entries):
            if not 1 <= first <= last <= lines:
                raise BenchError(
                    f"{file}: {name}[{number}] has the lines {first} to {last}, but {document} has the lines "
                    f"1 to {lines}: lines are 1-based and inclusive, front matter included."
                )


def _find_documents(source: Path) -> dict[str, Path]:
    """Return the Markdown files below a folder by SHA-256."""
    if not source.is_dir():
        raise BenchError(f"{source} is not a folder: name one that holds the documents, such as a clone.")
    return {
        hashlib.sha256(path.read_bytes()).hexdigest(): path
        for path in source.rglob(f"*{DOCUMENT}")
        if path.is_file() and path.stat().st_size <= MAX_SKILL_BYTES
    }


def fetch_documents(
    entries: Sequence[Annotation], out: Path, *, source: Path | None = None, progress: Progress = no_progress
) -> dict[str, str]:
    """Write a folder of evidence data, documents included; return why documents are missing, by their ids.

    A document that is there already, and right, is not fetched again; one with another SHA-256 is not stored.
    `manifest.json` names all documents, missing ones too. With a folder as `source`, such as clones of the
    repositories, documents are found below it by their SHA-256, without a network. `progress` is called with
    the documents done or missing, and all documents.
    """
    found = None if source is None else _find_documents(source)
    pooch = require_extra("pooch", extra="bench", purpose=PURPOSE)
    requests = require_extra("requests", extra="bench", purpose=PURPOSE)
    # it reports each file on stderr
    pooch.get_logger().setLevel("CRITICAL")
    origins = [
        Provenance(each.skill, each.repo, each.commit, each.path, each.sha256, each.license)
        for each in entries
    ]
    lines = ",\n".join(f" {origin.to_json()}" for origin in origins)
    write_file(out / MANIFEST, f"[\n{lines}\n]\n")
    short = read_published_short()
    download = pooch.HTTPDownloader(timeout=TIMEOUT, headers={"User-Agent": "skillpager"})

    def restore(document: Annotation) -> str:
        """Write one document and its annotations; return why that is not possible, or an empty text."""
        place = f"{document.path} of {document.repo} at {document.commit}"
        name = document.skill + DOCUMENT
        url = "/".join([GITHUB_RAW, *map(quote, (document.repo, document.commit, document.path))])
        known = {name: f"sha256:{document.sha256}"}
        store = pooch.create(out, "", registry=known, urls={name: url}, retry_if_failed=MAX_RETRIES)
        try:
            if found is None:
                store.fetch(name, downloader=download)
            elif document.sha256 not in found:
                return f"{source} has no file with the SHA-256 {document.sha256} ({place})."
            else:
                write_file(out / name, found[document.sha256].read_bytes())
        except requests.HTTPError as error:
            return f"{place} cannot be fetched: {error}."
        except requests.RequestException as error:
            raise BenchError(
                f"{place} cannot be fetched: {error}. Try again later: documents that are there stay."
            ) from error
        except ValueError:
            return f"{place} is not the document that was annotated: its SHA-256 is not {document.sha256}."
        write_file(out / (document.skill + ANNOTATION), document.to_json() + "\n")
        if document.sha256 in short:
            write_file(out / (document.skill + SHORT), short[document.sha256].to_json() + "\n")
        return ""

    missing: dict[str, str] = {}
    pool = ThreadPoolExecutor(JOBS)
    try:
        outcomes = zip(entries, pool.map(restore, entries), strict=True)
        for number, (document, problem) in enumerate(outcomes, 1):
            if problem:
                missing[document.skill] = problem
            progress(number, len(entries))
    finally:
        # an interruption does not wait for servers that are slow
        pool.shutdown(wait=False, cancel_futures=True)
    return missing
