"""Ablation of the navigator: its scores without each of its parts, by cross-validation over skills.

    python training/ablate.py DATA... --work build/training --out benchmarks/models/ablation.csv

Every variant is trained again, with one network for each fold instead of four, and pages the first five
queries of every document in style `plain`. Needs the files that `train.py` wrote to WORK.
"""

import argparse
import logging
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

import train_navigator
from data import Example, embedded_queries, load, skill_folds
from evaluate import REDUCTIONS
from skillpager.bench.judge import judge_evidence
from skillpager.bench.run.methods import ALL_NODES
from skillpager.encoders.builtin import BuiltinEncoder
from skillpager.pages.assemble import make_page
from skillpager.pages.render import PageRenderer
from skillpager.sequence_net import SequenceNet
from skillpager.strategies.navigator.features import GROUPS, IndexFeatures
from skillpager.strategies.navigator.model import NeedModel
from skillpager.strategies.navigator.strategy import Navigator
from skillpager.tokens import default_counter
from skillpager.types import Budget, FloatArray, Query, Style
from train import BASE, FOLD_SEED, FOLDS, Unseen, embedding, make_cases, read_unseen
from train_navigator import Case
from train_types import Encoded

logger = logging.getLogger("ablate")


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
        second_series: Whether it learns from the second series of queries.
        calibrated: Whether the logits are.
    """

    name: str
    without: tuple[str, ...] = ()
    shape: Mapping[str, object] = field(default_factory=dict)
    fit: Mapping[str, object] = field(default_factory=dict)
    walk: Mapping[str, object] = field(default_factory=dict)
    tuned: bool = True
    second_series: bool = True
    calibrated: bool = True


VARIANTS = (
    Variant("everything"),
    Variant("untuned encoder", tuned=False),
    Variant("first series of queries only", second_series=False),
    Variant("no words", without=("words", "heading")),
    Variant("no clauses", without=("clauses",)),
    Variant("no section and neighbours", without=("section", "neighbours")),
    Variant("no types, form and place", without=("type", "form", "place")),
    Variant("cosines of the node only", without=tuple(name for name in GROUPS if name != "meaning")),
    Variant("no sequence context", shape={"blocks": 0}),
    Variant("no calibration", calibrated=False),
    Variant("redundancy: twins count half", walk={"twin_share": 0.5}),
    Variant("redundancy ignored", walk={"twin_share": 1.0}),
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


def predict(folds: np.ndarray, variant: Variant) -> Logits:
    """Return out-of-fold logits of the first series."""
    cases = CASES[variant.tuned]
    shape = replace(train_navigator.SHAPE, **variant.shape)
    fit = replace(train_navigator.FIT, seeds=1, **variant.fit)
    cases = [
        without(case, variant.without) for case in cases if variant.second_series or case.asked.first_series
    ]
    logits: Logits = {}
    for fold in range(FOLDS):
        nets = train_navigator.train([case for case in cases if folds[case.document] != fold], shape, fit)
        tried = [case for case in cases if folds[case.document] == fold and case.asked.first_series]
        found = train_navigator.predict(nets, tried)
        logits |= {case.asked.query.id: values for case, values in zip(tried, found, strict=True)}
    return logits


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
    """A model whose logits are known."""

    known: Mapping[str, FloatArray] = field(default_factory=dict)

    def needs(self, known: IndexFeatures, query: Query) -> FloatArray:  # noqa: ARG002 - nothing to compute
        """Return the needs of the query's known logits."""
        return self.calibrated(self.known[query.text])


def measure(
    examples: Sequence[Example], folds: np.ndarray, logits: Logits, variant: Variant
) -> list[list[bool]]:
    """Return for each reduction which queries are sufficient."""
    cases = [case for case in CASES[variant.tuned] if case.asked.first_series]
    found: list[list[bool]] = [[] for _ in REDUCTIONS]
    by_fold: list[list[Case]] = [
        [case for case in cases if folds[case.document] == fold] for fold in range(FOLDS)
    ]
    for fold, mine in enumerate(by_fold):
        others = [case for number, group in enumerate(by_fold) if number != fold for case in group]
        scale = train_navigator.fit_scale(others, [logits[case.asked.query.id] for case in others])
        known = {case.query.text: logits[case.asked.query.id] for case in mine}
        model = Told(
            SequenceNet({}), embedding(), scale if variant.calibrated else (1.0, 0.0), None, 0.0, known
        )
        navigator = Navigator(model=model, **variant.walk)
        for case in mine:
            document = examples[case.document].document
            renderer = PageRenderer(case.index, default_counter(), style=Style.PLAIN)
            for row, reduction in zip(found, REDUCTIONS, strict=True):
                limit = int((1 - reduction / 100) * case.index.full_tokens)
                text = make_page(renderer, navigator, case.query, Budget(ALL_NODES, limit, fill=True)).text
                row.append(judge_evidence(document, case.asked.query, text)[1])
    return found


def untuned(examples: Sequence[Example], work: Path) -> dict[int, Encoded]:
    """Return what the base makes of the documents."""
    encoder = BuiltinEncoder(folder=work / "encoders" / BASE)
    return {
        place: Encoded(
            encoder.encode_documents(example.texts),
            embedded_queries(encoder, [asked.query.query for asked in example.asked]),
            np.zeros((len(example.texts), 0), np.float32),
        )
        for place, example in enumerate(examples)
    }


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
    folds = skill_folds(examples, FOLDS, FOLD_SEED)
    unseen = read_unseen(examples, options.work, "skill")
    base = Unseen(untuned(examples, options.work), unseen.logits, unseen.types)
    CASES.update({True: make_cases(examples, unseen), False: make_cases(examples, base)})
    rows = []
    with ProcessPoolExecutor() as pool:
        nets = {
            name: pool.submit(predict, folds, kind)
            for name, kind in {str(kind): kind for kind in map(networks_of, VARIANTS)}.items()
        }
        tasks = [
            pool.submit(measure, examples, folds, nets[str(networks_of(variant))].result(), variant)
            for variant in VARIANTS
        ]
        for variant, task in zip(VARIANTS, tasks, strict=True):
            rows.append([variant.name, *(f"{100 * np.mean(row):.1f}" for row in task.result())])
            logger.info("%s", rows[-1])
    options.out.parent.mkdir(parents=True, exist_ok=True)
    headings = ["variant", *(f"sufficiency at {reduction} %" for reduction in REDUCTIONS)]
    pd.DataFrame(rows, columns=headings).to_csv(options.out, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
