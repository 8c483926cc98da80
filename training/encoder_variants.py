"""Compare ways to train the encoder: nodes alone or in windows of the document, with and without each loss.

    python training/encoder_variants.py --learn train dev --try train2 --out benchmarks/models/encoders.csv

Every variant learns from the same documents and is tried on documents of other repositories, by cosine and
type head alone, in 32-bit floats. A variant takes about ten minutes on one core.
"""

import argparse
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from bert import Upper, read_base
from data import LONG, SHORT, Example, load
from export_encoder import SOURCE, read_tokenizer
from skillpager.classifiers.local import TYPES
from skillpager.encoders.builtin import MAX_PIECES
from train_encoder import TYPE_SCALE, EncoderSettings, EncoderTrainer, States, train

logger = logging.getLogger("encoder_variants")


@dataclass(frozen=True)
class Variant:
    """A way to train the encoder.

    Attributes:
        name: Says it.
        changes: Of the settings that ship.
        tuned: Whether it is trained at all.
    """

    name: str
    changes: Mapping[str, float] = field(default_factory=dict)
    tuned: bool = True


VARIANTS = {
    "alone": Variant("each node alone, with headings and lead-in"),
    "windows": Variant("windows of 384 pieces", {"window": MAX_PIECES}),
    "windows-128": Variant("windows of 128 pieces", {"window": 128}),
    "no-types": Variant("no loss over types", {"types_weight": 0.0}),
    "no-clauses": Variant("no loss over clauses", {"clauses_weight": 0.0}),
    "no-others": Variant("no nodes of other documents", {"others": 0}),
    "untuned": Variant("untuned, each node alone", tuned=False),
    "untuned-windows": Variant("untuned, windows of 384 pieces", {"window": MAX_PIECES}, tuned=False),
}


def score(examples: Sequence[Example], states: Sequence[States], upper: Upper) -> dict[str, float]:
    """Return how well cosines rank needed nodes, by series of queries, and how well the head tells types."""
    areas: dict[str, list[float]] = {LONG: [], SHORT: []}
    first: dict[str, list[bool]] = {LONG: [], SHORT: []}
    right: list[np.ndarray] = []
    for example, of in zip(examples, states, strict=True):
        with torch.no_grad():
            rows = upper(of.windows + of.requests, of.spans + of.parts)
            nodes, parts = rows[: len(example.fragments)], rows[len(example.fragments) :]
            guess = upper.types(nodes * TYPE_SCALE).argmax(1).numpy()
        right.append((guess == example.labels)[example.labels >= 0])
        starts = np.cumsum([0, *map(len, of.parts)])
        for asked, start in zip(example.asked, starts, strict=False):
            needed = asked.needs == 1
            if asked.series in areas and needed.any() and not needed.all():
                cosines = (nodes @ parts[start]).numpy()
                areas[asked.series].append(float((cosines[needed][:, None] > cosines[~needed]).mean()))
                first[asked.series].append(bool(needed[cosines.argmax()]))
    return {
        **{f"auc_{series}": round(100 * float(np.mean(found)), 1) for series, found in areas.items()},
        **{f"nearest_{series}": round(100 * float(np.mean(found)), 1) for series, found in first.items()},
        "types": round(100 * float(np.concatenate(right).mean()), 1),
    }


def run(
    variant: Variant,
    base: Path,
    learns: Sequence[Example],
    tried: Sequence[Example],
    settings: EncoderSettings,
) -> dict[str, object]:
    """Train a variant from the weights `base` and return its row of the table."""
    settings = replace(settings, **variant.changes)  # type: ignore[arg-type]
    examples = [*learns, *tried]
    states = EncoderTrainer(base, read_tokenizer(), examples, settings).states
    torch.manual_seed(settings.seed)
    _, upper, _ = read_base(base, frozen=settings.frozen, outputs=len(TYPES))
    if variant.tuned:
        train([of for of in states[: len(learns)] if of.queries], upper, settings)
    return {
        "encoder": variant.name,
        "epochs": settings.epochs if variant.tuned else 0,
        **score(tried, states[len(learns) :], upper),
    }


def main(arguments: Iterable[str] | None = None) -> None:
    """Train and write; rows of other variants in the table stay."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--learn", nargs="+", type=Path, required=True, help="folders to learn from")
    parser.add_argument("--try", nargs="+", type=Path, required=True, dest="tried", help="folders to try on")
    parser.add_argument("--variants", default=",".join(VARIANTS), help=", ".join(VARIANTS))
    parser.add_argument(
        "--base",
        type=Path,
        default=SOURCE / "model.safetensors",
        help="weights to start from, of any number of layers",
    )
    parser.add_argument("--label", default="", help="name of the base in the table")
    parser.add_argument("--frozen", type=int, default=EncoderSettings.frozen, help="lower layers that stay")
    parser.add_argument("--epochs", type=int, default=EncoderSettings.epochs)
    parser.add_argument("--out", type=Path, required=True, help="table to write or add to")
    options = parser.parse_args(arguments if arguments is None else list(arguments))
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(message)s")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    learns, tried = load(options.learn), load(options.tried)
    for name in options.variants.split(","):
        settings = EncoderSettings(epochs=options.epochs, frozen=options.frozen)
        row = pd.DataFrame([run(VARIANTS[name], options.base, learns, tried, settings)])
        if options.label:
            row["encoder"] = options.label + ", " + row["encoder"]
        logger.info("%s", row.to_dict("records"))
        if options.out.exists():
            known = pd.read_csv(options.out)
            row = pd.concat([known[known["encoder"] != row["encoder"].item()], row])
        row.to_csv(options.out, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
