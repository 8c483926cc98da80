"""Run a judge on a benchmark folder: collect cases from its selections, write their judgments.

The same context for the same query is one case, even if several methods made it.
"""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from skillpager.bench.data.chat import ask_all
from skillpager.bench.data.folder import BenchFolder, read_records, write_records
from skillpager.bench.data.records import JudgmentRecord, SelectionRecord
from skillpager.bench.judge.judges import Case, Judge, Verdict
from skillpager.bench.judge.llm_judge import PROMPT_DIGEST, VoteLog, VoteRecord
from skillpager.bench.judge.sheets import (
    SEED,
    SUFFICIENT,
    SheetKind,
    in_drawn_order,
    read_answers,
    write_sheet,
)
from skillpager.bench.run.methods import parse_method, split_labels
from skillpager.bench.run.suites import SUITES
from skillpager.errors import BenchError

NO_CONTEXTS = (
    "hold no contexts, which a judge needs: remove them and run `skillpager bench run --contexts` again"
)


@dataclass(frozen=True, slots=True)
class Appearance:
    """A selection whose context is a case: digest of the case, ids, and SHA-256 of the context."""

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
        verdicts: By case.
        judgments: The judgments that were written, by method.
        unjudged: Id of the query and reason for each case that failed by itself.
        stopped: Why the rest was not judged; empty when all were tried.
    """

    judge: str
    verdicts: Mapping[str, Verdict]
    judgments: Mapping[str, Sequence[JudgmentRecord]]
    unjudged: Sequence[tuple[str, str]]
    stopped: str


def choose_methods(folder: BenchFolder, text: str | None = None) -> list[str]:
    """Return the labels of methods that have selections.

    `text` is labels and names of suites, separated by commas; None means all methods with stored contexts.

    Raises:
        BenchError: A method was not run, or none was.
    """
    there = folder.methods()
    if not there:
        raise BenchError(f"{folder.path} has no selections to judge: run `skillpager bench run` first.")
    if text is None:
        stored = []
        for label in there:
            first = next(read_records(folder.selections_file(label), SelectionRecord), None)
            if first and first.context is not None:
                stored.append(label)
        if not stored:
            raise BenchError(f"The selections in {folder.path} {NO_CONTEXTS}.")
        return stored
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
            seen = Appearance(case.digest, chosen.query, chosen.skill, chosen.context_sha256)
            cases.setdefault(seen.case, case)
            appearances[method].append(seen)
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

    A case without a verdict has no judgment; it is never counted as insufficient. At most `jobs` cases are
    judged at a time. `halt` is set when the run stops, and must be the event of the judge's model if it has
    one. `progress` is called with finished and all cases.

    Raises:
        BenchError: No case of this data can be judged.

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
                query=seen.query,
                skill=seen.skill,
                method=method,
                judge=judge.id,
                sufficient=verdict.sufficient,
                votes=verdict.votes,
                coverage=verdict.coverage,
                reason=verdict.reason,
                context_sha256=seen.context_sha256,
            )
            for seen in appearances
            if (verdict := verdicts.get(seen.case)) is not None
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


def export_cases(docket: Docket, sheet: Path) -> None:
    """Write the cases for others to judge, in an order that reveals neither method nor skill.

    Raises:
        BenchError: The file is there already.
    """
    blind = in_drawn_order(docket.cases, SEED, lambda digest: (digest,))
    cases = {digest: docket.cases[digest] for digest in blind}
    texts = {
        digest: (case.skill.name, case.skill.description, case.query.query, case.context)
        for digest, case in cases.items()
    }
    write_sheet(sheet, SheetKind.SUFFICIENCY, texts)


class Imported(NamedTuple):
    """Numbers of imported votes, of new ones among them, and of cases that the folder does not have."""

    votes: int
    new: int
    elsewhere: int


def import_votes(folder: BenchFolder, docket: Docket, sheets: Sequence[Path], *, judge: str) -> Imported:
    """Store the labels of others as votes of a judge, one for each annotator of a case.

    A case without a label is skipped. The same answer again changes nothing. Labels of cases that are not in
    the docket are counted and left out: the digest of a case is over its context, so that no other is meant.

    Raises:
        BenchError: A sheet cannot be read or asks another question, a vote contradicts one that is there, or
            no label is on a case of the docket. Then nothing is stored.
    """
    votes: list[VoteRecord] = []
    elsewhere: set[str] = set()
    for path in sheets:
        numbers: Counter[str] = Counter()
        for answers in read_answers(path):
            if answers.kind is not SheetKind.SUFFICIENCY:
                raise BenchError(f"{path} asks for node types: score it with `bench validate score`.")
            for case, label in answers.labels.items():
                if case not in docket.cases:
                    elsewhere.add(case)
                    continue
                numbers[case] += 1
                query, reason = docket.cases[case].query.id, answers.notes[case]
                votes.append(VoteRecord(case, numbers[case], label == SUFFICIENT, reason=reason, query=query))
    if elsewhere and not votes:
        raise BenchError(
            f"Nothing was imported: none of the {len(elsewhere):,} cases has a query and context of this "
            "folder. Run the methods and data that were judged, or import into their folder."
        )
    return Imported(len(votes), VoteLog(folder, judge).add(*votes), len(elsewhere))


def person_id(name: str) -> str:
    """Return the id of the judge with a name: `people:<name>`, or an agent's for `llm:<name>`.

    Raises:
        BenchError: The name is empty.
    """
    kind, _, agent = name.partition(":")
    if not name.strip() or (kind == "llm" and not agent.strip()):
        raise BenchError("It is not known whose answers these are: add --name, such as --name anna.")
    return f"llm:{agent.strip()}#{PROMPT_DIGEST}" if kind == "llm" else f"people:{name.strip()}"
