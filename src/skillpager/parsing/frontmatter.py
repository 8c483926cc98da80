"""The YAML block at the top of a skill, read leniently and within bounds.

Reference: Agent Skills specification, front matter.
"""

import json
import re
from itertools import islice

import yaml

from skillpager.parsing.markdown import LINE_END

# a longer block is not read as front matter; real ones are under 4 kB
MAX_FRONT_MATTER = 64 * 1024

_OPENING = re.compile(r"\ufeff?---[ \t]*(?:\r\n|\r|\n)")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r\n|\r|\n|\Z)", re.MULTILINE)
_FIELD = re.compile(r"^([A-Za-z_][\w.-]*):[ \t]+(?![\"'|>\[{&*!#])(.*?)[ \t]*$")


class _BoundedLoader(yaml.SafeLoader):
    """SafeLoader without aliases, so that no document can grow beyond its own text."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not allowed in front matter")
        return super().compose_node(parent, index)


def find_body(text: str) -> int:
    """Return the offset behind byte order mark and front matter; 0 when there is neither.

    A first line `---` that no later `---` closes, or whose block reads as prose rather than as
    `key: value` fields, is a thematic break.
    """
    mark = 1 if text.startswith("\ufeff") else 0
    opening = _OPENING.match(text)
    if not opening:
        return mark
    block = _normalised(text[opening.end() : opening.end() + MAX_FRONT_MATTER])
    closing = _CLOSING.search(block)
    if not closing or not _reads_as_fields(block[: closing.start()]):
        return mark
    lines = block.count("\n", 0, closing.end()) + (0 if block[: closing.end()].endswith("\n") else 1)
    return _offset_behind_lines(text, opening.end(), lines)


def parse(front_matter: str, *, file: str) -> tuple[dict[str, str], list[str]]:
    """Return the fields of a front-matter block as text, and what was odd about it.

    Args:
        front_matter: The block with its `---` lines, or nothing.
        file: Path to name in warnings.

    Returns:
        Fields in source order, lists and mappings as JSON; warnings with file and line. A block
        that is no YAML even after quoting values with colons is read line by line.
    """
    block = _normalised(front_matter)
    opening = _OPENING.match(block)
    if not opening:
        return {}, []
    body = _CLOSING.split(block[opening.end() :], maxsplit=1)[0]
    try:
        return _load(body), []
    except yaml.YAMLError as error:
        problem = _describe(error, file)
    try:
        return _load(_quote_values(body)), [f"{problem}; read after quoting values with colons"]
    except yaml.YAMLError:
        return dict(_lines(body)), [f"{problem}; only its plain `key: value` lines were read"]


def _normalised(text: str) -> str:
    return LINE_END.sub("\n", text)


def _offset_behind_lines(text: str, start: int, lines: int) -> int:
    ends = [match.end() for match in islice(LINE_END.finditer(text, start), lines)]
    return ends[-1] if len(ends) == lines else len(text)


def _reads_as_fields(body: str) -> bool:
    lines = [line for line in body.split("\n") if line.strip() and not line.startswith("#")]
    return not lines or bool(re.match(r"[\w\"'.-]+[ \t]*:(?:[ \t]|$)", lines[0]))


def _load(body: str) -> dict[str, str]:
    try:
        loaded = yaml.load(body, Loader=_BoundedLoader)  # noqa: S506 - a SafeLoader, bounded further
    except (RecursionError, ValueError) as error:  # nesting bombs; impossible dates
        raise yaml.YAMLError(str(error)) from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise yaml.YAMLError("the block is not a mapping")
    return {str(key): _text(value) for key, value in loaded.items()}


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return (
        json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict) else str(value)
    )


def _quote_values(body: str) -> str:
    return "\n".join(_FIELD.sub(lambda m: f"{m[1]}: {json.dumps(m[2])}", line) for line in body.split("\n"))


def _lines(body: str) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for line in body.split("\n") if (match := _FIELD.match(line))]


def _describe(error: yaml.YAMLError, file: str) -> str:
    mark = getattr(error, "problem_mark", None)
    line = mark.line + 2 if mark is not None else 1  # the block begins on the file's second line
    reason = getattr(error, "problem", None) or str(error)
    return f"{file}:{line}: the front matter is not valid YAML ({reason})"
