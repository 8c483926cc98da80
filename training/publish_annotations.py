"""Write the annotations that come with the package: everything but the documents' text.

    python training/publish_annotations.py DATA [--out src/skillpager/bench/annotations]

DATA holds a folder of annotated documents for each split, `train` and `dev` (docs/evidence-format.md).
Every document must be in its folder's manifest, or it could not be restored.
"""

import argparse
from pathlib import Path

from skillpager.bench.datasets.evidence import read_documents
from skillpager.bench.datasets.published import SUFFIX, Published, without_text
from skillpager.bench.folder import write_records

SPLITS = ("train", "dev")
OUT = Path(__file__).parent.parent / "src" / "skillpager" / "bench" / "annotations"


def publish(folder: Path, out: Path) -> list[Published]:
    """Write the annotations of one split and return them."""
    published = sorted(without_text(read_documents(folder)), key=lambda record: record.skill)
    homeless = [record.skill for record in published if not (record.repo and record.commit and record.path)]
    if homeless:
        raise SystemExit(f"{folder}/manifest.json does not say where {', '.join(homeless)} come from.")
    write_records(out, published)
    return published


def main() -> None:
    """Publish both splits."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    for split in SPLITS:
        path = options.out / f"{split}{SUFFIX}"
        published = publish(options.data / split, path)
        queries = sum(len(record.queries) for record in published)
        print(f"{path}: {len(published)} documents, {queries} queries, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
