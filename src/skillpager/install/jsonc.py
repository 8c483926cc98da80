"""One entry put into or taken out of a JSON text whose every other character stays as it is.

The text may hold comments and trailing commas, as configuration files of editors do. An entry is the
member `name` of the object that is the member `container` of the root.
"""

import json
import re
from collections.abc import Iterator, Mapping

from skillpager.install.jsonc_reader import (
    EditError,
    JsonValue,
    Value,
    member_of,
    object_at,
    read_root,
    skip_trivia,
)

_SAME_LINE = re.compile(r"(?:[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/))*")


def has_container(text: str, container: str) -> bool:
    """Tell whether the text has a place for entries.

    Raises:
        EditError: The text is not JSON, or the place is no object.
    """
    root = read_root(text)
    return root is not None and object_at(text, root, container) is not None


def read_entry(text: str, container: str, name: str) -> JsonValue:
    """Return the entry, None if there is none.

    Raises:
        EditError: The text is not JSON, or has no place for an entry.
    """
    found = _entry(text, container, name)
    return None if found is None else found[2].data


def with_entry(text: str, container: str, name: str, entry: JsonValue) -> str:
    """Return the text with the entry added, or put in place of another one of its name.

    Raises:
        EditError: The text is not JSON, or has no place for an entry.
    """
    root = read_root(text)
    if root is None:
        gap = "" if not text or text.endswith("\n") else _newline(text)
        return text + gap + _rendered({container: {name: entry}}, "  ", "", _newline(text)) + _newline(text)
    place = object_at(text, root, container)
    if place is None:
        changed = _inserted(text, root, container, {name: entry}, root)
    elif (found := member_of(text, place, name)) is not None:
        value = found[2]
        own = _line_indent(text, found[1])
        inline = "\n" not in text[value.start : value.end] and "\n" not in text[root.start : root.end]
        new = json.dumps(entry, ensure_ascii=False) if inline else _shaped(text, root, entry, own)
        changed = text[: value.start] + new + text[value.end :]
    else:
        changed = _inserted(text, place, name, entry, root)
    _verify(text, changed, container, name, entry)
    return changed


def without_entry(text: str, container: str, name: str, *, drop_container: bool = False) -> str:
    """Return the text without the entry, the same text if there is none.

    Args:
        text: JSON, with comments or without.
        container: Member of the root that holds the entry.
        name: Name of the entry.
        drop_container: Take the container out as well if nothing else is in it.

    Raises:
        EditError: The text is not JSON, or has no place for an entry.
    """
    root = read_root(text)
    place = None if root is None else object_at(text, root, container)
    if root is None or place is None or member_of(text, place, name) is None:
        return text
    lone = drop_container and len(place.members) == 1
    owner, key = (root, container) if lone else (place, name)
    for changed in _removals(text, owner, key):
        if _holds(changed, _expected(root.data, container, name, drop=lone)):
            return changed
    raise EditError(f"{name!r} cannot be taken out without changing what is around it")


def is_empty(text: str) -> bool:
    """Tell whether the text holds nothing: no value, or an empty object, and no comment."""
    return re.sub(r"\s", "", text) in ("", "{}")


def _entry(text: str, container: str, name: str) -> tuple[str, int, Value] | None:
    root = read_root(text)
    place = None if root is None else object_at(text, root, container)
    return None if place is None else member_of(text, place, name)


def _inserted(text: str, owner: Value, key: str, value: JsonValue, root: Value) -> str:
    """Return the text with a member added behind the others of an object."""
    inline = "\n" not in text[owner.start : _first_member(owner)]
    if (owner.members and inline) or "\n" not in text[root.start : root.end]:
        piece = f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        return _spliced(text, owner, " " + piece if owner.members else piece)
    base = _line_indent(text, owner.start)
    indent = _line_indent(text, owner.members[0][1]) if owner.members else base + _unit(text, root)
    piece = f"{_newline(text)}{indent}{json.dumps(key)}: {_shaped(text, root, value, indent)}"
    if not owner.members and inline:
        piece += _newline(text) + base
    return _spliced(text, owner, piece)


def _first_member(owner: Value) -> int:
    return owner.members[0][1] if owner.members else owner.end


def _spliced(text: str, owner: Value, piece: str) -> str:
    """Return the text with a piece as last member; a comment on a member's line stays on that line."""
    if not owner.members:
        offset = (
            len(text[: owner.end - 1].rstrip()) if "\n" in text[owner.start : owner.end] else owner.end - 1
        )
        return text[:offset] + piece + text[offset:]
    end = owner.members[-1][2].end
    comma = skip_trivia(text, end)
    if text[comma] == ",":
        place = _behind_comments(text, comma + 1, piece)
        return text[:place] + piece + "," + text[place:]
    place = _behind_comments(text, end, piece)
    return text[:end] + "," + text[end:place] + piece + text[place:]


def _behind_comments(text: str, offset: int, piece: str) -> int:
    match = _SAME_LINE.match(text, offset)
    return match.end() if match and "\n" in piece else offset


def _removals(text: str, owner: Value, key: str) -> Iterator[str]:
    """Yield texts without a member: first without the line break before it, then with it."""
    at = next(index for index, member in enumerate(owner.members) if member[0] == key)
    _, start, value = owner.members[at]
    behind = skip_trivia(text, value.end)
    ends = behind + 1 if text[behind] == "," else value.end
    for begin in (_line_end(text, start), start):
        if ends > value.end or at == 0:
            yield text[:begin] + text[ends:]
        else:
            comma = skip_trivia(text, owner.members[at - 1][2].end)
            yield text[:comma] + text[comma + 1 : begin] + text[ends:]


def _line_end(text: str, offset: int) -> int:
    """Return where the line before ends, if there is only white space behind it."""
    before = text[:offset].rstrip(" \t")
    return len(before.removesuffix("\n").removesuffix("\r") if before.endswith("\n") else before)


def _shaped(text: str, root: Value, value: JsonValue, indent: str) -> str:
    return _rendered(value, _unit(text, root), indent, _newline(text))


def _rendered(value: JsonValue, unit: str, indent: str, newline: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return (newline + indent).join(lines)


def _unit(text: str, root: Value) -> str:
    """Return what one level is indented by."""
    own = _line_indent(text, root.members[0][1]) if root.members else ""
    return own or "  "


def _line_indent(text: str, offset: int) -> str:
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _verify(text: str, changed: str, container: str, name: str, entry: JsonValue) -> None:
    """Make sure that nothing but the entry is another one."""
    root = read_root(text)
    expected = dict(root.data) if root is not None and isinstance(root.data, dict) else {}
    held = expected.get(container)
    expected[container] = {**(held if isinstance(held, dict) else {}), name: entry}
    if not _holds(changed, expected):
        raise EditError(f"{name!r} cannot be put in without changing what is around it")


def _expected(data: JsonValue, container: str, name: str, *, drop: bool) -> Mapping[str, JsonValue]:
    whole = dict(data) if isinstance(data, dict) else {}
    held = whole.pop(container)
    if not drop and isinstance(held, dict):
        whole[container] = {key: value for key, value in held.items() if key != name}
    return whole


def _holds(text: str, expected: Mapping[str, JsonValue]) -> bool:
    try:
        root = read_root(text)
    except EditError:
        return False
    return (root.data if root is not None else {}) == expected
