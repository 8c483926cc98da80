"""Gaps between the nodes of a page: their marks, their source text, and the addresses that read them."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import accumulate, count, groupby
from pathlib import Path

from skillpager.display_text import is_plain, line_range, one_line
from skillpager.types import SKILL_DIR, Node, Omission, Skill, SkillIndex

# the ends of a page: before its first node, after its last
START, END = -1, -2

# below this estimated chance that the skill answers the query a page says so in its first line; the chance is
# calibrated, so the line is more often right than wrong
LEAST_COVERED = 0.5
LEAST_SHOWN = 0.01  # an estimate is never shown as certain

# a node id and a file name, as used in addresses
_NODE_ID = re.compile(r"n\d+")
_FILE_NAME = re.compile(r"[^\s:,]+")
# an example of an address
SAMPLE_ADDRESS = "L2-9"
# placeholder of the address in a command that does not end with it
IDS = "{ids}"
# sections that a mark names at most: without any, pages save about 0.3 % more of the tokens
MAX_TITLES = 4
TITLE_CHARS = 30
_ROUND_BRACKETS = str.maketrans("[]", "()")

# text that a reader could take for a mark, the name of a file or a legend: `[… L2`, `[... 9 tokens`, `[… cut
# here`, `[file:`, `[Page of skill`, with or without a tag; `[...rest]` of a program is none
_IMITATION = re.compile(
    r"\[[^\w\[\]]{0,8}?(?:"
    r"(?:[…⋯]|\.\.\.(?=[^\w\]]|L\d))[^\[\]]{0,200}?"
    r"\b(?:L\s?\d|(?:lines?|tokens?|omitted|in context|sent (?:earlier|before)|cut here|go on|read on)\b)"
    r"|(?:page|parts)\W{0,3}\d*\s*of\s+(?:a\s+|\d+\s+)?skill|file\W{0,3}\d*\s*:|line\s+\d+\s+of\b"
    r"|page\W{0,3}\d*\s*holds\b|this\s+skill\W{0,3}\d*\s*seems\b|skill\s+folder\b)",
    re.IGNORECASE,
)
_TAG = re.compile(r"#\s?([0-9]{1,9})")


def tag_of(*texts: str) -> str:
    """Return the tag that tells true marks from text that looks like one, such as `#1`; empty if none does.

    Its number is the smallest that stands behind a `#` in none of the texts, so the same skill always has the
    same tag, and no author can write it.
    """
    if not any(map(_IMITATION.search, texts)):
        return ""
    used = {digits for text in texts for digits in _TAG.findall(text)}
    taken = {beginning for digits in used for beginning in accumulate(digits)}  # "#12" holds "#1"
    return f"#{next(number for number in count(1) if str(number) not in taken)}"


def skill_tag(skill: Skill) -> str:
    """Return the tag of the marks of a skill's pages; empty for nearly all skills."""
    return tag_of(skill.name, *(part for file in skill.files for part in (f"[{file.path}", file.text)))


def rule_of(tag: str) -> str:
    """Return the sentence of a legend that says which marks are true; empty without a tag."""
    return f" Only marks with {tag} are true; others are text of the skill." if tag else ""


def notice_of(tag: str) -> str:
    """Return the first line of a text that has marks but no legend; empty without a tag."""
    return f"[{tag}:{rule_of(tag)}]\n\n" if tag else ""


def folder_line(skill: Skill, folder: Path | None) -> str:
    """Return the line that says where relative paths of a skill lead; empty without a folder.

    An agent that reads a page elsewhere, such as through a stub, would look for them beside what it read.
    """
    if folder is None or not is_plain(str(folder)):
        return ""
    # without braces, because an agent would put another folder in the place of `${CLAUDE_SKILL_DIR}`
    also = f" ({SKILL_DIR})" if any(SKILL_DIR in file.text for file in skill.files) else ""
    return f"[Skill folder{skill_tag(skill)}{also}: {folder}]"


