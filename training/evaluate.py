"""Measure the models of `train.py` on documents that they never saw: pages, judged by the evidence measure.

    python training/evaluate.py DATA... --work build/training

Every document is paged with the encoder, classifier and navigator of the fold that it is not in. WORK gets
`pages.jsonl`, a line for each query, method, budget and style; `tables.py` makes the tables of it.
"""

import argparse
import json
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data import TEXT_FORM, Asked, Example, embedded_queries, load
from skillpager.bench.judge.measure import evidence_coverage
from skillpager.bench.run.windows import CHUNK_MMR, DEFAULT_CHUNK_TOKENS, window_index
from skillpager.classifiers.local import TYPES, LocalClassifier
from skillpager.encoders.builtin import ENCODER_ID, BuiltinEncoder
from skillpager.indexing import Builder
from skillpager.pages.assemble import estimates, make_page
from skillpager.pages.render import PageRenderer
from skillpager.strategies.baselines.diversity import Msd
from skillpager.strategies.baselines.full import Full
from skillpager.strategies.baselines.hybrid import Hybrid
from skillpager.strategies.baselines.sections import Sections
from skillpager.strategies.mmr import Mmr
from skillpager.strategies.navigator.model import NeedModel
from skillpager.strategies.navigator.strategy import Navigator
from skillpager.strategies.picking import allows_all
from skillpager.tokens import default_counter
from skillpager.types import Budget, NodeType, SkillIndex, Strategy, Style
from train import BASE, Split, splits_of

logger = logging.getLogger("evaluate")

# token reductions and promises that the tables show
REDUCTIONS = (40, 50, 60, 70)
PROMISES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
# a limit on nodes that is none
MANY = 10**9
DEFAULT = "default"
CONCEPT = TYPES.index(NodeType.CONCEPT)

BASELINES: Mapping[str, Strategy] = {
    "mmr": Mmr(),
    "mmr λ 0.9": Mmr(0.9),
    "hybrid": Hybrid(),
    "msd": Msd(),
    CHUNK_MMR: Mmr(),
    "sections": Sections(),
}
NAVIGATOR, UNTUNED = "navigator", ", untuned"
# what is also measured as users get it
MARKED = ("mmr", "hybrid", "sections", NAVIGATOR)


@dataclass(frozen=True)
class Parts:
    """What pages are made with."""

    encoder: BuiltinEncoder
    classifier: LocalClassifier
    form: str

    def indexes(self, example: Example) -> tuple[SkillIndex, SkillIndex]:
        """Return a document's index of nodes and that of windows."""
        builder = Builder(self.encoder, self.classifier, default_counter(), self.form)
        windows = window_index(builder, example.skill, DEFAULT_CHUNK_TOKENS)
        return builder.build(example.skill, "nodes"), windows


def budgets(index: SkillIndex, *, promising: bool) -> Iterator[tuple[str, Budget]]:
    """Yield the budgets of a document by name."""
    yield DEFAULT, Budget()
    for reduction in REDUCTIONS:
        yield f"{reduction} %", Budget(MANY, int((1 - reduction / 100) * index.full_tokens))
    for promise in PROMISES if promising else ():
        yield f"P {promise}", Budget(sufficiency=promise)


def pages(
    example: Example, parts: Parts, strategies: Mapping[str, Strategy], style: Style
) -> Iterator[dict[str, object]]:
    """Yield the pages of a document's first five queries by every strategy and budget."""
    nodes, windows = parts.indexes(example)
    asked = [asked for asked in example.asked if asked.first_series]
    queries = embedded_queries(parts.encoder, [each.query.query for each in asked])
    for name, strategy in strategies.items():
        pool = windows if name.removesuffix(UNTUNED) == CHUNK_MMR else nodes
        page = PageRenderer(pool, default_counter(), style=style)
        for budget_name, budget in budgets(pool, promising=estimates(strategy)):
            for each, query in zip(asked, queries, strict=True):
                passes = allows_all(budget, len(pool.nodes), estimating=estimates(strategy))
                whole = Full() if passes else None
                context = make_page(page, strategy, query, budget, whole=whole)
                yield {
                    **_about(example, each),
                    "nodes": len(nodes.nodes),
                    "method": name,
                    "style": str(style),
                    "budget": budget_name,
                    **_verdict(example, each, context.text),
                    "tokens": context.tokens,
                    "full_tokens": context.full_tokens,
                    "promised": context.sufficiency,
                }


def _about(example: Example, asked: Asked) -> dict[str, object]:
    needed = example.labels[asked.needs == 1]
    return {
        "query": asked.query.id,
        "skill": example.name,
        "repository": example.repository,
        "difficulty": asked.query.difficulty,
        "concept": bool(len(needed)) and bool((needed == CONCEPT).all()),
    }


def _verdict(example: Example, asked: Asked, text: str) -> dict[str, object]:
    lines = example.document.text.split("\n")
    coverage, sufficient = evidence_coverage(text, lines, asked.query.critical)
    return {"coverage": round(coverage, 4), "sufficient": sufficient}


def of_split(examples: Sequence[Example], work: Path, split: Split) -> Iterator[dict[str, object]]:
    """Yield the pages of the documents that a split is tried on; over skills, before tuning too."""
    folder, encoders = work / "folds" / split.name, work / "encoders"
    classifier = LocalClassifier(folder / "types.npz")
    with np.load(folder / "navigator.npz") as arrays:
        navigator = Navigator(model=NeedModel.of({name: arrays[name] for name in arrays.files}))
    tuned = Parts(BuiltinEncoder(folder=encoders / split.name, id=ENCODER_ID), classifier, TEXT_FORM)
    # the types of the base's rows are never read, so any classifier will do
    before = Parts(BuiltinEncoder(folder=encoders / BASE, id=ENCODER_ID), classifier, "bare")
    untuned = {f"{name}{UNTUNED}": strategy for name, strategy in BASELINES.items()}
    kind = split.name.partition("-")[0]
    everything = {**BASELINES, NAVIGATOR: navigator}
    marked = {name: everything[name] for name in MARKED}
    for place in split.tried:
        rows = [pages(examples[place], tuned, everything, Style.PLAIN)]
        if kind == "skill":
            rows.append(pages(examples[place], tuned, marked, Style.MARKED))
            rows.append(pages(examples[place], before, untuned, Style.PLAIN))
        for row in (row for group in rows for row in group):
            yield {"folds": kind, "fold": split.name, **row}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--work", type=Path, default=Path("build/training"), help="folder of `train.py`")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(message)s")
    examples = load(options.data)
    splits = [split for split in splits_of(examples) if split.tried]
    with (
        (options.work / "pages.jsonl").open("w", encoding="utf-8") as stream,
        ProcessPoolExecutor() as pool,
    ):
        tasks = [pool.submit(_rows, examples, options.work, split) for split in splits]
        for split, task in zip(splits, tasks, strict=True):
            stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in task.result())
            logger.info("%s measured", split.name)


def _rows(examples: Sequence[Example], work: Path, split: Split) -> list[dict[str, object]]:
    return list(of_split(examples, work, split))


if __name__ == "__main__":
    main()
