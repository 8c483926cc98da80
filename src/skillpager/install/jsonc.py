"""Adds one entry to a JSON text, or removes it, and leaves every other character as it is.

The text may hold comments and trailing commas, as editors' configuration files do. An entry is the member
`name` of the object that is the member `container` of the root. Elements of lists are changed by the path of
keys and places that leads to them. Python's own parser reads the text, after comments and trailing commas
have been replaced by spaces; every change is read again, and refused if it changed anything but the entry or
element. A text that is not JSON, or whose container is not an object, is an `EditError`.
"""

import json
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeAlias

from skillpager.errors import SettingsError

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
class _Member:
    """A member of an object: its key, its value, and the offsets of key and value."""

    key: str
    data: JsonValue
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True)
class _Object:
    """An object in a text: its offsets and its members."""

    start: int
    end: int
    members: tuple[_Member, ...]

    @property
    def data(self) -> dict[str, JsonValue]:
        """The object as Python has it."""
        return {member.key: member.data for member in self.members}

    def find(self, text: str, key: str) -> _Member | None:
        """Return the member of this key; a key that is there twice is an `EditError`."""
        found = [member for member in self.members if member.key == key]
        if len(found) > 1:
            raise _problem(text, found[1].start, f"the key {key!r} occurs twice")
        return found[0] if found else None


def has_container(text: str, container: str) -> bool:
    """Return True if the text has a place for entries."""
    return _read(text, container)[1] is not None


def read_entry(text: str, container: str, name: str) -> JsonValue:
    """Return the entry, None if there is none."""
    _, place = _read(text, container)
    found = place.find(text, name) if place is not None else None
    return found.data if found is not None else None


def with_entry(text: str, container: str, name: str, entry: JsonValue) -> str:
    """Return the text with the entry added, or put in place of one of the same name."""
    root, place = _read(text, container)
    newline = "\r\n" if "\r\n" in text else "\n"
    if root is None:
        gap = "" if not text or text.endswith("\n") else newline
        return text + gap + _rendered(text, None, {container: {name: entry}}, "") + newline
    if place is None:
        changed = _inserted(text, root, root, container, {name: entry})
    elif (found := place.find(text, name)) is not None:
        inline = "\n" not in text[found.value : found.end] and "\n" not in text[root.start : root.end]
        indent = _line_indent(text, found.start)
        new = json.dumps(entry, ensure_ascii=False) if inline else _rendered(text, root, entry, indent)
        changed = text[: found.value] + new + text[found.end :]
    else:
        changed = _inserted(text, root, place, name, entry)
    held = place.data if place is not None else {}
    if not _holds(changed, {**root.data, container: {**held, name: entry}}):
        raise EditError(f"{name!r} cannot be added without changing something else")
    return changed


def without_entry(text: str, container: str, name: str, *, drop_container: bool = False) -> str:
    """Return the text without the entry; `drop_container` also removes a container that is empty then."""
    root, place = _read(text, container)
    if root is None or place is None or place.find(text, name) is None:
        return text
    held = {key: value for key, value in place.data.items() if key != name}
    owner, key = (root, container) if drop_container and not held else (place, name)
    expected = {**root.data, container: held}
    if owner is root:
        del expected[container]
    for changed in _removals(text, owner, key):
        if _holds(changed, expected):
            return changed
    raise EditError(f"{name!r} cannot be removed without changing something else")


def with_element(text: str, path: Sequence[str | int], value: JsonValue) -> str:
    """Return the text with an element of a list put in place of the one at `path`, or behind the last one.

    Args:
        text: A JSON text.
        path: The keys and places that lead to the element, in a list that has one; the place of a new element
            is the length of the list.
        value: The element.
    """
    root, _ = _read(text, None)
    spans, changed, held = _list_at(text, path)
    last = int(path[-1])
    newline = "\r\n" if "\r\n" in text else "\n"
    start, end = spans[min(last, len(spans) - 1)]
    indent = _line_indent(text, start)
    inline = json.dumps(value, ensure_ascii=False)
    if last < len(spans):
        new = _rendered(text, root, value, indent) if "\n" in text[start:end] else inline
        made = text[:start] + new + text[end:]
        held[last] = value
    else:
        own_line = text[:start].endswith(newline + indent)
        new = newline + indent + _rendered(text, root, value, indent) if own_line else f" {inline}"
        made = f"{text[:end]},{new}{text[end:]}"
        held.append(value)
    if not _holds(made, changed):
        raise EditError("the element cannot be added without changing something else")
    return made


def without_element(text: str, path: Sequence[str | int]) -> str:
    """Return the text without an element, by the path that leads to it, of a list that has others."""
    spans, changed, held = _list_at(text, path)
    last = int(path[-1])
    begin, end = (spans[last - 1][1], spans[last][1]) if last else (spans[0][0], spans[1][0])
    made = text[:begin] + text[end:]
    del held[last]
    if not _holds(made, changed):
        raise EditError("the element cannot be removed without changing something else")
    return made


