"""Whole units: what a node cannot be read without.

- An item, or part of a table, and the node that holds its lead-in, parent item or header rows.
- Code, and the code before it that imports a name which it uses.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence

from skillpager.types import Node, TileKind

# a unit pulls in an import only if that is short: a long example is no import statement
MAX_IMPORT_TOKENS = 120

# `import a.b as c, d`, `from x import y as z`, `import {y as z} from "x"`, `const y = require("x")`
_IMPORTS = re.compile(
    r"^[ \t]*(?:from\s+[\w.]+\s+import\s+\(?(?P<python>[\w ,.*]+)"
    r"|import\s+(?P<names>[\w ,.{}*]+?)(?:\s+from\b.*)?"
    r"|(?:const|let|var)\s+(?P<required>[\w ,{}]+?)\s*=\s*require\b.*)\s*$",
    re.MULTILINE,
)
_WORD = re.compile(r"[^\W\d]\w*")
_RENAMED = re.compile(r"[\w.]+\s+as\s+")


def units_of(nodes: Sequence[Node]) -> dict[int, tuple[int, ...]]:
    """Return, by ordinal, the nodes that a node cannot be read without, in document order.

    Args:
        nodes: All nodes of one skill, in document order.
    """
    starts: dict[str, list[tuple[int, int]]] = {}
    for node in nodes:
        starts.setdefault(node.span.file, []).append((node.span.start, node.ordinal))
    units: dict[int, set[int]] = {}
    imported: dict[tuple[str, str], int] = {}
    for node in nodes:
        needed = set(_lead_in(node, nodes, starts))
        if node.kind is TileKind.CODE:
            names = set(_WORD.findall(node.text))
            own = _imports(node.text)
            known = ((node.span.file, name) for name in names - own)
            needed |= {imported[name] for name in known if name in imported}
            if node.tokens <= MAX_IMPORT_TOKENS:
                imported.update({(node.span.file, name): node.ordinal for name in own})
        if needed:
            units[node.ordinal] = needed
    return {ordinal: tuple(sorted(needed)) for ordinal, needed in units.items()}


def _lead_in(node: Node, nodes: Sequence[Node], starts: dict[str, list[tuple[int, int]]]) -> list[int]:
    """Return the node that holds the lead-in, unless that is the node itself."""
    span = node.list_context.lead_in_span if node.list_context else None
    if span is None:
        return []
    places = starts[span.file]
    place = bisect_right(places, (span.start, len(nodes))) - 1
    holder = nodes[places[place][1]] if place >= 0 else node
    return [] if holder is node or holder.span.end <= span.start else [holder.ordinal]


def _imports(code: str) -> set[str]:
    """Return the names that code imports."""
    names: set[str] = set()
    for match in _IMPORTS.finditer(code):
        listed = match["python"] or match["names"] or match["required"] or ""
        names |= set(_WORD.findall(_RENAMED.sub("", listed)))
    return names
