"""Adds one table to a TOML text, or removes it, and leaves every other character as it is.

The value at a path of keys is the table of this name with the tables below it. Every change is read again,
and refused if it changed anything else.
"""

import json
import re
import tomllib
from typing import Any

from skillpager.install.jsonc import EditError, JsonValue, Path, held_at, holds, newline_of

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)|\(at end of document\)")
_HEADER = re.compile(r"^[ \t]*\[[^\r\n]*", re.MULTILINE)


class _Number(str):
    """A number as it is written in the file."""

    __slots__ = ()


def read(text: str) -> dict[str, Any]:
    """Return the data of a text; one that is not TOML is an `EditError`."""
    try:
        # numbers as text, so that even one that is not a number equals itself
        return tomllib.loads(text, parse_float=_Number)
    except (ValueError, RecursionError) as error:
        place = _PLACE.search(str(error))
        line, column = (int(place[1]), int(place[2])) if place and place[1] else (text.count("\n") + 1, 1)
        raise EditError(_PLACE.sub("", str(error)).strip(), line=line, column=column) from error


def with_value(text: str, path: Path, value: JsonValue) -> str:
    """Return the text with a table at its end, instead of any other of this name."""
    data, newline = read(text), newline_of(text)
    container, name = map(str, path)
    held = data.get(container, {})
    base = without_value(text, path) if isinstance(held, dict) and name in held else text
    gap = "" if not base else newline if base.endswith("\n") else newline * 2
    lines = [f"[{container}.{name}]"]
    if isinstance(value, dict):
        lines += [f"{_key(key)} = {_rendered(item)}" for key, item in value.items()]
    changed = base + gap + "".join(line + newline for line in lines)
    if not isinstance(held, dict) or not holds(read, changed, {**data, container: {**held, name: value}}):
        raise EditError(
            f"{container!r} is not written as tables, so none can be added: write [{container}.NAME] headers"
        )
    return changed


def without_value(text: str, path: Path) -> str:
    """Return the text without the table at a path, which is there, and those below it."""
    expected: Any = read(text)
    held = held_at(expected, path)
    del held[path[-1]]
    changed = text
    for start, end in reversed(_tables(text, tuple(path))):
        # the blank line that sets the table off goes with it, the comments of the next table stay
        before = re.sub(r"(?<=\n)\r?\n\Z", "", changed[:start])
        lines = changed[start:end].splitlines(keepends=True)
        while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
            lines.pop()
        changed = before + changed[start + len("".join(lines)) :]
    others = {key: value for key, value in expected.items() if key != path[0]}
    if not holds(read, changed, expected) and (held or not holds(read, changed, others)):
        raise EditError(f"{path[-1]!r} is not written as a table with a header of its own: remove it by hand")
    return changed


def is_empty(text: str) -> bool:
    """Return True if the text holds nothing, not even a comment."""
    return not text.strip()


def _tables(text: str, path: tuple[str | int, ...]) -> list[tuple[int, int]]:
    """Return where the tables begin and end at and below a path."""
    found = []
    start = None
    for header in _HEADER.finditer(text):
        is_own = _keys_of(header[0])[: len(path)] == path
        # what looks like a header in a string or list is not behind a whole text
        if (is_own or start is not None) and _data(text[: header.start()]) is not None:
            if start is not None:
                found.append((start, header.start()))
            start = header.start() if is_own else None
    return found if start is None else [*found, (start, len(text))]


def _keys_of(header: str) -> tuple[str, ...]:
    keys: list[str] = []
    value: object = _data(header)
    while isinstance(value, dict) and value:
        key, value = next(iter(value.items()))
        keys.append(key)
    return tuple(keys)


def _data(text: str) -> dict[str, object] | None:
    try:
        return tomllib.loads(text)
    except ValueError:
        return None


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _rendered(value: JsonValue) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_rendered(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_rendered(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False, default=str)
