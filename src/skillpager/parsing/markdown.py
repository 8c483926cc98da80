"""The CommonMark parser of the package, with line offsets and links.

`skill` uses it to find the files that a skill links to, `blocks` to split them into pieces.
"""

import re
from bisect import bisect_right
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# with the default of markdown-it, 20, text in deeper containers would become a plain paragraph
MAX_NESTING = 64

# CommonMark line endings; `str.splitlines` would also split at form feeds and U+2028
LINE_END = re.compile(r"\r\n|\r|\n")

_MARKDOWN_PATH = re.compile(r"(?<![\w/.:-])[\w./-]*[\w-]\.(?:md|markdown)\b", re.IGNORECASE)
# without one of these no path can be in a text: `.md`, or what may stand for it in a link
_PATH_SIGN = re.compile(r"\.m(?:d|arkdown)|%[2-7][\da-f]|&(?:#|period;|percnt;)", re.IGNORECASE)
_LINK_TARGET = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_INLINE_MARKUP = re.compile(r"[`*~]+|(?<!\w)_+|_+(?!\w)|<[^>]+>")


class Lines:
    """The line starts of a text; converts between lines and offsets."""

    def __init__(self, text: str) -> None:
        """Scan `text` once."""
        self.starts = [0, *(match.end() for match in LINE_END.finditer(text))]
        self._length = len(text)

    def start(self, line: int) -> int:
        """Return the offset at which 0-based `line` begins; the text's length if there is no such line."""
        return self.starts[line] if line < len(self.starts) else self._length

    def number(self, offset: int) -> int:
        """Return the 1-based number of the line that contains `offset`."""
        return bisect_right(self.starts, offset)


def _parser() -> "MarkdownIt":
    # its import takes 25 ms, which the page of an indexed skill without linked files need not wait for
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable("table")


def parse_blocks(text: str) -> "list[Token]":
    """Return the block tokens of CommonMark with tables; inline content is left unparsed."""
    return _parser().disable("inline").parse(text)


def linked_paths(text: str) -> list[str]:
    """Return the relative paths of Markdown files that a text links to or names, in order, each once.

    Paths are found in links, in inline code and in plain text (authors write all three), but not in code
    blocks. URL fragments and queries are cut off; absolute paths and targets with a scheme are left out.
    """
    if not _PATH_SIGN.search(text):
        return []
    found: list[str] = []
    for child in (child for token in _parser().parse(text) for child in token.children or ()):
        if child.type in ("text", "code_inline"):
            found += _MARKDOWN_PATH.findall(child.content)
        elif child.type == "link_open":
            try:
                target = urlsplit(str(child.attrGet("href") or ""))
            except ValueError:
                continue
            path = unquote(target.path)
            if not target.scheme and not target.netloc and path.lower().endswith((".md", ".markdown")):
                found.append(path)
    return list(dict.fromkeys(path for path in found if not path.startswith("/")))


def plain_text(inline: str) -> str:
    """Return inline Markdown without links, emphasis, code ticks and tags, white space collapsed."""
    return " ".join(_INLINE_MARKUP.sub("", _LINK_TARGET.sub(r"\1", inline)).split())
