"""The project's own annotations, which come with the package; the documents do not: `fetch` restores them."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from importlib.resources import files
from typing import Literal

from skillpager.bench.data.evidence import AnnotatedQuery, Annotation, Document, Provenance, TypedRange
from skillpager.bench.data.records import Record

SUFFIX = ".jsonl"


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
        """What was annotated."""
        return Annotation(self.skill, self.types, self.types_second, self.queries)

    @property
    def provenance(self) -> Provenance:
        """Where the document comes from."""
        return Provenance(self.skill, self.repo, self.commit, self.path, self.sha256, self.license)


def read_published(split: Literal["train", "dev"]) -> tuple[Published, ...]:
    """Return the published annotations of a split, sorted by id."""
    text = files("skillpager.bench").joinpath("annotations", f"{split}{SUFFIX}").read_text(encoding="utf-8")
    return tuple(Published.from_json(line) for line in text.splitlines())


def without_text(documents: Iterator[Document]) -> Iterator[Published]:
    """Yield what may be published of annotated documents: everything but their text."""
    for document in documents:
        annotation, origin = document.annotation, document.provenance
        described = {
            field.name: getattr(origin, field.name) for field in fields(origin) if field.name != "id"
        }
        yield Published(
            annotation.skill,
            types=annotation.types,
            types_second=annotation.types_second,
            queries=annotation.queries,
            **described,
        )
