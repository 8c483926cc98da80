"""A page end to end in an agent: a scripted model loads it, reads omitted lines, and has the agent compact.

`benchmarks/hosts.py --sessions` runs it. The agent is real, and so is SkillPager's server, which the agent
starts; `scripted_model` plays the API of the model.
"""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripted_model import Call, Request, Say, ScriptedModel, Turn

SKILL = Path(__file__).parent.parent / "examples" / "skills" / "postgres-backup"
QUERY = "Restore a single table from last night's dump."
PAGE = {"name": SKILL.name, "query": QUERY, "budget_tokens": 300}
# a line of the page for the query, and of no other part of the skill
PAGE_LINE = "pg_restore --dbname=scratch --table=orders --no-owner"
MARK = re.compile(r"\[… L(\d+)-(\d+)")
READ_LINES = 8
# the agents are told to shorten a conversation of half as many tokens
FULL = 190_000
LIMIT = 100_000
TIME_LIMIT = 240


@dataclass(frozen=True, slots=True)
class Session:
    """What an agent did in the session.

    Attributes:
        waits: Requests that came before SkillPager's tools were there.
        page_chars: Characters that the page added to the conversation.
        steps: What was tried, and whether it happened.
        said: The end of what the agent printed.
    """

    waits: int
    page_chars: int
    steps: Mapping[str, bool]
    said: str


def follow_script(requests: list[Request]) -> Turn:
    """Return the model's next turn: page, omitted lines, (here the agent compacts), page again, page anew."""
    turns: dict[int, Turn] = {
        1: Call("load_skill", PAGE),
        2: Call("read_skill_nodes", {"name": SKILL.name, "lines": omitted_lines(requests[-1])}, FULL),
        3: Call("load_skill", PAGE),
        4: Call("load_skill", {**PAGE, "resend": True}),
    }
    return turns.get(len(requests), Say("The table is restored."))


def omitted_lines(request: Request) -> str:
    """Return the first lines that the page in a conversation leaves out, such as `13-20`."""
    mark = MARK.search(request.conversation)
    if mark is None:
        return "1-1"
    first, last = int(mark[1]), int(mark[2])
    return f"{first}-{min(last, first + READ_LINES - 1)}"


def run_agent(
    model: ScriptedModel, command: Sequence[str], environment: Mapping[str, str], project: Path
) -> "subprocess.CompletedProcess[str]":
    """Run an agent against a scripted model.

    Args:
        model: The model; it serves as long as the agent runs.
        command: The agent's command line; `{url}` becomes the address of the model.
        environment: Its variables, also with `{url}`.
        project: Its current folder.
    """
    with model.serve() as url:
        return subprocess.run(
            [word.replace("{url}", url) for word in command],
            env={name: value.replace("{url}", url) for name, value in environment.items()},
            cwd=project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
        )


def run_session(command: Sequence[str], environment: Mapping[str, str], project: Path) -> Session:
    """Run an agent through the script, as `run_agent` does."""
    model = ScriptedModel(follow_script, "load_skill")
    done = run_agent(model, command, environment, project)
    return Session(
        model.waits, _page_chars(model.requests), judge(model.requests, model.summaries), done.stdout[-2_000:]
    )


def judge(requests: Sequence[Request], summaries: Sequence[Request]) -> dict[str, bool]:
    """Return what happened in a session, read from what the agent sent to its model."""

    def told(number: int) -> str:
        return requests[number].conversation if number < len(requests) else ""

    wanted = omitted_lines(requests[1]) if len(requests) > 1 else "1-1"
    first, last = (int(line) for line in wanted.split("-"))
    lines = (SKILL / "SKILL.md").read_text(encoding="utf-8").splitlines()[first - 1 : last]
    read = all(line in told(2) or any(line in each.conversation for each in summaries) for line in lines)
    return {
        "the page is in the conversation": PAGE_LINE in told(1),
        "omitted lines are read, word for word": len(requests) > 2 and read,
        "the conversation is compacted": bool(summaries),
        "the page is gone from it then": bool(summaries) and PAGE_LINE not in told(2),
        "the same page names what was sent earlier": "sent earlier" in told(3),
        "with `resend` the page comes again": told(4).count(PAGE_LINE) > told(3).count(PAGE_LINE),
    }


def _page_chars(requests: Sequence[Request]) -> int:
    if len(requests) < 2:
        return 0
    return len(requests[1].conversation) - len(requests[0].conversation)


def claude_code(program: Path, home: Path) -> tuple[list[str], dict[str, str]]:
    """Return command line and variables of Claude Code with the scripted model."""
    environment = {
        "ANTHROPIC_BASE_URL": "{url}",
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW": str(LIMIT),
    }
    command = [str(program), "-p", QUERY, "--allowedTools", "mcp__skillpager"]
    return command, {**private_environment(home), **environment}


def codex(program: Path, home: Path) -> tuple[list[str], dict[str, str]]:
    """Return command line and variables of Codex with the scripted model."""
    provider = '{ name="scripted", base_url="{url}/v1", wire_api="responses", env_key="SCRIPTED_KEY" }'
    settings = {
        "model": '"scripted"',
        "model_provider": '"scripted"',
        "model_providers.scripted": provider,
        "model_auto_compact_token_limit": str(LIMIT),
        "mcp_servers.skillpager.default_tools_approval_mode": '"approve"',
    }
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    command = [str(program), "exec", "--skip-git-repo-check", *options, QUERY]
    return command, {**private_environment(home), "SCRIPTED_KEY": "none"}


def private_environment(home: Path) -> dict[str, str]:
    """Return variables that give a program a home folder of its own and no keys."""
    known = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT") if name in os.environ}
    return {**known, "HOME": str(home), "TERM": "dumb", "NO_COLOR": "1", "DO_NOT_TRACK": "1"}
