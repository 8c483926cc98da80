"""The commands on one skill: `page`, `outline`, `show`, `graph`.

Commands import what they work with, so that `--help` and completion need not wait for it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import UsageError, note, print_json, print_text, print_trace, reported
from skillpager.cli.options import (
    AsJson,
    CacheDir,
    ClassifierName,
    EdgeKindNames,
    EncoderName,
    Explain,
    MaxNodes,
    MaxTokens,
    MmrLambda,
    OrOutline,
    QueryArgument,
    Scope,
    SkillArgument,
    StrategyName,
    StyleName,
    Sufficiency,
)

if TYPE_CHECKING:
    from skillpager.pager import SkillPager
    from skillpager.types import Page, SkillIndex


@reported
def page(
    skill: SkillArgument,
    query: QueryArgument,
    max_nodes: MaxNodes = None,
    max_tokens: MaxTokens = None,
    sufficiency: Sufficiency = None,
    mmr_lambda: MmrLambda = None,
    strategy: StrategyName = None,
    scope: Scope = None,
    style: StyleName = None,
    or_outline: OrOutline = False,
    explain: Explain = False,
    encoder: EncoderName = None,
    classifier: ClassifierName = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Print the part of SKILL that suffices for QUERY.

    What is left out is marked with its lines and with the command that shows it. With --json the
    selection, which --explain prints, is included; with both also what speaks for each node.

    \b
    Examples:
      skillpager page examples/skills/postgres-backup "restore one table from a dump"
      skillpager page examples/skills/kubernetes-debugging "pod stuck in Pending" --max-tokens 800
      skillpager page examples/skills/postgres-backup "restore one table" -k 8 --explain
      echo "restore one table" | skillpager page examples/skills/postgres-backup - --json
      cat examples/skills/git-bisect/SKILL.md | skillpager page - "skip a commit" -k 3
    """
    from skillpager.cli import session

    query = session.read_query(query, skill=skill)
    pager = session.open_pager(encoder=encoder, classifier=classifier, cache_dir=cache_dir)
    if or_outline and not query.strip():
        _print_outline(pager, session.load_skill(pager, skill, scope=scope), as_json=as_json)
        return
    source = session.find_source(skill, pager.settings)
    context = pager.page(
        source,
        query,
        max_nodes=max_nodes,
        max_tokens=max_tokens,
        sufficiency=sufficiency,
        strategy=strategy,
        mmr_lambda=mmr_lambda,
        scope=scope,
        style=style,
        show=session.show_command(skill, scope=scope, cache_dir=cache_dir),
    )
    reasons = {}
    if explain and _are_needs_estimated(context):
        reasons = pager.reasons(source, query, strategy=strategy, scope=scope)
    _print_page(context, pager.index(source, scope=scope), explain=explain, reasons=reasons, as_json=as_json)


def _are_needs_estimated(context: "Page") -> bool:
    """Tell whether the picks were estimated to be needed; not so when the whole skill fits the budget."""
    picks = context.selection.picks if context.selection else ()
    return any(pick.sufficiency is not None for pick in picks)


def _print_page(
    context: "Page",
    index: "SkillIndex",
    *,
    explain: bool,
    reasons: Mapping[str, Mapping[str, float]],
    as_json: bool,
) -> None:
    from skillpager.cli.session import tell_oddities
    from skillpager.cli.views import saving
    from skillpager.output.json import context_json
    from skillpager.output.outline import told_reasons, trace

    tell_oddities(index)
    if as_json:
        form = context_json(context)
        print_json({**form, "reasons": reasons} if reasons else form)
        return
    print_text(context.text)
    selection = context.selection
    if explain and selection:
        print_trace(trace(selection))
        if reasons:
            print_trace(told_reasons(selection, reasons))
    # a strategy may pick from other pieces than the index's nodes
    pieces = len(selection.picks) + len(selection.skipped) if selection else len(index.nodes)
    note(saving(context, pieces))


@reported
def outline(
    skill: SkillArgument,
    scope: Scope = None,
    encoder: EncoderName = None,
    classifier: ClassifierName = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Print the tree of headings and nodes of SKILL.

    Each node is told with its id, type, lines, tokens and first words.

    \b
    Examples:
      skillpager outline examples/skills/git-bisect
      skillpager outline examples/skills/kubernetes-debugging --scope body --json
    """
    from skillpager.cli import session

    pager = session.open_pager(encoder=encoder, classifier=classifier, cache_dir=cache_dir)
    found = session.load_skill(pager, skill, scope=scope)
    session.tell_estimates(pager)
    _print_outline(pager, found, as_json=as_json)


def _print_outline(pager: "SkillPager", index: "SkillIndex", *, as_json: bool) -> None:
    from skillpager.cli.views import print_outline
    from skillpager.output.json import index_json

    if as_json:
        print_json(index_json(index))
    else:
        print_outline(index, exact=pager.token_counter.exact)


@reported
def show(
    skill: SkillArgument,
    nodes: Annotated[
        list[str],
        typer.Argument(metavar="NODE", help="Ids (n12), ranges (n12-n16) or lines (L30-57)."),
    ],
    scope: Scope = None,
    style: StyleName = None,
    encoder: EncoderName = None,
    classifier: ClassifierName = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Print nodes of SKILL that a page left out.

    \b
    Examples:
      skillpager show examples/skills/git-bisect n2
      skillpager show examples/skills/postgres-backup n3-n5 L40-52
      skillpager show examples/skills/kubernetes-debugging references/storage.md:L1-20 --style plain
    """
    from skillpager.cli import session
    from skillpager.output.json import context_json

    pager = session.open_pager(encoder=encoder, classifier=classifier, cache_dir=cache_dir)
    context = pager.expand(session.load_skill(pager, skill, scope=scope), nodes, style=style)
    if as_json:
        print_json(context_json(context))
    else:
        print_text(context.text)


@reported
def graph(
    skill: SkillArgument,
    kinds: EdgeKindNames = None,
    dot: Annotated[bool, typer.Option("--dot", help="Print Graphviz source.")] = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid flowchart.")] = False,
    png: Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Write a PNG picture.")] = None,
    svg: Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Write an SVG picture.")] = None,
    scope: Scope = None,
    encoder: EncoderName = None,
    classifier: ClassifierName = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Print the edges between the nodes of SKILL, or draw them.

    \b
    Examples:
      skillpager graph examples/skills/git-bisect --kind reference --kind condition
      skillpager graph examples/skills/git-bisect --mermaid
      skillpager graph examples/skills/git-bisect --dot > git-bisect.dot
      skillpager graph examples/skills/git-bisect --svg git-bisect.svg
    """
    from skillpager.cli import graph as cli_graph
    from skillpager.cli import session
    from skillpager.output.graph_text import to_dot, to_mermaid
    from skillpager.output.json import graph_json

    if sum([dot, mermaid, as_json]) > 1:
        raise UsageError("Choose one of --dot, --mermaid and --json.")
    chosen = cli_graph.edge_kinds(kinds or [])
    pager = session.open_pager(encoder=encoder, classifier=classifier, cache_dir=cache_dir)
    found = cli_graph.only_kinds(session.load_skill(pager, skill, scope=scope), chosen)
    cli_graph.write_pictures(found, [path for path in (png, svg) if path is not None])
    if as_json:
        print_json(graph_json(found))
    elif dot or mermaid:
        print_text(to_dot(found) if dot else to_mermaid(found))
    elif png is None and svg is None:
        cli_graph.print_edges(found)
