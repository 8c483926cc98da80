"""Quality of the shipped models on unseen skills: the rows of the README's quality table.

`python benchmarks/unseen.py FOLDER…` runs `skillpager bench run` on folders of annotated documents, as
`skillpager bench data fetch --split skillsbench` (or `test`) restores them, and writes `unseen.csv`, a row
for each data set, style and method; short queries, if a folder has any, are a data set of their own.
Documents that the manifest marks as near copies of training documents are left out. Intervals draw queries.
"""

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SHORT = ".short.json"
TARGET = Path(__file__).with_name("unseen.csv")
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
    "marked": (
        "navigator",
        "navigator@sufficiency=0.95",
        "navigator@sufficiency=0.7",
        "sections",
        "hybrid",
        "mmr",
    ),
    "plain": ("navigator", "mmr"),
}


def main(folders: list[Path]) -> None:
    """Measure every folder and write the rows."""
    with TARGET.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for folder in folders:
            with tempfile.TemporaryDirectory() as scratch:
                data = Path(scratch) / "data"
                skills = link_unseen(folder, data)
                sets = {folder.name: data}
                if any(data.glob(f"*{SHORT}")):
                    sets[f"{folder.name}, short"] = short = Path(scratch) / "short"
                    skillpager("bench", "data", "evidence", data, "--short", "--out", short)
                for name, queries in sets.items():
                    for style, methods in METHODS.items():
                        for row in run(queries, style, methods):
                            writer.writerow({"data": name, "skills": skills, "style": style, **row})
                            file.flush()


def link_unseen(folder: Path, target: Path) -> int:
    """Link a folder's annotated documents, near copies of others left out; return how many there are."""
    target.mkdir()
    entries = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    known = [entry["id"] for entry in entries if not entry.get("near_copy_of")]
    names = [name for name in known if (folder / f"{name}.ann.json").exists()]
    for name in names:
        for suffix in (".md", ".ann.json", SHORT):
            if (folder / f"{name}{suffix}").exists():
                (target / f"{name}{suffix}").symlink_to((folder / f"{name}{suffix}").resolve())
    return len(names)


def skillpager(*arguments: str | Path) -> str:
    """Return what a command prints."""
    command = [sys.executable, "-m", "skillpager", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout


def run(data: Path, style: str, methods: tuple[str, ...]) -> list[dict[str, object]]:
    """Return the summary of `skillpager bench run`, a row a method."""
    out = data.parent / f"{data.name} {style}"
    options = ["--style", style, "--methods", ",".join(methods), "--no-contexts", "--quiet", "--json"]
    done = skillpager("bench", "run", "--data", data, "--out", out, *options)
    return [
        {
            "method": row["method"],
            "queries": row["queries"],
            "sufficiency": row["sufficiency"],
            "low": row["interval"][0],
            "high": row["interval"][1],
            "coverage": row["coverage"],
            "token_reduction": row["token_reduction"],
        }
        for row in json.loads(done)["methods"]
    ]


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
