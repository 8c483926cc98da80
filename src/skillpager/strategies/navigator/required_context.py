"""Required context: the other nodes that a node cannot be read without.

- An item, or part of a table, requires the node that holds its lead-in, parent item or header rows.
- Code requires the code before it that imports a name which it uses.
- A step requires the node that opens its section, if that is short: what the procedure needs, does, or must
  never do.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence

from skillpager.types import Node, NodeType, TileKind

MAX_IMPORT_TOKENS = 120  # a longer node is an example, not a list of imports, and is not required
# a longer one is worth its tokens only to queries that need it; these cost no saving, on folds
MAX_OPENING_TOKENS = 60

# `import a.b as c, d`, `from x import y as z`, `from x import (y, z)`, `import {y as z} from "x"`,
# `const y = require("x")`; what is in brackets may be on several lines
_IMPORTS = re.compile(
    r"^[ \t]*(?:from\s+[\w.]+\s+import\s*(?:(?<=\s)(?P<python>[\w ,.*]+)|\((?P<bracketed>[^()]*)\))"
    r"|import\s+(?P<braced>(?:\w+\s*,\s*)?\{[^{}]*\})\s*from\b.*"
    r"|import\s+(?P<names>[\w ,.{}*]+?)(?:\s+from\b.*)?"
    r"|(?:const|let|var)\s+(?P<required>[\w ,{}]+?|\{[^{}]*\})\s*=\s*require\b.*)\s*(?:#.*)?$",
    re.MULTILINE,
)
_COMMENT = re.compile(r"(?:#|//).*")
_WORD = re.compile(r"[^\W\d]\w*")
_RENAMED = re.compile(r"[\w.]+\s+as\s+")


def required_context(
    nodes: Sequence[Node], sections: Sequence[Sequence[int]] = ()
) -> dict[int, tuple[int, ...]]:
    """Return, by ordinal, the required context of each node that has any; both in document order.

    Args:
        nodes: The nodes of a skill.
        sections: The ordinals of each of its sections; without them, no step requires an opening.
    """
    in_file: dict[str, list[Node]] = {}
    for node in nodes:
        in_file.setdefault(node.span.file, []).append(node)
    required: dict[int, tuple[int, ...]] = {}
    imported: dict[tuple[str, str], int] = {}
    openings = _short_openings(nodes, sections)
    for node in nodes:
        needed = {opening} if (opening := openings.get(node.ordinal)) is not None else set()
        lead_in = node.list_context.lead_in_span if node.list_context else None
        if lead_in:
            neighbours = in_file[lead_in.file]
            behind = bisect_right(neighbours, lead_in.start, key=lambda other: other.span.start)
            holder = neighbours[behind - 1] if behind else node
            if holder is not node and holder.span.end > lead_in.start:
                needed.add(holder.ordinal)
        if node.kind is TileKind.CODE:
            own: set[str] = set()
            for match in _IMPORTS.finditer(node.text):
                listed = _COMMENT.sub("", next(filter(None, match.groups()), ""))
                own.update(_WORD.findall(_RENAMED.sub("", listed)))
            used = {(node.span.file, name) for name in _WORD.findall(node.text) if name not in own}
            needed |= {imported[name] for name in used & imported.keys()}
            if node.tokens <= MAX_IMPORT_TOKENS:
                imported |= {(node.span.file, name): node.ordinal for name in own}
        if needed:
            required[node.ordinal] = tuple(sorted(needed))
    return required


def _short_openings(nodes: Sequence[Node], sections: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return, by the ordinals of steps, those of the short nodes that open their sections."""
    return {
        ordinal: section[0]
        for section in sections
        if nodes[section[0]].tokens <= MAX_OPENING_TOKENS
        for ordinal in section[1:]
        if nodes[ordinal].type is NodeType.STEP
    }
