"""Train the node classifier on embeddings by encoders that were not trained on the document; score it.

Every document is scored by networks trained without its fold; the temperature that calibrates a fold comes
from the other folds. `train.py` calls this.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from sklearn.metrics import confusion_matrix, f1_score

from data import Example as Document
from fitting import Fit, fit_nets
from sequence_net import Example, Net, Shape, arrays_of
from skillpager.classifiers.local import TYPES, assemble
from skillpager.sections import section_numbers
from skillpager.sequence_net import SequenceNet
from skillpager.types import FloatArray, IndexNotes, Query

SHAPE = Shape(outputs=len(TYPES), width=64, blocks=2, dropout=0.4)
FIT = Fit(epochs=8, rate=2e-3, batch=4, seeds=6, loss="types")
BINS = 10


@dataclass(frozen=True)
class Encoded:
    """What an encoder that never saw a document makes of it.

    Attributes:
        rows: `(n, 384)` of the nodes.
        queries: Its queries, embedded, with their clauses.
        head: `(n, 6)` logits of its type head.
        unanswered: Requests that it does not answer, embedded.
        notes: What readers wrote that its nodes are asked for, embedded, if they did.
    """

    rows: FloatArray
    queries: tuple[Query, ...]
    head: FloatArray
    unanswered: tuple[Query, ...] = ()
    notes: IndexNotes | None = None


def examples_of(documents: Sequence[Document], encoded: Sequence[Encoded]) -> list[Example]:
    """Return the documents as the network reads them; the target is the annotators' shares of the types."""
    return [
        Example(assemble(document.fragments, of.head), section_numbers(document.fragments), document.types)
        for document, of in zip(documents, encoded, strict=True)
    ]


def train(examples: Sequence[Example]) -> list[Net]:
    """Return networks trained on the documents given."""
    return fit_nets(examples, SHAPE, FIT)


def predict(nets: Sequence[Net], examples: Sequence[Example]) -> list[FloatArray]:
    """Return `(n, 6)` logits of each document, by the code that ships."""
    net = SequenceNet(arrays_of(nets))
    return [net.logits(example.features, example.sections) for example in examples]


def probabilities(logits: FloatArray, temperature: float) -> FloatArray:
    """Return the softmax of `logits / temperature`."""
    powers = np.exp((logits - logits.max(1, keepdims=True)) / temperature)
    shares: FloatArray = powers / powers.sum(1, keepdims=True)
    return shares


def fit_temperature(logits: FloatArray, labels: np.ndarray) -> float:
    """Return the temperature of least log loss, to a hundredth."""
    grid = np.arange(0.5, 3.0, 0.01)
    losses = [-np.log(probabilities(logits, t)[np.arange(len(labels)), labels]).mean() for t in grid]
    return round(float(grid[int(np.argmin(losses))]), 2)


def reliability(confidence: FloatArray, correct: np.ndarray, bins: int = BINS) -> list[dict[str, float]]:
    """Return for each bin of confidence how many there are, what they promised and what came true."""
    places = np.minimum((confidence * bins).astype(int), bins - 1)
    return [
        {
            "count": int((places == place).sum()),
            "promised": round(float(confidence[places == place].mean()), 4),
            "observed": round(float(correct[places == place].mean()), 4),
        }
        for place in range(bins)
        if (places == place).any()
    ]


def calibration_error(bins: Sequence[dict[str, float]]) -> float:
    """Return the expected calibration error of a reliability table."""
    total = sum(row["count"] for row in bins)
    return round(sum(row["count"] * abs(row["observed"] - row["promised"]) for row in bins) / total, 4)


def score(
    documents: Sequence[Document], logits: Sequence[FloatArray], folds: np.ndarray
) -> dict[str, object]:
    """Return the scores of predictions by fold, each fold calibrated on the others."""
    fold = np.repeat(folds, [len(document.labels) for document in documents])
    labels = np.concatenate([document.labels for document in documents])
    second = np.concatenate([document.second for document in documents])
    values = np.concatenate(list(logits))
    known = labels >= 0
    chances = np.zeros_like(values)
    for number in np.unique(fold):
        others = (fold != number) & known
        chances[fold == number] = probabilities(
            values[fold == number], fit_temperature(values[others], labels[others])
        )
    truth, guess = labels[known], chances[known].argmax(1)
    bins = reliability(chances[known].max(1), truth == guess)
    both = known & (second >= 0)
    return {
        "documents": len(documents),
        "nodes": int(known.sum()),
        "accuracy": round(float((truth == guess).mean()), 4),
        "macro_f1": round(float(f1_score(truth, guess, average="macro")), 4),
        "f1": {
            str(kind): round(float(value), 4)
            for kind, value in zip(TYPES, f1_score(truth, guess, average=None), strict=True)
        },
        "expected_calibration_error": calibration_error(bins),
        "reliability": bins,
        "annotators_agree": round(float((labels[both] == second[both]).mean()), 4),
        "majority_baseline": round(float(np.bincount(truth).max() / len(truth)), 4),
        "confusion_rows_truth": confusion_matrix(truth, guess).tolist(),
    }


def settings() -> dict[str, object]:
    """Return what the networks were made with, for the log."""
    return {"shape": asdict(SHAPE), "fit": asdict(FIT)}
