"""One table put into or taken out of a TOML text whose every other character stays as it is.

The entry is the table `[container.name]` with what is below it.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from itertools import pairwise

from skillpager.install.jsonc_reader import EditError, JsonValue

_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)|\(at end of document\)")
# what a line break or a bracket may stand in without being one
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|\n|[\[\]{}]|[^\s"\'#\[\]{}]+|\s',
    re.DOTALL,
)


def has_container(text: str, container: str) -> bool:
    """Tell whether the text has a place for entries.

    Raises:
        EditError: The text is not TOML, or the place is no table.
    """
    data = _read(text)
    _container(data, container)
    return container in data


def read_entry(text: str, container: str, name: str) -> JsonValue:
    """Return the entry, None if there is none.

    Raises:
        EditError: The text is not TOML, or has no place for an entry.
    """
    held = _container(_read(text), container)
    return held.get(name)


def with_entry(text: str, container: str, name: str, entry: JsonValue) -> str:
    """Return the text with the table at its end, in place of another one of its name.

    Raises:
        EditError: The text is not TOML, or has no place for an entry.
    """
    data = _read(text)
    expected = {**data, container: {**_container(data, container), name: entry}}
    base = without_entry(text, container, name)
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not base else newline if base.endswith("\n") else newline * 2
    lines = [f"[{container}.{name}]"]
    if isinstance(entry, dict):
        lines += [f"{key} = {_rendered(value)}" for key, value in entry.items()]
    changed = base + gap + "".join(line + newline for line in lines)
    if not _holds(changed, expected):
        raise EditError(
            f"{container!r} is not written as tables, so none can be added: write [{container}.NAME] headers"
        )
    return changed


def without_entry(text: str, container: str, name: str, *, drop_container: bool = False) -> str:
    """Return the text without the table and those below it, the same text if there is none.

    Args:
        text: TOML.
        container: Table that holds the entry.
        name: Name of the entry.
        drop_container: Of no effect: the table that is left without entries is not written anywhere.

    Raises:
        EditError: The text is not TOML, or the entry is not written as a table.
    """
    del drop_container
    data = _read(text)
    held = _container(data, container)
    if name not in held:
        return text
    changed = _without_tables(text, (container, name))
    rest = {key: value for key, value in held.items() if key != name}
    expected = {**data, container: rest}
    if not _holds(changed, expected) and not (not rest and _holds(changed, _less(data, container))):
        raise EditError(f"{name!r} is not written as the table [{container}.{name}]: take it out by hand")
    return changed


def is_empty(text: str) -> bool:
    """Tell whether the text holds nothing, not even a comment."""
    return not text.strip()


def _read(text: str) -> dict[str, JsonValue]:
    try:
        # as text, so that what is not a number equals itself
        return tomllib.loads(text, parse_float=str)
    except (ValueError, RecursionError) as error:
        place = _PLACE.search(str(error))
        line, column = (int(place[1]), int(place[2])) if place and place[1] else (text.count("\n") + 1, 1)
        raise EditError(_PLACE.sub("", str(error)).strip(), line=line, column=column) from error


def _container(data: dict[str, JsonValue], container: str) -> dict[str, JsonValue]:
    held = data.get(container, {})
    if not isinstance(held, dict):
        raise EditError(f"{container!r} must be a table")
    return held


def _less(data: dict[str, JsonValue], key: str) -> dict[str, JsonValue]:
    return {name: value for name, value in data.items() if name != key}


def _without_tables(text: str, path: tuple[str, ...]) -> str:
    headers = [*_headers(text), (len(text), ())]
    for (start, own), (end, _) in reversed(list(pairwise(headers))):
        if own[: len(path)] == path:
            text = _before(text[:start]) + _behind(text[start:end]) + text[end:]
    return text


def _before(text: str) -> str:
    """Return what stands before a table without the blank line that sets the table off."""
    for ending in ("\r\n", "\n"):
        if text.endswith("\n" + ending):
            return text.removesuffix(ending)
    return text


def _behind(table: str) -> str:
    """Return the blank lines and comments at the end of a table, which belong to what follows."""
    lines = table.splitlines(keepends=True)
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    return table[len("".join(lines)) :]


def _headers(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield where each table's header line begins, and the keys that it names."""
    depth, begins = 0, True
    for token in _TOKEN.finditer(text):
        if begins and depth == 0 and token[0] == "[":
            line = text[token.start() :].split("\n", 1)[0]
            yield text.rfind("\n", 0, token.start()) + 1, _keys(line)
        depth += token[0] in ("[", "{")
        depth -= token[0] in ("]", "}")
        begins = token[0] == "\n" or (begins and token[0].isspace())


def _keys(header: str) -> tuple[str, ...]:
    keys: list[str] = []
    value: object = tomllib.loads(header.removesuffix("\r"))
    while isinstance(value, dict) and value:
        key, value = next(iter(value.items()))
        keys.append(key)
    return tuple(keys)


def _rendered(value: JsonValue) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_rendered(item)}" for key, item in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def _holds(text: str, expected: dict[str, JsonValue]) -> bool:
    try:
        return _read(text) == expected
    except EditError:
        return False
