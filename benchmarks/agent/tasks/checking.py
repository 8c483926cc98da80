"""Helpers of the checks of agent tasks: read what the agent wrote, name the facts that are missing, exit.

A check is run as `python check.py` in the agent's scratch folder: exit code 0 means solved, 1 not solved.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import TracebackType

Scalar = str | int | float | bool | None
SCRIPT_SECONDS = 20.0


def _report_shape(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print one line for an answer whose form no check expected, and exit as not solved."""
    line = trace
    while line and line.tb_next:
        line = line.tb_next
    print(f"the answer has another form than asked for: {kind.__name__}: {error}".replace("\n", " "))
    sys.stdout.flush()
    os._exit(1)


sys.excepthook = _report_shape


class Check:
    """The facts that an answer must hold: `need` each, then `done`."""

    def __init__(self) -> None:
        self.missing: list[str] = []

    def need(self, ok: object, what: str) -> None:
        """Note `what` as missing unless `ok`."""
        if not ok:
            self.missing.append(what)

    def done(self) -> None:
        """Exit with 0 if nothing is missing, else print what is and exit with 1."""
        print("missing or wrong: " + "; ".join(self.missing) if self.missing else "solved")
        sys.exit(1 if self.missing else 0)


def fail(what: str) -> None:
    """Print why the task is not solved, and exit with 1."""
    print(what)
    sys.exit(1)


def text(name: str) -> str:
    """Return the text of a file in the scratch folder; a missing file ends the check as not solved."""
    path = Path(name)
    if not path.is_file():
        fail(f"{name} was not written")
    return path.read_text(encoding="utf-8-sig", errors="replace")


def load(name: str = "answer.json") -> dict:
    """Return the JSON object in a file of the scratch folder."""
    try:
        value = json.loads(text(name))
    except json.JSONDecodeError as error:
        fail(f"{name} is not JSON: {error}")
    if not isinstance(value, dict):
        fail(f"{name} holds no JSON object")
    return value


def plain(value: object) -> str:
    """Return a value as lower-case words, without marks, quotes and repeated spaces."""
    return re.sub(r"[\s`'\"*_]+", " ", str(value)).strip().lower()


def squeezed(source: str) -> str:
    """Return source text without any white space, for comparisons that layout must not change."""
    return re.sub(r"\s+", "", source)


