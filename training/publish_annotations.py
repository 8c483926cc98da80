"""Write the annotations that ship with the package: everything except the documents' text.

    python training/publish_annotations.py DATA [--more MORE] [--out src/skillpager/bench/annotations]

DATA holds a folder of annotated documents for each split: `train`, `train2`, `dev`
(docs/evidence-format.md). Every document must be in its folder's manifest, or it could not be restored. MORE
holds further annotations of the same documents, also in a folder for each split: `<id>.ann.json` with
queries, and the second annotator's types for documents that have none in DATA, and `<id>.short.json`.
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from skillpager.bench.data.evidence import (
    ANNOTATION,
    SHORT,
    SUFFIX,
    Annotation,
    Document,
    Published,
    ShortQueries,
    read_documents,
    without_text,
)
from skillpager.bench.data.folder import write_records

SPLITS = ("train", "train2", "dev")
OUT = Path(__file__).parent.parent / "src" / "skillpager" / "bench" / "annotations"


def with_more(documents: Iterator[Document], folder: Path) -> Iterator[Document]:
    """Yield the documents with the further annotations of a folder."""
    for document in documents:
        path = folder / f"{document.annotation.skill}{ANNOTATION}"
        if path.is_file():
            more = Annotation.from_json(path.read_text(encoding="utf-8"))
            own = document.annotation
            merged = replace(
                own,
                queries=own.queries + more.queries,
                types_second=own.types_second or more.types_second,
            )
            document = replace(document, annotation=merged)
        yield document


def publish(folder: Path, more: Path, out: Path) -> list[Published]:
    """Write the annotations of one split and return them."""
    documents = with_more(read_documents(folder), more)
    published = sorted(without_text(documents), key=lambda record: record.skill)
    homeless = [record.skill for record in published if not (record.repo and record.commit and record.path)]
    if homeless:
        raise SystemExit(f"{folder}/manifest.json does not say where {', '.join(homeless)} come from.")
    write_records(out, published)
    return published


def publish_short(folders: Iterable[Path], published: Iterable[Published], out: Path) -> int:
    """Write the short queries of all splits and return how many there are."""
    digests = {record.skill: record.sha256 for record in published}
    files = [path for folder in folders for path in folder.glob(f"*{SHORT}")]
    read = (ShortQueries.from_json(path.read_text(encoding="utf-8")) for path in files)
    named = (replace(short, sha256=digests[short.skill]) for short in read)
    every = sorted(named, key=lambda short: short.skill)
    write_records(out, every)
    return sum(len(short.queries) for short in every)


def main() -> None:
    """Publish all splits."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--more", type=Path, default=Path("more"), help="further annotations")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    every: list[Published] = []
    for split in SPLITS:
        path = options.out / f"{split}{SUFFIX}"
        published = publish(options.data / split, options.more / split, path)
        queries = sum(len(record.queries) for record in published)
        every += published
        print(f"{path}: {len(published)} documents, {queries} queries, {path.stat().st_size:,} bytes")
    path = options.out / f"short{SUFFIX}"
    short = publish_short([options.more / split for split in SPLITS], every, path)
    print(f"{path}: {short} short queries, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
