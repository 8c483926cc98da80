"""Folders of a skill that say the same for other languages or systems: a query needs one of them."""

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from skillpager.strategies.navigator.lexical import IntArray, terms_of
from skillpager.types import FloatArray, Node

LEAST_SHARED = 0.5  # share of the files of the smaller folder whose paths are those of files of the other


class Variants:
    """Which nodes of a skill are in folders that are variants of each other."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        ordinals: dict[str, list[int]] = {}
        for node in nodes:
            ordinals.setdefault(node.span.file, []).append(node.ordinal)
        self._groups = [
            [
                (frozenset(terms_of(name)), np.concatenate([ordinals[file] for file in files]))
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
