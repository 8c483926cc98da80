"""Cases for judges that answer through files: the OpenAI batch API, people, other agents.

    batch-001.jsonl …                one request a line, for the batch API
    cases/<case>.md, answers.csv     one case a file, and the sheet to fill

Cases are blind: no method is named, their order is drawn with a seed, and a context that several methods
chose is asked about once.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from skillpager.atomic_write import write_file
from skillpager.bench.judge.cases import Case
from skillpager.bench.judge.judge_prompt import CRITERION, PROMPT_DIGEST, judge_question, material
from skillpager.bench.judge.judging import Docket
from skillpager.bench.judge.llm import check_votes
from skillpager.bench.judge.votes import VoteLog
from skillpager.bench.validate.drawing import SEED, in_drawn_order
from skillpager.errors import BenchError
from skillpager.remote.chat import completion_body
from skillpager.remote.endpoint import Dialect

# limits of a file of the OpenAI batch API
MAX_REQUESTS = 50_000
MAX_BYTES = 200_000_000
BATCH_URL = "/v1/chat/completions"
CUSTOM_ID = re.compile(r"(?P<prompt>[0-9a-f]{12})-(?P<case>c[0-9a-f]{24})-v(?P<number>[1-9][0-9]*)")

CASES_FOLDER, ANSWERS = "cases", "answers.csv"
ANSWER_COLUMNS = ("case", "vote", "reason")

SHEET_FORM = """\
Write your answer into the row of this case in `answers.csv`: `vote` is `sufficient` or `insufficient`,
`reason` says in one or two sentences what is missing, or that nothing is."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A vote that somebody else is to give.

    Attributes:
        case: What is to be judged.
        number: Which vote on it, from 1.
    """

    case: Case
    number: int

    @property
    def custom_id(self) -> str:
        """The name of the request: prompt, case and number of the vote; says nothing of the method."""
        return f"{PROMPT_DIGEST}-{self.case.digest}-v{self.number}"


def missing_votes(docket: Docket, log: VoteLog, *, votes: int) -> list[Wanted]:
    """Return the votes that are not in the log, in an order that tells nothing of method or skill.

    Raises:
        SettingsError: The number of votes has no majority.
    """
    numbers = range(1, check_votes(votes) + 1)
    return [
        Wanted(case, number)
        for case in _blind_order(docket)
        for number in numbers
        if log.get(case.digest, number) is None
    ]


def export_batch(
    wanted: Iterable[Wanted],
    out: Path,
    *,
    model: str,
    max_requests: int = MAX_REQUESTS,
    max_bytes: int = MAX_BYTES,
) -> list[Path]:
    """Write requests for the batch API and return the files, as many as its limits ask for.

    Args:
        wanted: The votes to ask for, in order.
        out: Folder to write to.
        model: Name of the model, as the API knows it.
        max_requests: Most lines of a file.
        max_bytes: Most bytes of a file.

    Raises:
        BenchError: The folder holds something already.
    """
    _check_empty(out)
    lines = (_request(vote, model) for vote in wanted)
    paths = []
    for number, part in enumerate(batch_parts(lines, max_requests, max_bytes), 1):
        paths.append(out / f"batch-{number:03}.jsonl")
        write_file(paths[-1], "".join(part))
    return paths


def export_prompts(docket: Docket, out: Path) -> Path:
    """Write one Markdown file a case and the sheet for the answers; return the sheet.

    Raises:
        BenchError: The folder holds something already.
    """
    _check_empty(out)
    cases = _blind_order(docket)
    for case in cases:
        text = f"# Case {case.digest}\n\n{CRITERION}\n\n{SHEET_FORM}\n\n{material(case)}\n"
        write_file(out / CASES_FOLDER / f"{case.digest}.md", text)
    sheet = io.StringIO(newline="")
    writer = csv.writer(sheet, lineterminator="\n")
    writer.writerow(ANSWER_COLUMNS)
    writer.writerows([case.digest, "", ""] for case in cases)
    write_file(out / ANSWERS, sheet.getvalue())
    return out / ANSWERS


def batch_parts(lines: Iterable[str], max_requests: int, max_bytes: int) -> Iterator[list[str]]:
    """Yield lines in parts within both limits, in order, none empty; a longer line stands alone."""
    part: list[str] = []
    size = 0
    for line in lines:
        added = len(line.encode())
        if part and (len(part) == max_requests or size + added > max_bytes):
            yield part
            part, size = [], 0
        part.append(line)
        size += added
    if part:
        yield part


def _blind_order(docket: Docket) -> list[Case]:
    return [docket.cases[digest] for digest in in_drawn_order(docket.cases, SEED, lambda digest: (digest,))]


def _request(vote: Wanted, model: str) -> str:
    question = judge_question(vote.case)
    body = completion_body(
        question.messages, schema=question.schema, schema_name=question.schema_name, dialect=Dialect()
    )
    request = {
        "custom_id": vote.custom_id,
        "method": "POST",
        "url": BATCH_URL,
        "body": {"model": model, **body},
    }
    return f"{json.dumps(request, ensure_ascii=False)}\n"


def _check_empty(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BenchError(f"{out} is there already and holds something: name a new folder with --out.")
