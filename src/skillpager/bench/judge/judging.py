"""A judge over the selections of a benchmark folder: which cases there are, and their judgments.

The same context for the same query is one case, under however many methods.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from skillpager.bench.data.chat import ask_all
from skillpager.bench.data.folder import BenchFolder, read_records, write_records
from skillpager.bench.data.records import JudgmentRecord, SelectionRecord
from skillpager.bench.judge.cases import Case, Judge, Verdict
from skillpager.bench.run.methods import parse_method, split_labels
from skillpager.bench.run.suites import SUITES
from skillpager.errors import BenchError

NO_CONTEXTS = (
    "hold no contexts, which a judge needs: remove them and run `skillpager bench run --contexts` again"
)


@dataclass(frozen=True, slots=True)
class Appearance:
    """Where a case comes from.

    Attributes:
        case: Its digest.
        query: Id of the query.
        skill: Id of the skill.
        context_sha256: SHA-256 of the context, hexadecimal.
    """

    case: str
    query: str
    skill: str
    context_sha256: str


@dataclass(frozen=True, slots=True)
class Docket:
    """The cases of some methods.

    Attributes:
        cases: Each once, by digest, in the order in which they appear.
        appearances: The cases of each method, in the order of its selections.
    """

    cases: Mapping[str, Case]
    appearances: Mapping[str, Sequence[Appearance]]


@dataclass(frozen=True, slots=True)
class Judging:
    """The outcome of judging cases.

    Attributes:
        judge: Id of the judge.
        verdicts: Those that were reached, by case.
        judgments: The judgments that were written, by method.
        unjudged: Id of the query and reason of each case without a verdict of its own fault.
        stopped: Why the rest was not judged; empty when all were tried.
    """

    judge: str
    verdicts: Mapping[str, Verdict]
    judgments: Mapping[str, Sequence[JudgmentRecord]]
    unjudged: Sequence[tuple[str, str]]
    stopped: str


def choose_methods(folder: BenchFolder, text: str | None = None) -> list[str]:
    """Return the labels of methods whose selections are there.

    Args:
        folder: The benchmark.
        text: Labels and names of suites, divided by commas; None for all whose contexts were kept.

    Raises:
        BenchError: A method was not run, or none was.
    """
    there = folder.methods()
    if not there:
        raise BenchError(f"{folder.path} has no selections to judge: run `skillpager bench run` first.")
    if text is None:
        kept = []
        for label in there:
            first = next(read_records(folder.selections_file(label), SelectionRecord), None)
            if first is not None and first.context is not None:
                kept.append(label)
        if not kept:
            raise BenchError(f"The selections in {folder.path} {NO_CONTEXTS}.")
        return kept
    named = [name for part in split_labels(text) for name in SUITES.get(part, [part])]
    # as files are named by them, each once
    chosen = list(dict.fromkeys(parse_method(name).label for name in named))
    if missing := [label for label in chosen if label not in there]:
        raise BenchError(
            f"{folder.path} has no selections of {', '.join(missing)}: run `skillpager bench run` with them, "
            f"or choose from {', '.join(there)}."
        )
    return chosen


def collect_cases(folder: BenchFolder, methods: Sequence[str]) -> Docket:
    """Return the cases of some methods.

    Raises:
        BenchError: A selection has no context, or its query or skill is missing.
    """
    skills = {skill.id: skill for skill in folder.skills()}
    queries = {query.id: query for query in folder.queries()}
    cases: dict[str, Case] = {}
    appearances: dict[str, list[Appearance]] = {}
    for method in methods:
        appearances[method] = []
        for chosen in folder.selections(method):
            place = folder.selections_file(method)
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
            appearances[method].append(Appearance(digest, chosen.query, chosen.skill, chosen.context_sha256))
    return Docket(cases, appearances)


def judge_cases(
    folder: BenchFolder,
    docket: Docket,
    judge: Judge,
    *,
    jobs: int = 1,
    halt: threading.Event | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Judging:
    """Judge cases and write the judgments on each method; return the outcome.

    A case without a verdict has no judgment; it is never counted as insufficient.

    Args:
        folder: The benchmark.
        docket: The cases.
        judge: The judge; must be safe for `jobs` threads.
        jobs: Most cases at a time.
        halt: Set when the run stops; the same event as that of the judge's model.
        progress: Called with finished and all cases.

    Raises:
        BenchError: No case of these data can be judged.

    Reference: paper §4.2.
    """
    verdicts: dict[str, Verdict] = {}

    def judge_one(digest: str) -> None:
        verdicts[digest] = judge.judge(docket.cases[digest])

    free_first = sorted(docket.cases, key=lambda digest: not judge.is_free(docket.cases[digest]))
    asked = ask_all(free_first, judge_one, jobs=jobs, halt=halt or threading.Event(), progress=progress)
    judgments = {
        method: [
            JudgmentRecord(
                query=appearance.query,
                skill=appearance.skill,
                method=method,
                judge=judge.id,
                sufficient=verdict.sufficient,
                votes=verdict.votes,
                coverage=verdict.coverage,
                reason=verdict.reason,
                context_sha256=appearance.context_sha256,
            )
            for appearance in appearances
            if (verdict := verdicts.get(appearance.case)) is not None
        ]
        for method, appearances in docket.appearances.items()
    }
    for method, records in judgments.items():
        write_records(folder.judgments_file(judge.id, method), records)
    known = folder.manifest().get("judges")
    entry = {judge.id: {"cases": len(docket.cases), "judged": len(verdicts)}}
    folder.update_manifest({"judges": {**(known if isinstance(known, Mapping) else {}), **entry}})
    unjudged = [(docket.cases[digest].query.id, reason) for digest, reason in asked.failures]
    return Judging(judge.id, verdicts, judgments, unjudged, asked.stopped)
