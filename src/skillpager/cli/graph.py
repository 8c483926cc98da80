"""What `skillpager graph` prints and writes."""

from collections.abc import Sequence, Set
from dataclasses import replace
from pathlib import Path

from skillpager.cli.messages import note
from skillpager.cli.views import counted, print_table
from skillpager.errors import SettingsError, SkillPagerError
from skillpager.output.formatting import snippet
from skillpager.output.graph_text import draw
from skillpager.types import EdgeKind, SkillIndex

SNIPPET_CHARS = 40


def edge_kinds(names: Sequence[str]) -> frozenset[EdgeKind]:
    """Return the edge kinds called so; all when none is named.

    Raises:
        SettingsError: There is no such kind.
    """
    for name in names:
        if name not in tuple(EdgeKind):
            raise SettingsError(f"Unknown edge kind {name!r}: choose from {', '.join(EdgeKind)}.")
    return frozenset(map(EdgeKind, names or EdgeKind))


def only_kinds(index: SkillIndex, kinds: Set[EdgeKind]) -> SkillIndex:
    """Return `index` with the edges of some kinds only."""
    return replace(index, edges=tuple(edge for edge in index.edges if edge.kind in kinds))


def write_pictures(index: SkillIndex, paths: Sequence[Path]) -> None:
    """Draw the graph into files, PNG or SVG by their names.

    Raises:
        SettingsError: A name ends otherwise.
        MissingExtraError: Matplotlib is not installed.
        SkillPagerError: A file cannot be written.
    """
    for path in paths:
        picture = draw(index, path)
        try:
            path.write_bytes(picture)
        except OSError as error:
            raise SkillPagerError(
                f"The picture {path} cannot be written ({error.strerror}): name a file in a "
                "folder that exists and can be written."
            ) from error
        note(f"{path} written")


def print_edges(index: SkillIndex) -> None:
    """Print the edges as a table, each with the beginnings of its nodes."""
    rows = []
    for edge in index.edges:
        source, target = index.nodes[edge.source], index.nodes[edge.target]
        words = [snippet(node.text, SNIPPET_CHARS) for node in (source, target)]
        rows.append([source.id, str(edge.kind), target.id, f"{edge.weight:.2f}", *words])
    print_table(["source", "kind", "target", "weight", "source text", "target text"], rows, right=["weight"])
    note(f"{counted(len(index.edges), 'edge')} between {counted(len(index.nodes), 'node')}")
