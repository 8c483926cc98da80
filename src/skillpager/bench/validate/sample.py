"""Samples for people of contexts that a judge has judged.

The cases that are drawn from a stratum, and their order, follow from digests of the cases: the same data
give the same sheet, in any order of recording. `SHEET.key.jsonl` holds what annotators must not see.

Reference: paper §4.2.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from operator import itemgetter
from pathlib import Path

from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.data.records import Record, write_records
from skillpager.bench.judge.judges import collect_cases
from skillpager.bench.judge.sheets import (
    INSUFFICIENT,
    LABEL_STUDIO,
    SPREADSHEET_CELL,
    SUFFICIENT,
    case_texts,
    drawn_digest,
    write_sheet,
)
from skillpager.bench.run.methods import parse_method
from skillpager.errors import BenchError

SAMPLE_SIZE = 96  # paper §4.2
# the paper names no four; these are its methods without the full document, which it calls a reference (§4.3)
METHODS = ("greedy_graph", "topk_dependency", "chunk_mmr", "mmr")
KEY_SUFFIX = ".key.jsonl"


@dataclass(frozen=True, slots=True)
class CaseKey(Record):
    """What annotators must not see of a case.

    Attributes:
        rater: Id of the judge.
        rated: The label that it gave.
        parts: The parts of the sample that the case is in, such as `{"votes": "2-1", "method": "mmr"}`.
        about: Ids of what it is about.
    """

    case: str
    rater: str
    rated: str
    parts: Mapping[str, str]
    about: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sample:
    """A drawn sample.

    Attributes:
        cases: The texts of each case, in the order of the sheet.
        keys: Their keys, in the same order.
        warnings: Its shortcomings, one sentence each.
    """

    cases: Mapping[str, tuple[str, ...]]
    keys: tuple[CaseKey, ...]
    warnings: tuple[str, ...]


def sample_judgments(
    folder: BenchFolder, judge: str, *, methods: Sequence[str] = METHODS, size: int = SAMPLE_SIZE
) -> Sample:
    """Return a sample of contexts, balanced over methods, verdicts and vote patterns.

    The vote patterns are those that the judge's number of votes allows: 3-0 and 2-1 for three votes, 1-0
    alone for one. A stratum with too few cases gives all of them; no other stratum makes up for it.

    Args:
        folder: Benchmark with judgments and the contexts that were judged.
        judge: Id of the judge.
        methods: Labels of the methods.
        size: Cases in all.

    Raises:
        BenchError: A method is unknown, the judge did not judge it, or the run stored no contexts.

    Reference: paper §4.2.
    """
    methods = list(dict.fromkeys(parse_method(method).label for method in methods))
    judged, others = _judged(folder, judge, methods)
    # as many votes as most verdicts have
    totals = Counter(sum(map(int, key.parts["votes"].split("-"))) for key, _ in judged)
    votes = totals.most_common(1)[0][0] if totals else 1
    aside = {
        "judged on another context": others,
        f"not judged by {votes} votes": totals.total() - totals[votes],
    }
    warnings = [f"{count} set aside: {reason}" for reason, count in aside.items() if count]
    patterns = [f"{more}-{votes - more}" for more in range(votes, votes // 2, -1)]
    strata = list(product(methods, (SUFFICIENT, INSUFFICIENT), patterns))
    wanted = max(1, size // len(strata))
    ranked = sorted(
        (drawn_digest([*key.parts.values(), *key.about.values()]), key, texts) for key, texts in judged
    )
    drawn = []
    for method, label, pattern in strata:
        parts = {"votes": pattern, "method": method}
        chosen = [each for each in ranked if (each[1].rated, each[1].parts) == (label, parts)][:wanted]
        drawn += chosen
        if len(chosen) < wanted:
            warnings.append(f"{method} {label} {pattern}: {len(chosen)} of {wanted} cases, there are no more")
    cases, keys = dict[str, tuple[str, ...]](), []
    for row, (digest, key, texts) in enumerate(sorted(drawn, key=itemgetter(0)), 1):
        case = f"c{row:02d}-{digest[:6]}"
        cases[case] = texts
        keys.append(replace(key, case=case))
    return Sample(cases, tuple(keys), tuple(warnings))


def _judged(
    folder: BenchFolder, judge: str, methods: Sequence[str]
) -> tuple[list[tuple[CaseKey, tuple[str, ...]]], int]:
    """Return the contexts that a judge judged, each a key without the case's name and its texts.

    The second value is the number of verdicts on contexts that are gone.
    """
    found: list[tuple[CaseKey, tuple[str, ...]]] = []
    others = 0
    for method in methods:
        # the last verdict on each query
        verdicts = {verdict.query: verdict for verdict in folder.judgments(judge, method)}
        if not verdicts:
            known = ", ".join(folder.judged_methods(judge)) or "none"
            raise BenchError(
                f"Judge {judge} has no verdicts on {method} in {folder.path}: judge it with "
                f"`skillpager bench judge`, or choose --methods among those it has judged ({known})."
            )
        docket = collect_cases(folder, [method])
        chosen = {one.query: (digest, one) for digest, one in docket.selections[method]}
        for verdict in verdicts.values():
            digest, one = chosen.get(verdict.query, ("", None))
            if one is None or one.context_sha256 != verdict.context_sha256:
                others += 1
                continue
            label = SUFFICIENT if verdict.sufficient else INSUFFICIENT
            parts = {"votes": verdict.pattern, "method": method}
            about = {"query": one.query, "skill": one.skill, "context_sha256": one.context_sha256}
            texts = case_texts(docket.cases[digest])
            found.append((CaseKey("", judge, label, parts, about), texts))
    return found, others


def write_sample(path: Path, sample: Sample) -> tuple[Path, tuple[str, ...]]:
    """Write a new sheet and its key; return the key's path, and all warnings.

    Raises:
        BenchError: One of them exists, or there is no case.
    """
    key = key_file(path)
    if not sample.cases:
        raise BenchError("No case could be drawn: run and judge methods first.")
    if key.exists():
        raise BenchError(f"{key} exists, and it may hold answers: name another file, or remove it.")
    write_sheet(path, sample.cases)
    write_records(key, sample.keys)
    long = [case for case, texts in sample.cases.items() if max(map(len, texts)) >= SPREADSHEET_CELL]
    if not long or path.suffix == LABEL_STUDIO:
        return key, sample.warnings
    warning = (
        f"{len(long)} cases have a text too long for a cell of a spreadsheet, such as {long[0]}: "
        f"name a sheet for Label Studio, {path.with_suffix(LABEL_STUDIO).name}"
    )
    return key, (*sample.warnings, warning)


def key_file(sheet: Path) -> Path:
    """Return the path of a sheet's key."""
    return sheet.with_name(f"{sheet.stem}{KEY_SUFFIX}")
