"""Ablation of the navigator: its scores without each of its parts, by cross-validation over repositories.

    python training/ablate.py DATA... --work build/training --out benchmarks/models/ablation.csv

Every variant is trained again, with one network for each fold instead of four, and pages the long and the
short queries of every document in style `plain`. Needs the files that `train.py` wrote to WORK.
"""

import argparse
import logging
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

import train_navigator
from data import FURTHER, LONG, SHORT, UNANSWERED, Example, load
from evaluate import REDUCTIONS
from sequence_net import arrays_of
from skillpager.bench.judge.judges import judge_evidence
from skillpager.bench.run.methods import ALL_NODES
from skillpager.encoders.builtin import DIM
from skillpager.pages.assemble import make_page
from skillpager.pages.render import PageRenderer
from skillpager.sequence_net import SequenceNet
from skillpager.strategies.navigator.features import GROUPS, QUERY_KINDS, IndexFeatures
from skillpager.strategies.navigator.model import Limits, NeedModel
from skillpager.strategies.navigator.strategy import Navigator
from skillpager.tokens import default_counter
from skillpager.types import Budget, FloatArray, Query, Style
from train import Split, embedding, encode, make_cases, read_unseen, splits_of
from train_navigator import Case

logger = logging.getLogger("ablate")

# series of queries that are paged
TRIED = (LONG, SHORT)


@dataclass(frozen=True)
class Variant:
    """The navigator without a part.

    Attributes:
        name: What is missing.
        without: Groups of features that it does not see.
        shape: Changes of the network's sizes.
        fit: Changes of its training.
        walk: Changes of how nodes are picked.
        tuned: Whether the encoder is.
        learns: Series of queries that it learns from.
        calibrated: Whether the logits are.
    """

    name: str
    without: tuple[str, ...] = ()
    shape: Mapping[str, object] = field(default_factory=dict)
    fit: Mapping[str, object] = field(default_factory=dict)
    walk: Mapping[str, object] = field(default_factory=dict)
    tuned: bool = True
    learns: tuple[str, ...] = (LONG, FURTHER, SHORT, UNANSWERED)
    calibrated: bool = True


VARIANTS = (
    Variant("everything"),
    Variant("untuned encoder", tuned=False),
    Variant("long queries of the first series only", learns=(LONG,)),
    Variant("no short queries", learns=(LONG, FURTHER, UNANSWERED)),
    Variant("no unanswered queries", learns=(LONG, FURTHER, SHORT)),
    Variant("no words", without=("words", "heading")),
    Variant("no names", without=("names",)),
    Variant("no clauses", without=("clauses",)),
    Variant("no section and neighbours", without=("section", "neighbours")),
    Variant("no types, form and place", without=("type", "form", "place")),
    Variant("cosines of the node only", without=tuple(name for name in GROUPS if name != "meaning")),
    Variant("no sequence context", shape={"blocks": 0}),
    Variant("no calibration", calibrated=False),
    Variant("no whole units", walk={"closure": False}),
    Variant("no price of opening a gap", walk={"opening_tokens": 0.0}),
    Variant("price ignored", walk={"cost_exponent": 0.0}),
    Variant("worth per token, linear", walk={"cost_exponent": 1.0}),
)
# variants that are trained alike share their networks
Logits = dict[str, FloatArray]


def networks_of(variant: Variant) -> Variant:
    """Return the variant with the same networks."""
    return replace(variant, name="", walk={}, calibrated=True)


# by whether the encoder is tuned; set before the processes start, which then share it
CASES: dict[bool, list[Case]] = {}


def predict(splits: Sequence[Split], variant: Variant) -> Logits:
    """Return out-of-fold logits of the queries that are paged."""
    cases = [without(case, variant.without) for case in CASES[variant.tuned]]
    shape = replace(train_navigator.SHAPE, **variant.shape)
    fit = replace(train_navigator.FIT, seeds=1, **variant.fit)
    logits: Logits = {}
    for split in splits:
        learns = [case for case in of_documents(cases, split.learns) if case.asked.series in variant.learns]
        net = SequenceNet(arrays_of(train_navigator.train(learns, shape, fit)))
        for case in of_documents(cases, split.tried):
            if case.asked.series in TRIED:
                found = net.logits(case.example.features, case.example.sections)
                logits[case.asked.query.id] = found[:, 0]
    return logits


