"""Measure pages with notes on nodes, as `skillpager enrich` keeps them, beside pages without.

    python training/enriched.py DATA... [--documents 60] [--weights WEIGHT STEP]

The notes are those of `asks.jsonl`, written by readers who saw no query. The skills of half of the authors
are for choosing the weights, results are those of the others. The rows are appended to
`benchmarks/enriched.csv`.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd

from data import Asked, Example, load, readers_notes
from skillpager import SkillPager
from skillpager.bench.run.selecting import page_row
from skillpager.enrichment.notes import NodeNotes, digest_of, notes_on
from skillpager.settings import Settings
from skillpager.strategies.navigator import notes as weights
from skillpager.types import Page, SkillIndex

TARGET = Path(__file__).parent.parent / "benchmarks" / "enriched.csv"
PARTS = ("choosing", "judging")


def part_of(example: Example) -> str:
    """Return whether the skills of an author are for choosing or for judging."""
    return PARTS[int(sha256(example.repository.encode()).hexdigest(), 16) % 2]


def with_notes(example: Example, index: SkillIndex, pager: SkillPager, cached: Path) -> SkillIndex:
    """Return an index with the notes of readers."""
    digests = [digest_of(node) for node in index.nodes]
    records = readers_notes()[example.document.provenance.sha256]
    notes = {
        digest: NodeNotes(tuple(asks), tuple(digests[other] for other in along))
        for digest, (_, _, asks, along) in zip(digests, records, strict=True)
    }
    return replace(index, notes=notes_on(index, notes, pager.encoder, cached))


def row_of(example: Example, asked: Asked, page: Page, index: SkillIndex) -> dict[str, object]:
    """Return what the pages of one query hold, and how its needs rank."""
    selection = page.selection
    assert selection is not None
    needs = np.empty(len(index.nodes))
    for each in (*selection.picks, *selection.skipped):
        needs[each.node.ordinal] = each.marginal
    needed, tokens = asked.needs == 1, np.array([node.tokens for node in index.nodes])
    area = share = None
    if needed.any() and not needed.all():
        right, wrong = needs[needed][:, None], needs[~needed]
        area = float(((right > wrong) + 0.5 * (right == wrong)).mean())
        share = float(tokens[needs >= needs[needed].min()].sum() / tokens.sum())
    row = page_row(example.document, asked.query, page)
    return {
        "part": part_of(example),
        "notes": "with" if index.notes else "without",
        "queries": asked.series,
        "auc": area,
        "share_to_read": share,
        "sufficient": row["sufficient"],
        "promised": page.sufficiency if page.sufficiency is not None else 1.0,
        "tokens": page.tokens,
        "full": page.full_tokens,
        "covered": selection.covered is None or selection.covered >= 0.5,
    }


def rows(examples: list[Example], pager: SkillPager, folder: Path) -> Iterator[dict[str, object]]:
    """Yield the rows of all queries; for requests that a skill does not answer, whether it seems to."""
    for example in examples:
        plain = pager.index(example.skill)
        noted = with_notes(example, plain, pager, folder / f"{example.name}.npz")
        for index in (plain, noted):
            for asked in example.asked:
                yield row_of(example, asked, pager.page(index, asked.query.query), index)
            for text in example.unanswered:
                selection = pager.page(index, text).selection
                covered = selection is None or selection.covered is None or selection.covered >= 0.5
                part, kind = part_of(example), "with" if index.notes else "without"
                yield {"part": part, "notes": kind, "queries": "near misses", "covered": covered}
        sys.stderr.write(f"{example.name}\n")


def table_of(found: pd.DataFrame) -> pd.DataFrame:
    """Return the means by part, queries and notes, in percent."""
    groups = found.groupby(["part", "queries", "notes"], sort=False)
    table = groups[["auc", "share_to_read", "sufficient", "promised", "covered"]].agg(
        lambda values: 100 * values.astype(float).mean()
    )
    table["saved"] = 100 * (1 - groups["tokens"].sum() / groups["full"].sum())
    table.insert(0, "count", groups.size())
    return table.round(1).reset_index().sort_values(["part", "queries", "notes"])


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--documents", type=int, default=60, help="the first, by the digest of their name")
    parser.add_argument("--work", type=Path, default=Path("build/enriched"), help="folder of indexes")
    parser.add_argument("--part", choices=PARTS, help="skills of this half of the authors alone")
    parser.add_argument("--weights", nargs=2, type=float, help="weight and step that are tried")
    options = parser.parse_args()
    if options.weights:
        weights.ASK_WEIGHT, weights.ALONG_STEP = options.weights
    known = readers_notes()
    examples = [
        example
        for example in load(options.data)
        if len(known.get(example.document.provenance.sha256, ())) == len(example.fragments)
        and options.part in (None, part_of(example))
    ]
    examples.sort(key=lambda example: sha256(example.name.encode()).hexdigest())
    pager = SkillPager(settings=Settings(cache_dir=options.work))
    table = table_of(pd.DataFrame(rows(examples[: options.documents], pager, options.work)))
    pager.close()
    used = (weights.ASK_WEIGHT, weights.ALONG_STEP)
    for place, (name, value) in enumerate(zip(("weight", "step"), used, strict=True)):
        table.insert(place, name, value)
    table.to_csv(TARGET, mode="a", header=not TARGET.exists(), index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
