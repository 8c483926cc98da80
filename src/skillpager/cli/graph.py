"""`skillpager graph`: the edges between the nodes of a skill, printed or drawn."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import UsageError, note, print_json, print_text, reported
from skillpager.cli.options import AsJson, PagerOptions, SkillArgument, completion
from skillpager.errors import SettingsError

if TYPE_CHECKING:
    from skillpager.types import SkillIndex

SNIPPET_CHARS = 40


@reported
def graph(
    skill: SkillArgument,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="Only edges of this kind: sequence, semantic, reference or condition; may be repeated.",
            autocompletion=completion("skillpager.types", "EdgeKind"),
        ),
    ] = None,
    dot: Annotated[bool, typer.Option("--dot", help="Print Graphviz source.")] = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid flowchart.")] = False,
    *,
    options: PagerOptions,
    as_json: AsJson = False,
) -> None:
    """Print the edges between the nodes of SKILL, as a table or as the source of a drawing.

    \b
    Examples:
      skillpager graph examples/skills/git-bisect --kind reference --kind condition
      skillpager graph examples/skills/git-bisect --mermaid
      skillpager graph examples/skills/git-bisect --dot > git-bisect.dot
    """
    from skillpager.cli.session import load_skill, open_pager
    from skillpager.json_types import to_json
    from skillpager.output.graph import to_dot, to_mermaid
    from skillpager.types import EdgeKind

    if sum([dot, mermaid, as_json]) > 1:
        raise UsageError("Choose one of --dot, --mermaid and --json.")
    for name in kinds or []:
        if name not in tuple(EdgeKind):
            raise SettingsError(f"Unknown edge kind {name!r}: choose from {', '.join(EdgeKind)}.")
    index = load_skill(open_pager(options), skill)
    if kinds:
        index = replace(index, edges=tuple(edge for edge in index.edges if edge.kind in kinds))
    if as_json:
        print_json(to_json(index, "nodes", "edges"))
    elif dot or mermaid:
        print_text(to_dot(index) if dot else to_mermaid(index))
    else:
        _print_edges(index)


def _print_edges(index: "SkillIndex") -> None:
    from skillpager.cli.views import counted, print_table
    from skillpager.output.formatting import snippet

    rows = []
    for edge in index.edges:
        source, target = index.nodes[edge.source], index.nodes[edge.target]
        words = [snippet(node.text, SNIPPET_CHARS) for node in (source, target)]
        rows.append([source.id, str(edge.kind), target.id, f"{edge.weight:.2f}", *words])
    print_table(["source", "kind", "target", "weight", "source text", "target text"], rows, right=["weight"])
    note(f"{counted(len(index.edges), 'edge')} between {counted(len(index.nodes), 'node')}")
