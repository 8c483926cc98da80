"""A folder of evidence data made of the sample skills and the queries about them."""

import json
import shutil
from pathlib import Path

from skillpager.parsing.skill import find_entry

SAMPLES = Path(__file__).parent.parent / "examples" / "skills"


def write_evidence_folder(folder: Path, *names: str) -> Path:
    """Write some sample skills, their queries, and types that anyone can tell, and return the folder.

    Fenced code is called an example, everything else a concept.
    """
    folder.mkdir(parents=True)
    lines = (SAMPLES.parent / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    for name in names:
        document = folder / f"{name}.md"
        shutil.copyfile(find_entry(SAMPLES / name), document)
        own = [query for query in map(json.loads, lines) if query["skill"] == name]
        queries = [
            {
                "id": f"{name}-q{number}",
                "query": query["query"],
                "difficulty": query["difficulty"],
                "angle": "",
                "critical": query["critical"],
                "supporting": [],
            }
            for number, query in enumerate(own, 1)
        ]
        annotation = {"skill": name, "types": _types(document), "queries": queries}
        (folder / f"{name}.ann.json").write_text(json.dumps(annotation), encoding="utf-8")
    return folder


def _types(document: Path) -> list[list[object]]:
    types: list[list[object]] = []
    fenced = False
    for number, line in enumerate(document.read_text(encoding="utf-8").split("\n"), 1):
        fence = line.lstrip().startswith("```")
        if line.strip() and not line.startswith("#"):
            types.append([number, number, "example" if fenced or fence else "concept"])
        fenced ^= fence
    return types
