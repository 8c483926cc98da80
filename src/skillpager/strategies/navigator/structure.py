"""What the structure of a skill says of its nodes: which cannot be read without others, and variant folders.

Variants are folders that say the same for other languages or systems: a query needs one of them.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from skillpager.strategies.navigator.lexical import IntArray, terms_of
from skillpager.types import FloatArray, Node, NodeType, TileKind

LEAST_SHARED = 0.5  # share of the files of the smaller folder whose paths are those of files of the other
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
    """Return, by ordinal, the nodes that a node cannot be read without, if it has any; in document order.

    An item, or part of a table, requires the node that holds its lead-in, parent item or header rows. Code
    requires the code before it that imports a name which it uses. A step requires the node that opens its
    section, if that is short: what the procedure needs, does, or must never do.

    Args:
        nodes: The nodes of a skill.
        sections: The ordinals of each of its sections; without them, no step requires an opening.
    """
    in_file: dict[str, list[Node]] = {}
    for node in nodes:
        in_file.setdefault(node.span.file, []).append(node)
    required: dict[int, tuple[int, ...]] = {}
    imported: dict[tuple[str, str], int] = {}
    openings = {
        ordinal: section[0]
        for section in sections
        if nodes[section[0]].tokens <= MAX_OPENING_TOKENS
        for ordinal in section[1:]
        if nodes[ordinal].type is NodeType.STEP
    }
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


class Variants:
    """Which nodes of a skill are in folders that are variants of each other."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        ordinals: dict[str, list[int]] = {}
        for node in nodes:
            ordinals.setdefault(node.span.file, []).append(node.ordinal)
        self._groups = [
            [
                (
                    frozenset(terms_of(name.replace("-", " ").replace("_", " "))),
                    np.concatenate([ordinals[file] for file in files]),
                )
                for name, files in group.items()
            ]
            for group in variant_groups(ordinals)
        ]

    def others(self, query: str, needs: FloatArray) -> IntArray:
        """Return the ordinals of nodes that a query does not need, as it needs another variant.

        It needs the variants that it names; of variants of which it names none, the one whose nodes it needs
        most.
        """
        words = set(terms_of(query))
        found: list[IntArray] = [np.empty(0, np.intp)]
        for group in self._groups:
            wanted = [terms and terms <= words for terms, _ in group]
            if not any(wanted):
                totals = [needs[ordinals].sum() for _, ordinals in group]
                wanted[int(np.argmax(totals))] = True
            found += [
                ordinals for (_, ordinals), is_wanted in zip(group, wanted, strict=True) if not is_wanted
            ]
        return np.concatenate(found)


def variant_groups(files: Iterable[str]) -> list[dict[str, list[str]]]:
    """Return groups of sibling folders that are variants: the files of each, by the folder's name.

    Two folders are variants of each other if at least two files, and half of the smaller one's, have the same
    paths below them, such as `go/batches.md` and `ruby/batches.md`; variants of a variant are of its group.
    """
    below: dict[str, dict[str, dict[str, str]]] = {}
    for file in files:
        parts = file.split("/")
        for depth in range(len(parts) - 1):
            folder = below.setdefault("/".join(parts[:depth]), {}).setdefault(parts[depth], {})
            folder["/".join(parts[depth + 1 :])] = file
    groups: list[dict[str, list[str]]] = []
    for children in below.values():
        group_of = {name: name for name in children}
        for one, other in combinations(children, 2):
            shared = len(children[one].keys() & children[other].keys())
            if shared >= max(2, LEAST_SHARED * min(len(children[one]), len(children[other]))):
                old, new = group_of[other], group_of[one]
                group_of = {name: new if group == old else group for name, group in group_of.items()}
        for group in dict.fromkeys(group_of.values()):
            names = [name for name in children if group_of[name] == group]
            if len(names) > 1:
                groups.append({name: list(children[name].values()) for name in names})
    return groups
