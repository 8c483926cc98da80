"""Agreement of two raters: rate, Cohen's κ, and scores of each label; of people, from answered sheets.

Reference: paper §4.2 and §5.1; Cohen, *A Coefficient of Agreement for Nominal Scales* (1960).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.data.records import read_records
from skillpager.bench.judge.sheets import LABELS, read_answers
from skillpager.bench.report.statistics import LEVEL, SAMPLES, SEED, Interval, bootstrap
from skillpager.bench.validate.sample import CaseKey, key_file
from skillpager.errors import BenchError, require_extra

ALL, BY_VOTES = "all", "votes"
# entry of the manifest: agreement by judge and vote pattern
VALIDATION = "validation"


@dataclass(frozen=True, slots=True)
class LabelScore:
    """Precision, recall and F1 of one label."""

    label: str
    precision: float
    recall: float
    f1: float


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
            LabelScore(label, float(precision), float(recall), float(f1))
            for label, precision, recall, f1 in zip(occurring, *each[:3], strict=True)
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


@dataclass(frozen=True, slots=True)
class Group:
    """Agreement of one annotator, whose labels are the reference, with the judge.

    Attributes:
        sheet: The file, and the annotator where a file has several.
        name: `all` cases, or those of a vote pattern, such as `2-1`.
        agreement: Agreement on the cases that have a label.
    """

    sheet: str
    name: str
    agreement: Agreement


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of answered sheets: the judge's id, groups, and the cases without a label by sheet."""

    rater: str
    groups: tuple[Group, ...]
    missing: Mapping[str, tuple[str, ...]]


def score_sheets(sheets: Sequence[Path], *, key: Path | None = None) -> Scores:
    """Return how the annotators of one sample agree with the judge, in all and by vote pattern.

    Args:
        sheets: Answered copies, or exports of Label Studio.
        key: The key of the sample; found beside each sheet when not given.

    Raises:
        BenchError: A sheet or key is missing or wrong, a sheet has no label or a case that its key does
            not have, or the sheets are not of one sample.
        MissingExtraError: scikit-learn is not installed.

    Reference: paper §4.2.
    """
    keys: dict[str, CaseKey] = {}
    groups: list[Group] = []
    missing: dict[str, tuple[str, ...]] = {}
    for path in sheets:
        place = key or find_key(path)
        own = {each.case: each for each in read_records(place, CaseKey)}
        if keys and own != keys:
            raise BenchError(f"{sheets[0]} and {path} have different keys: score them one by one.")
        keys = own
        found = [answers for answers in read_answers(path) if answers.labels]
        if not found:
            raise BenchError(f"{path} has no label yet: answer it in a spreadsheet or in Label Studio.")
        if strange := [case for answers in found for case in answers.labels if case not in keys]:
            raise BenchError(
                f"{path} has the case {strange[0]}, which {place} does not: name its own key, by --key."
            )
        for answers in found:
            missing[answers.annotator] = tuple(case for case in keys if case not in answers.labels)
            labelled = [each for each in keys.values() if each.case in answers.labels]
            # unanimous votes first
            patterns = sorted({each.parts[BY_VOTES] for each in labelled}, reverse=True)
            for name in [ALL, *patterns] if len(patterns) > 1 else [ALL]:
                members = [each for each in labelled if name in (ALL, each.parts[BY_VOTES])]
                people = [answers.labels[each.case] for each in members]
                agreement = measure_agreement(people, [each.rated for each in members], list(LABELS))
                groups.append(Group(answers.annotator, name, agreement))
    return Scores(next(iter(keys.values())).rater, tuple(groups), missing)


def find_key(sheet: Path) -> Path:
    """Return the key of a sheet; that of `SHEET.csv` for the copy of an annotator, `SHEET.NAME.csv`.

    Raises:
        BenchError: Neither is there.
    """
    own = key_file(sheet)
    for path in (own, own.with_name(key_file(Path(sheet.stem)).name)):
        if path.is_file():
            return path
    raise BenchError(f"{sheet} has no key {own.name} beside it: name the one it was made with, by --key.")


def note_agreement(folder: BenchFolder, scores: Scores) -> None:
    """Write the first annotator's agreement with the judge into the manifest, where `bench report` reads it.

    Raises:
        BenchError: The manifest is damaged.
    """
    noted = {
        group.name: {
            "cases": group.agreement.cases,
            "rate": group.agreement.rate.value,
            "kappa": group.agreement.kappa.value if group.agreement.kappa else None,
        }
        for group in scores.groups
        if group.sheet == scores.groups[0].sheet
    }
    known = folder.manifest().get(VALIDATION)
    folder.update_manifest({VALIDATION: {**(known if isinstance(known, dict) else {}), scores.rater: noted}})
