"""Skills whose owners no model has learned from: `python benchmarks/authors.py FOLDER OUT`.

`authors.jsonl` has 149 public skills of as many owners, none of a repository or an author of the training
data, each with four requests and the lines that each needs, by readers who saw no page: messages with two
wants (35 to 51 words) and with three or four (67 to 100), a short request, and a broad one; and two near
misses, requests of its field that it does not answer. Documents are found below FOLDER by their SHA-256; OUT
gets a folder of evidence data for each kind of request, as `unseen.py` reads them. `authors.csv` gets what
default pages promise, and whether that holds; `authors_covered.csv` how many requests get no page, and
whether the chance of being covered tells answered requests from near misses.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from sklearn.metrics import roc_auc_score

from skillpager import SkillPager
from skillpager.bench.data.evidence import read_documents
from skillpager.bench.judge.judges import judge_evidence
from skillpager.display_text import SURELY_UNCOVERED
from skillpager.pages.short_answer import LEAST_FOR_PAGE
from skillpager.settings import Settings

LABELS = Path(__file__).with_suffix(".jsonl")
TABLE = LABELS.with_suffix(".csv")
COVERED = LABELS.with_name("authors_covered.csv")
TENTHS = 10
NEAR_MISSES = "near misses"


def main(source: Path, out: Path) -> None:
    """Write the documents that are found and the table, and say how many are missing."""
    records = list(map(json.loads, LABELS.read_text(encoding="utf-8").splitlines()))
    files = (path.read_bytes() for path in source.rglob("*.md") if path.is_file())
    found = {hashlib.sha256(data).hexdigest(): data for data in files}
    kept = [record for record in records if record["sha256"] in found]
    print(f"{len(kept)} of {len(records)} documents are below {source}")
    kinds = [request["kind"] for request in records[0]["queries"]]
    for place, kind in enumerate(kinds):
        folder = out / f"authors-{kind}"
        folder.mkdir(parents=True)
        manifest = [
            {"id": each["skill"]} | {key: each[key] for key in ("repo", "path", "sha256")} for each in kept
        ]
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        for record in kept:
            request = {key: value for key, value in record["queries"][place].items() if key != "kind"}
            note = {"skill": record["skill"], "queries": [{"id": f"{record['skill']}#{kind}"} | request]}
            (folder / f"{record['skill']}.md").write_bytes(found[record["sha256"]])
            (folder / f"{record['skill']}.ann.json").write_text(json.dumps(note), encoding="utf-8")
    with TemporaryDirectory() as cache, SkillPager(settings=Settings(cache_dir=Path(cache))) as pager:
        pages = pd.DataFrame(row for kind in kinds for row in pages_of(pager, out / f"authors-{kind}", kind))
        near = [(found[each["sha256"]].decode(), query) for each in kept for query in each["missing"]]
        missed = pd.Series(pager.page(text, query, force=True).covered for text, query in near)
    parts = dict(list(pages.groupby("kind", sort=False))) | {"all": pages}
    parts["all but whole skills"] = pages[~pages["whole"]]
    table = pd.DataFrame({"requests": name, **promise_of(part)} for name, part in parts.items())
    table.to_csv(TABLE, index=False, lineterminator="\n")
    del parts["all but whole skills"]
    chances = {name: part["covered"] for name, part in parts.items()} | {NEAR_MISSES: missed}
    covered = pd.DataFrame({"requests": name, **coverage_of(each, missed)} for name, each in chances.items())
    covered.to_csv(COVERED, index=False, lineterminator="\n")


def pages_of(pager: SkillPager, folder: Path, kind: str) -> Iterator[dict[str, object]]:
    """Yield for each request whether its default page suffices, what it promises, and whether it is all."""
    for document in read_documents(folder):
        (query,) = document.annotation.queries
        page = pager.page(document.text, query.query, force=True)
        suffices = judge_evidence(document, query, page.text)[1]
        promise = {"promised": page.sufficiency, "covered": page.covered}
        yield {"kind": kind, "suffices": suffices, "whole": not page.omitted, **promise}


def promise_of(pages: pd.DataFrame) -> dict[str, object]:
    """Return how many pages suffice, what they promise, and how well that tells which."""
    promised, suffices = pages["promised"].astype(float), pages["suffices"].astype(float)
    tenths = (promised * TENTHS).astype(int).clip(upper=TENTHS - 1)
    error = (suffices - promised).groupby(tenths).sum().abs().sum() / len(pages)
    return {
        "pages": len(pages),
        "sufficient": round(suffices.mean(), 4),
        "promised": round(promised.mean(), 4),
        "calibration_error": round(error, 4),
        "auc": round(roc_auc_score(suffices, promised), 4),
    }


def coverage_of(chances: pd.Series, missed: pd.Series) -> dict[str, object]:
    """Return how many requests get no page, or seem not to be covered, and the AUC against near misses."""
    known, others = chances.dropna().astype(float), missed.dropna().astype(float)
    labels = [True] * len(known) + [False] * len(others)
    return {
        "estimated": len(known),
        "no_page": round((known < LEAST_FOR_PAGE).mean(), 4),
        "seems_not": round((known < SURELY_UNCOVERED).mean(), 4),
        "auc": "" if known.equals(others) else round(roc_auc_score(labels, [*known, *others]), 4),
    }


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
