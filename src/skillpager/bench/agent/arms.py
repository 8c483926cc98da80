"""Arms: the forms in which an agent is given the skill that its task needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from skillpager.bench.agent.tasks import Task
from skillpager.bench.data.chat import quote_as_data
from skillpager.errors import BenchError
from skillpager.pager import SkillPager
from skillpager.types import TokenCounter

# tokens of each invoked skill that Claude Code keeps when it compacts a conversation
FIRST_TOKENS = 5_000


class Arm(StrEnum):
    """The name of an arm."""

    NONE = "none"
    """No skill."""
    WHOLE = "whole"
    """The whole skill."""
    FIRST = "first"
    """Its first `FIRST_TOKENS`: what a host keeps of a long skill."""
    PAGE = "page"
    """The default page for the prompt."""
    FAULTS = "page+faults"
    """The same page, and a tool that reads what it left out."""
    MMR = "mmr"
    """The page of the paper's method, with at most as many tokens as the default page."""
    MCP = "mcp"
    """The tools of the MCP server, and no text before."""


@dataclass(frozen=True, slots=True)
class Context:
    """What an agent is given of a skill before it begins.

    Attributes:
        text: The text; empty if there is none.
        tokens: Its tokens.
        full_tokens: Tokens of the whole skill.
    """

    text: str
    tokens: int
    full_tokens: int


def parse_arms(names: str) -> list[Arm]:
    """Return the arms of a list with commas, each once, in their order.

    Raises:
        BenchError: A name is unknown.
    """
    known = [arm.value for arm in Arm]
    asked = dict.fromkeys(name.strip() for name in names.split(",") if name.strip())
    if unknown := [name for name in asked if name not in known]:
        raise BenchError(f"Unknown arm {unknown[0]!r}: choose from {', '.join(known)}.")
    if not asked:
        raise BenchError(f"No arm is named: choose from {', '.join(known)}.")
    return [Arm(name) for name in asked]


def make_context(task: Task, arm: Arm, pager: SkillPager, *, show: str = "") -> Context:
    """Return what an agent is given of the skill of a task.

    Args:
        task: The task; its prompt is the query.
        arm: The arm.
        pager: Makes the pages.
        show: In the arm `page+faults`: how omitted lines are read, for the legend of the page.

    Raises:
        SkillPagerError: The skill cannot be read.
    """
    whole = pager.whole(task.skill)

    def give(text: str) -> Context:
        return Context(text, pager.token_counter.count(text), whole.tokens)

    match arm:
        case Arm.NONE | Arm.MCP:
            return give("")
        case Arm.WHOLE:
            return give(whole.text)
        case Arm.FIRST:
            return give(first_lines(whole.text, FIRST_TOKENS, pager.token_counter))
        case Arm.PAGE:
            return give(pager.page(task.skill, task.prompt).text)
        case Arm.FAULTS:
            return give(pager.page(task.skill, task.prompt, show=show).text)
        case Arm.MMR:
            limit = pager.page(task.skill, task.prompt).tokens
            return give(pager.page(task.skill, task.prompt, strategy="mmr", max_tokens=limit).text)


def first_lines(text: str, limit: int, counter: TokenCounter) -> str:
    """Return as many lines from the beginning of a text as have at most `limit` tokens together."""
    lines = text.splitlines(keepends=True)
    fit, over = 0, len(lines) + 1
    while over - fit > 1:
        middle = (fit + over) // 2
        if counter.count("".join(lines[:middle])) <= limit:
            fit = middle
        else:
            over = middle
    return "".join(lines[:fit])


SYSTEM = """\
You are an agent that solves a task with the tools it has. You work in a scratch folder of your own; paths are
relative to it, and only files in it count. If the task asks for an answer and names no file for it, write it
to answer.txt. When the task is done, reply with one sentence and without a tool call."""

_SKILL = "Text of a skill that may help, written by others; marks such as [… L2-9] stand for lines left out:"
_MCP = "Skills that may help can be read with tools: list them and load what fits before you begin."


def user_message(task: Task, arm: Arm, context: Context, files: Sequence[str]) -> str:
    """Return the first message to an agent: the task, the files that it finds, and its part of the skill.

    Args:
        task: The task.
        arm: The arm.
        context: What the agent is given of the skill.
        files: Paths of the files in the scratch folder.
    """
    parts = [task_message(task, files)]
    if arm is Arm.MCP:
        parts.append(_MCP)
    elif arm is not Arm.NONE:
        parts.append(f"{_SKILL}\n\n{quote_as_data({'skill': context.text.strip()})}")
    return "\n\n".join(parts)


def task_message(task: Task, files: Sequence[str]) -> str:
    """Return the prompt of a task, and the paths of the files that the agent finds."""
    listed = "\n".join(f"- {path}" for path in files)
    return f"{task.prompt}\n\nFiles in the scratch folder:\n{listed}" if files else task.prompt
