"""The agent: a conversation with a model that calls tools until it is done or a limit is reached."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from skillpager.bench.agent.tools import ToolBox, answer_call, name_of
from skillpager.bench.data.chat import FORMAT_TOKENS, Blame, ChatModel, NoAnswerError
from skillpager.bench.data.spending import Usage
from skillpager.json_types import JsonObject
from skillpager.remote.tool_calls import said
from skillpager.tokens import default_counter

# a careful agent needs about ten on such tasks
TURNS = 30
SECONDS = 900.0
# tokens that a turn usually has, for estimates and for what is set aside of the spend limit
EXPECTED_OUT = 500


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one attempt.

    Attributes:
        turns: Most turns of the model.
        seconds: Time after which no further turn begins.
        shell: Whether the agent has a shell.
    """

    turns: int = TURNS
    seconds: float = SECONDS
    shell: bool = False


@dataclass(slots=True)
class Conversation:
    """A conversation as it goes.

    Attributes:
        messages: All messages.
        usage: Tokens of all requests and turns.
        counted: Whether the endpoint counted all of them.
        turns: Turns of the model.
        calls: Calls of tools.
        mistakes: Calls that were wrong.
        skill_results: Answers of the tools that read the skill.
        stopped: Why it ended, if not by the model.
        model: The model, as the endpoint calls it.
        seconds: Its time.
    """

    messages: list[JsonObject]
    usage: Usage = field(default_factory=Usage)
    counted: bool = True
    turns: int = 0
    calls: int = 0
    mistakes: int = 0
    skill_results: list[str] = field(default_factory=list)
    stopped: str = ""
    model: str = ""
    seconds: float = 0.0


def converse(
    model: ChatModel,
    system: str,
    task: str,
    *,
    own_tools: Sequence[ToolBox],
    skill_tools: Sequence[ToolBox],
    limits: Limits,
) -> Conversation:
    """Return the conversation of an agent.

    An endpoint that refuses the first request refuses the prompt or the tools, and that is an error. A later
    refusal ends the attempt, as when the conversation has become too long for the model.

    Args:
        model: The model.
        system: The instructions.
        task: The first message.
        own_tools: Tools that work in the scratch folder.
        skill_tools: Tools that read the skill.
        limits: Limits.

    Raises:
        NoAnswerError: The endpoint gave no usable answer.
        SpendLimitError: The next turn might cost more than is left.
    """
    talk = Conversation([said("system", system), said("user", task)])
    boxes = [*own_tools, *skill_tools]
    tools = [tool for box in boxes for tool in box.tools]
    started = time.monotonic()
    while not talk.stopped:
        if talk.turns == limits.turns:
            talk.stopped = "turns"
        elif time.monotonic() - started > limits.seconds:
            talk.stopped = "time"
        elif _take_turn(talk, model, tools, boxes, skill_tools):
            break
    talk.seconds = time.monotonic() - started
    return talk


def _take_turn(
    talk: Conversation,
    model: ChatModel,
    tools: Sequence[JsonObject],
    boxes: Sequence[ToolBox],
    skill_tools: Sequence[ToolBox],
) -> bool:
    """Add a turn of the model and the answers to its calls; return whether it is done."""
    expected = Usage(count_request(talk.messages, tools), EXPECTED_OUT)
    try:
        answer = model.converse(talk.messages, tools=tools, expected=expected)
    except NoAnswerError as error:
        if not talk.turns or error.blame is not Blame.QUESTION:
            raise
        talk.stopped = f"refused: {error}"
        return False
    turn = answer.value
    talk.turns += 1
    talk.usage += answer.usage
    talk.counted &= answer.raw_usage is not None
    talk.model = answer.model
    talk.messages.append(turn.message)
    for call in turn.calls:
        answered = answer_call(call, boxes)
        talk.calls += 1
        talk.mistakes += not answered.right
        talk.messages.append(said("tool", answered.text, tool_call_id=call.id))
        if call.name in {name_of(tool) for box in skill_tools for tool in box.tools}:
            talk.skill_results.append(answered.text)
    if turn.cut_off:
        talk.stopped = "length"
    return not turn.calls


def count_request(messages: Sequence[JsonObject], tools: Sequence[JsonObject]) -> int:
    """Return about how many tokens a request has."""
    text = json.dumps([*messages, *tools], ensure_ascii=False)
    return FORMAT_TOKENS + default_counter().count(text)
