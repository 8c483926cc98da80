"""Reads JSON with comments and trailing commas, and tells where each value and member stands."""

import json
import re
from dataclasses import dataclass
from typing import TypeAlias

from skillpager.errors import SettingsError

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"

# deeper than any configuration, and well within Python's own recursion
MAX_DEPTH = 100

_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


class EditError(SettingsError):
    """A text cannot be read, or not be changed.

    Attributes:
        line: Line of the place, from 1; 0 if it is the whole text.
        column: Column of the place, from 1.
    """

    def __init__(self, problem: str, *, line: int = 0, column: int = 0) -> None:
        super().__init__(problem)
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class Value:
    """A value and where it stands; an object with its members, each with the offset of its key."""

    data: JsonValue
    start: int
    end: int
    members: tuple[tuple[str, int, "Value"], ...] = ()


def read_root(text: str) -> Value | None:
    """Return the object that the text is, None if it is blank.

    Raises:
        EditError: The text is not JSON, or no object.
    """
    start = skip_trivia(text, 0)
    if start == len(text):
        return None
    root = _value(text, start, 0)
    end = skip_trivia(text, root.end)
    if end < len(text):
        raise _problem(text, end, f"nothing may follow the value, but there is {text[end]!r}")
    if not isinstance(root.data, dict):
        raise _problem(text, start, "the file must hold an object, { … }")
    return root


def object_at(text: str, root: Value, container: str) -> Value | None:
    """Return the object under a key of the root, None if the key is not there.

    Raises:
        EditError: Something else is under the key, or the key is there twice.
    """
    found = member_of(text, root, container)
    if found is not None and not isinstance(found[2].data, dict):
        raise _problem(text, found[2].start, f"{container!r} must be an object, {{ … }}")
    return None if found is None else found[2]


def member_of(text: str, owner: Value, key: str) -> tuple[str, int, Value] | None:
    """Return the member of an object under a key: key, its offset, value; None if there is none.

    Raises:
        EditError: The key is there twice.
    """
    found = [member for member in owner.members if member[0] == key]
    if len(found) > 1:
        raise _problem(text, found[1][1], f"{key!r} is there twice")
    return found[0] if found else None


def _problem(text: str, offset: int, problem: str) -> EditError:
    begin = text.rfind("\n", 0, offset) + 1
    return EditError(problem, line=text.count("\n", 0, offset) + 1, column=offset - begin + 1)


def skip_trivia(text: str, offset: int) -> int:
    """Return the offset behind white space and comments."""
    match = _TRIVIA.match(text, offset)
    return match.end() if match else offset


def _value(text: str, start: int, depth: int) -> Value:
    if depth > MAX_DEPTH:
        raise _problem(text, start, f"values are nested more than {MAX_DEPTH} deep")
    match text[start : start + 1]:
        case "{":
            return _read_object(text, start, depth)
        case "[":
            return _read_array(text, start, depth)
        case '"':
            data, end = _read_string(text, start)
            return Value(data, start, end)
    scalar = _SCALAR.match(text, start)
    if scalar is None:
        raise _unexpected(text, start, "a value")
    try:
        return Value(json.loads(scalar[0]), start, scalar.end())
    except ValueError as error:  # Python reads no number of thousands of digits
        raise _problem(text, start, "the number is too long") from error


def _read_string(text: str, start: int) -> tuple[str, int]:
    match = _STRING.match(text, start)
    if match is None:
        raise _problem(text, start, "a string has no end on its line")
    try:
        return str(json.loads(match[0])), match.end()
    except json.JSONDecodeError as error:
        raise _problem(text, start + error.pos, "a string has a wrong escape") from error


def _read_array(text: str, start: int, depth: int) -> Value:
    items: list[JsonValue] = []
    offset = skip_trivia(text, start + 1)
    while text[offset : offset + 1] != "]":
        item = _value(text, offset, depth + 1)
        items.append(item.data)
        offset = _behind_item(text, item.end, "]")
    return Value(items, start, offset + 1)


def _read_object(text: str, start: int, depth: int) -> Value:
    members: list[tuple[str, int, Value]] = []
    offset = skip_trivia(text, start + 1)
    while text[offset : offset + 1] != "}":
        if text[offset : offset + 1] != '"':
            raise _unexpected(text, offset, 'a "key" or }')
        key, colon = _read_string(text, offset)
        colon = skip_trivia(text, colon)
        if text[colon : colon + 1] != ":":
            raise _unexpected(text, colon, f": behind {key!r}")
        value = _value(text, skip_trivia(text, colon + 1), depth + 1)
        members.append((key, offset, value))
        offset = _behind_item(text, value.end, "}")
    return Value({key: value.data for key, _, value in members}, start, offset + 1, tuple(members))


def _behind_item(text: str, end: int, closing: str) -> int:
    """Return where the next item begins, or the closing bracket stands."""
    offset = skip_trivia(text, end)
    if text[offset : offset + 1] == ",":
        return skip_trivia(text, offset + 1)
    if text[offset : offset + 1] != closing:
        raise _unexpected(text, offset, f", or {closing}")
    return offset


def _unexpected(text: str, offset: int, wanted: str) -> EditError:
    found = repr(text[offset]) if offset < len(text) else "the end of the file"
    return _problem(text, offset, f"{wanted} is expected, but there is {found}")
