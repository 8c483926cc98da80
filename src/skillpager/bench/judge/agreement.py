"""A judge against people: samples of judged contexts for them to label, and agreement with their labels.

The cases that are drawn from a stratum follow from digests of the cases: the same data give the same sample,
in any order of recording.

Reference: paper §4.2 and §5.1; Cohen, *A Coefficient of Agreement for Nominal Scales* (1960).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.judge.judges import Case, collect_cases
from skillpager.bench.judge.sheets import INSUFFICIENT, LABELS, SUFFICIENT, drawn_digest
from skillpager.bench.report.statistics import Interval, bootstrap
from skillpager.errors import BenchError, require_extra

SAMPLE_SIZE = 96  # paper §4.2
# the paper names no four; these are its methods without the full document, which it calls a reference (§4.3)
METHODS = ("greedy_graph", "topk_dependency", "chunk_mmr", "mmr")
ALL = "all"


def sample_cases(
    folder: BenchFolder, judge: str, *, methods: Sequence[str] = METHODS, size: int = SAMPLE_SIZE
) -> tuple[dict[str, Case], list[str]]:
    """Return judged cases, balanced over methods, verdicts and vote patterns, and what they lack.

    The vote patterns are those that the judge's number of votes allows: 3-0 and 2-1 for three votes, 1-0
    alone for one. A stratum with too few cases gives all of them; no other stratum makes up for it. The
    second value has a sentence for each such stratum.
    """
    judged_methods = folder.judged_methods(judge)
    if missing := [method for method in methods if method not in judged_methods]:
        raise BenchError(
            f"Judge {judge} has no verdicts on {missing[0]} in {folder.path}: judge it with "
            "`skillpager bench judge`, or choose --methods among those it has judged "
            f"({', '.join(judged_methods) or 'none'})."
        )
    docket = collect_cases(folder, methods)
    rows = []
    for method, selections in docket.selections.items():
        verdicts = {(each.query, each.context_sha256): each for each in folder.judgments(judge, method)}
        for digest, chosen in selections:
            if verdict := verdicts.get((chosen.query, chosen.context_sha256)):
                rows.append((digest, method, verdict.sufficient, verdict.pattern, len(verdict.votes)))
    if not rows:
        raise BenchError("No case could be drawn: run and judge methods first.")
    judged = pd.DataFrame(rows, columns=["case", "method", "sufficient", "pattern", "votes"])
    judged = judged.sort_values("case", key=lambda cases: cases.map(drawn_digest), kind="stable")
    votes = int(judged["votes"].mode()[0])  # as many as most verdicts have
    patterns = [f"{more}-{votes - more}" for more in range(votes, votes // 2, -1)]
    wanted = max(1, size // (len(methods) * 2 * len(patterns)))
    drawn: dict[str, Case] = {}
    warnings: list[str] = []
    for method, sufficient, pattern in product(methods, (True, False), patterns):
        stratum = judged.query("method == @method and sufficient == @sufficient and pattern == @pattern")
        # a context that several methods made is one case
        new = [digest for digest in stratum["case"] if digest not in drawn][:wanted]
        drawn |= {digest: docket.cases[digest] for digest in new}
        if len(new) < wanted:
            name = f"{method} {SUFFICIENT if sufficient else INSUFFICIENT} {pattern}"
            warnings.append(f"{name}: {len(new)} of {wanted} cases, there are no more")
    return drawn, warnings


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of a rater with a reference on the same cases."""

    cases: int
    rate: Interval  # share of cases with the same label (accuracy), 95 % bootstrap interval over cases
    # Cohen's κ with its asymptotic 95 % interval; None where it is undefined, because both use one label only
    kappa: Interval | None
    macro_f1: float  # mean F1 of the labels that occur
    f1: Mapping[str, float]  # F1 of each label that occurs, in the order of the labels


def measure_agreement(reference: Sequence[str], rated: Sequence[str], labels: Sequence[str]) -> Agreement:
    """Return how the labels of a rater agree with the reference labels of the same cases."""
    if strange := {*reference, *rated} - {*labels}:
        raise ValueError(f"unknown labels: {', '.join(sorted(strange))}")
    metrics = require_extra("sklearn.metrics", extra="bench", purpose="Agreement")
    reference, rated = list(map(str, reference)), list(map(str, rated))
    confusion = metrics.confusion_matrix(reference, rated, labels=list(labels))
    occurring = [str(label) for label in labels if label in reference or label in rated]
    f1 = metrics.f1_score(reference, rated, labels=occurring, average=None, zero_division=0.0)
    kappa = None
    if len(occurring) > 1:
        from statsmodels.stats.inter_rater import cohens_kappa

        with np.errstate(invalid="ignore"):  # a test of κ is 0 by 0 where a rater uses one label only
            found = cohens_kappa(confusion)
        kappa = Interval(*map(float, (found.kappa, found.kappa_low, min(1.0, found.kappa_upp))))
    return Agreement(
        cases=len(reference),
        rate=bootstrap([first == second for first, second in zip(reference, rated, strict=True)]),
        kappa=kappa,
        macro_f1=float(np.mean(f1)),
        f1=dict(zip(occurring, f1.tolist(), strict=True)),
    )


def compare_judges(folder: BenchFolder, judge: str, reference: str) -> dict[str, Agreement]:
    """Return how a judge agrees with another, the reference, such as people.

    The keys are `all`, then the vote patterns of the judge and the methods where there are several. A context
    that several methods made counts once, but for each of the methods.
    """
    rows = []
    for method in folder.judged_methods(reference):
        others = {(each.query, each.context_sha256): each for each in folder.judgments(judge, method)}
        for own in folder.judgments(reference, method):
            if other := others.get((own.query, own.context_sha256)):
                labels = [SUFFICIENT if each.sufficient else INSUFFICIENT for each in (own, other)]
                rows.append((method, own.query, own.context_sha256, *labels, other.pattern))
    if not rows:
        raise BenchError(
            f"{judge} and {reference} have judged no context in common in {folder.path}: import the answers "
            "with `skillpager bench judge --import`."
        )
    frame = pd.DataFrame(rows, columns=["method", "query", "context", "reference", "rated", "pattern"])
    once = frame.drop_duplicates(["query", "context"])
    parts = {ALL: once}
    # unanimous votes first
    for each, column in ((once.sort_values("pattern", ascending=False), "pattern"), (frame, "method")):
        if each[column].nunique() > 1:
            parts |= {str(name): part for name, part in each.groupby(column, sort=False)}
    return {
        name: measure_agreement(list(part["reference"]), list(part["rated"]), LABELS)
        for name, part in parts.items()
    }
