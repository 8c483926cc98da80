"""The tools of an agent: a shell, files in its scratch folder, and lines that a page left out.

A tool answers every call with a text. What a model did wrong is told in that text, so that it can correct it.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from skillpager.bench.agent.processes import clean_environment, run_bounded
from skillpager.errors import SkillPagerError
from skillpager.json_types import JsonObject
from skillpager.pager import SkillPager
from skillpager.remote.tool_calls import ToolCall, function_tool
from skillpager.settings import read_bounded

# characters of a result; a model that wants more reads on
MOST_CHARS = 16_000
# of the mark at the end of a part of a file
MARK_CHARS = 100
# of a file that is read or written
MOST_BYTES = 1_000_000
# tokens of one page fault
FAULT_TOKENS = 4_000

READ_LINES = "read_skill_lines"


class ToolBox(Protocol):
    """Some tools, as the chat protocol describes them, and their answers."""

    @property
    def tools(self) -> Sequence[JsonObject]:
        """The tools."""
        ...

    def call(self, name: str, arguments: Mapping[str, object]) -> str | None:
        """Return the answer to a call, or None if there is no tool of this name.

        Raises:
            ToolError: The call is wrong; the message is for the model.
        """
        ...


class ToolError(Exception):
    """What is wrong with a call of a tool, for the model."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a call, and whether the call was right."""

    text: str
    right: bool


def answer_call(call: ToolCall, boxes: Sequence[ToolBox]) -> Answered:
    """Return the answer to a call of one of the tools in some boxes."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        return Answered(f"Error: the arguments are no JSON ({error}). Call the tool again.", False)
    if not isinstance(arguments, dict):
        return Answered("Error: the arguments are no JSON object. Call the tool again.", False)
    try:
        for box in boxes:
            if (answer := box.call(call.name, arguments)) is not None:
                return Answered(_bounded(answer), True)
    except ToolError as error:
        return Answered(f"Error: {error}", False)
    known = ", ".join(name_of(tool) for box in boxes for tool in box.tools)
    return Answered(f"Error: there is no tool {call.name[:80]!r}: there are {known}.", False)


def name_of(tool: JsonObject) -> str:
    """Return the name of a tool."""
    match tool:
        case {"function": {"name": str(name)}}:
            return name
    raise ValueError(f"no tool: {tool}")


def _bounded(text: str) -> str:
    if len(text) <= MOST_CHARS:
        return text
    half = MOST_CHARS // 2
    return f"{text[:half]}\n[… {len(text) - MOST_CHARS:,} characters …]\n{text[-half:]}"


class FileTools:
    """Tools that read and write files in a scratch folder, and nowhere else."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        path: JsonObject = {"type": "string", "description": "Path in the scratch folder."}
        line: JsonObject = {"type": "integer", "description": "First line to read, from 1."}
        text: JsonObject = {"type": "string", "description": "The whole new content."}
        self.tools = (
            function_tool("read_file", "Read a text file.", _object({"path": path, "line": line}, ["path"])),
            function_tool(
                "write_file", "Write a text file.", _object({"path": path, "text": text}, ["path", "text"])
            ),
        )

    def call(self, name: str, arguments: Mapping[str, object]) -> str | None:
        """Return the answer to a call, or None if there is no tool of this name."""
        answers: dict[str, Callable[[Mapping[str, object]], str]] = {
            "read_file": self._read,
            "write_file": self._write,
        }
        return answers[name](arguments) if name in answers else None

    def _read(self, arguments: Mapping[str, object]) -> str:
        path, line = self._inside(_text(arguments, "path")), arguments.get("line", 1)
        if not isinstance(line, int) or line < 1:
            raise ToolError("line must be a whole number from 1")
        try:
            data = read_bounded(path, MOST_BYTES)
        except OSError as error:
            raise ToolError(f"the file cannot be read: {error.strerror or error}") from None
        if len(data) > MOST_BYTES:
            raise ToolError(f"the file has more than {MOST_BYTES:,} bytes: work on it with a program")
        lines = data.decode("utf-8", "replace").splitlines(keepends=True)
        text = "".join(lines[line - 1 :])
        if len(text) <= MOST_CHARS:
            return text or "(empty)"
        shown = text[: MOST_CHARS - MARK_CHARS]
        shown = shown.rpartition("\n")[0] or shown
        following = line + shown.count("\n") + 1
        return f"{shown}\n[… {len(lines):,} lines in all; read on with line={following}]"

    def _write(self, arguments: Mapping[str, object]) -> str:
        path, text = self._inside(_text(arguments, "path")), _text(arguments, "text")
        data = text.encode("utf-8", "replace")
        if len(data) > MOST_BYTES:
            raise ToolError(f"the text has more than {MOST_BYTES:,} bytes")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as error:
            raise ToolError(f"the file cannot be written: {error.strerror or error}") from None
        return f"{len(data):,} bytes written"

    def _inside(self, name: str) -> Path:
        """Return the path of a file in the scratch folder, links followed.

        Raises:
            ToolError: It is outside.
        """
        try:
            path = Path(os.path.realpath(self._folder / name))
        except ValueError as error:  # a null character
            raise ToolError(f"the path cannot be used: {error}") from None
        if not path.is_relative_to(self._folder):
            raise ToolError(f"{name[:80]!r} is outside of the scratch folder")
        return path


