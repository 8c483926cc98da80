"""The shipped classifier: embedding, words, shape and place of a fragment, and its neighbours'.

A multinomial logistic regression in plain numpy over the built-in encoder's row of the fragment,
the features of `features.describe` and those of the fragments before and after it.
`training/train_types.py` makes the weights; `models/types/README.md` is their card.

Reference: paper §3.1, Node Classification (there by a language model).
"""

import threading
from collections.abc import Sequence
from functools import cached_property
from importlib.resources import files
from zipfile import BadZipFile

import numpy as np

from skillpager.classifiers.features import describe
from skillpager.errors import ClassifierError
from skillpager.types import Classification, FloatArray, Fragment, NodeType

# order of the model's outputs
TYPES = (
    NodeType.STEP,
    NodeType.EXAMPLE,
    NodeType.PARAM,
    NodeType.PRECONDITION,
    NodeType.ERROR_HANDLING,
    NodeType.CONCEPT,
)

MODEL = "models/types/types.npz"


class LocalClassifier:
    """Types fragments offline, with the model that ships inside the package."""

    def __init__(self) -> None:
        """Load nothing yet; weights are read on first use."""
        self._lock = threading.Lock()

    @property
    def id(self) -> str:
        """Name of the model."""
        return str(self._model["id"])

    @property
    def embedding(self) -> str:
        """Which rows it reads: encoder id, `/` and text form."""
        return str(self._model["embedding"])

    def classify(self, fragments: Sequence[Fragment], rows: FloatArray | None) -> list[Classification]:
        """Return one verdict per fragment; the confidence is the model's calibrated probability.

        Args:
            fragments: All fragments of one skill, in document order.
            rows: `(len(fragments), 384)` unit rows of `embedding`.

        Raises:
            ValueError: `rows` are missing or of another shape.
        """
        if rows is None or len(rows) != len(fragments):
            raise ValueError(f"the local classifier needs one row of {self.embedding} per fragment")
        if not fragments:
            return []
        probabilities = self._predict(assemble(fragments, rows))
        best = probabilities.argmax(axis=1)
        return [
            Classification(TYPES[choice], float(row[choice]))
            for choice, row in zip(best.tolist(), probabilities, strict=True)
        ]

    @cached_property
    def _model(self) -> dict[str, np.ndarray]:
        path = files("skillpager") / MODEL
        try:
            with self._lock, path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
        except (OSError, ValueError, BadZipFile) as error:
            raise ClassifierError(
                f"The shipped classifier {path} cannot be read ({error}): reinstall skillpager."
            ) from error

    def _predict(self, features: FloatArray) -> FloatArray:
        model = self._model
        logits: FloatArray = (features @ model["weight"] + model["bias"]) / model["temperature"]
        return _softmax(logits)


def assemble(fragments: Sequence[Fragment], rows: FloatArray) -> FloatArray:
    """Return the model's input: own row, own features and those of the fragments before and after.

    Args:
        fragments: All fragments of one skill, in document order.
        rows: `(n, dim)` unit rows of the fragments.

    Returns:
        `(n, dim + 3 * len(features.NAMES))` float32.
    """
    own = describe(fragments)
    return np.concatenate([rows, own, _shifted(own, 1), _shifted(own, -1)], axis=1)


def _shifted(values: FloatArray, by: int) -> FloatArray:
    """Return each row's neighbour: the row `by` places before it, zeros at the ends."""
    moved = np.zeros_like(values)
    if by > 0:
        moved[by:] = values[:-by]
    else:
        moved[:by] = values[-by:]
    return moved


def _softmax(logits: FloatArray) -> FloatArray:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: FloatArray = powers / powers.sum(axis=1, keepdims=True)
    return shares
