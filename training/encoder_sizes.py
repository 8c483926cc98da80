"""Quality of smaller encoders: ranking by cosine alone, on the documents of one fold.

    python training/encoder_sizes.py DATA... --work build/training --out benchmarks/models/encoders.csv

Needs the encoders that `train.py` wrote to WORK, and trains those with fewer layers. Cosines are between a
query and the nodes of its document, in 32-bit floats except in the row of the encoder that ships.
"""

import argparse
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from bert import Upper, read_base
from data import Example, load
from export_encoder import SOURCE, read_tokenizer
from skillpager.classifiers.local import TYPES
from skillpager.encoders.builtin import ENCODER_ID, BuiltinEncoder
from skillpager.types import FloatArray
from train import Split, splits_of
from train_encoder import EncoderSettings, EncoderTrainer, States, train

logger = logging.getLogger("encoder_sizes")

FOLD = "skill-0"
DIMENSIONS = (384, 256, 128, 64)
# layers that are left out at the top
FEWER = (1, 2)
LAYERS = 6

Rows = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class Ranked:
    """How well rows rank the needed nodes of the queries that have some and not all."""

    auc: float
    first: float


def ranked(documents: Sequence[Example], rows: Callable[[int], Rows]) -> Ranked:
    """Return the mean area under the ROC curve, and how often the nearest node is needed.

    Args:
        documents: Annotated documents.
        rows: Gives the rows of the nodes and of the queries of a document.
    """
    areas, first = [], []
    for place, document in enumerate(documents):
        nodes, queries = rows(place)
        for asked, values in zip(document.asked, queries @ nodes.T, strict=True):
            needed = asked.needs == 1
            if asked.first_series and needed.any() and not needed.all():
                right, wrong = values[needed][:, None], values[~needed]
                areas.append(((right > wrong) + 0.5 * (right == wrong)).mean())
                first.append(needed[values.argmax()])
    return Ranked(float(np.mean(areas)), float(np.mean(first)))


def cut(rows: FloatArray, dimensions: int) -> FloatArray:
    """Return the first numbers of rows, at unit length again."""
    kept = rows[:, :dimensions]
    shorter: FloatArray = kept / np.linalg.norm(kept, axis=1, keepdims=True)
    return shorter


@torch.no_grad()
def rows_of(upper: Upper, states: States) -> Rows:
    """Return the rows of a document's nodes and queries."""
    found = upper([*states.nodes, *states.queries]).numpy()
    return found[: len(states.nodes)], found[len(states.nodes) :]


def table(examples: Sequence[Example], split: Split, work: Path) -> Iterator[dict[str, object]]:
    """Yield a row for each encoder."""
    tried = [examples[place] for place in split.tried]

    def row(name: str, rows: Callable[[int], Rows], share: float) -> dict[str, object]:
        found = ranked(tried, rows)
        logger.info("%s: %s", name, found)
        auc, first = (f"{100 * value:.1f}" for value in (found.auc, found.first))
        return {"encoder": name, "auc": auc, "nearest_is_needed": first, "time_share": f"{share:.2f}"}

    shipped = BuiltinEncoder(folder=work / "encoders" / FOLD, id=ENCODER_ID)
    base = BuiltinEncoder(folder=work / "encoders" / "base")

    def encoded(encoder: BuiltinEncoder) -> list[Rows]:
        return [
            (
                encoder.encode_documents(each.texts),
                encoder.encode_documents([asked.query.query for asked in each.asked]),
            )
            for each in tried
        ]

    yield row("untuned, 8-bit", encoded(base).__getitem__, 1.0)
    whole = encoded(shipped)
    for count in DIMENSIONS:
        yield row(
            f"8-bit, first {count} numbers",
            lambda place, count=count: tuple(cut(part, count) for part in whole[place]),  # type: ignore[misc]
            1.0,
        )
    trainer = EncoderTrainer(SOURCE / "model.safetensors", read_tokenizer(), examples, EncoderSettings())
    states = [trainer.states[place] for place in split.tried]
    learns = [trainer.states[place] for place in split.learns if trainer.states[place].queries]
    full = full_upper(work)
    yield row("32-bit floats", lambda place: rows_of(full, states[place]), 1.0)
    for fewer in FEWER:
        upper = base_upper(fewer)
        started = time.monotonic()
        train(learns, upper, EncoderSettings())
        logger.info("%d layers trained in %.0f s", LAYERS - fewer, time.monotonic() - started)
        share = (LAYERS - fewer) / LAYERS
        yield row(
            f"{LAYERS - fewer} layers, 32-bit floats",
            lambda place, upper=upper: rows_of(upper, states[place]),  # type: ignore[misc]
            share,
        )


def base_upper(fewer: int) -> Upper:
    """Return the base's upper layers without the last ones."""
    settings = EncoderSettings()
    torch.manual_seed(settings.seed)
    _, upper, _ = read_base(SOURCE / "model.safetensors", frozen=settings.frozen, outputs=len(TYPES))
    upper.layers = upper.layers[: len(upper.layers) - fewer]
    return upper


def full_upper(work: Path) -> Upper:
    """Return the upper layers of the fold's encoder."""
    weights = work / "encoders" / f"{FOLD}.safetensors"
    return read_base(weights, frozen=EncoderSettings().frozen, outputs=len(TYPES))[1]


def main() -> None:
    """Train, measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--work", type=Path, default=Path("build/training"), help="folder of `train.py`")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/models/encoders.csv"))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(message)s")
    examples = load(options.data)
    split = next(split for split in splits_of(examples) if split.name == FOLD)
    rows = pd.DataFrame(table(examples, split, options.work))
    rows.to_csv(options.out, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
