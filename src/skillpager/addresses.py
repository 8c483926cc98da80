"""How a person or an agent names nodes: `n12`, `12`, `n12-n16`, `12-16`, `L30-57`."""

import re
from collections.abc import Sequence

from skillpager.errors import NodeNotFoundError
from skillpager.types import SkillIndex

# no skill has a node or line of ten digits, and Python refuses to read numbers of thousands
_NODES = re.compile(r"n?(\d{1,9})(?:-n?(\d{1,9}))?", re.IGNORECASE)
_LINES = re.compile(r"(?:(?P<file>[^\s:]+):)?L(\d{1,9})(?:-L?(\d{1,9}))?", re.IGNORECASE)


def find_nodes(index: SkillIndex, addresses: Sequence[str]) -> list[int]:
    """Return the ordinals that the addresses name, in document order, each once.

    Args:
        index: The skill's index.
        addresses: Node ids and ranges of them, or line ranges (`L30-57`, and `references/api.md:L3`
            for another file than the first). Commas separate as well.

    Raises:
        NodeNotFoundError: An address is malformed, or nothing stands there.
    """
    found: set[int] = set()
    for address in (part for text in addresses for part in text.replace(",", " ").split()):
        found.update(_find(index, address))
    return sorted(found)


def _find(index: SkillIndex, address: str) -> list[int]:
    if match := _NODES.fullmatch(address):
        return _by_ordinal(index, address, int(match[1]), int(match[2] or match[1]))
    if match := _LINES.fullmatch(address):
        file = match["file"] or index.skill.files[0].path
        return _by_line(index, address, file, int(match[2]), int(match[3] or match[2]))
    raise NodeNotFoundError(
        f"{address!r} names no node: write an id such as n12, a range n12-n16, or lines L30-57."
    )


def _by_ordinal(index: SkillIndex, address: str, first: int, last: int) -> list[int]:
    total = len(index.nodes)
    if first > last or last >= total:
        known = f"n0 to n{total - 1}" if total else "none"
        raise NodeNotFoundError(
            f"There is no node {address!r} in skill {index.skill.name!r}: its nodes are {known}; "
            "`skillpager outline` lists them."
        )
    return list(range(first, last + 1))


def _by_line(index: SkillIndex, address: str, file: str, first: int, last: int) -> list[int]:
    spans = [(node.ordinal, node.span) for node in index.nodes if node.span.file == file]
    found = [ordinal for ordinal, span in spans if span.start_line <= last and span.end_line >= first]
    if not found:
        end = max((span.end_line for _, span in spans), default=0)
        raise NodeNotFoundError(
            f"No node stands at {address!r} in skill {index.skill.name!r}: {file} has nodes up to line "
            f"{end}, and headings and blank lines are no nodes; `skillpager outline` lists them."
        )
    return found
