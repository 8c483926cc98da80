"""Adds one entry to a JSON text, or removes it, and leaves every other character as it is.

The text may hold comments and trailing commas, as editors' configuration files do. An entry is the member
`name` of the object that is the member `container` of the root; other values are changed by the path of keys
and places in lists that leads to them. Python's own parser reads the text, after comments and trailing commas
have been replaced by spaces; every change is read again, and refused if it changed anything but the value. A
text that is not JSON, or whose container is not an object, is an `EditError`.
"""

import json
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeAlias

from skillpager.errors import SettingsError

Path: TypeAlias = Sequence[str | int]
JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"

# deeper than any configuration, and well within Python's own recursion
MAX_DEPTH = 100

_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_SAME_LINE = re.compile(r"(?:[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/))*")
_TOKEN = re.compile(r'"(?:[^"\\\r\n]|\\.)*"|//[^\r\n]*|/\*.*?\*/|\s+|[^\s"/,\[\]{}]+|.', re.DOTALL)
_LONG_NUMBER = re.compile(r"-?\d{4301}")  # of more digits than Python reads


class EditError(SettingsError):
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

    def find(self, text: str, key: str | int) -> _Part | None:
        """Return the part of this key or place; a key that is there twice is an `EditError`."""
        found = [part for part in self.parts if part.key == key]
        if len(found) > 1:
            raise _problem(text, found[1].start, f"the key {key!r} occurs twice")
        return found[0] if found else None


def has_container(text: str, container: str) -> bool:
    """Return True if the text has a place for entries."""
    return container in _read(text, container)


def read_entry(text: str, container: str, name: str) -> JsonValue:
    """Return the entry, None if there is none."""
    held = _read(text, container).get(container)
    return held.get(name) if isinstance(held, dict) else None


def with_entry(text: str, container: str, name: str, entry: JsonValue) -> str:
    """Return the text with the entry added, or put in place of one of the same name."""
    _read(text, container)
    return with_value(text, [container, name], entry)


def without_entry(text: str, container: str, name: str, *, drop_container: bool = False) -> str:
    """Return the text without the entry; `drop_container` also removes a container that is empty then."""
    held = _read(text, container).get(container)
    if not isinstance(held, dict) or name not in held:
        return text
    return without_value(text, [container] if drop_container and len(held) == 1 else [container, name])


def with_value(text: str, path: Path, value: JsonValue) -> str:
    """Return the text with the value at a path, in place of the one that is there or behind the others.

    Objects that are missing on the path are added. A new value of a list has the length of the list as place.
    """
    data, newline = _read(text), "\r\n" if "\r\n" in text else "\n"
    expected: Any = deepcopy(data)
    owners = _owners(text, path)
    if not owners:
        gap = "" if not text or text.endswith("\n") else newline
        return text + gap + _rendered(text, None, _nested(path, value), "") + newline
    root, owner, key, rest = owners[0], owners[-1], path[len(owners) - 1], path[len(owners) :]
    if (found := owner.find(text, key)) is None:
        changed = _inserted(text, root, owner, key, _nested(rest, value))
    else:
        outside = text[found.value : found.end] if isinstance(key, int) else text[root.start : root.end]
        indent = _line_indent(text, found.start)
        inline = "\n" not in outside
        new = json.dumps(value, ensure_ascii=False) if inline else _rendered(text, root, value, indent)
        changed = text[: found.value] + new + text[found.end :]
    held = expected
    for step in path[: len(owners) - 1]:
        held = held[step]
    if key == len(held) and isinstance(held, list):
        held.append(_nested(rest, value))
    else:
        held[key] = _nested(rest, value)
    if not _holds(changed, expected):
        raise EditError(f"{_named(path)} cannot be added without changing something else")
    return changed


def without_value(text: str, path: Path) -> str:
    """Return the text without the value at a path, which is there."""
    expected: Any = deepcopy(_read(text))
    held = expected
    for step in path[:-1]:
        held = held[step]
    del held[path[-1]]
    owner = _owners(text, path)[-1]
    if found := owner.find(text, path[-1]):
        for changed in _removals(text, owner, found):
            if _holds(changed, expected):
                return changed
    raise EditError(f"{_named(path)} cannot be removed without changing something else")


def is_empty(text: str) -> bool:
    """Return True if the text has no value or an empty object, and no comment."""
    return "".join(text.split()) in ("", "{}")


# ---- reading


