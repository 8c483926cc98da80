"""Tasks for agents, and an endpoint that plays an agent's model."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from openai_server import Asked, Reply, completion
from skillpager.bench.agent.tasks import Task, load_tasks

SAMPLES = Path(__file__).parent.parent / "examples" / "skills"
SAMPLE_TASKS = Path(__file__).parent.parent / "benchmarks" / "agent" / "tasks"
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100}
# what the agent is to write
WORD = "bisect"

CHECK = """\
import pathlib, sys
answer = pathlib.Path("answer.txt")
word = answer.read_text().strip() if answer.is_file() else ""
print(f"the answer is {word!r}")
sys.exit(word != "bisect")
"""

Play = Callable[[Asked], Reply]


def write_task(
    folder: Path,
    name: str = "one",
    *,
    skill: str = "git-bisect",
    prompt: str = "Which git command finds the commit that broke a test? Write it to answer.txt.",
    check: str = CHECK,
    files: Mapping[str, str] | None = None,
    **fields: object,
) -> Task:
    """Write a task about a sample skill, and return it."""
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    told = {"skill": skill, "prompt": prompt, **fields}
    (place / "task.json").write_text(json.dumps(told), encoding="utf-8")
    (place / "check.py").write_text(check, encoding="utf-8")
    for path, text in (files or {}).items():
        (place / "files" / path).parent.mkdir(parents=True, exist_ok=True)
        (place / "files" / path).write_text(text, encoding="utf-8")
    return load_tasks(folder, [SAMPLES], only=[name])[0]


def call(name: str, arguments: object, identity: str | None = "c1") -> dict[str, object]:
    """Return a call of a tool as an endpoint sends it; arguments that are a text are sent as they are."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    asked: dict[str, object] = {"type": "function", "function": {"name": name, "arguments": text}}
    return asked if identity is None else {"id": identity, **asked}


def turn(*calls: dict[str, object], text: str | None = None, finish_reason: str = "") -> Reply:
    """Return a turn of the model that calls tools."""
    reply = completion(text, finish_reason=finish_reason or "tool_calls", usage=USAGE)
    body: dict[str, object] = json.loads(json.dumps(reply.body))
    body["choices"][0]["message"]["tool_calls"] = list(calls)  # type: ignore[index]
    return Reply(body=body)


def write_answer(word: str = WORD) -> Reply:
    """Return a turn that writes the answer."""
    return turn(call("write_file", {"path": "answer.txt", "text": word}))


def end() -> Reply:
    """Return the last turn."""
    return completion("Done.", usage=USAGE)


def play(*turns: Reply) -> Play:
    """Return what plays the same turns in each conversation."""

    def respond(asked: Asked) -> Reply:
        return turns[sum(said["role"] == "assistant" for said in asked.body["messages"])]

    return respond


def results(asked: Asked) -> list[str]:
    """Return the results of tools in a request."""
    return [said["content"] for said in asked.body["messages"] if said["role"] == "tool"]


def tool_names(asked: Asked) -> Sequence[str]:
    """Return the names of the tools on offer."""
    return [tool["function"]["name"] for tool in asked.body["tools"]]
