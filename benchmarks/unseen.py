"""Quality of the shipped models on unseen skills: the rows of the README's quality table.

`python benchmarks/unseen.py FOLDER…` runs `skillpager bench run` on folders of annotated documents and
writes `unseen.csv`, a row for each data set, style and method. Documents that the manifest marks as near
copies of training documents are left out.
"""

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

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
                skills = link_unseen(folder, Path(scratch) / "data")
                for style, methods in METHODS.items():
                    for row in run(Path(scratch) / "data", style, methods):
                        writer.writerow({"data": folder.name, "skills": skills, "style": style, **row})
                        file.flush()


def link_unseen(folder: Path, target: Path) -> int:
    """Link a folder's annotated documents, near copies of others left out; return how many there are."""
    target.mkdir()
    entries = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    names = [entry["id"] for entry in entries if entry["annotated"] and "near_copy_of" not in entry]
    for name in names:
        for suffix in (".md", ".ann.json"):
            (target / f"{name}{suffix}").symlink_to((folder / f"{name}{suffix}").resolve())
    return len(names)


def run(data: Path, style: str, methods: tuple[str, ...]) -> list[dict[str, object]]:
    """Return the summary of `skillpager bench run`, a row a method."""
    command = [
        sys.executable,
        "-m",
        "skillpager",
        "bench",
        "run",
        "--data",
        data,
        "--out",
        data.parent / style,
    ]
    options = ["--style", style, "--methods", ",".join(methods), "--no-contexts", "--quiet", "--json"]
    done = subprocess.run([*command, *options], stdout=subprocess.PIPE, check=True, encoding="utf-8")
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
        for row in json.loads(done.stdout)["methods"]
    ]


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