class ShellTool:
    """A tool that runs commands of a shell in a scratch folder, each in a process group of its own."""

    def __init__(self, folder: Path, *, seconds: float) -> None:
        self._folder = folder
        self._seconds = seconds
        command: JsonObject = {"type": "string"}
        self.tools = (
            function_tool(
                "run_shell",
                f"Run a command with sh in the scratch folder, for at most {seconds:g} seconds. What it "
                "leaves in the background is killed.",
                _object({"command": command}, ["command"]),
            ),
        )

    def call(self, name: str, arguments: Mapping[str, object]) -> str | None:
        """Return exit code and output of a command, or None if there is no tool of this name."""
        if name != "run_shell":
            return None
        command = ["/bin/sh", "-c", _text(arguments, "command")]
        env = clean_environment(self._folder.parent)
        try:
            done = run_bounded(command, self._folder, seconds=self._seconds, env=env)
        except (OSError, ValueError) as error:
            raise ToolError(f"the command cannot be run: {error}") from None
        how = f"killed after {self._seconds:g} s" if done.timed_out else f"exit code {done.code}"
        return f"{how}\n{done.output}"


class FaultTool:
    """A tool that reads lines of a skill that its page left out.

    Attributes:
        faults: The addresses that were read, in their order.
    """

    # the legend of the page names this command, with an address after it
    show = READ_LINES

    def __init__(self, pager: SkillPager, skill: Path) -> None:
        self._pager = pager
        self._skill = skill
        self.faults: list[str] = []
        lines: JsonObject = {"type": "string", "description": "As in the marks: L30-57, or a title."}
        self.tools = (
            function_tool(
                READ_LINES,
                "Read lines of the skill that were left out.",
                _object({"lines": lines}, ["lines"]),
            ),
        )

    def call(self, name: str, arguments: Mapping[str, object]) -> str | None:
        """Return lines of the skill, or None if there is no tool of this name."""
        if name != READ_LINES:
            return None
        lines = _text(arguments, "lines")
        try:
            page = self._pager.expand(self._skill, lines, max_tokens=FAULT_TOKENS)
        except SkillPagerError as error:
            raise ToolError(str(error)) from None
        self.faults.append(lines)
        return page.text or f"These lines have more than {FAULT_TOKENS:,} tokens: name fewer."


def _object(properties: JsonObject, required: Sequence[str]) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _text(arguments: Mapping[str, object], name: str) -> str:
    """Return an argument that is a text.

    Raises:
        ToolError: It is missing, or no text.
    """
    value = arguments.get(name)
    if not isinstance(value, str):
        raise ToolError(f"the argument {name} must be a text")
    return value
