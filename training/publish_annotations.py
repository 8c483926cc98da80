"""Write the annotations that ship with the package: everything except the documents' text.

    python training/publish_annotations.py DATA [--more MORE] [--splits SPLIT...] [--out ANNOTATIONS]

DATA holds a folder of annotated documents for each split: `train`, `train2`, `dev`, `skillsbench`, `test`
(docs/measured.md). Every document must be in its folder's manifest, or it could not be restored; those
that it calls near copies of others are not published. MORE holds further annotations of the same documents,
also in a folder for each split: `<id>.ann.json` with queries, and the second annotator's types for documents
that have none in DATA, and `<id>.short.json`. What is published of other splits stays.
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from skillpager.bench.data.evidence import (
    ANNOTATION,
    REPORT_SPLITS,
    SHORT,
    TRAINING_SPLITS,
    Annotation,
    Document,
    read_documents,
)
from skillpager.bench.data.records import JSONL, read_records, write_records

SPLITS = (*TRAINING_SPLITS, *REPORT_SPLITS)
OUT = Path(__file__).parent.parent / "src" / "skillpager" / "bench" / "annotations"


def with_more(documents: Iterator[Document], folder: Path) -> Iterator[Document]:
    """Yield the documents with the further annotations of a folder."""
    for document in documents:
        path = folder / f"{document.annotation.skill}{ANNOTATION}"
        if path.is_file():
            more = Annotation.from_json(path.read_text(encoding="utf-8"))
            own = document.annotation
            merged = replace(
                own, queries=own.queries + more.queries, types_second=own.types_second or more.types_second
            )
            document = replace(document, annotation=merged)
        yield document


def without_text(document: Document) -> Annotation:
    """Return an annotated document as it may be published: without its text."""
    note, origin = document.annotation, document.provenance
    return Annotation(
        note.skill,
        note.types,
        note.types_second,
        note.queries,
        repo=origin.repo,
        commit=origin.commit,
        path=origin.path,
        sha256=origin.sha256,
        # some licences carry a remark on where the document was found
        license=origin.license.partition(" ")[0],
    )


def publish(folder: Path, more: Path, out: Path) -> list[Annotation]:
    """Write the annotations of one split and return them."""
    documents = with_more(read_documents(folder), more)
    published = [without_text(document) for document in documents if not document.provenance.near_copy_of]
    published.sort(key=lambda record: record.skill)
    homeless = [record.skill for record in published if not (record.repo and record.commit and record.path)]
    if homeless:
        raise SystemExit(f"{folder}/manifest.json does not say where {', '.join(homeless)} come from.")
    write_records(out, published)
    return published


def publish_short(folders: Iterable[Path], published: Iterable[Annotation]) -> list[Annotation]:
    """Return the short queries of the published documents of a split."""
    digests = {record.skill: record.sha256 for record in published}
    files = [path for folder in folders for path in folder.glob(f"*{SHORT}")]
    read = (Annotation.from_json(path.read_text(encoding="utf-8")) for path in files)
    return [replace(short, sha256=digests[short.skill]) for short in read if short.skill in digests]


def main() -> None:
    """Publish splits."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--more", type=Path, default=Path("more"), help="further annotations")
    parser.add_argument("--splits", nargs="+", choices=SPLITS, default=SPLITS, help="those to publish")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    short_file = options.out / f"short{JSONL}"
    short = {record.sha256: record for record in read_records(short_file, Annotation)}
    for split in options.splits:
        path = options.out / f"{split}{JSONL}"
        published = publish(options.data / split, options.more / split, path)
        queries = sum(len(record.queries) for record in published)
        asked = publish_short([options.data / split, options.more / split], published)
        short |= {record.sha256: record for record in asked}
        print(f"{path}: {len(published)} documents, {queries} queries, {path.stat().st_size:,} bytes")
    write_records(short_file, sorted(short.values(), key=lambda record: (record.skill, record.sha256)))
    count = sum(len(record.queries) for record in short.values())
    print(f"{short_file}: {count} short queries, {short_file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
