"""The rows of runs of agents: one for each task, arm and repeat."""

from collections.abc import Iterable
from dataclasses import dataclass

from skillpager.bench.agent.arms import Arm
from skillpager.bench.data.records import Record

Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class AgentRow(Record):
    """An attempt of an agent at a task, and what the check says of it.

    Attributes:
        task: Id of the task.
        arm: What the agent was given of the skill.
        repeat: Number of the attempt, from 1.
        digest: Digest of what the agent was given.
        check_digest: Digest of the check.
        skill: Name of the skill.
        solved: What the check says; None if the check itself failed.
        reason: The check's reason.
        skill_tokens: Tokens of the skill that the agent read: those it was given, and results of tools.
        full_tokens: Tokens of the whole skill.
        tokens_in: Tokens of all requests; of answers from outside, those that were counted.
        tokens_out: Tokens of all turns of the model; None if that is not known, as the further numbers.
        turns: Turns of the model.
        seconds: Time from the first request to the last answer, tools included.
        counted: Whether the endpoint itself counted the tokens.
        calls: Calls of tools.
        mistakes: Calls that were wrong, such as arguments that are no JSON.
        faults: Reads of what a page left out.
        stopped: Why the agent did not end by itself: `turns`, `time`, `length`, or the endpoint's refusal.
        model: The model, as the endpoint calls it, or who answered.
    """

    task: str
    arm: Arm
    repeat: int
    digest: str
    check_digest: str
    skill: str
    solved: bool | None
    reason: str
    skill_tokens: int
    full_tokens: int
    tokens_in: int
    tokens_out: int | None = None
    turns: int | None = None
    seconds: float | None = None
    counted: bool = False
    calls: int | None = None
    mistakes: int = 0
    faults: int = 0
    stopped: str = ""
    model: str = ""

    @property
    def key(self) -> Key:
        """What the row is about."""
        return self.task, self.arm.value, self.repeat


def last_rows(rows: Iterable[AgentRow]) -> dict[Key, AgentRow]:
    """Return the last row of each key: an attempt that was checked again has several."""
    return {row.key: row for row in rows}