def _read(text: str, container: str | None = None) -> dict[str, JsonValue]:
    """Return the data of a text, nothing of a blank one; a container must be an object."""
    plain = _plain(text)
    start = _behind_trivia(plain, 0)
    if start == len(plain):
        return {}
    decode = json.JSONDecoder(parse_constant=_refuse).raw_decode
    try:
        value, end = decode(plain, start)
    except json.JSONDecodeError as error:
        found = repr(text[error.pos]) if error.pos < len(text) else "the end of the file"
        raise _problem(text, error.pos, f"{error.msg.removesuffix(' at')}, found {found}") from error
    except ValueError as error:
        match = _LONG_NUMBER.search(plain)
        raise _problem(text, match.start() if match else start, "the number is too long") from error
    if (end := _behind_trivia(plain, end)) < len(plain):
        raise _problem(text, end, f"expected the end of the file, found {text[end]!r}")
    if not isinstance(value, dict):
        raise _problem(text, start, "the file must hold an object, { … }")
    if container is not None and container in value:
        place = _span(plain, start).find(text, container)
        if place and not isinstance(value[container], dict):
            raise _problem(text, place.value, f"{container!r} must be an object, {{ … }}")
    return value


def _owners(text: str, path: Path) -> list[_Span]:
    """Return the objects and lists on a path, as far as they are there; none of a blank text."""
    plain = _plain(text)
    start = _behind_trivia(plain, 0)
    if start == len(plain):
        return []
    owners = [_span(plain, start)]
    for step in path[:-1]:
        found = owners[-1].find(text, step)
        if found is None:
            break
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
    """Return the value in objects with the keys of a path."""
    for key in reversed(path):
        value = {str(key): value}
    return value


def _named(path: Path) -> str:
    return "the element" if isinstance(path[-1], int) else repr(path[-1])


def _plain(text: str) -> str:
    """Return the text with comments and trailing commas replaced by spaces, so that offsets stay."""
    pieces: list[str] = []
    last, comma, depth = "", -1, -1
    for token in _TOKEN.finditer(text):
        piece = token[0]
        if piece.startswith(("//", "/*")):
            piece = re.sub(r"[^\r\n]", " ", piece)
        elif not piece.isspace():
            depth += (piece in ("[", "{")) - (piece in ("]", "}"))
            if depth > MAX_DEPTH:
                raise _problem(text, token.start(), f"values are nested more than {MAX_DEPTH} deep")
            if piece in ("]", "}") and comma >= 0:
                pieces[comma] = " "
            comma = len(pieces) if piece == "," and last not in ("", "[", "{", ",", ":") else -1
            last = piece
        pieces.append(piece)
    return "".join(pieces)


def _refuse(constant: str) -> JsonValue:
    raise EditError(f"{constant} is not JSON")


def _problem(text: str, offset: int, problem: str) -> EditError:
    begin = text.rfind("\n", 0, offset) + 1
    return EditError(problem, line=text.count("\n", 0, offset) + 1, column=offset - begin + 1)


def _behind_trivia(text: str, offset: int) -> int:
    """Return the offset behind white space and comments."""
    match = _TRIVIA.match(text, offset)
    return match.end() if match else offset


def _holds(text: str, expected: JsonValue) -> bool:
    try:
        return _read(text) == expected
    except EditError:
        return False


# ---- changing


def _inserted(text: str, root: _Span, owner: _Span, key: str | int, value: JsonValue) -> str:
    """Return the text with a value added behind the others of an object or list, in the style of the file."""
    newline = "\r\n" if "\r\n" in text else "\n"
    members, label = owner.parts, "" if isinstance(key, int) else f"{json.dumps(key)}: "
    one_line = "\n" not in text[owner.start : members[0].start if members else owner.end]
    if (members and one_line) or "\n" not in text[root.start : root.end]:
        piece = label + json.dumps(value, ensure_ascii=False)
        piece = " " + piece if members else piece
    else:
        base = _line_indent(text, owner.start)
        indent = _line_indent(text, members[0].start) if members else base + _unit(text, root)
        piece = f"{newline}{indent}{label}{_rendered(text, root, value, indent)}"
        if not members and one_line:
            piece += newline + base
    if not members:
        last = owner.end - 1
        offset = last if one_line else len(text[:last].rstrip())
        return text[:offset] + piece + text[offset:]
    end = members[-1].end
    comma = _behind_trivia(text, end)
    has_comma = text[comma] == ","
    # a comment on the line of a member stays on that line
    offset = comma + 1 if has_comma else end
    match = _SAME_LINE.match(text, offset)
    place = match.end() if match and "\n" in piece else offset
    if has_comma:
        return text[:place] + piece + "," + text[place:]
    return text[:end] + "," + text[end:place] + piece + text[place:]


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


def _rendered(text: str, root: _Span | None, value: JsonValue, indent: str) -> str:
    """Return a value over several lines, in the style of the file; `indent` is that of its first line."""
    unit = "  " if root is None else _unit(text, root)
    newline = "\r\n" if "\r\n" in text else "\n"
    return (newline + indent).join(json.dumps(value, ensure_ascii=False, indent=unit).split("\n"))


def _unit(text: str, root: _Span) -> str:
    """Return the indentation of one level."""
    return (_line_indent(text, root.parts[0].start) if root.parts else "") or "  "


def _line_indent(text: str, offset: int) -> str:
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]
