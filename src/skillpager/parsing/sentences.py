"""Split a Markdown paragraph into sentences.

sentencex (by Wikimedia, for some 240 languages) proposes boundaries. A boundary inside inline code, a link,
a tag or a URL is dropped, and so is one after an abbreviation or before a lower-case word: two joined
sentences cost a few tokens, a sentence cut in half loses its meaning.
"""

import logging
import re
from bisect import bisect_right

import sentencex

from skillpager.errors import SkillError, panics_as

logger = logging.getLogger(__name__)

# sentencex has abbreviations by language; the English list serves for all skills
LANGUAGE = "en"

# text is segmented in windows, because the time of the segmenter is not linear in the length of the text
WINDOW = 5_000

# the segmenter panics on a capital letter, such a blank and a full stop; a blank of ASCII is as long
_WIDE_BLANK = re.compile(r"[^\S\x00-\x7f]")

_PROTECTED = re.compile(
    # every repetition is bounded, so that no text makes the search quadratic
    r"(?<!`)(?P<ticks>`{1,8})(?!`).{1,2000}?(?<!`)(?P=ticks)(?!`)"  # inline code
    r"|!?\[(?:[^\[\]]|\[[^\[\]]{0,200}\]){0,500}\]\((?:[^()\s]|\([^()\s]{0,200}\)|\s){0,1000}\)"  # link
    r"|<[^<>\s][^<>]{0,1000}>"  # autolink or tag
    r"|(?:https?|ftp|file)://[^\s<>]+"  # bare URL
    r"|\*\*[^*\n]{1,80}\*\*",  # a bold run, such as **Note.**, is one unit
    re.DOTALL,
)
_TERMINATED = re.compile(r"[.!?…。！？｡][\"'”’»)\]）」』】*_]*\s*\Z")
_ABBREVIATION = re.compile(
    r"(?<![\w])(?:e\.\s?g|i\.\s?e|etc|vs|cf|approx|incl|excl|resp|est|max|min|avg|no|nos|fig|figs|sec|"
    r"ch|vol|ed|eds|al|dr|mr|mrs|ms|prof|st|jr|sr|inc|ltd|co|dept|ver|z\.\s?b|d\.\s?h|u\.\s?a|bzw|ca|ggf|"
    r"usw|evtl|inkl|p\.\s?ex|p|pp|[A-Za-z])\.[\"')\]*_]*\s*\Z",
    re.IGNORECASE,
)
_CLOSING = r"[*_\"'”’»)\]）」』】]*\s*"
_WIDE = re.compile(rf"[。！？｡]{_CLOSING}\Z")
_CLOSERS = re.compile(_CLOSING)


def sentence_starts(text: str) -> list[int]:
    """Return the offsets at which the sentences of a paragraph begin; the first is 0.

    Args:
        text: Inline Markdown of one paragraph, line breaks included.
    """
    protected = [match.span() for match in _PROTECTED.finditer(text)]
    begins = [begin for begin, _ in protected]
    starts = [0]
    for boundary in _proposed_boundaries(text, frozenset(begins)):
        place = bisect_right(begins, boundary) - 1
        if place >= 0 and begins[place] < boundary < protected[place][1]:
            continue
        before, following = text[max(starts[-1], boundary - 40) : boundary], text[boundary : boundary + 1]
        ends_word = before[-1:].isspace() and not following.islower() and not _ABBREVIATION.search(before)
        if _TERMINATED.search(before) and (ends_word or _WIDE.search(before)):
            starts.append(boundary)
    return starts


def _proposed_boundaries(text: str, opening: frozenset[int]) -> list[int]:
    """Return the boundaries that the segmenter proposes, window by window in long texts; some come twice.

    Args:
        text: Inline Markdown of one paragraph.
        opening: Offsets at which a bold run, a link or the like begins.
    """
    found: list[int] = []
    begin = 0
    while begin < len(text):
        cuts = []
        for start in _segment(text[begin : begin + WINDOW]):
            cut = begin + start
            # a proposal may be between a full stop and closing markup, as in `**Done.** Next`
            behind_stop = cut and cut not in opening and not text[cut - 1].isspace()
            if behind_stop and (closers := _CLOSERS.match(text, cut)):
                cut = closers.end()
            cuts.append(cut)
        found += cuts
        if begin + WINDOW >= len(text):
            break
        begin = max(cuts[-1], begin + WINDOW // 2)
    return found


def _segment(window: str) -> list[int]:
    """Return the starts of the segmenter's sentences; one sentence if it fails."""
    try:
        with panics_as(SkillError, "sentencex"):
            proposals = sentencex.get_sentence_boundaries(LANGUAGE, _WIDE_BLANK.sub(" ", window))
    except SkillError as error:
        logger.warning("%s; the text is left as one sentence", error)
        return [0]
    return [proposal["start_index"] for proposal in proposals]
