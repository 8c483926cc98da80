"""Train the shipped node classifier from annotated skills, and say how good it is.

    python training/train_types.py DATA... [--out src/skillpager/models/types]

DATA are folders of `<id>.md` with `<id>.ann.json` (docs/evidence-format.md). Scores come from
cross-validation over skills: no skill is in the fold it is scored in, and the temperature that
calibrates a fold is fitted on the other folds. The shipped weights are then fitted on everything.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, f1_score

from skillpager.bench.validation.node_types import label_fragments
from skillpager.classifiers.local import TYPES, assemble
from skillpager.encoders.builtin import BuiltinEncoder
from skillpager.encoders.documents import embedded_text
from skillpager.fragments import split_skill
from skillpager.skill import read_skill
from skillpager.types import FloatArray, Fragment

FOLDS = 8
SEED = 0
TEXT_FORM = "bare"
MODEL_ID = "local-1"

# strength of the L2 penalty, over standardised features times SCALE; chosen by the same
# cross-validation among 0.1, 0.3 and 1 (within 0.3 points of each other)
PENALTY = 0.3
SCALE = 0.1


@dataclass(frozen=True)
class Data:
    """Features and labels of all nodes; `skill[i]` numbers the skill of row i, label -1 is none."""

    features: FloatArray
    labels: np.ndarray
    second: np.ndarray
    skill: np.ndarray
    names: list[str]


def label_numbers(fragments: list[Fragment], ranges: list[tuple[int, int, str]]) -> list[int]:
    """Return for each fragment the number of its annotated type, -1 for none."""
    types = label_fragments(fragments, ranges)
    return [-1 if kind is None else TYPES.index(kind) for kind in types]


def load(folders: list[Path]) -> Data:
    """Read, split and embed every annotated skill."""
    encoder = BuiltinEncoder()
    features, labels, second, skill, names = [], [], [], [], []
    for path in sorted(path for folder in folders for path in folder.glob("*.ann.json")):
        annotation = json.loads(path.read_text(encoding="utf-8"))
        document = read_skill(path.with_name(annotation["skill"] + ".md"))
        fragments = [tile for tile in split_skill(document) if isinstance(tile, Fragment)]
        rows = encoder.encode_documents([embedded_text(fragment, TEXT_FORM) for fragment in fragments])
        features.append(assemble(fragments, rows))
        labels += label_numbers(fragments, annotation["types"])
        second += label_numbers(fragments, annotation.get("types_second", []))
        skill += [len(names)] * len(fragments)
        names.append(annotation["skill"])
    return Data(np.concatenate(features), np.array(labels), np.array(second), np.array(skill), names)


@dataclass(frozen=True)
class Model:
    """Weights on raw features."""

    weight: FloatArray
    bias: FloatArray

    def logits(self, features: FloatArray) -> FloatArray:
        """Return `(n, 6)` logits."""
        return features @ self.weight + self.bias


def fit(features: FloatArray, labels: np.ndarray) -> Model:
    """Fit the regression on standardised features and fold the standardisation into its weights."""
    mean, deviation = features.mean(0), features.std(0) + 1e-6
    scaled = (features - mean) / deviation * SCALE
    regression = LogisticRegression(C=PENALTY, max_iter=300).fit(scaled, labels)
    weight = (regression.coef_ * SCALE / deviation).T
    bias = regression.intercept_ - mean @ weight
    return Model(weight.astype(np.float32), bias.astype(np.float32))


def probabilities(logits: FloatArray, temperature: float) -> FloatArray:
    """Return the softmax of `logits / temperature`."""
    powers = np.exp((logits - logits.max(1, keepdims=True)) / temperature)
    return powers / powers.sum(1, keepdims=True)


def fit_temperature(logits: FloatArray, labels: np.ndarray) -> float:
    """Return the temperature of least log loss, to a hundredth."""
    grid = np.arange(0.5, 3.0, 0.01)
    losses = [-np.log(probabilities(logits, t)[np.arange(len(labels)), labels]).mean() for t in grid]
    return float(grid[int(np.argmin(losses))])


def calibration_error(confidence: FloatArray, correct: np.ndarray, bins: int = 10) -> float:
    """Return the expected calibration error over equal-width bins."""
    places = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [
        (places == b).mean() * abs(correct[places == b].mean() - confidence[places == b].mean())
        for b in range(bins)
        if (places == b).any()
    ]
    return float(sum(gaps))


def cross_validate(data: Data) -> tuple[FloatArray, FloatArray]:
    """Return out-of-fold logits and calibrated probabilities."""
    order = np.random.default_rng(SEED).permutation(len(data.names))
    fold = np.empty(len(data.names), dtype=int)
    fold[order] = np.arange(len(data.names)) % FOLDS
    fold = fold[data.skill]
    labelled = data.labels >= 0
    logits = np.zeros((len(data.labels), len(TYPES)), dtype=np.float32)
    for number in range(FOLDS):
        train, test = (fold != number) & labelled, fold == number
        logits[test] = fit(data.features[train], data.labels[train]).logits(data.features[test])
    calibrated = np.zeros_like(logits)
    for number in range(FOLDS):
        others = (fold != number) & labelled
        temperature = fit_temperature(logits[others], data.labels[others])
        calibrated[fold == number] = probabilities(logits[fold == number], temperature)
    return logits, calibrated


def report(data: Data, calibrated: FloatArray) -> dict[str, object]:
    """Return the scores of out-of-fold predictions."""
    known = data.labels >= 0
    truth, guess = data.labels[known], calibrated[known].argmax(1)
    confidence = calibrated[known].max(1)
    both = known & (data.second >= 0)
    return {
        "skills": len(data.names),
        "nodes": int(known.sum()),
        "folds": FOLDS,
        "seed": SEED,
        "penalty": PENALTY,
        "text_form": TEXT_FORM,
        "accuracy": round(float((truth == guess).mean()), 4),
        "macro_f1": round(float(f1_score(truth, guess, average="macro")), 4),
        "f1": {
            str(kind): round(float(score), 4)
            for kind, score in zip(TYPES, f1_score(truth, guess, average=None), strict=True)
        },
        "expected_calibration_error": round(calibration_error(confidence, truth == guess), 4),
        "annotators_agree": round(float((data.labels[both] == data.second[both]).mean()), 4),
        "majority_baseline": round(float(np.bincount(truth).max() / len(truth)), 4),
        "confusion_rows_truth": confusion_matrix(truth, guess).tolist(),
    }


def main() -> None:
    """Train, report and write the model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("src/skillpager/models/types"))
    options = parser.parse_args()
    data = load(options.data)
    logits, calibrated = cross_validate(data)
    scores = report(data, calibrated)
    print(json.dumps(scores, indent=1))
    known = data.labels >= 0
    model = fit(data.features[known], data.labels[known])
    options.out.mkdir(parents=True, exist_ok=True)
    np.savez(
        options.out / "types.npz",
        id=MODEL_ID,
        embedding=f"{BuiltinEncoder().id}/{TEXT_FORM}",
        weight=model.weight,
        bias=model.bias,
        temperature=np.float32(fit_temperature(logits[known], data.labels[known])),
    )
    (options.out / "training.json").write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
