"""Measure pages with notes on nodes, as `skillpager enrich` keeps them, beside pages without.

    python training/enriched.py DATA... --work build/training

DATA and WORK are those of a run of `train.py`: each skill is paged by the models of its fold, which never saw
it. The notes are those of `asks.jsonl`, written by readers who saw no query. `WEIGHT` and `STEP` of
`strategies/navigator/notes.py` were chosen before, with other models. Writes `benchmarks/enriched.csv`.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from data import Example, load
from promise import ANSWERED
from skillpager.bench.judge.judges import judge_evidence
from skillpager.pages.assemble import NodeMeter
from skillpager.strategies.navigator.model import NeedModel
from skillpager.strategies.navigator.strategy import Navigator
from skillpager.types import Budget, SkillIndex
from train import Split, is_typical, make_cases, notes_of_fold, read_unseen, splits_of
from train_navigator import Case, ranking

TARGET = Path(__file__).parent.parent / "benchmarks" / "enriched.csv"


def row_of(example: Example, case: Case, index: SkillIndex, navigator: Navigator) -> dict[str, object]:
    """Return what the default page of a query holds, and how its needs rank."""
    nodes = index.nodes
    selection = navigator.select(index, case.query, budget=Budget(), meter=NodeMeter(nodes))
    needs = np.empty(len(nodes))
    for each in (*selection.picks, *selection.skipped):
        needs[each.node.ordinal] = each.marginal
    ranked = ranking([case], [needs]) if 0 < (case.asked.needs == 1).sum() < len(nodes) else {}
    shown = sorted(pick.node.ordinal for pick in selection.picks)
    text = "\n\n".join(nodes[ordinal].text for ordinal in shown)
    return {
        "notes": "with" if index.notes else "without",
        "queries": case.asked.series,
        "auc": ranked.get("auc"),
        "share_to_read": ranked.get("share_to_read"),
        "sufficient": judge_evidence(example.document, case.asked.query, text)[1],
        "promised": 1.0 if len(shown) == len(nodes) else selection.picks[-1].sufficiency,
        "tokens": sum(nodes[ordinal].tokens for ordinal in shown),
        "full": index.full_tokens,
    }


def rows(examples: list[Example], work: Path, split: Split) -> Iterator[dict[str, object]]:
    """Yield the rows of the skills of a fold that have notes and are of many authors."""
    with np.load(work / "folds" / split.name / "navigator.npz") as stored:
        model = NeedModel.of({name: stored[name] for name in stored.files})
    part = [examples[place] for place in split.tried if is_typical(examples[place])]
    unseen = read_unseen(part, work, [Split(split.name, [], list(range(len(part))))])
    cases = [case for case in make_cases(part, unseen) if case.asked.series in ANSWERED]
    notes = notes_of_fold(part, work, split.name, cases)
    navigator = Navigator(model=model)
    for case in cases:
        if case.document in notes:
            for index in (case.index, replace(case.index, notes=notes[case.document])):
                yield row_of(part[case.document], case, index, navigator)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--work", type=Path, default=Path("build/training"))
    options = parser.parse_args()
    examples = load(options.data)
    splits = [split for split in splits_of(examples) if split.tried]
    found = pd.DataFrame(row for split in splits for row in rows(examples, options.work, split))
    groups = found.groupby(["queries", "notes"], sort=False)
    table = groups[["auc", "share_to_read", "sufficient", "promised"]].agg(
        lambda values: 100 * values.astype(float).mean()
    )
    table["saved"] = 100 * (1 - groups["tokens"].sum() / groups["full"].sum())
    table.insert(0, "count", groups.size())
    table = table.round(1).reset_index().sort_values(["queries", "notes"])
    table.to_csv(TARGET, index=False, lineterminator="\n")
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
