"""The answer to `initialize` before the SDK is loaded, and what it says of the server.

Hosts send `initialize` when they start the process, some with a short timeout, and the import of the SDK
takes longer than all else until then. So over stdin the first line is read and answered here. The SDK then
gets that line as its first message and opens the session by it; its own answer, the same, is left out.
"""

import json
import os
import sys
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from threading import Thread
from typing import Any

from skillpager.library import FoundSkill, Library
from skillpager.output.formatting import snippet

NAME = "skillpager"
# protocols whose `initialize` is answered here; the SDK answers all others. A test compares both answers.
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
# what the server offers, as the SDK says it
CAPABILITIES = {
    "completions": {},
    "prompts": {"listChanged": False},
    "resources": {"listChanged": False, "subscribe": False},
    "tools": {"listChanged": False},
}

USE = (
    "Skills are instructions for tasks. Before a task for which there is a skill, call load_skill and say in "
    "query what you are about to do: you get the part that is needed. [… marks …] show what is left out; "
    "read it with read_skill_nodes when you need it."
)
# and when there are more skills than the instructions describe
FIND = "To find the skill for a task, call load_skill with a query and without a name."
# only thousands of skills that were never read before take longer; a query finds them all the same
GREETING_SECONDS = 0.5
# Claude Code cuts instructions off at 2 kB
MAX_BYTES = 2_000
# characters of a skill's description in the instructions: the most with which all skills fit
WIDTHS = (160, 80, 40, 0)


@dataclass(frozen=True, slots=True)
class Greeting:
    """The first line that a client sent, and the id of its `initialize` if that was answered."""

    line: bytes
    answered: int | str | None = None


def greeting_of(library: Library) -> str:
    """Return the instructions, without the names of skills if finding these takes longer than a host waits.

    The search for skills goes on in a thread.
    """
    search = Thread(target=library.found, daemon=True)
    search.start()
    search.join(GREETING_SECONDS)
    return f"{USE} {FIND}" if search.is_alive() else instructions_of(library)


def instructions_of(library: Library) -> str:
    """Return how to use the server and which skills it offers, each as shortly as is needed to name them all.

    Skills for which there is no room are counted. If there is none for descriptions, the instructions say how
    to find a skill.
    """
    skills = library.skills(for_model=True)
    for width in WIDTHS:
        text = _instructions(skills, len(skills), width)
        if len(text.encode()) <= MAX_BYTES:
            return text
    # of more skills than these even names of one letter would not fit
    most = min(len(skills), MAX_BYTES)
    shown = bisect_right(
        range(most), MAX_BYTES, key=lambda count: len(_instructions(skills, count, 0).encode())
    )
    return _instructions(skills, max(0, shown - 1), 0)


def _instructions(skills: Sequence[FoundSkill], shown: int, width: int) -> str:
    """Return the instructions with the first `shown` skills, described in at most `width` characters."""
    if not skills:
        return USE
    if width:
        lines = (f"\n- {skill.name}: {snippet(skill.description, width)}" for skill in skills)
        return f"{USE}\n\nSkills:{''.join(lines)}"
    names = [skill.name for skill in skills[:shown]]
    if more := len(skills) - shown:
        names.append(f"{more:,} more")
    return f"{USE} {FIND}\n\nSkills: {', '.join(names)}."


def greet(instructions: str) -> Greeting:
    """Read the first line of stdin, and answer it if it is an `initialize` that needs no SDK.

    The line is read by bytes, so that all that follows it is left to the SDK, which reads stdin by itself.
    """
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(sys.stdin.fileno(), 1)):
        line += byte
    answer = answer_to(line, instructions)
    if answer is None:
        return Greeting(line)
    sys.stdout.flush()
    sent = json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    while sent:
        sent = sent[os.write(sys.stdout.fileno(), sent) :]
    return Greeting(line, answer["id"])


def answer_to(line: bytes, instructions: str) -> dict[str, Any] | None:
    """Return the answer to a message if it is a plain `initialize` of a known protocol, else None."""
    try:
        message = json.loads(line)
        number, params = message["id"], message["params"]
        chosen, client = params["protocolVersion"], params["clientInfo"]
        plain = (
            (message["jsonrpc"], message["method"]) == ("2.0", "initialize")
            and isinstance(number, int | str)
            and not isinstance(number, bool)
            and message.keys() == {"jsonrpc", "id", "method", "params"}
            and chosen in VERSIONS
            and all(isinstance(value, dict) for value in params["capabilities"].values())
            and all(isinstance(client[name], str) for name in ("name", "version"))
        )
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    if not plain:
        return None
    result = {
        "protocolVersion": chosen,
        "capabilities": CAPABILITIES,
        "serverInfo": {"name": NAME, "version": version(NAME)},
        "instructions": instructions,
    }
    return {"jsonrpc": "2.0", "id": number, "result": result}
