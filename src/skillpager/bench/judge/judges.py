"""Judges, the cases they are given, and the judgments of a benchmark folder.

The same context for the same query is one case, even if several methods made it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from skillpager.bench.data.evidence import AnnotatedQuery, Document
from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.data.records import (
    JudgmentRecord,
    QueryRecord,
    SelectionRecord,
    SkillRecord,
    read_records,
    write_records,
)
from skillpager.bench.judge.evidence_measure import evidence_coverage
from skillpager.bench.run.methods import read_labels
from skillpager.errors import BenchError
from skillpager.library.discovery import Progress, no_progress

EVIDENCE = "evidence"
# 96 bits: enough to distinguish cases, short enough for names of files and of batch requests
CASE_DIGITS = 24
NO_CONTEXTS = (
    "hold no contexts, which a judge needs: remove them and run `skillpager bench run --contexts` again"
)


@dataclass(frozen=True, slots=True)
class Case:
    """A context to be judged: the text that an agent would be given, selected for a query from a skill."""

    skill: SkillRecord
    query: QueryRecord
    context: str

    @property
    def digest(self) -> str:
        """The name of the case: `c` and 24 hexadecimal digits over what a reading judge is shown."""
        seen = [self.skill.name, self.skill.description, self.query.id, self.query.query, self.context]
        # the letter, because spreadsheets take some bare digests for numbers
        return f"c{hashlib.sha256(json.dumps(seen).encode()).hexdigest()[:CASE_DIGITS]}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's verdict on a case."""

    sufficient: bool
    votes: tuple[bool, ...]  # single votes, in order; one for a deterministic judge
    coverage: float | None = None  # share of the evidence that the context holds, 0 to 1; evidence judge only
    reason: str = ""

    def on(self, chosen: SelectionRecord, judge: str) -> JudgmentRecord:
        """Return the verdict as the record of a judge's judgment on a selection."""
        ids = chosen.query, chosen.skill, chosen.method, judge
        said = self.sufficient, self.votes, self.coverage, self.reason
        return JudgmentRecord(*ids, *said, chosen.context_sha256)


class Judge(Protocol):
    """Returns a verdict for a case; `id` names it in records, and its folder of judgments."""

    id: str

    def judge(self, case: Case) -> Verdict | None:
        """Return the verdict; None if there is none, so that the case counts neither way."""


def judge_evidence(
    skill: SkillRecord | Document, query: QueryRecord | AnnotatedQuery, context: str
) -> tuple[float, bool]:
    """Return the share of the evidence that a context holds, 0 to 1, and whether it is sufficient.

    Lines are counted as when a text file is read: a carriage return ends a line too.
    """
    if not query.critical:
        raise BenchError(
            f"The evidence judge needs annotated data, and query {query.id} has no critical lines: use "
            "`skillpager bench data evidence`, or the judge llm."
        )
    lines = skill.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return evidence_coverage(context, lines, query.critical)


class EvidenceJudge(Judge):
    """The evidence measure as a judge: deterministic, strict, free."""

    id = EVIDENCE

    def judge(self, case: Case) -> Verdict:
        """Return the verdict, with the coverage."""
        coverage, sufficient = judge_evidence(case.skill, case.query, case.context)
        return Verdict(sufficient, (sufficient,), coverage)


@dataclass(frozen=True, slots=True)
class Docket:
    """The cases of some methods."""

    cases: Mapping[str, Case]  # each once, by digest, in the order in which they appear
    # the selections of each method, each with the digest of its case
    selections: Mapping[str, Sequence[tuple[str, SelectionRecord]]]


@dataclass(frozen=True, slots=True)
class Judging:
    """The outcome of judging cases: verdicts by case, and the judgments that were written by method."""

    verdicts: Mapping[str, Verdict]
    judgments: Mapping[str, Sequence[JudgmentRecord]]


def choose_methods(folder: BenchFolder, text: str | None = None) -> list[str]:
    """Return the labels of methods that have selections.

    `text` is labels and names of suites, separated by commas; None means all methods with stored contexts.
    """
    there = folder.methods()
    if not there:
        raise BenchError(f"{folder.path} has no selections to judge: run `skillpager bench run` first.")
    if text is None:
        first = {
            label: next(read_records(folder.selections_file(label), SelectionRecord), None) for label in there
        }
        stored = [label for label, one in first.items() if one and one.context is not None]
        if not stored:
            raise BenchError(f"The selections in {folder.path} {NO_CONTEXTS}.")
        return stored
    chosen = read_labels(text)
    if missing := [label for label in chosen if label not in there]:
        raise BenchError(
            f"{folder.path} has no selections of {', '.join(missing)}: run `skillpager bench run` with them, "
            f"or choose from {', '.join(there)}."
        )
    return chosen


def collect_cases(folder: BenchFolder, methods: Sequence[str]) -> Docket:
    """Return the cases of some methods."""
    skills = {skill.id: skill for skill in folder.skills()}
    queries = {query.id: query for query in folder.queries()}
    cases: dict[str, Case] = {}
    selections: dict[str, list[tuple[str, SelectionRecord]]] = {}
    for method in methods:
        selections[method] = []
        place = folder.selections_file(method)
        for chosen in folder.selections(method):
            if chosen.query not in queries or chosen.skill not in skills:
                raise BenchError(
                    f"{place} has a selection for query {chosen.query} of skill {chosen.skill}, which the "
                    "folder does not have: run `skillpager bench run` again."
                )
            if chosen.context is None:
                raise BenchError(f"The selections in {place} {NO_CONTEXTS}.")
            case = Case(skills[chosen.skill], queries[chosen.query], chosen.context)
            digest = case.digest
            cases.setdefault(digest, case)
            selections[method].append((digest, chosen))
    return Docket(cases, selections)


def judge_cases(
    folder: BenchFolder, docket: Docket, judge: Judge, *, progress: Progress = no_progress
) -> Judging:
    """Judge cases and write the judgments on each method; return the outcome.

    A case without a verdict has no judgment; it is never counted as insufficient. `progress` is called with
    finished and all cases.
    """
    verdicts: dict[str, Verdict] = {}
    for number, (digest, case) in enumerate(docket.cases.items(), 1):
        if verdict := judge.judge(case):
            verdicts[digest] = verdict
        progress(number, len(docket.cases))
    judgments = {
        method: [verdicts[case].on(chosen, judge.id) for case, chosen in selections if case in verdicts]
        for method, selections in docket.selections.items()
    }
    for method, records in judgments.items():
        write_records(folder.judgments_file(judge.id, method), records)
    entry = {judge.id: {"cases": len(docket.cases), "judged": len(verdicts)}}
    folder.update_manifest({"judges": {**folder.entry("judges"), **entry}})
    return Judging(verdicts, judgments)
