"""Skills whose owners no model has learned from: `python benchmarks/authors.py FOLDER OUT`.

`authors.jsonl` has 149 public skills of as many owners, none of a repository or an author of the training
data, each with four requests and the lines that each needs, by readers who saw no page: messages with two
wants (35 to 51 words) and with three or four (67 to 100), a short request, and a broad one; and two near
misses, a short one and a message, of its field, to which a further reader, blind, found no answer in it. Two
to which an answer was found went. Documents are found below FOLDER by their SHA-256; OUT gets a folder of
evidence data for each kind of request, as `unseen.py` reads them. `authors.csv` gets what default pages
promise, and whether that holds; `authors_covered.csv` how many requests get no page, and whether the chance
of being covered tells them from near misses of about their length.
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
MOST_SHORT_WORDS = 12  # of a request that is no message


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
        near = pd.DataFrame(
            {"query": query, "covered": pager.page(found[each["sha256"]].decode(), query, force=True).covered}
            for each in kept
            for query in each["missing"]
        )
    parts = dict(list(pages.groupby("kind", sort=False))) | {"all": pages}
    parts["all but whole skills"] = pages[~pages["whole"]]
    table = pd.DataFrame({"requests": name, **promise_of(part)} for name, part in parts.items())
    table.to_csv(TABLE, index=False, lineterminator="\n")
    covered = pd.DataFrame(
        {"requests": name, **coverage_of(pages[pages["kind"].isin(of)], near)}
        for name, of in {**{kind: [kind] for kind in kinds}, "all": kinds}.items()
    )
    covered.to_csv(COVERED, index=False, lineterminator="\n")


def pages_of(pager: SkillPager, folder: Path, kind: str) -> Iterator[dict[str, object]]:
    """Yield for each request whether its default page suffices, what it promises, and whether it is all."""
    for document in read_documents(folder):
        (query,) = document.annotation.queries
        page = pager.page(document.text, query.query, force=True)
        suffices = judge_evidence(document, query, page.text)[1]
        promise = {"promised": page.sufficiency, "covered": page.covered, "whole": not page.omitted}
        yield {"kind": kind, "query": query.query, "suffices": suffices, **promise}


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


def coverage_of(pages: pd.DataFrame, near: pd.DataFrame) -> dict[str, object]:
    """Return how many requests, and near misses of their length, get no page or seem not to be covered.

    The AUC is how well the chance of being covered tells these apart; that of the number of words beside it
    is what the length alone tells.
    """
    lengths = [each["query"].str.split().str.len() for each in (pages, near)]
    is_short = lengths[0] <= MOST_SHORT_WORDS
    alike = (lengths[1] <= MOST_SHORT_WORDS).isin(is_short.unique())
    known, others = pages["covered"].dropna().astype(float), near["covered"][alike].dropna().astype(float)
    row: dict[str, object] = {}
    for name, chances in (("answered", known), ("near_misses", others)):
        row[name] = len(chances)
        row[f"{name}_no_page"] = round((chances < LEAST_FOR_PAGE).mean(), 4)
        row[f"{name}_seem_not_covered"] = round((chances < SURELY_UNCOVERED).mean(), 4)
    row["auc"] = _auc(known, others)
    row["auc_of_length"] = _auc(lengths[0], lengths[1][alike])
    return row


def _auc(answered: pd.Series, others: pd.Series) -> float:
    labels = [True] * len(answered) + [False] * len(others)
    return round(roc_auc_score(labels, [*answered, *others]), 4)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
