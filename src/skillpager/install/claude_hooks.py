"""SkillPager's hook in Claude Code's settings: added to the hooks of others, renewed and removed.

An `Editor` for `hosts`: the container is the object `hooks`, and the entry is the hook of the event
`UserPromptSubmit` whose command is `skillpager hook`. It stands in a group, with others if its owner put them
there.
"""

import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import PurePath, PureWindowsPath

from skillpager.install import jsonc
from skillpager.install.jsonc import EditError, JsonValue, has_container, is_empty

EVENT = "UserPromptSubmit"
COMMAND = "hook"

__all__ = ["COMMAND", "EVENT", "has_container", "is_empty", "read_entry", "with_entry", "without_entry"]


def read_entry(text: str, container: str, name: str) -> JsonValue:
    """Return the hook, None if there is none."""
    groups = _groups(text, container)
    return next((_hooks(groups[group])[place] for group, place in _own(groups, name)), None)


def with_entry(text: str, container: str, name: str, entry: JsonValue) -> str:
    """Return the text with the hook in a group of its own, or in place of the one that is there."""
    groups = _groups(text, container)
    if not groups:
        return jsonc.with_entry(text, container, EVENT, [{"hooks": [entry]}])
    for group, place in _own(groups, name):
        return jsonc.with_value(text, [container, EVENT, group, "hooks", place], entry)
    return jsonc.with_value(text, [container, EVENT, len(groups)], {"hooks": [entry]})


def without_entry(text: str, container: str, name: str, *, drop_container: bool = False) -> str:
    """Return the text without the hook; `drop_container` also removes a container that is empty then."""
    while found := next(_own(_groups(text, container), name), None):
        group, place = found
        groups = _groups(text, container)
        if len(_hooks(groups[group])) > 1:
            text = jsonc.without_value(text, [container, EVENT, group, "hooks", place])
        elif len(groups) > 1:
            text = jsonc.without_value(text, [container, EVENT, group])
        else:
            text = jsonc.without_entry(text, container, EVENT, drop_container=drop_container)
    return text


def _groups(text: str, container: str) -> list[JsonValue]:
    """Return the groups of hooks of the event; anything but a list is an `EditError`."""
    groups = jsonc.read_entry(text, container, EVENT)
    if groups is None:
        return []
    if not isinstance(groups, list):
        raise EditError(f"{container}.{EVENT} must be a list, [ … ]")
    return groups


def _hooks(group: JsonValue) -> list[JsonValue]:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return hooks if isinstance(hooks, list) else []


def _own(groups: list[JsonValue], name: str) -> Iterator[tuple[int, int]]:
    """Yield the places of hooks that run `skillpager hook`: those of the group, and in it of the hook."""
    for number, group in enumerate(groups):
        for place, hook in enumerate(_hooks(group)):
            if isinstance(hook, dict) and _runs(hook.get("command"), name):
                yield number, place


def _runs(command: JsonValue, name: str) -> bool:
    """Return whether a command line runs the command `hook` of the program `name`."""
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:  # a quote that does not end
        return False
    for word, following in pairwise(words):
        stems = {PurePath(word).stem, PureWindowsPath(word).stem}
        if name in stems and following == COMMAND:
            return True
    return False
