"""The page of a library beside the pages of its first three skills: `python benchmarks/ask.py SPLIT OTHERS`.

SPLIT holds annotated skills that no model learned from, with short requests (`skillpager bench data fetch`),
OTHERS folders of further skills, which fill up libraries of each size. Of each skill of SPLIT three long and
two short requests are asked; a page suffices if it holds the evidence of that skill, whatever else it has.
Writes `benchmarks/ask.csv`.
"""

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pandas as pd

from skillpager import SkillPager
from skillpager.bench.data.evidence import AnnotatedQuery, Document, read_documents
from skillpager.bench.judge.judges import judge_evidence
from skillpager.files import ENTRY_FILE
from skillpager.library import Library
from skillpager.settings import Settings

TABLE = Path(__file__).with_suffix(".csv")
SIZES, LIMITS = (25, 100, 500), (None, 1000, 2000, 4000)
FIRST = 3  # skills whose pages stand beside


def main() -> None:
    """Measure libraries of each size, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("split", type=Path)
    parser.add_argument("others", type=Path)
    options = parser.parse_args()
    documents = list(read_documents(options.split))
    others = sorted(path.parent for path in options.others.glob(f"*/{ENTRY_FILE}"))
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as cache:
        pager = SkillPager(settings=Settings(cache_dir=Path(cache)))
        for size in SIZES:
            with tempfile.TemporaryDirectory() as root:
                asked = documents[: size - 1]
                fill_library(Path(root), asked, others, size)
                library = Library(pager, [root])
                rows += ({"skills": size, **row} for each in asked for row in pages(library, each))
    table = pd.DataFrame(rows).groupby(["skills", "limit", "way"], sort=False)
    shown = table.agg(
        requests=("tokens", "size"), sufficient=("sufficient", "mean"), tokens=("tokens", "mean")
    )
    shown["sufficient"] *= 100
    shown = shown.round({"sufficient": 1, "tokens": 0}).astype({"tokens": int})
    shown.to_csv(TABLE, lineterminator="\n")
    print(shown.to_string())


def fill_library(root: Path, documents: list[Document], others: list[Path], size: int) -> None:
    """Write a library of so many skills, those of the documents among them."""
    for document in documents:
        for path, text in document.files:
            file = root / document.annotation.skill / (ENTRY_FILE if len(document.files) == 1 else path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
    free = (folder for folder in others if not (root / folder.name).exists())
    for folder in islice(free, size - len(documents)):
        shutil.copytree(folder, root / folder.name)
    assert len(list(root.iterdir())) == size, f"there are too few further skills for {size}"


def pages(library: Library, document: Document) -> Iterator[dict[str, object]]:
    """Yield what each way gives for requests about a document, without a limit and filled up to each."""
    pager = library.pager
    for asked in requests(document):
        routed = library.route(asked.query, k=FIRST).skills
        for limit in LIMITS:
            fill, share = (None, None) if limit is None else (True, limit // FIRST)
            one = library.page(asked.query, max_tokens=limit, fill=fill, force=True).text
            parts = [
                pager.page(each.skill.path, asked.query, max_tokens=share, fill=fill, force=True)
                for each in routed
            ]
            texts = {"ask": one, f"first {FIRST}": "\n".join(part.text for part in parts)}
            for way, text in texts.items():
                yield {
                    "limit": limit or "none",
                    "way": way,
                    "tokens": pager.token_counter.count(text),
                    "sufficient": judge_evidence(document, asked, text)[1],
                }


def requests(document: Document) -> list[AnnotatedQuery]:
    """Return three long and two short requests."""
    short = document.short.queries[:2] if document.short else ()
    return [*document.annotation.queries[::2], *short]


if __name__ == "__main__":
    main()
