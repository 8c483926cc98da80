"""Adds one table to a TOML text, or removes it, and leaves every other character as it is.

The entry is the table `[container.name]` with the tables below it. Every change is read again, and refused if
it changed anything but the entry. A text that is not TOML, or whose entry is not a table, is an `EditError`.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from datetime import date, time
from itertools import pairwise

from skillpager.install.jsonc import EditError, JsonValue

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)|\(at end of document\)")
# strings and comments first: a line break or bracket in one of them has no meaning
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|\n|[\[\]{}]|[^\s"\'#\[\]{}]+|\s',
    re.DOTALL,
)


def has_container(text: str, container: str) -> bool:
    """Return True if the text has a place for entries."""
    return container in _read(text, container)[0]


def read_entry(text: str, container: str, name: str) -> JsonValue:
    """Return the entry, None if there is none."""
    return _read(text, container)[1].get(name)


def with_entry(text: str, container: str, name: str, entry: JsonValue) -> str:
    """Return the text with the table at its end, instead of any other of this name."""
    data, held = _read(text, container)
    base = without_entry(text, container, name)
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not base else newline if base.endswith("\n") else newline * 2
    lines = [f"[{container}.{name}]"]
    if isinstance(entry, dict):
        lines += [f"{_key(key)} = {_rendered(value)}" for key, value in entry.items()]
    changed = base + gap + "".join(line + newline for line in lines)
    if not _holds(changed, {**data, container: {**held, name: entry}}):
        raise EditError(
            f"{container!r} is not written as tables, so none can be added: write [{container}.NAME] headers"
        )
    return changed


def without_entry(text: str, container: str, name: str, *, drop_container: bool = False) -> str:
    """Return the text without the table and those below it, the same text if there is none.

    `drop_container` has no effect: a container without entries is not written anywhere.
    """
    del drop_container
    data, held = _read(text, container)
    if name not in held:
        return text
    changed = text
    headers = [*_headers(text), (len(text), ())]
    for (start, keys), (end, _) in reversed(list(pairwise(headers))):
        if keys[:2] == (container, name):
            # the blank line that sets the table off goes with it, the comments of the next table stay
            before = changed[:start]
            for ending in ("\r\n", "\n"):
                if before.endswith("\n" + ending):
                    before = before.removesuffix(ending)
                    break
            lines = changed[start:end].splitlines(keepends=True)
            while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
                lines.pop()
            changed = before + changed[start + len("".join(lines)) :]
    rest = {key: value for key, value in held.items() if key != name}
    others = {key: value for key, value in data.items() if key != container}
    if not _holds(changed, {**data, container: rest}) and (rest or not _holds(changed, others)):
        raise EditError(f"{name!r} is not written as the table [{container}.{name}]: remove it by hand")
    return changed


def is_empty(text: str) -> bool:
    """Return True if the text holds nothing, not even a comment."""
    return not text.strip()


def _read(text: str, container: str | None) -> tuple[dict[str, JsonValue], dict[str, JsonValue]]:
    """Return the data of the text, and the container in it, which is empty if it is missing."""
    try:
        # numbers as text, so that even one that is not a number equals itself
        data = tomllib.loads(text, parse_float=_Number)
    except (ValueError, RecursionError) as error:
        place = _PLACE.search(str(error))
        line, column = (int(place[1]), int(place[2])) if place and place[1] else (text.count("\n") + 1, 1)
        raise EditError(_PLACE.sub("", str(error)).strip(), line=line, column=column) from error
    held = data.get(container, {}) if container is not None else {}
    if not isinstance(held, dict):
        raise EditError(f"{container!r} must be a table")
    return data, held


def _holds(text: str, expected: dict[str, JsonValue]) -> bool:
    try:
        return _read(text, None)[0] == expected
    except EditError:
        return False


def _headers(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield where each table's header line begins, and the keys that it names."""
    depth, begins = 0, True
    for token in _TOKEN.finditer(text):
        if begins and depth == 0 and token[0] == "[":
            keys: list[str] = []
            value: object = tomllib.loads(text[token.start() :].split("\n", 1)[0].removesuffix("\r"))
            while isinstance(value, dict) and value:
                key, value = next(iter(value.items()))
                keys.append(key)
            yield text.rfind("\n", 0, token.start()) + 1, tuple(keys)
        depth += token[0] in ("[", "{")
        depth -= token[0] in ("]", "}")
        begins = token[0] == "\n" or (begins and token[0].isspace())


class _Number(str):
    """A number as it is written in the file."""

    __slots__ = ()


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _rendered(value: JsonValue) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_rendered(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_rendered(item) for item in value) + "]"
    if isinstance(value, (date, time)):  # TOML has dates, and writes them as ISO 8601 does
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False)
