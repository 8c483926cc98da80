"""A lenient, bounded reader of front matter, the YAML block at the top of a skill.

Reference: Agent Skills specification, front matter.
"""

import json
import re
from typing import Any

import yaml

from skillpager.parsing.lines import LINE_END

# a longer block is not read as front matter; the longest of 18,812 public skills has 4.3 kB
MAX_FRONT_MATTER = 32 * 1024
# levels of nesting; deeper front matter is read line by line
MAX_DEPTH = 32
_TOO_DEEP = f"more than {MAX_DEPTH} levels of nesting"

# byte order marks: programs that join files leave them in the middle, behind front matter
_MARKS = re.compile(r"(?:[ \t\r\n]*\ufeff)*")
_BLOCK = re.compile(
    r"---[ \t]*(?:\r\n|\r|\n)(?P<body>.*?)(?<=[\r\n])(?:---|\.\.\.)[ \t]*(?:\r\n|\r|\n|\Z)", re.DOTALL
)
_KEY = re.compile(r"[\w\"'.-]+[ \t]*:(?:[ \t]|$)")
# a plain `key: value` line whose value is not quoted and has no syntax of YAML; two stars are bold text, and
# brackets with more behind them, such as `[file] [format]`, no list
_FIELD = re.compile(
    r"^([A-Za-z_][\w.-]*):[ \t]+(?![\"'|>{&!#]|\[(?![^\[\]\n]*\][ \t]+[^\s#])|\*(?!\*))(.*)$", re.MULTILINE
)


class _Loader(yaml.BaseLoader):
    """A loader of strings, lists and mappings: every scalar is read as it is written, tags are ignored.

    There are no aliases, so that no document can expand beyond its own text, and few levels of nesting.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def fetch_flow_collection_start(self, token: type[yaml.Token]) -> None:
        # before the parser, because the time that the scanner takes grows with the depth
        if self.flow_level >= MAX_DEPTH:
            raise yaml.YAMLError(_TOO_DEEP)
        super().fetch_flow_collection_start(token)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not allowed in front matter")
        if self._depth >= MAX_DEPTH:
            raise yaml.YAMLError(_TOO_DEEP)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def find_body(text: str) -> int:
    """Return the offset after byte order marks and front matter; 0 if there is neither."""
    _, end = find_front_matter(text)
    return _behind_marks(text, end)


def find_front_matter(text: str) -> tuple[int, int]:
    """Return the offsets where front matter begins, behind byte order marks, and ends; equal without any.

    A first line `---` is a thematic break if no later `---` closes the block, or if the block begins with
    prose instead of a `key: value` field.
    """
    start = _behind_marks(text, 0)
    if block := _BLOCK.match(text, start, start + MAX_FRONT_MATTER):
        lines = (line for line in LINE_END.split(block["body"]) if line.strip() and not line.startswith("#"))
        first = next(lines, None)
        if first is None or _KEY.match(first.lstrip(" ")):
            return start, block.end()
    return start, start


def _behind_marks(text: str, start: int) -> int:
    found = _MARKS.match(text, start)
    return found.end() if found else start


def parse(front_matter: str, *, file: str) -> tuple[dict[str, str], list[str]]:
    """Return the fields of a front-matter block as text, and warnings about it with file and line.

    The block has its `---` lines and no byte order marks, or is empty. Lists and mappings become JSON. A
    block that is not YAML, even after quoting values with colons, is read line by line.
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
        reason = " ".join(str(getattr(error, "problem", None) or error).split())
        problem = f"{file}:{line}: the front matter is not valid YAML ({reason})"
    try:
        return _load(_FIELD.sub(_quote, body)), [f"{problem}; read after quoting values with colons"]
    except yaml.YAMLError:
        fields = {match[1]: match[2].rstrip(" \t") for match in _FIELD.finditer(body)}
        return fields, [f"{problem}; only its plain `key: value` lines were read"]


def _quote(field: re.Match[str]) -> str:
    value = field[2].rstrip(" \t")
    return f"{field[1]}: {json.dumps(value)}"


def _load(body: str) -> dict[str, str]:
    try:
        loaded = yaml.load(body, Loader=_Loader) or {}  # noqa: S506 - strings alone, bounded further
    except yaml.YAMLError:
        raise
    except Exception as error:  # PyYAML lets pass what impossible characters raise
        raise yaml.YAMLError(str(error)) from error
    if not isinstance(loaded, dict):
        raise yaml.YAMLError("the block is not a mapping")
    return {_text(key): _text(value) for key, value in loaded.items()}


def _text(value: object) -> str:
    """Return a string, or a list or mapping as JSON; surrogates from escapes are joined or else replaced."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