def is_empty(text: str) -> bool:
    """Return True if the text has no value or an empty object, and no comment."""
    return "".join(text.split()) in ("", "{}")


# ---- reading


def _read(text: str, container: str | None) -> tuple[_Object | None, _Object | None]:
    """Return the root, None for a blank text, and the container, None if it is missing or not asked for."""
    plain = _plain(text)
    start = _behind_trivia(plain, 0)
    if start == len(plain):
        return None, None
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

    def read_object(start: int) -> _Object:
        members = []
        offset = _behind_trivia(plain, start + 1)
        while plain[offset] != "}":
            key, end = decode(plain, offset)
            value = _behind_trivia(plain, _behind_trivia(plain, end) + 1)
            data, end = decode(plain, value)
            members.append(_Member(key, data, offset, value, end))
            offset = _behind_trivia(plain, end)
            if plain[offset] == ",":
                offset = _behind_trivia(plain, offset + 1)
        return _Object(start, offset + 1, tuple(members))

    root = read_object(start)
    place = None if container is None else root.find(text, container)
    if place is None:
        return root, None
    if not isinstance(place.data, dict):
        raise _problem(text, place.value, f"{container!r} must be an object, {{ … }}")
    return root, read_object(place.value)


def _list_at(
    text: str, path: Sequence[str | int]
) -> tuple[list[tuple[int, int]], dict[str, JsonValue], list[JsonValue]]:
    """Return the offsets of the elements of the list that a path leads into, and copies to change.

    The copies are one of all data, and in it the list. The path leads through what is there.
    """
    root, _ = _read(text, None)
    if root is None:
        raise EditError("the file is empty")
    plain, start = _plain(text), root.start
    changed = deepcopy(root.data)
    held: Any = changed
    for step in path[:-1]:
        start = next(begin for key, begin, _ in _parts(plain, start) if key == step)
        held = held[step]
    return [(begin, end) for _, begin, end in _parts(plain, start)], changed, held


def _parts(plain: str, start: int) -> list[tuple[str | int, int, int]]:
    """Return the key or place of each value of the object or list at an offset, and its offsets."""
    decode = json.JSONDecoder().raw_decode
    found: list[tuple[str | int, int, int]] = []
    offset = _behind_trivia(plain, start + 1)
    while plain[offset] not in "}]":
        key: str | int = len(found)
        if plain[start] == "{":
            key, end = decode(plain, offset)
            offset = _behind_trivia(plain, _behind_trivia(plain, end) + 1)
        _, end = decode(plain, offset)
        found.append((key, offset, end))
        offset = _behind_trivia(plain, end)
        if plain[offset] == ",":
            offset = _behind_trivia(plain, offset + 1)
    return found


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


def _holds(text: str, expected: dict[str, JsonValue]) -> bool:
    try:
        root, _ = _read(text, None)
    except EditError:
        return False
    return (root.data if root is not None else {}) == expected


# ---- changing


def _inserted(text: str, root: _Object, owner: _Object, key: str, value: JsonValue) -> str:
    """Return the text with a member added behind the others of an object, in the style of the file."""
    newline = "\r\n" if "\r\n" in text else "\n"
    members = owner.members
    one_line = "\n" not in text[owner.start : members[0].start if members else owner.end]
    if (members and one_line) or "\n" not in text[root.start : root.end]:
        piece = f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        piece = " " + piece if members else piece
    else:
        base = _line_indent(text, owner.start)
        indent = _line_indent(text, members[0].start) if members else base + _unit(text, root)
        piece = f"{newline}{indent}{json.dumps(key)}: {_rendered(text, root, value, indent)}"
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


def _removals(text: str, owner: _Object, key: str) -> Iterator[str]:
    """Yield texts without a member: first without the line break before it, then with it."""
    at = [member.key for member in owner.members].index(key)
    member = owner.members[at]
    behind = _behind_trivia(text, member.end)
    end = behind + 1 if text[behind] == "," else member.end
    before = text[: member.start].rstrip(" \t")
    line_end = len(before.removesuffix("\n").removesuffix("\r") if before.endswith("\n") else before)
    for begin in (line_end, member.start):
        if end > member.end or at == 0:
            yield text[:begin] + text[end:]
        else:
            # the last member goes with the comma before it
            comma = _behind_trivia(text, owner.members[at - 1].end)
            yield text[:comma] + text[comma + 1 : begin] + text[end:]


def _rendered(text: str, root: _Object | None, value: JsonValue, indent: str) -> str:
    """Return a value over several lines, in the style of the file; `indent` is that of its first line."""
    unit = "  " if root is None else _unit(text, root)
    newline = "\r\n" if "\r\n" in text else "\n"
    return (newline + indent).join(json.dumps(value, ensure_ascii=False, indent=unit).split("\n"))


def _unit(text: str, root: _Object) -> str:
    """Return the indentation of one level."""
    return (_line_indent(text, root.members[0].start) if root.members else "") or "  "


def _line_indent(text: str, offset: int) -> str:
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]
