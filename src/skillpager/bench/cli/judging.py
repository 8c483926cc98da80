"""What `skillpager bench judge` does: by the evidence, by a model, or through files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.bench.cli.model import ModelOptions, agree, bill_json, end, open_model, tell_bill
from skillpager.cli.messages import UsageError, note, print_json, print_text, warn

if TYPE_CHECKING:
    from skillpager.bench.data.chat import ChatModel
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.bench.data.spending import Bill
    from skillpager.bench.judge.judging import Docket, Judging
    from skillpager.output.json import JsonObject

BATCH, PROMPTS = "batch", "prompts"


@dataclass(frozen=True, slots=True)
class Task:
    """What `judge` was asked to do."""

    folder: "BenchFolder"
    methods: str | None
    votes: int
    options: ModelOptions

    def docket(self) -> "Docket":
        """Return the cases of the chosen methods."""
        from skillpager.bench.judge.judging import choose_methods, collect_cases

        return collect_cases(self.folder, choose_methods(self.folder, self.methods))

    def chat(self) -> "ChatModel":
        """Return the model that is meant."""
        from skillpager.bench.judge.llm import MAX_RETRIES

        return open_model(self.options, purpose="bench judge", max_retries=MAX_RETRIES)


def judge_by_evidence(task: Task) -> None:
    """Judge by the annotated lines, and print what came of it."""
    from skillpager.bench.judge import EvidenceJudge
    from skillpager.bench.judge.judging import judge_cases
    from skillpager.cli.views import progress_bar

    docket = task.docket()
    with progress_bar("contexts") as progress:
        judging = judge_cases(task.folder, docket, EvidenceJudge(), progress=progress)
    _print_judging(judging, as_json=task.options.as_json)


def judge_by_model(task: Task) -> None:
    """Ask for the missing votes, and print what came of them; exit code 1 if cases are left."""
    from skillpager.bench.judge.judging import judge_cases
    from skillpager.bench.judge.llm import LLMJudge, judge_id
    from skillpager.bench.judge.votes import VoteLog
    from skillpager.cli.views import progress_bar

    chat, docket = task.chat(), task.docket()
    judge = LLMJudge(chat, VoteLog(task.folder, judge_id(chat.id)), votes=task.votes)
    if not agree(judge.estimate(docket.cases.values()), task.options):
        return
    with progress_bar("cases") as progress:
        judging = judge_cases(
            task.folder, docket, judge, jobs=task.options.jobs, halt=chat.halt, progress=progress
        )
    _print_judging(judging, as_json=task.options.as_json, spent=chat.spending.bill)
    tell_bill(chat.spending.bill)
    left, total = len(docket.cases) - len(judging.verdicts), len(docket.cases)
    what = f"{left:,} of {total:,} cases are not judged"
    end(what, judging.unjudged, judging.stopped, as_json=task.options.as_json)


def export_cases(task: Task, kind: str, out: Path | None) -> None:
    """Write the cases for others to judge, and print the files to hand over."""
    from skillpager.bench.judge.exchange import export_batch, export_prompts, missing_votes
    from skillpager.bench.judge.llm import judge_id
    from skillpager.bench.judge.votes import VoteLog

    if kind not in (BATCH, PROMPTS):
        raise UsageError(f"Unknown kind of export {kind!r}: choose {BATCH} or {PROMPTS}.")
    if out is None:
        raise UsageError("--export needs --out: a new folder for the files.")
    docket = task.docket()
    if kind == PROMPTS:
        sheet = export_prompts(docket, out)
        note(f"{len(docket.cases):,} cases; then: `bench judge {task.folder.path} --import {sheet} --name …`")
        print_text(str(sheet))
        return
    chat = task.chat()
    wanted = missing_votes(docket, VoteLog(task.folder, judge_id(chat.id)), votes=task.votes)
    paths = export_batch(wanted, out, model=chat.model)
    note(f"{len(wanted):,} requests; then: `bench judge {task.folder.path} --import OUTPUT …`")
    print_text("\n".join(map(str, paths)))


def import_answers(task: Task, paths: Sequence[Path], name: str | None) -> None:
    """Keep the votes of others, and print what came of them."""
    from skillpager.bench.judge import answers as others
    from skillpager.bench.judge.llm import judge_id

    docket = task.docket()
    answers = others.read_answers(paths, docket)
    if answers.batch and not name:
        chat = task.chat()
        judge = judge_id(chat.id)
        if strange := sorted(model for model in answers.models if not model.startswith(chat.model)):
            warn(f"The answers come from {', '.join(strange)}, and are kept as those of {chat.model}")
    else:
        judge = others.person_id(name or "")
    votes = task.votes if answers.batch else None
    new, judging = others.import_answers(task.folder, docket, answers, judge=judge, votes=votes)
    for place in answers.unanswered:
        warn(f"{place}; left unjudged")
    _print_judging(judging, as_json=task.options.as_json)
    note(
        f"{new:,} of {len(answers.votes):,} votes are new, by {judge}; {len(judging.verdicts):,} of "
        f"{len(docket.cases):,} cases have a verdict"
    )


def _print_judging(judging: "Judging", *, as_json: bool, spent: "Bill | None" = None) -> None:
    """Print, for each method, how many contexts were judged and how many suffice."""
    from skillpager.cli.views import print_table

    counts = {
        method: (len(records), sum(record.sufficient for record in records))
        for method, records in judging.judgments.items()
    }
    if as_json:
        methods: list[JsonObject] = [
            {"method": method, "judged": judged, "sufficient": sufficient}
            for method, (judged, sufficient) in counts.items()
        ]
        unjudged = [{"query": query, "reason": reason} for query, reason in judging.unjudged]
        told: JsonObject = {"judge": judging.judge, "methods": methods, "unjudged": unjudged}
        print_json({**told, "stopped": judging.stopped, "spent": bill_json(spent) if spent else None})
        return
    rows = [
        [method, f"{judged:,}", f"{100 * sufficient / judged:.2f}" if judged else ""]
        for method, (judged, sufficient) in counts.items()
    ]
    print_table(["method", "judged", "sufficient %"], rows, right=["judged", "sufficient %"])
