"""Adds a value to a JSON text, or removes it, and leaves every other character as it is.

The text may hold comments and trailing commas, as editors' configuration files do. A value is named by the
path of keys and places in lists that leads to it. Python's own parser reads the text, after comments and
trailing commas have been replaced by spaces; every change is read again, and refused if it changed anything
else.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from skillpager.errors import SkillPagerError

Path: TypeAlias = Sequence[str | int]
JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"

_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\\r\n]|\\.)*"|//[^\r\n]*|/\*.*?\*/|\s+|[^\s"/,\[\]{}]+|.', re.DOTALL)


class EditError(SkillPagerError):
    """A text cannot be read or changed, because of this line and column (from 1; line 0: the whole text)."""

    def __init__(self, problem: str, *, line: int = 0, column: int = 0) -> None:
        super().__init__(problem)
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class _Part:
    """A value of an object or list: its key or place, and the offsets of key, value and end."""

    key: str | int
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True)
class _Span:
    """An object or list in a text: its offsets and its parts."""

    start: int
    end: int
    parts: tuple[_Part, ...]

    def find(self, key: str | int) -> _Part | None:
        """Return the part of this key or place; of a key that is there twice, the last one counts."""
        return next((part for part in reversed(self.parts) if part.key == key), None)


def read(text: str) -> dict[str, JsonValue]:
    """Return the data of a text, nothing of a blank one; a text that is not JSON is an `EditError`."""
    plain = _plain(text)
    start = _behind_trivia(plain, 0)
    if start == len(plain):
        return {}
    try:
        value, end = json.JSONDecoder().raw_decode(plain, start)
    except json.JSONDecodeError as error:
        found = repr(text[error.pos]) if error.pos < len(text) else "the end of the file"
        raise _problem(text, error.pos, f"{error.msg.removesuffix(' at')}, found {found}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, lists in lists
        raise EditError(f"it cannot be read ({error})") from error
    if (end := _behind_trivia(plain, end)) < len(plain):
        raise _problem(text, end, f"expected the end of the file, found {text[end]!r}")
    if not isinstance(value, dict):
        raise _problem(text, start, "the file must hold an object, { … }")
    return value


def with_value(text: str, path: Path, value: JsonValue) -> str:
    """Return the text with the value at a path, in place of the one that is there or before the others.

    Objects and lists that are missing on the path are added.
    """
    expected: Any = read(text)
    owners = _owners(text, path)
    if not owners:
        gap = "" if not text or text.endswith("\n") else newline_of(text)
        return text + gap + _rendered(text, _nested(path, value), "  ") + newline_of(text)
    root, owner, key, new = owners[0], owners[-1], path[len(owners) - 1], _nested(path[len(owners) :], value)
    held = held_at(expected, path[: len(owners)])
    unit = _line_indent(text, root.parts[0].start) if root.parts else ""
    if found := owner.find(key):
        held[key] = new
        is_inline = "\n" not in text[found.value : found.end]
        indent = _line_indent(text, found.start)
        piece = _rendered(text, new, None if is_inline else unit or "  ", indent)
        changed = text[: found.value] + piece + text[found.end :]
    else:
        if isinstance(held, list):
            held.insert(0, new)
        else:
            held[key] = new
        changed = _inserted(
            text, root, owner, "" if isinstance(key, int) else f"{json.dumps(key)}: ", new, unit
        )
    if not holds(read, changed, expected):
        raise EditError("the entry cannot be added without changing something else")
    return changed


def without_value(text: str, path: Path) -> str:
    """Return the text without the value at a path, which is there."""
    expected: Any = read(text)
    del held_at(expected, path)[path[-1]]
    owner = _owners(text, path)[-1]
    if found := owner.find(path[-1]):
        for changed in _removals(text, owner, found):
            if holds(read, changed, expected):
                return changed
    raise EditError("the entry cannot be removed without changing something else")


def is_empty(text: str) -> bool:
    """Return True if the text has no value or an empty object, and no comment."""
    return "".join(text.split()) in ("", "{}")


def newline_of(text: str) -> str:
    """Return how the lines of a text end."""
    return "\r\n" if "\r\n" in text else "\n"


def held_at(data: Any, path: Path) -> Any:
    """Return the object or list in data that holds the last step of a path."""
    for step in path[:-1]:
        data = data[step]
    return data


def _owners(text: str, path: Path) -> list[_Span]:
    """Return the objects and lists on a path, as far as they are there; none of a blank text."""
    plain = _plain(text)
    start = _behind_trivia(plain, 0)
    if start == len(plain):
        return []
    owners = [_span(plain, start)]
    for step in path[:-1]:
        found = owners[-1].find(step)
        if found is None:
            break
        if plain[found.value] != ("[" if isinstance(path[len(owners)], int) else "{"):
            kind = "a list, [ … ]" if isinstance(path[len(owners)], int) else "an object, { … }"
            raise _problem(text, found.value, f"{step!r} must be {kind}")
        owners.append(_span(plain, found.value))
    return owners


def _span(plain: str, start: int) -> _Span:
    """Return the object or list at an offset."""
    decode = json.JSONDecoder().raw_decode
    parts: list[_Part] = []
    offset = _behind_trivia(plain, start + 1)
    while plain[offset] not in "}]":
        key: str | int = len(parts)
        begin = offset
        if plain[start] == "{":
            key, end = decode(plain, offset)
            offset = _behind_trivia(plain, _behind_trivia(plain, end) + 1)
        _, end = decode(plain, offset)
        parts.append(_Part(key, begin, offset, end))
        offset = _behind_trivia(plain, end)
        if plain[offset] == ",":
            offset = _behind_trivia(plain, offset + 1)
    return _Span(start, offset + 1, tuple(parts))


def _nested(path: Path, value: JsonValue) -> JsonValue:
    """Return the value in objects with the keys of a path, and in lists."""
    for key in reversed(path):
        value = [value] if isinstance(key, int) else {key: value}
    return value


def _plain(text: str) -> str:
    """Return the text with comments and trailing commas replaced by spaces, so that offsets stay."""
    pieces: list[str] = []
    last, comma = "", -1
    for token in _TOKEN.finditer(text):
        piece = token[0]
        if piece.startswith(("//", "/*")):
            piece = re.sub(r"[^\r\n]", " ", piece)
        elif not piece.isspace():
            if piece in ("]", "}") and comma >= 0:
                pieces[comma] = " "
            comma = len(pieces) if piece == "," and last not in ("", "[", "{", ",", ":") else -1
            last = piece
        pieces.append(piece)
    return "".join(pieces)


def _problem(text: str, offset: int, problem: str) -> EditError:
    begin = text.rfind("\n", 0, offset) + 1
    return EditError(problem, line=text.count("\n", 0, offset) + 1, column=offset - begin + 1)


def _behind_trivia(text: str, offset: int) -> int:
    """Return the offset behind white space and comments."""
    match = _TRIVIA.match(text, offset)
    return match.end() if match else offset


def holds(read: Callable[[str], object], text: str, expected: object) -> bool:
    """Return whether a text, read by a function that raises `EditError`, is what is expected."""
    try:
        return read(text) == expected
    except EditError:
        return False


def _inserted(text: str, root: _Span, owner: _Span, label: str, value: JsonValue, unit: str) -> str:
    """Return the text with a value before the others of an object or list, in the style of the file."""
    begin, members = owner.start + 1, owner.parts
    is_inline = "\n" not in text[begin : members[0].start if members else owner.end]
    if "\n" not in text[root.start : root.end] or (members and is_inline):
        return text[:begin] + label + _rendered(text, value) + ("," if members else "") + text[begin:]
    newline, base = newline_of(text), _line_indent(text, owner.start)
    indent = _line_indent(text, members[0].start) if members else base + (unit or "  ")
    piece = f"{newline}{indent}{label}{_rendered(text, value, unit or '  ', indent)}"
    behind = "," if members else newline + base if is_inline else ""
    return text[:begin] + piece + behind + text[begin:]


def _removals(text: str, owner: _Span, member: _Part) -> Iterator[str]:
    """Yield texts without a part: first without the line break before it, then with it."""
    at = owner.parts.index(member)
    behind = _behind_trivia(text, member.end)
    end = behind + 1 if text[behind] == "," else member.end
    before = text[: member.start].rstrip(" \t")
    line_end = len(before.removesuffix("\n").removesuffix("\r") if before.endswith("\n") else before)
    for begin in (line_end, member.start):
        if end > member.end or at == 0:
            yield text[:begin] + text[end:]
        else:
            # the last member goes with the comma before it
            comma = _behind_trivia(text, owner.parts[at - 1].end)
            yield text[:comma] + text[comma + 1 : begin] + text[end:]


def _rendered(text: str, value: JsonValue, unit: str | None = None, indent: str = "") -> str:
    """Return a value on one line, or with a unit of indentation on several, the first at `indent`."""
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return (newline_of(text) + indent).join(lines)


def _line_indent(text: str, offset: int) -> str:
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]