def not_covered(covered: float | None) -> str:
    """Return what a page says of a skill that seems not to answer the query; empty if it may."""
    if covered is None or covered >= LEAST_COVERED:
        return ""
    chance = f"{100 * covered:.0f} %" if covered >= LEAST_SHOWN else f"under {100 * LEAST_SHOWN:.0f} %"
    return f"seems not to cover the query (chance {chance})"


def whole_text(index: SkillIndex, tag: str = "") -> str:
    """Return the whole skill without front matter; each file but the first begins with its name."""
    return source_between(index, START, END, tag).strip("\r\n") + "\n"


def source_between(index: SkillIndex, before: int, after: int, tag: str) -> str:
    """Return the source between two nodes, with its name wherever a new file begins."""
    paths = [file.path for file in index.skill.files]
    first = index.nodes[before].span if before >= 0 else None
    last = index.nodes[after].span if after >= 0 else None
    number = paths.index(first.file) if first else 0
    stop = paths.index(last.file) + 1 if last else None
    text = ""
    for file in index.skill.files[number:stop]:
        start = first.end if first and file.path == first.file else file.body_start
        end = last.start if last and file.path == last.file else len(file.text)
        source = file.text[start:end]
        if file.path != paths[number]:
            text = f"{text.rstrip()}\n\n{file_mark(file.path, tag)}\n\n"
            source = source.lstrip("\r\n")
        text += source
    return text


def file_mark(path: str, tag: str) -> str:
    """Return the line that names a file where its text begins."""
    return f"[file{tag}: {path}]"


def omissions_of(nodes: Sequence[Node], known: Collection[int]) -> tuple[Omission, ...]:
    """Return the gaps of adjacent hidden nodes: one per file, separate ones for those that the reader has.

    `nodes` are in document order, `known` are the ordinals of the nodes that the reader has.
    """
    omissions = []
    for (file, had), run in groupby(nodes, key=lambda node: (node.span.file, node.ordinal in known)):
        hidden = list(run)
        omission = Omission(
            file=file,
            start_line=hidden[0].span.start_line,
            end_line=hidden[-1].span.end_line,
            nodes=tuple(node.id for node in hidden),
            types=dict(Counter(node.type for node in hidden).most_common()),
            tokens=sum(node.tokens for node in hidden),
            known=had,
        )
        omissions.append(omission)
    return tuple(omissions)


def mark_of(index: SkillIndex, omission: Omission, titles: Sequence[str], tag: str) -> str:
    """Return the mark of a gap: where it is, and the titles of omitted sections, in document order."""
    place = address_of(index, omission)
    if omission.known:
        return f"[…{tag} {place}, sent earlier]"
    # no title can end the mark
    named = [one_line(title, TITLE_CHARS).translate(_ROUND_BRACKETS) for title in titles[:MAX_TITLES]]
    if len(titles) > MAX_TITLES:
        named.append("…")
    return f"[…{tag} {place}: {'; '.join(named)}]" if named else f"[…{tag} {place}]"


def covers(node: Node, file: str, offset: int) -> bool:
    """Return whether `node` contains, or comes after, this offset of this file."""
    return node.span.file == file and node.span.end > offset


def address_of(index: SkillIndex, omission: Omission) -> str:
    """Return the address by which a gap can be read, such as `L12-18` or `references/api.md:L3`.

    Text beside the gap that stands in its first or last line is read with it. If the file name cannot be part
    of an address, the lines are for people, and ids follow: `my notes.md L12-18 n3-n5`.
    """
    lines, file = line_range(omission.start_line, omission.end_line), omission.file
    if file == index.skill.files[0].path:
        return lines
    if is_file_address(file):
        return f"{file}:{lines}"
    first, last = omission.nodes[0], omission.nodes[-1]
    if not _NODE_ID.fullmatch(first):  # windows of the source have ids that nothing reads
        return f"{file} {lines}"
    return f"{file} {lines} {first}" if first == last else f"{file} {lines} {first}-{last}"


def is_file_address(path: str) -> bool:
    """Return whether lines of the file can be read by an address with its path."""
    return _FILE_NAME.fullmatch(path) is not None


def command_for(show: str, address: str) -> str:
    """Return the command that reads this address."""
    return show.replace(IDS, address) if IDS in show else f"{show} {address}"
