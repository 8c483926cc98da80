"""Gaps between the nodes of a page: their marks, their source text, and the addresses that read them."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import groupby

from skillpager.types import Node, Omission, SkillIndex

# the ends of a page: before its first node, after its last
START, END = -1, -2

# a node id and a file name, as used in addresses
_NODE_ID = re.compile(r"n\d+")
_FILE_NAME = re.compile(r"[^\s:,]+")
# an example of an address
SAMPLE_ADDRESS = "n3-n5"
# placeholder of the address in a command that does not end with it
IDS = "{ids}"
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")


def whole_text(index: SkillIndex) -> str:
    """Return the whole skill without front matter; each file but the first begins with its name."""
    return source_between(index, START, END).strip("\r\n") + "\n"


def source_between(index: SkillIndex, before: int, after: int) -> str:
    """Return the source between two nodes, with its name wherever a new file begins."""
    paths = [file.path for file in index.skill.files]
    first = index.nodes[before].span if before >= 0 else None
    last = index.nodes[after].span if after >= 0 else None
    number = paths.index(first.file) if first else 0
    final = paths.index(last.file) if last else len(paths) - 1
    text = ""
    for file in index.skill.files[number : final + 1]:
        start = first.end if first and file.path == first.file else file.body_start
        end = last.start if last and file.path == last.file else len(file.text)
        source = file.text[start:end]
        if file.path != paths[number]:
            text = f"{text.rstrip()}\n\n[file: {file.path}]\n\n"
            source = source.lstrip("\r\n")
        text += source
    return text


def omissions_of(nodes: Sequence[Node], known: Collection[int]) -> tuple[Omission, ...]:
    """Return the gaps of adjacent hidden nodes: one per file, separate ones for nodes that the reader has.

    Args:
        nodes: The hidden nodes, in document order.
        known: Ordinals of the nodes that the reader has.
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


def mark_of(index: SkillIndex, omission: Omission, *, show: str, exact: bool) -> str:
    """Return the mark of a gap: its lines, tokens and node types, and how to read it.

    Args:
        index: The skill's index.
        omission: The gap.
        show: Command that reads omitted nodes; empty for none.
        exact: Whether token counts are exact.
    """
    lines = line_range(omission)
    if len(index.skill.files) > 1:
        lines = f"{omission.file} {lines}"
    types = "already in context" if omission.known else ", ".join(omission.types)
    about = "" if exact else "about "
    address = address_of(index, omission)
    verb = "show " if show and IDS not in show else ""  # a command is typed, a tool is called
    read = f"; {verb}{address}" if address else ""
    return f"[… {lines}, {about}{omission.tokens} tokens: {types}{read}]"


def covers(node: Node, file: str, offset: int) -> bool:
    """Return whether `node` contains, or comes after, this offset of this file."""
    return node.span.file == file and node.span.end > offset


def line_range(omission: Omission) -> str:
    """Return the lines of a gap, such as `L12` or `L12-18`."""
    first, last = omission.start_line, omission.end_line
    return f"L{first}" if first == last else f"L{first}-{last}"


def address_of(index: SkillIndex, omission: Omission) -> str:
    """Return the address by which a gap can be read: `n3-n5`, or lines if there are no nodes.

    Empty for a window of the source without nodes, and if the file name cannot be part of an address.
    """
    first, last = omission.nodes[0], omission.nodes[-1]
    if _NODE_ID.fullmatch(first):
        return first if first == last else f"{first}-{last}"
    if not _holds_nodes(index, omission):
        return ""
    if omission.file == index.skill.files[0].path:
        return line_range(omission)
    return f"{omission.file}:{line_range(omission)}" if _FILE_NAME.fullmatch(omission.file) else ""


def command_for(show: str, address: str) -> str:
    """Return the command that reads this address."""
    return show.replace(IDS, address) if IDS in show else f"{show} {address}"


def _holds_nodes(index: SkillIndex, omission: Omission) -> bool:
    """Return whether a gap of windows has text besides headings; thematic breaks have no letter or digit."""
    hidden = set(omission.nodes)
    spans = [node.span for node in index.nodes if node.id in hidden]
    position, end = spans[0].start, spans[-1].end
    source = next(file.text for file in index.skill.files if file.path == omission.file)
    for heading in (heading.span for heading in index.headings if heading.span.file == omission.file):
        if _LETTER_OR_DIGIT.search(source, position, min(heading.start, end)):
            return True
        position = max(position, heading.end)
    return _LETTER_OR_DIGIT.search(source, position, end) is not None
