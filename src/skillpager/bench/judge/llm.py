"""The language model as judge: several votes, the majority decides.

Reference: paper §4.2.
"""

from collections.abc import Iterable

from skillpager.bench.data.chat import ChatModel
from skillpager.bench.data.spending import Bill
from skillpager.bench.judge.cases import Case, Verdict
from skillpager.bench.judge.judge_prompt import PROMPT_DIGEST, judge_question, read_verdict
from skillpager.bench.judge.votes import VoteLog, VoteRecord, verdict_of
from skillpager.errors import SettingsError

VOTES = 3  # paper §4.2
# rate limits end a vote's patience later than that of a paper's script
MAX_RETRIES = 5


def judge_id(model: str) -> str:
    """Return the id of the judge that asks `model`, an endpoint's id, with the prompt of this version."""
    return f"llm:{model}#{PROMPT_DIGEST}"


def check_votes(votes: int) -> int:
    """Return the number of votes.

    Raises:
        SettingsError: It has no majority.
    """
    if votes < 1 or votes % 2 == 0:
        raise SettingsError(f"{votes} votes have no majority: ask for an odd number, such as {VOTES}.")
    return votes


class LLMJudge:
    """A chat model that votes on each case, at temperature 0. Safe for many threads.

    Votes are asked one after another, each as if it were the first; what is in the log is not asked.

    Args:
        model: The model.
        log: Where its votes are kept; must be that of `judge_id(model.id)`.
        votes: Votes on each case, an odd number.

    Raises:
        SettingsError: The number of votes has no majority.
        ValueError: The log is another judge's.
    """

    def __init__(self, model: ChatModel, log: VoteLog, *, votes: int = VOTES) -> None:
        if log.judge != judge_id(model.id):
            raise ValueError(f"the log is that of {log.judge}")
        self._model = model
        self._log = log
        self._votes = check_votes(votes)

    @property
    def id(self) -> str:
        """Endpoint, model and digest of the prompt."""
        return self._log.judge

    def missing_votes(self, case: Case) -> list[int]:
        """Return the numbers of the votes that would have to be asked for."""
        digest = case.digest
        return [number for number in range(1, self._votes + 1) if self._log.get(digest, number) is None]

    def is_free(self, case: Case) -> bool:
        """Tell whether all votes on a case are there."""
        return not self.missing_votes(case)

    def estimate(self, cases: Iterable[Case]) -> Bill:
        """Return what the missing votes would cost."""
        questions = ((judge_question(case), len(self.missing_votes(case))) for case in cases)
        return self._model.estimate(question for question, votes in questions for _ in range(votes))

    def judge(self, case: Case) -> Verdict:
        """Return the verdict of the majority, after the missing votes were asked for.

        Raises:
            NoAnswerError: A vote could not be got.
            SpendLimitError: It might cost more than is left.
            MissingExtraError: The `httpx` package is not installed.

        Reference: paper §4.2.
        """
        for number in self.missing_votes(case):
            self._log.add(self._ask(case, number))
        return verdict_of(self._log.on_case(case.digest)[: self._votes])

    def _ask(self, case: Case, number: int) -> VoteRecord:
        answer = self._model.ask(judge_question(case), read_verdict)
        return VoteRecord(
            case=case.digest,
            number=number,
            sufficient=answer.value.sufficient,
            reason=answer.value.reason,
            query=case.query.id,
            model=answer.model,
            tokens_in=answer.usage.tokens_in,
            tokens_out=answer.usage.tokens_out,
        )
