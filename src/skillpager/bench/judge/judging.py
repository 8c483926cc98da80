"""Run a judge on a benchmark folder: collect cases from its selections, write their judgments.

The same context for the same query is one case, even if several methods made it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.data.records import JudgmentRecord, SelectionRecord, read_records, write_records
from skillpager.bench.judge.judges import Case, Judge, Verdict
from skillpager.bench.judge.sheets import drawn_digest, write_sheet
from skillpager.bench.run.methods import SUITES, parse_method, split_labels
from skillpager.errors import BenchError

NO_CONTEXTS = (
    "hold no contexts, which a judge needs: remove them and run `skillpager bench run --contexts` again"
)


@dataclass(frozen=True, slots=True)
class Docket:
    """The cases of some methods.

    Attributes:
        cases: Each once, by digest, in the order in which they appear.
        selections: The selections of each method, each with the digest of its case.
    """

    cases: Mapping[str, Case]
    selections: Mapping[str, Sequence[tuple[str, SelectionRecord]]]


@dataclass(frozen=True, slots=True)
class Judging:
    """The outcome of judging cases: verdicts by case, and the judgments that were written by method."""

    judge: str
    verdicts: Mapping[str, Verdict]
    judgments: Mapping[str, Sequence[JudgmentRecord]]


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
        first = {
            label: next(read_records(folder.selections_file(label), SelectionRecord), None) for label in there
        }
        stored = [label for label, one in first.items() if one and one.context is not None]
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
    folder: BenchFolder, docket: Docket, judge: Judge, *, progress: Callable[[int, int], None] | None = None
) -> Judging:
    """Judge cases and write the judgments on each method; return the outcome.

    A case without a verdict has no judgment; it is never counted as insufficient. `progress` is called with
    finished and all cases.

    Raises:
        BenchError: No case of this data can be judged.

    Reference: paper §4.2.
    """
    verdicts: dict[str, Verdict] = {}
    for number, (digest, case) in enumerate(docket.cases.items(), 1):
        if verdict := judge.judge(case):
            verdicts[digest] = verdict
        if progress:
            progress(number, len(docket.cases))
    judgments = {
        method: [
            JudgmentRecord(
                query=chosen.query,
                skill=chosen.skill,
                method=method,
                judge=judge.id,
                sufficient=verdict.sufficient,
                votes=verdict.votes,
                coverage=verdict.coverage,
                reason=verdict.reason,
                context_sha256=chosen.context_sha256,
            )
            for digest, chosen in selections
            if (verdict := verdicts.get(digest)) is not None
        ]
        for method, selections in docket.selections.items()
    }
    for method, records in judgments.items():
        write_records(folder.judgments_file(judge.id, method), records)
    known = folder.manifest().get("judges")
    entry = {judge.id: {"cases": len(docket.cases), "judged": len(verdicts)}}
    folder.update_manifest({"judges": {**(known if isinstance(known, Mapping) else {}), **entry}})
    return Judging(judge.id, verdicts, judgments)


def export_cases(docket: Docket, sheet: Path) -> None:
    """Write the cases for others to judge, in an order that reveals neither method nor skill.

    Raises:
        BenchError: The file is there already.
    """
    blind = sorted(docket.cases.items(), key=lambda item: drawn_digest(item[:1]))
    texts = {
        digest: (case.skill.name, case.skill.description, case.query.query, case.context)
        for digest, case in blind
    }
    write_sheet(sheet, texts)
