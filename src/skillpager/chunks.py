"""Fixed-length windows of a skill: what the paper's chunk baseline picks from instead of nodes.

The windows of a file, joined, are its body. A window ends at white space, at most `chunk_tokens` tokens
behind its beginning and as late as that allows; a stretch without white space is cut between characters.

Reference: paper §4.3, Naive chunk + MMR.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from skillpager.parsing.markdown import Lines
from skillpager.sections import heading_paths
from skillpager.types import Fragment, Heading, Skill, SourceFile, Span, TileKind, TokenCounter

# part of the cache key of a chunk pool: raise it whenever the same source may yield other windows
CHUNKER_VERSION = "1"

# how far the end of a window is looked for, in characters a token: running text has 4 or 5, a padded table
# more; text without white space (Chinese, base64) has 1 or 2
MAX_TOKEN_CHARS = 16
MAX_UNBROKEN_TOKEN_CHARS = 4

_WHITE_SPACE = re.compile(r"\s+")


def chunk_splitter(chunk_tokens: int) -> str:
    """Return the splitter of a recipe whose nodes are windows of `chunk_tokens` tokens."""
    return f"chunks-{chunk_tokens}-{CHUNKER_VERSION}"


def split_chunks(
    skill: Skill, headings: Sequence[Heading], counter: TokenCounter, *, chunk_tokens: int
) -> list[Fragment]:
    """Return the windows of all files, in document order; those that are blank are no candidates.

    Args:
        skill: The skill.
        headings: Its headings, in document order; a window stands under those that are open where it begins.
        counter: Counts tokens.
        chunk_tokens: Most tokens of a window.
    """
    windows: list[tuple[Span, str]] = []
    for file in skill.files:
        lines = Lines(file.text)
        for start, end in split_windows(file, counter, chunk_tokens=chunk_tokens):
            span = Span(file.path, lines.number(start), lines.number(end - 1), start, end)
            windows.append((span, file.text[start:end]))
    windows = [(span, text) for span, text in windows if text.strip()]
    paths = heading_paths(headings, (span for span, _ in windows))
    return [
        Fragment(TileKind.SENTENCE, span, text, ordinal, tuple(heading.title for heading in path), None)
        for ordinal, ((span, text), path) in enumerate(zip(windows, paths, strict=True))
    ]


def split_windows(file: SourceFile, counter: TokenCounter, *, chunk_tokens: int) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the windows that tile the body of a file.

    A stretch is counted a bounded number of times, about the logarithm of `chunk_tokens`.
    """
    text, start = file.text, file.body_start
    ends = _word_ends(text, start)
    word = 0  # the first of `ends` behind `start`
    while start < len(text):
        most = min(len(ends), word + chunk_tokens)  # a word is a token or more
        behind = bisect_right(ends, start + chunk_tokens * MAX_TOKEN_CHARS, lo=word, hi=most)
        fitting = _last_fitting(ends[word:behind], text, start, counter, chunk_tokens)
        if fitting is None:
            last = min(ends[word], start + chunk_tokens * MAX_UNBROKEN_TOKEN_CHARS)
            fitting = _last_fitting(range(start + 1, last + 1), text, start, counter, chunk_tokens)
        end = start + 1 if fitting is None else fitting
        yield start, end
        start = end
        word = bisect_right(ends, start, lo=word)


def _last_fitting(
    ends: Sequence[int], text: str, start: int, counter: TokenCounter, limit: int
) -> int | None:
    """Return the last of ascending ends with at most `limit` tokens behind `start`; None when none is so."""
    found = bisect_right(ends, limit, key=lambda end: counter.count(text[start:end]))
    return ends[found - 1] if found else None


def _word_ends(text: str, start: int) -> list[int]:
    """Return where a window may end: behind each line break or other white space, and at the very end."""
    ends = [_behind(text, *match.span()) for match in _WHITE_SPACE.finditer(text, start)]
    return ends if ends and ends[-1] == len(text) else [*ends, len(text)]


def _behind(text: str, start: int, end: int) -> int:
    """Return the end of white space, or of its last line break: an indentation goes with its line."""
    line_break = max(text.rfind("\n", start, end), text.rfind("\r", start, end))
    return end if line_break < 0 else line_break + 1
