"""Agreement of two raters: rate, Cohen's κ, and scores of each label.

Reference: paper §4.2 and §5.1; Cohen, *A Coefficient of Agreement for Nominal Scales* (1960).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skillpager.bench.report.statistics import LEVEL, SAMPLES, SEED, Interval, bootstrap
from skillpager.errors import require_extra


@dataclass(frozen=True, slots=True)
class LabelScore:
    """Precision, recall and F1 of one label; `reference` and `rated` count the cases of either side."""

    label: str
    precision: float
    recall: float
    f1: float
    reference: int
    rated: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of a rater with a reference on the same cases.

    Attributes:
        cases: Number of cases.
        rate: Share of cases with the same label (accuracy), 95 % bootstrap interval over cases.
        kappa: Cohen's κ with its interval; None where it is undefined, because both use one label only.
            Resamples in which it is undefined are left out of the interval.
        macro_f1: Mean F1 of the labels that occur.
        scores: The labels that occur, in the order of `labels`.
        labels: All labels.
        confusion: `confusion[i][j]` cases have `labels[i]` by the reference and `labels[j]` by the rater.
    """

    cases: int
    rate: Interval
    kappa: Interval | None
    macro_f1: float
    scores: tuple[LabelScore, ...]
    labels: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]


def measure_agreement(reference: Sequence[str], rated: Sequence[str], labels: Sequence[str]) -> Agreement:
    """Return how the labels of a rater agree with the reference labels of the same cases.

    Raises:
        ValueError: There are no cases, the lengths differ, or a label is not in `labels`.
        MissingExtraError: scikit-learn is not installed.
    """
    if strange := {*reference, *rated} - {*labels}:
        raise ValueError(f"unknown labels: {', '.join(sorted(strange))}")
    metrics = require_extra("sklearn.metrics", extra="bench", purpose="Agreement")
    confusion = metrics.confusion_matrix(reference, rated, labels=list(labels))
    occurring = [label for label in labels if label in reference or label in rated]
    each = metrics.precision_recall_fscore_support(reference, rated, labels=occurring, zero_division=0.0)
    kappa = float(kappas(confusion[None])[0])
    # cases in one cell of the matrix are alike: a resample of the cases is a multinomial draw of the cells
    cells = confusion.ravel()
    drawn = np.random.default_rng(SEED).multinomial(cells.sum(), cells / cells.sum(), size=SAMPLES)
    interval = None
    if not np.isnan(kappa):
        resampled = kappas(drawn.reshape(-1, *confusion.shape))
        interval = Interval(kappa, *np.nanquantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist())
    return Agreement(
        cases=len(reference),
        rate=bootstrap([first == second for first, second in zip(reference, rated, strict=True)]),
        kappa=interval,
        macro_f1=float(np.mean(each[2])),
        scores=tuple(
            LabelScore(label, float(p), float(r), float(f), reference.count(label), rated.count(label))
            for label, p, r, f in zip(occurring, *each[:3], strict=True)
        ),
        labels=tuple(labels),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
    )


def kappas(confusions: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return Cohen's κ of `(n, k, k)` confusion matrices, NaN where both raters use one label only.

    κ = (p_o − p_e) / (1 − p_e), with p_o the observed and p_e the agreement expected by chance. scikit-learn
    has it for one matrix at a time, which is too slow for resamples.
    """
    cases = confusions.sum(axis=(1, 2))
    observed = np.trace(confusions, axis1=1, axis2=2) / cases
    expected = (confusions.sum(axis=2) * confusions.sum(axis=1)).sum(axis=1) / cases**2
    values = np.full(len(confusions), np.nan)
    np.divide(observed - expected, 1 - expected, out=values, where=expected < 1)
    return values
