"""Measure pages of the models of `train.py`, on unseen documents, by the evidence measure.

    python training/evaluate.py DATA... --work build/training

Every document is paged with the encoder, classifier and navigator that were trained without its fold. The
script writes `pages.jsonl` to WORK, a line for each query, method, budget and style; `tables.py` makes the
tables from it.
"""

import argparse
import json
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from data import LONG, SHORT, TEXT_FORM, Example, load
from skillpager import SkillPager
from skillpager.bench.run.methods import ALL_NODES, Method
from skillpager.bench.run.selecting import page_by, page_row
from skillpager.classifiers.local import TYPES, LocalClassifier
from skillpager.encoders.builtin import ENCODER_ID, BuiltinEncoder
from skillpager.settings import Settings
from skillpager.strategies.navigator.model import NeedModel
from skillpager.strategies.navigator.strategy import Navigator
from skillpager.types import NodeType, Strategy, Style
from train import BASE, Split, splits_of

logger = logging.getLogger("evaluate")

# token reductions and promises that the tables show
REDUCTIONS = (40, 50, 60, 70)
PROMISES = (0.5, 0.7, 0.8, 0.9, 0.95)
DEFAULT = "default"
CONCEPT = TYPES.index(NodeType.CONCEPT)

NAVIGATOR, UNTUNED = "navigator", ", untuned"
BASELINES = {
    "mmr": Method(strategy="mmr"),
    "mmr λ 0.9": Method(strategy="mmr", mmr_lambda=0.9),
    "msd": Method(strategy="msd"),
    "sections": Method(strategy="sections"),
}
# what is also measured as users get it
MARKED = ("mmr", "sections", NAVIGATOR)


def budgets(method: Method) -> Iterator[tuple[str, Method]]:
    """Yield a method with each of its budgets, by the name of the budget."""
    yield DEFAULT, method
    for reduction in REDUCTIONS:
        yield f"{reduction} %", replace(method, max_nodes=ALL_NODES, share=1 - reduction / 100)
    for promise in PROMISES if method.strategy == NAVIGATOR else ():
        yield f"P {promise}", replace(method, sufficiency=promise)


def pages(
    example: Example,
    pager: SkillPager,
    methods: Mapping[str, Method],
    style: Style,
    navigator: Strategy | None = None,
) -> Iterator[dict[str, object]]:
    """Yield the pages of a document's long and short queries by every method and budget."""
    nodes = len(pager.index(example.skill).nodes)
    for name, method in methods.items():
        strategy = navigator if method.strategy == NAVIGATOR else None
        for budget, limited in budgets(method):
            for asked in (asked for asked in example.asked if asked.series in (LONG, SHORT)):
                query = asked.query
                page, _ = page_by(pager, example.skill, query.query, limited, strategy=strategy, style=style)
                needed = example.labels[asked.needs == 1]
                row = page_row(example.document, query, page)
                yield {
                    "query": query.id,
                    "skill": example.name,
                    "repository": example.repository,
                    "series": asked.series,
                    # what only one of the two kinds of queries has
                    "difficulty": query.difficulty,
                    "wording": query.style,
                    "concept": bool(len(needed)) and bool((needed == CONCEPT).all()),
                    "nodes": nodes,
                    "method": name,
                    "style": str(style),
                    "budget": budget,
                    **row,
                    "coverage": round(float(row["coverage"]), 4),
                    "promised": page.sufficiency,
                }


def of_split(examples: Sequence[Example], work: Path, split: Split) -> Iterator[dict[str, object]]:
    """Yield the pages of the documents that a split is tried on; MMR also with the untuned encoder."""
    folder, encoders = work / "folds" / split.name, work / "encoders"
    classifier = LocalClassifier(folder / "types.npz")
    with np.load(folder / "navigator.npz") as arrays:
        navigator = Navigator(model=NeedModel.of({name: arrays[name] for name in arrays.files}))
    methods = {**BASELINES, NAVIGATOR: Method(strategy=NAVIGATOR)}
    marked = {name: methods[name] for name in MARKED}
    untuned = {f"mmr{UNTUNED}": BASELINES["mmr"]}
    with TemporaryDirectory() as store:
        settings = Settings(cache_dir=Path(store))
        tuned = SkillPager(
            encoder=BuiltinEncoder(folder=encoders / split.name, id=ENCODER_ID),
            classifier=classifier,
            store=Path(store, "tuned"),
            embedded_text=TEXT_FORM,
            settings=settings,
        )
        # the types of the base's rows are never read, so any classifier will do
        before = SkillPager(
            encoder=BuiltinEncoder(folder=encoders / BASE, id=ENCODER_ID),
            classifier=classifier,
            store=Path(store, "before"),
            embedded_text="bare",
            settings=settings,
        )
        for place in split.tried:
            yield from pages(examples[place], tuned, methods, Style.PLAIN, navigator)
            yield from pages(examples[place], tuned, marked, Style.MARKED, navigator)
            yield from pages(examples[place], before, untuned, Style.PLAIN)
        tuned.close()
        before.close()


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
    with (options.work / "pages.jsonl").open("w", encoding="utf-8") as stream, ProcessPoolExecutor() as pool:
        tasks = [pool.submit(_rows, examples, options.work, split) for split in splits]
        for split, task in zip(splits, tasks, strict=True):
            stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in task.result())
            logger.info("%s measured", split.name)


def _rows(examples: Sequence[Example], work: Path, split: Split) -> list[dict[str, object]]:
    return [{"fold": split.name, **row} for row in of_split(examples, work, split)]


if __name__ == "__main__":
    main()
