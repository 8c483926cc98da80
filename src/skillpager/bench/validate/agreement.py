"""How well two raters agree: rate, Cohen's κ, and scores of each label.

Reference: paper §4.2 and §5.1; Cohen, *A Coefficient of Agreement for Nominal Scales* (1960).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skillpager.bench.report.statistics import LEVEL, SAMPLES, SEED, Interval, bootstrap
from skillpager.errors import require_extra

Counts = NDArray[np.int64]
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LabelScore:
    """How well one label is met.

    Attributes:
        label: The label.
        precision: Share of the rater's cases of this label that the reference gives it too.
        recall: Share of the reference's cases of this label that the rater gives it too.
        f1: Their harmonic mean.
        reference: Cases to which the reference gives the label.
        rated: Cases to which the rater does.
    """

    label: str
    precision: float
    recall: float
    f1: float
    reference: int
    rated: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """How a rater agrees with a reference on the same cases.

    Attributes:
        cases: Number of cases.
        rate: Share of cases with the same label (accuracy), 95 % bootstrap interval over cases.
        kappa: Cohen's κ with its interval; None where it is undefined, because both use one label only.
        kappa_undefined: Share of the resamples in which κ is undefined; the interval is of the others.
        macro_f1: Mean F1 of the labels that occur.
        scores: The labels that occur, in the order of `labels`.
        labels: All labels.
        confusion: `confusion[i][j]` cases have `labels[i]` by the reference and `labels[j]` by the rater.
    """

    cases: int
    rate: Interval
    kappa: Interval | None
    kappa_undefined: float
    macro_f1: float
    scores: tuple[LabelScore, ...]
    labels: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]


def measure_agreement(reference: Sequence[str], rated: Sequence[str], labels: Sequence[str]) -> Agreement:
    """Return how two label sequences agree.

    Args:
        reference: Labels taken for right, one a case.
        rated: Labels of the rater on the same cases.
        labels: All labels there are.

    Raises:
        ValueError: There are no cases, the lengths differ, or a label is not in `labels`.
        MissingExtraError: scikit-learn is not installed.
    """
    if not reference or len(reference) != len(rated):
        raise ValueError(
            f"{len(reference)} and {len(rated)} labels: both sides need the same cases, one or more"
        )
    if strange := {*reference, *rated} - {*labels}:
        raise ValueError(f"unknown labels: {', '.join(sorted(strange))}")
    metrics = require_extra("sklearn.metrics", extra="bench", purpose="Agreement")
    confusion: Counts = metrics.confusion_matrix(reference, rated, labels=list(labels))
    kappa, undefined = _kappa_interval(confusion)
    scores = _label_scores(reference, rated, labels)
    return Agreement(
        cases=len(reference),
        rate=bootstrap([first == second for first, second in zip(reference, rated, strict=True)]),
        kappa=kappa,
        kappa_undefined=undefined,
        macro_f1=sum(score.f1 for score in scores) / len(scores),
        scores=scores,
        labels=tuple(labels),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
    )


def kappas(confusions: Counts) -> Numbers:
    """Return Cohen's κ of confusion matrices, NaN where both raters use one label only.

    κ = (p_o − p_e) / (1 − p_e), with p_o the observed and p_e the agreement expected by chance.

    Args:
        confusions: `(n, k, k)` numbers of cases.

    Returns:
        `(n,)` κ.
    """
    cases = confusions.sum(axis=(1, 2))
    observed = np.trace(confusions, axis1=1, axis2=2) / cases
    expected = (confusions.sum(axis=2) * confusions.sum(axis=1)).sum(axis=1) / cases**2
    values: Numbers = np.full(len(confusions), np.nan)
    np.divide(observed - expected, 1 - expected, out=values, where=expected < 1)
    return values


def _kappa_interval(confusion: Counts) -> tuple[Interval | None, float]:
    """Return κ with its percentile bootstrap interval, and the share of resamples without a κ.

    Cases of one cell of the matrix are alike, so that a resample of the cases is a multinomial draw of it.
    """
    value = float(kappas(confusion[None])[0])
    if np.isnan(value):
        return None, 1.0
    cells = confusion.ravel()
    drawn = np.random.default_rng(SEED).multinomial(cells.sum(), cells / cells.sum(), size=SAMPLES)
    resampled = kappas(drawn.reshape(-1, *confusion.shape))
    low, high = np.nanquantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(value, float(low), float(high)), float(np.isnan(resampled).mean())


def _label_scores(
    reference: Sequence[str], rated: Sequence[str], labels: Sequence[str]
) -> tuple[LabelScore, ...]:
    metrics = require_extra("sklearn.metrics", extra="bench", purpose="Agreement")
    occurring = [label for label in labels if label in reference or label in rated]
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(
        reference, rated, labels=occurring, zero_division=0.0
    )
    return tuple(
        LabelScore(label, float(p), float(r), float(f), reference.count(label), rated.count(label))
        for label, p, r, f in zip(occurring, precision, recall, f1, strict=True)
    )
