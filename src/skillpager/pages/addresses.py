"""Find nodes by address: an id (`n12`), a range (`n12-n16`), lines (`L30-57`) or a heading."""

import difflib
import re
from collections.abc import Sequence

from skillpager.errors import NodeNotFoundError
from skillpager.sections import folded, nodes_under
from skillpager.types import SkillIndex

# most titles that an error message lists
SHOWN_TITLES = 8

# no skill has nodes or lines with ten-digit numbers, and Python refuses to parse thousands of digits
_NODES = re.compile(r"n?(\d{1,9})(?:-n?(\d{1,9}))?", re.IGNORECASE)
_LINES = re.compile(r"(?:(?P<file>[^\s:]+):)?L(\d{1,9})(?:-L?(\d{1,9}))?", re.IGNORECASE)


def find_nodes(index: SkillIndex, addresses: Sequence[str]) -> list[int]:
    """Return the ordinals of the nodes at the addresses, in document order, each once.

    Args:
        index: The skill's index.
        addresses: Node ids (`n12` or `12`), ranges of them, or line ranges (`L30-57`, and
            `references/api.md:L3` for a file other than the first), separated by spaces or commas.

    Raises:
        NodeNotFoundError: An address is malformed, there is no node at it, or no address is given.
    """
    name, total = index.skill.name, len(index.nodes)
    found: set[int] = set()
    parts = [part for text in addresses for part in text.replace(",", " ").split()]
    if addresses and not parts:
        raise NodeNotFoundError("No node is named: write an id such as n12, a range n12-n16 or lines L30-57.")
    for address in parts:
        if match := _NODES.fullmatch(address):
            first, last = int(match[1]), int(match[2] or match[1])
            if first > last or last >= total:
                known = f"n0 to n{total - 1}" if total else "none"
                raise NodeNotFoundError(
                    f"There is no node {address!r} in skill {name!r}: its nodes are {known}; the outline "
                    "with nodes lists them."
                )
            found.update(range(first, last + 1))
        elif match := _LINES.fullmatch(address):
            file = match["file"] or index.skill.files[0].path
            first, last = int(match[2]), int(match[3] or match[2])
            spans = [(node.ordinal, node.span) for node in index.nodes if node.span.file == file]
            here = [number for number, span in spans if span.start_line <= last and span.end_line >= first]
            if not here:
                end = max((span.end_line for _, span in spans), default=0)
                raise NodeNotFoundError(
                    f"No node stands at {address!r} in skill {name!r}: {file} has nodes up to line {end}, "
                    "and headings and blank lines are no nodes; the outline with nodes lists them."
                )
            found.update(here)
        else:
            raise NodeNotFoundError(
                f"{address!r} names no node: write an id such as n12, a range n12-n16, or lines L30-57."
            )
    return sorted(found)


def find_section(index: SkillIndex, section: str) -> list[int]:
    """Return the ordinals of the nodes under a heading, in document order.

    Args:
        index: The skill's index.
        section: A heading's title, or a path of titles such as `Restore > Restore one table`; case and
            spaces do not matter. If several headings have the title, all are meant.

    Raises:
        NodeNotFoundError: There is no such heading with nodes; the message lists similar titles.
    """
    found = nodes_under(index.nodes, section)
    if not found:
        titles = list(dict.fromkeys(node.heading_path[-1] for node in index.nodes if node.heading_path))
        wanted, by_name = folded(section), {folded(title): title for title in titles}
        close = difflib.get_close_matches(wanted, by_name) or [name for name in by_name if wanted in name]
        names = ", ".join(map(repr, [by_name[name] for name in close or by_name][:SHOWN_TITLES]))
        raise NodeNotFoundError(
            f"There is no section {section!r} with text in skill {index.skill.name!r}: "
            + (f"some are {names}; the outline lists them." if names else "it has no headings.")
        )
    return found
