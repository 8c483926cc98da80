"""Short texts for people; nothing in a text of unknown origin steers a terminal, hides or breaks a line."""

import json
import re

# what steers a terminal or cannot be encoded: control characters but line feed, tab and the CR of a CRLF, and
# lone surrogates, which stand for the bytes of a file name that is not UTF-8
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]|\r(?!\n)")
# what has no shape of its own but hides text or reorders it: soft hyphens, marks and overrides of direction,
# spaces of no width, tag characters, noncharacters; joiners are kept, because scripts and emoji need them
_HIDDEN = re.compile(
    r"[\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    r"\U000e0000-\U000e007f]"
)
# where a reader may see a new line or column
_BREAKS = re.compile(r"[\t-\r\x1c-\x1e\x85\u2028\u2029]")

# a text is cut before it is cleaned, at so many times the characters that are shown
_WHITE_SPACE_FACTOR = 4
# characters of a node's text in a line of output
SNIPPET_CHARS = 72
# an estimate is never shown as certain, nor as impossible
LEAST_CHANCE = 0.01
LARGEST_CHANCE = 0.99
# the chance of a page for a broad query is off by .09 on average: words stand for it, with the share of the
# default pages that suffice by models that never saw the skill (docs/measured.md)
LIKELY, POSSIBLE, LIKELY_SHARE = 0.9, 0.5, 0.86
# below this estimated chance that the skill answers the query a page says so in its first line: for 9 % of
# long and 14 % of short queries that an unseen skill answers, 68 % of near misses and 90 % of other queries
LEAST_COVERED = 0.5
SURELY_UNCOVERED = 0.25  # and below this that it seems so: 2, 6, 43 and 73 %; before `topics` of models


def printable(text: str) -> str:
    """Return `text` with each character that could steer a terminal replaced by U+FFFD."""
    return _CONTROLS.sub("\ufffd", text)


def one_line(text: str, width: int | None = None) -> str:
    """Return `text` printable and on one line: white space collapsed, hidden characters removed.

    What is longer than `width` characters ends in `…`.
    """
    if width is not None:
        text = text[: width * _WHITE_SPACE_FACTOR]
    line = printable(" ".join(_HIDDEN.sub("", text).split()))
    return line if width is None or len(line) <= width else line[: width - 1].rstrip() + "…"


def snippet(text: str, width: int = SNIPPET_CHARS) -> str:
    """Return the beginning of `text` on one line, cut to `width` characters."""
    return one_line(text, width)


def is_plain(text: str) -> bool:
    """Return whether `text` is one line without control, hidden and unencodable characters."""
    return not any(found.search(text) for found in (_CONTROLS, _HIDDEN, _BREAKS))


def quoted_place(path: str) -> str:
    """Return a path that its author may have chosen as marks hold it: in quotes if it could end the mark."""
    return json.dumps(path, ensure_ascii=False) if {"[", "]"} & set(path) else path


def encodable(text: str) -> str:
    """Return `text` with each lone surrogate, which UTF-8 has no bytes for, replaced by U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def escaped_json(text: str) -> str:
    """Return JSON text, the same value, without characters that could steer a terminal.

    Lone surrogates become U+FFFD, because readers of JSON refuse them.
    """
    return _CONTROLS.sub(lambda found: "\ufffd" if found[0] >= "\ud800" else f"\\u{ord(found[0]):04x}", text)


def line_range(first: int, last: int) -> str:
    """Return a range of lines, such as `L12` or `L12-18`."""
    return f"L{first}" if first == last else f"L{first}-{last}"


def percent(share: float, *, digits: int = 0) -> str:
    """Return a share as text, such as `64 %`."""
    return f"{100 * share:.{digits}f} %"


def chance_words(chance: float) -> str:
    """Return an estimated chance as text, such as `87 %`."""
    if chance < LEAST_CHANCE:
        return f"under {percent(LEAST_CHANCE)}"
    return f"over {percent(LARGEST_CHANCE)}" if chance > LARGEST_CHANCE else percent(chance)


def sufficiency_words(chance: float | None, *, broad: bool) -> str:
    """Return what a page says of its chance to suffice: words for broad queries, a number for others."""
    if chance is None:
        return ""
    if not broad:
        return f"holds all that is needed with an estimated chance of {chance_words(chance)}"
    if chance < LIKELY:
        return f"{'possibly' if chance >= POSSIBLE else 'hardly'} holds all that is needed"
    return f"likely holds all that is needed, as {percent(LIKELY_SHARE)} of default pages for such queries do"


def not_covered(covered: float | None) -> str:
    """Return what a page says of a skill that seems not to answer the query; empty if it may."""
    if covered is None or covered >= LEAST_COVERED:
        return ""
    seems = "seems not to" if covered < SURELY_UNCOVERED else "may not"
    return f"{seems} cover the query (chance {chance_words(covered)})"


def too_few_tokens(least: int, limit: str = "max_tokens") -> str:
    """Return a sentence that says how many tokens a page with any content takes."""
    return f"Nothing fits: the smallest page with any content has {least} tokens. Raise {limit} to {least}."
