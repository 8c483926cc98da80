"""Baselines that pick pieces of the source instead of nodes: the paper's chunks, and whole sections by BM25.

The windows of a file, joined, are its body. A window ends at white space, at most `chunk_tokens` tokens
behind its beginning and as late as that allows; a stretch without white space is cut between characters. An
index of them is paged as any other; its nodes are called `c0`, `c1`, …
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from skillpager.errors import SettingsError
from skillpager.indexing import Builder, index_key
from skillpager.parsing.fragments import split_skill
from skillpager.parsing.lines import Lines
from skillpager.sections import heading_paths
from skillpager.types import Fragment, Heading, Skill, SkillIndex, SourceFile, Span, TileKind, TokenCounter

# the paper's Naive chunk + MMR (§4.3); `chunk_mmr:128` for windows of another size
CHUNK_MMR = "chunk_mmr"
# the entry file alone, as hosts load it; and whole sections of all files, by their words
ENTRY, SECTION_BM25 = "entry", "section_bm25"
DEFAULT_CHUNK_TOKENS = 256  # paper §4.3
# shorter windows are words rather than text, and every window costs an embedding
MIN_CHUNK_TOKENS = 16
# how far the end of a window is looked for, in characters a token: running text has 4 or 5, a padded table
# more; text without white space (Chinese, base64) has 1 or 2
MAX_TOKEN_CHARS = 16
MAX_UNBROKEN_TOKEN_CHARS = 4

_WHITE_SPACE = re.compile(r"\s+")


def chunk_tokens_of(strategy: str) -> int | None:
    """Return the most tokens of a window of `chunk_mmr` or `chunk_mmr:TOKENS`; None for another strategy."""
    name, colon, size = strategy.partition(":")
    if name != CHUNK_MMR:
        return None
    if colon and not (re.fullmatch(r"[0-9]+", size) and int(size) >= MIN_CHUNK_TOKENS):
        raise SettingsError(
            f"{CHUNK_MMR} takes the tokens of a window, a whole number of {MIN_CHUNK_TOKENS} or more, not "
            f"{size!r}: write {CHUNK_MMR}:{DEFAULT_CHUNK_TOKENS}."
        )
    return int(size) if colon else DEFAULT_CHUNK_TOKENS


def window_index(builder: Builder, skill: Skill, chunk_tokens: int | None) -> SkillIndex:
    """Return the index of a skill's windows, or with None of its sections."""
    recipe = replace(builder.recipe, splitter=f"chunks-{chunk_tokens}")
    headings = [tile for tile in split_skill(skill) if isinstance(tile, Heading)]
    windows = split_windows(skill, headings, builder.token_counter, chunk_tokens=chunk_tokens)
    index = builder.build(skill, index_key(skill, recipe), [*headings, *windows])
    nodes = tuple(replace(node, id=f"c{node.ordinal}") for node in index.nodes)
    return replace(index, nodes=nodes, recipe=recipe)


def split_windows(
    skill: Skill, headings: Sequence[Heading], counter: TokenCounter, *, chunk_tokens: int | None
) -> list[Fragment]:
    """Return the windows of all files, or with None their sections, in document order; no blank ones.

    A window stands under those of the headings, in document order, that are open where it begins.
    """
    windows: list[tuple[Span, str]] = []
    for file in skill.files:
        lines = Lines(file.text)
        starts = [file.body_start, *(each.span.start for each in headings if each.span.file == file.path)]
        for start, end in (
            pairwise([*starts, len(file.text)])
            if chunk_tokens is None
            else window_offsets(file, counter, chunk_tokens=chunk_tokens)
        ):
            if (text := file.text[start:end]).strip():
                windows.append(
                    (Span(file.path, lines.number(start), lines.number(end - 1), start, end), text)
                )
    paths = heading_paths(headings, (span for span, _ in windows))
    return [
        Fragment(TileKind.SENTENCE, span, text, ordinal, tuple(heading.title for heading in path), None)
        for ordinal, ((span, text), path) in enumerate(zip(windows, paths, strict=True))
    ]


def window_offsets(
    file: SourceFile, counter: TokenCounter, *, chunk_tokens: int
) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the windows that tile the body of a file.

    A stretch is counted a bounded number of times, about the logarithm of `chunk_tokens`.
    """
    text, start = file.text, file.body_start

    def last_fitting(ends: Sequence[int]) -> int | None:
        """Return the last of ascending ends that fits a window from `start`; None when there is none."""
        found = bisect_right(ends, chunk_tokens, key=lambda end: counter.count(text[start:end]))
        return ends[found - 1] if found else None

    # a window may end behind each line break or other white space, and at the very end; in white space behind
    # its last line break, because an indentation goes with its line
    ends: list[int] = []
    for match in _WHITE_SPACE.finditer(text, start):
        line_break = max(text.rfind("\n", *match.span()), text.rfind("\r", *match.span()))
        ends.append(match.end() if line_break < 0 else line_break + 1)
    if not ends or ends[-1] != len(text):
        ends.append(len(text))
    word = 0  # the first of `ends` behind `start`
    while start < len(text):
        most = min(len(ends), word + chunk_tokens)  # a word is a token or more
        behind = bisect_right(ends, start + chunk_tokens * MAX_TOKEN_CHARS, lo=word, hi=most)
        end = last_fitting(ends[word:behind])
        if end is None:
            last = min(ends[word], start + chunk_tokens * MAX_UNBROKEN_TOKEN_CHARS)
            end = last_fitting(range(start + 1, last + 1)) or start + 1
        yield start, end
        start = end
        word = bisect_right(ends, start, lo=word)
