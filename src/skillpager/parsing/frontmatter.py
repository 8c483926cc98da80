"""A lenient, bounded reader of front matter, the YAML block at the top of a skill.

Reference: Agent Skills specification, front matter.
"""

import json
import re

import yaml

from skillpager.parsing.markdown import LINE_END

# a longer block is not read as front matter; real ones are under 4 kB
MAX_FRONT_MATTER = 64 * 1024

_BLOCK = re.compile(
    r"\ufeff?---[ \t]*(?:\r\n|\r|\n)(?P<body>.*?)(?<=[\r\n])(?:---|\.\.\.)[ \t]*(?:\r\n|\r|\n|\Z)", re.DOTALL
)
_KEY = re.compile(r"[\w\"'.-]+[ \t]*:(?:[ \t]|$)")
# a plain `key: value` line whose value is not quoted and has no syntax of YAML
_FIELD = re.compile(r"^([A-Za-z_][\w.-]*):[ \t]+(?![\"'|>\[{&*!#])(.*?)[ \t]*$", re.MULTILINE)


class _BoundedLoader(yaml.SafeLoader):
    """A SafeLoader without aliases, so that no document can expand beyond its own text."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not allowed in front matter")
        return super().compose_node(parent, index)


def find_body(text: str) -> int:
    """Return the offset after byte order mark and front matter; 0 if there is neither.

    A first line `---` is a thematic break if no later `---` closes the block, or if the block begins with
    prose instead of a `key: value` field.
    """
    if block := _BLOCK.match(text, 0, MAX_FRONT_MATTER):
        lines = (line for line in LINE_END.split(block["body"]) if line.strip() and not line.startswith("#"))
        first = next(lines, None)
        if first is None or _KEY.match(first):
            return block.end()
    return 1 if text.startswith("\ufeff") else 0


def parse(front_matter: str, *, file: str) -> tuple[dict[str, str], list[str]]:
    """Return the fields of a front-matter block as text, and warnings about it.

    Args:
        front_matter: The block with its `---` lines, or nothing.
        file: Path that warnings name.

    Returns:
        Fields in source order, lists and mappings as JSON; warnings with file and line. A block
        that is not YAML, even after quoting values with colons, is read line by line.
    """
    block = _BLOCK.match(front_matter)
    if not block:
        return {}, []
    body = LINE_END.sub("\n", block["body"])
    try:
        return _load(body), []
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark is not None else 1  # the block begins on the second line of the file
        reason = getattr(error, "problem", None) or str(error)
        problem = f"{file}:{line}: the front matter is not valid YAML ({reason})"
    try:
        quoted = _FIELD.sub(lambda match: f"{match[1]}: {json.dumps(match[2])}", body)
        return _load(quoted), [f"{problem}; read after quoting values with colons"]
    except yaml.YAMLError:
        return dict(_FIELD.findall(body)), [f"{problem}; only its plain `key: value` lines were read"]


def _load(body: str) -> dict[str, str]:
    try:
        loaded = yaml.load(body, Loader=_BoundedLoader)  # noqa: S506 - a SafeLoader, bounded further
    except (RecursionError, ValueError) as error:  # too deep nesting; impossible dates
        raise yaml.YAMLError(str(error)) from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise yaml.YAMLError("the block is not a mapping")
    fields = {}
    for key, value in loaded.items():
        is_nested = isinstance(value, bool | list | dict)
        text = json.dumps(value, ensure_ascii=False, default=str) if is_nested else str(value)
        fields[str(key)] = "" if value is None else text
    return fields