def of_documents(cases: Sequence[Case], places: Sequence[int]) -> list[Case]:
    """Return the cases of the documents at some places."""
    chosen = set(places)
    return [case for case in cases if case.document in chosen]


def without(case: Case, groups: Sequence[str]) -> Case:
    """Return the case with some groups of features blank."""
    if not groups:
        return case
    features, start = case.example.features.copy(), 0
    for name, names in GROUPS.items():
        if name in groups:
            features[:, start : start + len(names)] = 0
        start += len(names)
    return replace(case, example=replace(case.example, features=features))


@dataclass(frozen=True, eq=False)
class Told(NeedModel):
    """A model whose logits are known, by text: for the queries of one document."""

    known: Mapping[str, FloatArray] = field(default_factory=dict)

    def needs(self, known: IndexFeatures, query: Query) -> FloatArray:  # noqa: ARG002 - nothing to compute
        """Return the needs of the query's known logits."""
        return self.calibrated(self.known[query.text])


def measure(
    examples: Sequence[Example], splits: Sequence[Split], logits: Logits, variant: Variant
) -> dict[str, list[list[bool]]]:
    """Return which queries are sufficient: for each series and each reduction."""
    cases = [case for case in CASES[variant.tuned] if case.asked.series in TRIED]
    found: dict[str, list[list[bool]]] = {series: [[] for _ in REDUCTIONS] for series in TRIED}
    for split in splits:
        # those that the split learns from are tried by the others
        others = of_documents(cases, split.learns)
        scale = train_navigator.fit_scale(others, [logits[case.asked.query.id] for case in others])
        for place, group in groupby(of_documents(cases, split.tried), lambda case: case.document):
            mine = list(group)
            navigator = Navigator(
                model=Told(
                    SequenceNet({}),
                    embedding(),
                    scale if variant.calibrated else (1.0, 0.0),
                    limits=Limits(None, np.ones((2, len(QUERY_KINDS)))),
                    breadth=(np.zeros(DIM, np.float32), 0.0),
                    known={case.query.text: logits[case.asked.query.id] for case in mine},
                ),
                **variant.walk,  # type: ignore[arg-type]
            )
            renderer = PageRenderer(mine[0].index, default_counter(), style=Style.PLAIN)
            for case in mine:
                for row, reduction in zip(found[case.asked.series], REDUCTIONS, strict=True):
                    limit = int((1 - reduction / 100) * renderer.index.full_tokens)
                    budget = Budget(ALL_NODES, limit, fill=True)
                    text = make_page(renderer, navigator, case.query, budget).text
                    row.append(judge_evidence(examples[place].document, case.asked.query, text)[1])
    return found


def main() -> None:
    """Train, measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--work", type=Path, default=Path("build/training"), help="folder of `train.py`")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/models/ablation.csv"))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(message)s")
    examples = load(options.data)
    splits = [split for split in splits_of(examples) if split.tried]
    unseen = read_unseen(examples, options.work, splits)
    encoded = {
        place: of
        for split in splits
        for place, of in encode(examples, options.work, split, tuned=False).items()
    }
    base = replace(unseen, encoded=encoded)
    CASES.update({True: make_cases(examples, unseen), False: make_cases(examples, base)})
    rows = []
    with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:
        nets = {
            name: pool.submit(predict, splits, kind)
            for name, kind in {str(kind): kind for kind in map(networks_of, VARIANTS)}.items()
        }
        tasks = [
            pool.submit(measure, examples, splits, nets[str(networks_of(variant))].result(), variant)
            for variant in VARIANTS
        ]
        for variant, task in zip(VARIANTS, tasks, strict=True):
            for series, found in task.result().items():
                rows.append([variant.name, series, *(f"{100 * np.mean(row):.1f}" for row in found)])
                logger.info("%s", rows[-1])
    options.out.parent.mkdir(parents=True, exist_ok=True)
    headings = ["variant", "series", *(f"sufficiency at {reduction} %" for reduction in REDUCTIONS)]
    pd.DataFrame(rows, columns=headings).to_csv(options.out, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