def number(value: object) -> float:
    """Return the first number in a value, or NaN."""
    if isinstance(value, bool):
        return float("nan")
    found = re.search(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", str(value).replace(",", ""), re.IGNORECASE)
    return float(found.group()) if found else float("nan")


def close(value: object, expected: float, tolerance: float = 1e-6) -> bool:
    """Return whether a value is the expected number."""
    return abs(number(value) - expected) <= tolerance


# commands that set a script up; no check asks for one
PREPARING = ("set", "echo", "cd", "shopt", "exit")
_ASSIGNED = re.compile(
    r"""^\s*(?:export\s+|readonly\s+)?([A-Za-z_]\w*)=("[^"$`]*"|'[^']*'|[^\s"'$`]*)\s*(?:#.*)?$"""
)
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")


def commands(name: str) -> list[list[str]]:
    """Return the simple commands of a shell file as words; without comments, prompts, continuations."""
    joined = re.sub(r"[\\^`][ \t]*\r?\n", " ", text(name))
    found: list[list[str]] = []
    variables: dict[str, str] = {}
    for line in joined.splitlines():
        line = re.sub(r"^\s*[$>]\s+", "", line)
        if assigned := _ASSIGNED.match(line):
            variables[assigned.group(1)] = assigned.group(2).strip("'\"")
            continue
        line = _VARIABLE.sub(lambda used: variables.get(used.group(1), used.group()), line)
        reader = shlex.shlex(line, posix=True, punctuation_chars=";&|<>")
        reader.whitespace_split = True
        reader.commenters = "#"
        try:
            words = list(reader)
        except ValueError:
            words = line.split()
        current: list[str] = []
        for word in [*words, ";"]:
            if word and set(word) <= set(";&|"):
                if current and current[0] not in PREPARING:
                    found.append(current)
                current = []
            else:
                current.append(word)
    return found


def options(words: list[str], switches: tuple[str, ...] = ()) -> tuple[list[str], dict[str, list[str]]]:
    """Return a command's positional words and its options; `switches` are the options without a value."""
    positional: list[str] = []
    given: dict[str, list[str]] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("-") and len(word) > 1 and not re.fullmatch(r"-\d.*", word):
            name, equals, value = word.partition("=")
            if equals:
                given.setdefault(name, []).append(value)
            elif name in switches or not rest or (rest[0].startswith("--")):
                given.setdefault(name, [])
            else:
                given.setdefault(name, []).append(rest.pop(0))
        else:
            positional.append(word)
    return positional, given


def run(script: str, *arguments: str, given: str | None = None) -> str:
    """Return what a Python script of the scratch folder prints; a failure ends the check as not solved."""
    text(script)
    try:
        done = subprocess.run(
            [sys.executable, script, *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=SCRIPT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        fail(f"{script} ran too long")
    if done.returncode:
        fail(f"{script} failed: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
    return done.stdout


def _scalar(word: str) -> Scalar:
    """Return a YAML scalar as a value."""
    word = word.strip()
    if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"":
        return word[1:-1]
    if word in ("", "~", "null"):
        return None
    if word.lower() in ("true", "yes", "on"):
        return True
    if word.lower() in ("false", "no", "off"):
        return False
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:  # no such number: the next kind, or a text
            continue
    return word


def _flow(word: str) -> object:
    """Return a YAML value that may be a list or mapping in one line."""
    word = word.strip()
    if not (word and word[0] in "[{" and word[-1] in "]}"):
        return _scalar(word)
    parts, depth, quote, part = [], 0, "", ""
    for sign in word[1:-1]:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
        if sign == "," and not depth and not quote:
            parts.append(part)
            part = ""
        else:
            part += sign
    parts = [each for each in [*parts, part] if each.strip()]
    if word[0] == "[":
        return [_flow(each) for each in parts]
    pairs = (each.partition(":") for each in parts)
    return {str(_scalar(key)): _flow(value) for key, _, value in pairs}


_KEY = re.compile(r"""^("[^"]*"|'[^']*'|[^\s:#\[\]{}'"-][^:#]*?|-[^\s:][^:#]*?)\s*:(?:\s+(.*))?$""")


def _block(lines: list[tuple[int, str]], indent: int) -> object:
    """Return the block that starts at the first line; its lines are taken off `lines`."""
    if lines[0][1].startswith("- ") or lines[0][1] == "-":
        items: list[object] = []
        while lines and lines[0][0] == indent and (lines[0][1].startswith("- ") or lines[0][1] == "-"):
            rest = lines[0][1][1:]
            inner = rest.lstrip()
            if inner and (_KEY.match(inner) or inner.startswith("- ")):
                deeper = indent + 1 + len(rest) - len(inner)
                lines[0] = (deeper, inner)
                items.append(_block(lines, deeper))
            else:
                lines.pop(0)
                nested = not inner and lines and lines[0][0] > indent
                items.append(_block(lines, lines[0][0]) if nested else _flow(inner))
        return items
    mapping: dict[str, object] = {}
    while lines and lines[0][0] == indent:
        found = _KEY.match(lines[0][1])
        if not found:
            raise ValueError(f"not a YAML mapping: {lines[0][1]}")
        lines.pop(0)
        key, rest = str(_scalar(found.group(1))), (found.group(2) or "").strip()
        if re.fullmatch(r"[|>][+-]?", rest):
            kept = []
            while lines and lines[0][0] > indent:
                kept.append(lines.pop(0)[1])
            mapping[key] = "\n".join(kept)
        elif rest and not rest.startswith("&"):
            mapping[key] = _flow(rest)
        elif lines and (lines[0][0] > indent or (lines[0][0] == indent and lines[0][1].startswith("- "))):
            mapping[key] = _block(lines, lines[0][0])
        else:
            mapping[key] = None
    return mapping


def _uncommented(line: str) -> str:
    """Return a line of YAML without its comment."""
    quote = ""
    for at, sign in enumerate(line):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign == "#" and (at == 0 or line[at - 1].isspace()):
            return line[:at]
    return line


def yaml(source: str) -> dict:
    """Return a YAML mapping of the plain kind: blocks, lists, one-line lists and mappings, scalars."""
    stripped = [_uncommented(line).rstrip().expandtabs(2) for line in source.splitlines()]
    kept = [(len(line) - len(line.lstrip()), line.lstrip()) for line in stripped]
    lines = [(indent, line) for indent, line in kept if line and line not in ("---", "...")]
    value = _block(lines, lines[0][0]) if lines else {}
    if lines or not isinstance(value, dict):
        raise ValueError("not a YAML mapping of the plain kind")
    return value


def at(tree: object, path: str) -> object:
    """Return the value at a dotted path of mappings, or None."""
    for key in path.split("."):
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree
