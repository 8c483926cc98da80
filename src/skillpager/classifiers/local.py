"""The shipped classifier: a small network over the fragments of a skill, offline.

A type head, linear on the embeddings of the built-in encoder, was trained with the encoder; one pass of the
encoder thus gives embeddings and type logits. The network (`skillpager.sequence_net`) reads these logits and
the features of `features.describe`; most types are clear only together with the neighbouring fragments.
The network does not read the embeddings, because they made it overfit.
`training/train_types.py` trains the weights; `models/types/README.md` is their model card.

Reference: paper §3.1, Node Classification (there by a language model).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from skillpager.errors import ClassifierError
from skillpager.sections import section_numbers
from skillpager.sequence_net import SequenceNet
from skillpager.types import Classification, FloatArray, Fragment, NodeType

TYPES = tuple(NodeType)  # order of the model's outputs

MODEL = Path(__file__).parents[1] / "models" / "types" / "types.npz"
# part of every cache key: raise it with other weights
CLASSIFIER_ID = "local-5"


@dataclass(eq=False)
class LocalClassifier:
    """Types fragments offline, with the weights in a file, by default the shipped one, read on first use."""

    path: Path = MODEL
    id = CLASSIFIER_ID

    @property
    def embedding(self) -> str:
        """The embeddings it reads, as encoder id, `/` and text form."""
        arrays, _ = self._model
        return str(arrays["embedding"])

    def classify(self, fragments: Sequence[Fragment], rows: FloatArray | None) -> list[Classification]:
        """Return one verdict per fragment; the confidence is the model's calibrated probability.

        `fragments` are those of one skill, in document order, `rows` their `(n, 384)` unit rows of
        `embedding`; missing ones are a `ValueError`.
        """
        if rows is None or len(rows) != len(fragments):
            raise ValueError(f"the local classifier needs one row of {self.embedding} per fragment")
        if not fragments:
            return []
        arrays, net = self._model
        features = assemble(fragments, rows @ arrays["head.weight"] + arrays["head.bias"])
        logits = net.logits(features, section_numbers(fragments)) / np.float32(arrays["temperature"])
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities = powers / powers.sum(axis=1, keepdims=True)
        best = probabilities.argmax(axis=1)
        return [
            Classification(TYPES[choice], float(row[choice]))
            for choice, row in zip(best.tolist(), probabilities, strict=True)
        ]

    @cached_property
    def _model(self) -> tuple[dict[str, FloatArray], SequenceNet]:
        """All arrays of the file, and the network of those that are its weights."""
        try:
            with self.path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                arrays = dict(file)
        except (OSError, ValueError, BadZipFile) as error:
            raise ClassifierError(
                f"The shipped classifier {self.path} cannot be read ({error}): reinstall skillpager."
            ) from error
        weights = {name.removeprefix("net."): arrays[name] for name in arrays if name.startswith("net.")}
        return arrays, SequenceNet(weights)


def assemble(fragments: Sequence[Fragment], head: FloatArray) -> FloatArray:
    """Return `(n, 6 + len(NAMES))` float32: `(n, 6)` logits of the type head, then `features.describe`."""
    # its patterns take 15 ms to compile, which the page of an indexed skill need not wait for
    from skillpager.classifiers.features import describe

    return np.concatenate([head, describe(fragments)], axis=1, dtype=np.float32)
