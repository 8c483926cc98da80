"""Evidence data of skills whose owners no model has learned from: `python benchmarks/authors.py FOLDER OUT`.

`authors.jsonl` has 160 public skills of as many owners, none of a repository or an author of the training
data, each with four requests and the lines that each needs, by readers who saw no page: messages with two
wants (35 to 60 words) and with three or four (60 to 120), a short request, and a broad one. Documents are
found below FOLDER by their SHA-256; OUT gets a folder of evidence data for each kind of request, as
`unseen.py` reads them.
"""

import hashlib
import json
import sys
from pathlib import Path

LABELS = Path(__file__).with_suffix(".jsonl")


def main(source: Path, out: Path) -> None:
    """Write the documents that are found, and say how many are missing."""
    records = list(map(json.loads, LABELS.read_text(encoding="utf-8").splitlines()))
    files = (path.read_bytes() for path in source.rglob("*.md") if path.is_file())
    found = {hashlib.sha256(data).hexdigest(): data for data in files}
    kept = [record for record in records if record["sha256"] in found]
    print(f"{len(kept)} of {len(records)} documents are below {source}")
    for place, kind in enumerate(each["kind"] for each in records[0]["queries"]):
        folder = out / f"authors-{kind}"
        folder.mkdir(parents=True)
        manifest = [
            {"id": each["skill"]} | {key: each[key] for key in ("repo", "path", "sha256")} for each in kept
        ]
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        for record in kept:
            query = {"id": f"{record['skill']}#{kind}"} | record["queries"][place]
            note = {
                "skill": record["skill"],
                "queries": [{name: query[name] for name in query if name != "kind"}],
            }
            (folder / f"{record['skill']}.md").write_bytes(found[record["sha256"]])
            (folder / f"{record['skill']}.ann.json").write_text(json.dumps(note), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
