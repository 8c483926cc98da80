"""A judge against people: samples of judged contexts for them to label, and agreement with their labels.

The cases that are drawn from a stratum follow from digests of the cases: the same data give the same sample,
in any order of recording.

Reference: paper §4.2 and §5.1; Cohen, *A Coefficient of Agreement for Nominal Scales* (1960).
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.data.records import JudgmentRecord
from skillpager.bench.judge.judges import Case, Docket, choose_methods, collect_cases
from skillpager.bench.judge.sheets import INSUFFICIENT, LABELS, SUFFICIENT, drawn_digest, read_answers
from skillpager.bench.report.statistics import LEVEL, SAMPLES, SEED, Interval, bootstrap
from skillpager.bench.run.methods import parse_method
from skillpager.errors import BenchError, require_extra

SAMPLE_SIZE = 96  # paper §4.2
# the paper names no four; these are its methods without the full document, which it calls a reference (§4.3)
METHODS = ("greedy_graph", "topk_dependency", "chunk_mmr", "mmr")
ALL = "all"


def judged_cases(folder: BenchFolder, judge: str, docket: Docket) -> Iterator[tuple[str, JudgmentRecord]]:
    """Yield the judge's verdicts on the contexts of a docket, each with the digest of its case."""
    for method, selections in docket.selections.items():
        verdicts = {(each.query, each.context_sha256): each for each in folder.judgments(judge, method)}
        for digest, chosen in selections:
            if verdict := verdicts.get((chosen.query, chosen.context_sha256)):
                yield digest, verdict


def sample_cases(
    folder: BenchFolder, judge: str, *, methods: Sequence[str] = METHODS, size: int = SAMPLE_SIZE
) -> tuple[dict[str, Case], list[str]]:
    """Return judged cases, balanced over methods, verdicts and vote patterns, and what they lack.

    The vote patterns are those that the judge's number of votes allows: 3-0 and 2-1 for three votes, 1-0
    alone for one. A stratum with too few cases gives all of them; no other stratum makes up for it. The
    second value has a sentence for each such stratum.

    Raises:
        BenchError: A method is unknown, the judge did not judge it, or the run stored no contexts.
    """
    methods = list(dict.fromkeys(parse_method(method).label for method in methods))
    judged_methods = folder.judged_methods(judge)
    if missing := [method for method in methods if method not in judged_methods]:
        raise BenchError(
            f"Judge {judge} has no verdicts on {missing[0]} in {folder.path}: judge it with "
            "`skillpager bench judge`, or choose --methods among those it has judged "
            f"({', '.join(judged_methods) or 'none'})."
        )
    docket = collect_cases(folder, methods)
    strata: dict[tuple[str, bool, str], list[str]] = defaultdict(list)
    totals: Counter[int] = Counter()
    for digest, verdict in judged_cases(folder, judge, docket):
        strata[verdict.method, verdict.sufficient, verdict.pattern].append(digest)
        totals[len(verdict.votes)] += 1
    if not totals:
        raise BenchError("No case could be drawn: run and judge methods first.")
    # as many votes as most verdicts have
    votes = totals.most_common(1)[0][0]
    patterns = [f"{more}-{votes - more}" for more in range(votes, votes // 2, -1)]
    wanted = max(1, size // (len(methods) * 2 * len(patterns)))
    drawn: dict[str, Case] = {}
    warnings: list[str] = []
    for method, sufficient, pattern in product(methods, (True, False), patterns):
        # a context that several methods made is one case
        there = [digest for digest in strata[method, sufficient, pattern] if digest not in drawn]
        chosen = sorted(there, key=drawn_digest)[:wanted]
        drawn |= {digest: docket.cases[digest] for digest in chosen}
        if len(chosen) < wanted:
            stratum = f"{method} {SUFFICIENT if sufficient else INSUFFICIENT} {pattern}"
            warnings.append(f"{stratum}: {len(chosen)} of {wanted} cases, there are no more")
    return drawn, warnings


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of a rater with a reference on the same cases.

    Attributes:
        cases: Number of cases.
        rate: Share of cases with the same label (accuracy), 95 % bootstrap interval over cases.
        kappa: Cohen's κ with its interval; None where it is undefined, because both use one label only.
            Resamples in which it is undefined are left out of the interval.
        macro_f1: Mean F1 of the labels that occur.
        f1: F1 of each label that occurs, in the order of the labels.
    """

    cases: int
    rate: Interval
    kappa: Interval | None
    macro_f1: float
    f1: Mapping[str, float]


def measure_agreement(reference: Sequence[str], rated: Sequence[str], labels: Sequence[str]) -> Agreement:
    """Return how the labels of a rater agree with the reference labels of the same cases.

    Raises:
        ValueError: There are no cases, the lengths differ, or a label is not in `labels`.
    """
    if strange := {*reference, *rated} - {*labels}:
        raise ValueError(f"unknown labels: {', '.join(sorted(strange))}")
    metrics = require_extra("sklearn.metrics", extra="bench", purpose="Agreement")
    reference, rated = list(map(str, reference)), list(map(str, rated))
    confusion = metrics.confusion_matrix(reference, rated, labels=list(labels))
    occurring = [str(label) for label in labels if label in reference or label in rated]
    f1 = metrics.f1_score(reference, rated, labels=occurring, average=None, zero_division=0.0)
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
        macro_f1=float(np.mean(f1)),
        f1=dict(zip(occurring, f1.tolist(), strict=True)),
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


def score_sheets(folder: BenchFolder, judge: str, sheets: Sequence[Path]) -> list[Group]:
    """Return how annotators agree with the judge on the cases with a label, in all and by vote pattern.

    `sheets` are answered copies of a sample, or exports of Label Studio.

    Raises:
        BenchError: A sheet is wrong, has no label, or has a case that the judge has not judged.
    """
    judged = dict(judged_cases(folder, judge, collect_cases(folder, choose_methods(folder))))
    groups = []
    for path in sheets:
        answers = read_answers(path)
        if answers.empty:
            raise BenchError(f"{path} has no label yet: answer it in a spreadsheet or in Label Studio.")
        if strange := [case for case in answers["case"] if case not in judged]:
            raise BenchError(
                f"{path} has the case {strange[0]}, which {judge} has not judged in {folder.path}: "
                "name the folder from which the sample was drawn."
            )
        verdicts = [judged[case] for case in answers["case"]]
        answers["pattern"] = [verdict.pattern for verdict in verdicts]
        answers["rated"] = [SUFFICIENT if verdict.sufficient else INSUFFICIENT for verdict in verdicts]
        for annotator, own in answers.groupby("annotator"):
            # unanimous votes first
            patterns = sorted(set(own["pattern"]), reverse=True)
            for name in [ALL, *patterns] if len(patterns) > 1 else [ALL]:
                part = own if name == ALL else own[own["pattern"] == name]
                agreement = measure_agreement(list(part["label"]), list(part["rated"]), list(LABELS))
                groups.append(Group(str(annotator), name, agreement))
    return groups
