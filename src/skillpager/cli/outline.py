"""`skillpager outline`, `show` and `graph`: the map of a skill, some of its nodes, and their edges."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import UsageError, note, print_json, print_text, reported
from skillpager.cli.options import AsJson, PagerOptions, SkillArgument, StyleName, completion
from skillpager.cli.views import counted, print_nodes, print_table
from skillpager.errors import SettingsError

if TYPE_CHECKING:
    from skillpager.pager import SkillPager
    from skillpager.types import SkillIndex

SNIPPET_CHARS = 40


@reported
def outline(
    skill: SkillArgument,
    options: PagerOptions,
    nodes: Annotated[
        bool, typer.Option("--nodes", help="List every node: id, type, lines, tokens, first words.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print a map of SKILL: its headings with lines, tokens, and the types of their nodes.

    The map takes at most 400 tokens, or a tenth of the skill's; sections that do not fit are folded
    into others. --json has all headings and nodes.

    \b
    Examples:
      skillpager outline examples/skills/git-bisect
      skillpager outline examples/skills/postgres-backup --nodes
      skillpager outline examples/skills/kubernetes-debugging --scope body --json
    """
    from skillpager.cli import session

    pager = session.open_pager(options)
    index = session.load_skill(pager, session.find_source(skill, pager))
    session.report_estimates(pager.token_counter)
    if nodes and not as_json:
        print_nodes(index, exact=pager.token_counter.exact)
    else:
        print_map(pager, index, skill, options, as_json=as_json)


def print_map(
    pager: "SkillPager", index: "SkillIndex", skill: str, options: PagerOptions, *, as_json: bool
) -> None:
    """Print the map of a skill, with the commands that read its sections; or all nodes as JSON."""
    from skillpager.cli import session
    from skillpager.json_types import to_json

    if as_json:
        print_json(to_json(index, "nodes", "headings"))
        return
    show = session.node_command("show", skill, options)
    list_nodes = session.node_command("outline", skill, options, "--nodes")
    print_text(pager.outline(index, show=show, list_nodes=list_nodes, folder=True))


@reported
def show(
    skill: SkillArgument,
    nodes: Annotated[
        list[str],
        typer.Argument(
            metavar="NODE",
            help="Node ids (n12), ranges of ids (n12-n16), lines (L30-57) or the title of a section.",
        ),
    ],
    options: PagerOptions,
    style: StyleName = None,
    as_json: AsJson = False,
) -> None:
    """Print nodes or sections of SKILL that a page left out.

    \b
    Examples:
      skillpager show examples/skills/git-bisect n2
      skillpager show examples/skills/postgres-backup n3-n5 L40-52
      skillpager show examples/skills/postgres-backup "Restore one table"
      skillpager show examples/skills/kubernetes-debugging references/storage.md:L1-20 --style plain
    """
    from skillpager.cli import session
    from skillpager.json_types import to_json

    pager = session.open_pager(options)
    source = session.find_source(skill, pager, after=nodes[-1])
    made = pager.expand(session.load_skill(pager, source), nodes, style=style)
    if as_json:
        print_json(to_json(made))
    else:
        print_text(made.text)


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
    from skillpager.cli import session
    from skillpager.json_types import to_json
    from skillpager.output.formatting import snippet
    from skillpager.output.graph import to_dot, to_mermaid
    from skillpager.types import EdgeKind

    if sum([dot, mermaid, as_json]) > 1:
        raise UsageError("Choose one of --dot, --mermaid and --json.")
    for name in kinds or []:
        if name not in tuple(EdgeKind):
            raise SettingsError(f"Unknown edge kind {name!r}: choose from {', '.join(EdgeKind)}.")
    pager = session.open_pager(options)
    index = session.load_skill(pager, session.find_source(skill, pager))
    if kinds:
        index = replace(index, edges=tuple(edge for edge in index.edges if edge.kind in kinds))
    if as_json:
        print_json(to_json(index, "nodes", "edges"))
    elif dot or mermaid:
        print_text(to_dot(index) if dot else to_mermaid(index))
    else:
        rows = []
        for edge in index.edges:
            source, target = index.nodes[edge.source], index.nodes[edge.target]
            words = [snippet(node.text, SNIPPET_CHARS) for node in (source, target)]
            rows.append([source.id, str(edge.kind), target.id, f"{edge.weight:.2f}", *words])
        columns = ["source", "kind", "target", "weight", "source text", "target text"]
        print_table(columns, rows, right=["weight"])
        note(f"{counted(len(index.edges), 'edge')} between {counted(len(index.nodes), 'node')}")
