"""Quality of the shipped models on unseen skills: the rows of the README's quality table.

`python benchmarks/unseen.py FOLDER…` runs `skillpager bench run` on folders of annotated documents, as
`skillpager bench data fetch --split skillsbench` (or `test`) restores them and `authors.py` writes them, and
publishes the rows, a folder of `benchmarks/unseen` for each data set and style; short queries, if a folder
has any, are a data set of their own. Documents that the manifest marks as near copies of training documents
are left out. With folders or without, `unseen.csv` is then counted from the rows. Intervals draw skills.
"""

import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.judge.judges import EVIDENCE
from skillpager.bench.report.methods import summarise
from skillpager.bench.report.results import ROWS, PublishedResults, Results, publish

SHORT = ".short.json"
PUBLISHED = Path(__file__).with_name("unseen")
TARGET = Path(__file__).with_name("unseen.csv")
# in the order of the tables; the last four as `authors.py` writes them
DATA = (
    *("skillsbench", "test", "test, short"),
    *("authors-two-wants", "authors-more-wants", "authors-short", "authors-broad"),
)
COLUMNS = (
    "data",
    "skills",
    "style",
    "method",
    "queries",
    "sufficiency",
    "low",
    "high",
    "coverage",
    "token_reduction",
)
METHODS = {
    "marked": ("navigator", "navigator@sufficiency=0.95", "lean", "sections", "hybrid", "mmr"),
    "plain": ("navigator", "mmr"),
}


def main(folders: list[Path]) -> None:
    """Measure every folder, and count the rows of all that is published."""
    if strange := [folder.name for folder in folders if folder.name not in DATA]:
        raise SystemExit(f"unseen.csv has no place for {strange[0]}: its data sets are {'; '.join(DATA)}.")
    for folder in folders:
        with tempfile.TemporaryDirectory() as scratch:
            data = Path(scratch) / "data"
            link_unseen(folder, data)
            sets = {folder.name: data}
            if any(data.glob(f"*{SHORT}")):
                sets[f"{folder.name}, short"] = short = Path(scratch) / "short"
                skillpager("bench", "data", "evidence", data, "--short", "--out", short)
            for name, queries in sets.items():
                for style in METHODS:
                    run(name, queries, style)
    with TARGET.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(count())


def count() -> Iterator[dict[str, object]]:
    """Yield a row for each data set, style and method whose rows are published."""
    for data in DATA:
        for style, methods in METHODS.items():
            if not (PUBLISHED / folder_of(data, style) / ROWS).exists():
                continue
            results = PublishedResults(PUBLISHED / folder_of(data, style))
            for summary in summarise(results, methods):
                low, high = summary["interval"]
                place = {"data": data, "skills": len(results.skills), "style": style}
                row = {**place, **summary, "low": low, "high": high}
                yield {name: row[name] for name in COLUMNS}


def folder_of(data: str, style: str) -> str:
    """Return the name of the folder in which the rows of a data set are published."""
    return f"{data}, {style}".replace(", ", "-")


def link_unseen(folder: Path, target: Path) -> None:
    """Link a folder's annotated documents, near copies of others left out."""
    target.mkdir()
    entries = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    known = [entry["id"] for entry in entries if not entry.get("near_copy_of")]
    for name in (name for name in known if (folder / f"{name}.ann.json").exists()):
        for suffix in (".md", ".ann.json", SHORT):
            if (folder / f"{name}{suffix}").exists():
                (target / f"{name}{suffix}").symlink_to((folder / f"{name}{suffix}").resolve())


def skillpager(*arguments: str | Path) -> str:
    """Return what a command prints."""
    command = [sys.executable, "-m", "skillpager", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout


def run(name: str, queries: Path, style: str) -> None:
    """Run the methods on a data set and publish the rows."""
    out = queries.parent / f"{queries.name} {style}"
    options = ["--style", style, "--methods", ",".join(METHODS[style]), "--no-contexts", "--quiet", "--json"]
    skillpager("bench", "run", "--data", queries, "--out", out, *options)
    publish(Results(BenchFolder(out), EVIDENCE), PUBLISHED / folder_of(name, style))


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
