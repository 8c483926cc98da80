"""`skillpager page`, `outline` and `show`: read a skill in part.

Commands import what they work with when they run, so that `--help` and completion do not wait for it.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import note, print_json, print_text, print_trace, reported
from skillpager.cli.options import (
    AsJson,
    CacheDir,
    ClassifierName,
    EncoderName,
    MaxNodes,
    MaxTokens,
    MmrLambda,
    QueryArgument,
    Scope,
    SkillArgument,
    StrategyName,
    StyleName,
    Sufficiency,
)

if TYPE_CHECKING:
    from skillpager.pager import SkillPager
    from skillpager.types import PageOptions, SkillIndex


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
    or_outline: Annotated[
        bool,
        typer.Option("--or-outline", help="If the query is empty, print the outline; stubs use this."),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print to stderr why each node was picked or left out.")
    ] = False,
    encoder: EncoderName = None,
    classifier: ClassifierName = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Print the part of SKILL that QUERY needs.

    A mark stands for each omission; it names the omitted lines and the command that prints them. --json
    includes the selection that --explain prints; --json --explain adds the reasons for each node.

    \b
    Examples:
      skillpager page examples/skills/postgres-backup "restore one table from a dump"
      skillpager page examples/skills/kubernetes-debugging "pod stuck in Pending" --max-tokens 800
      skillpager page examples/skills/postgres-backup "restore one table" -k 8 --explain
      echo "restore one table" | skillpager page examples/skills/postgres-backup - --json
      cat examples/skills/git-bisect/SKILL.md | skillpager page - "skip a commit" -k 3
    """
    from skillpager.cli import session
    from skillpager.cli.views import page_note
    from skillpager.output.json import context_json
    from skillpager.output.outline import format_reasons, trace

    query = session.read_query(query, skill=skill)
    pager = session.open_pager(encoder=encoder, classifier=classifier, cache_dir=cache_dir)
    if or_outline and not query.strip():
        _print_outline(pager, session.load_skill(pager, skill, scope=scope), as_json=as_json)
        return
    source = session.find_source(skill, pager.settings)
    options: PageOptions = {
        "max_nodes": max_nodes,
        "max_tokens": max_tokens,
        "sufficiency": sufficiency,
        "strategy": strategy,
        "mmr_lambda": mmr_lambda,
        "scope": scope,
        "style": style,
        "show": session.show_command(skill, scope=scope, cache_dir=cache_dir),
    }
    made = pager.page(source, query, **options)
    selection = made.selection
    picks = selection.picks if selection else ()
    # a strategy that estimates no needs, or a skill that fits the budget, has no reasons to give
    estimated = any(pick.sufficiency is not None for pick in picks)
    reasons = pager.reasons(source, query, strategy=strategy, scope=scope) if explain and estimated else {}
    index = pager.index(source, scope=scope)
    session.report_warnings(index)
    if as_json:
        form = context_json(made)
        print_json({**form, "reasons": reasons} if reasons else form)
        return
    print_text(made.text)
    if explain and selection:
        print_trace(trace(selection))
        if reasons:
            print_trace(format_reasons(selection, reasons))
    # a strategy may pick from other pieces than the index's nodes
    pieces = len(selection.picks) + len(selection.skipped) if selection else len(index.nodes)
    note(page_note(made, pieces))


@reported
def outline(
    skill: SkillArgument,
    scope: Scope = None,
    encoder: EncoderName = None,
    classifier: ClassifierName = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Print the headings and nodes of SKILL as a tree.

    Each node is shown with its id, type, lines, tokens and first words.

    \b
    Examples:
      skillpager outline examples/skills/git-bisect
      skillpager outline examples/skills/kubernetes-debugging --scope body --json
    """
    from skillpager.cli import session

    pager = session.open_pager(encoder=encoder, classifier=classifier, cache_dir=cache_dir)
    index = session.load_skill(pager, skill, scope=scope)
    session.report_estimates(pager)
    _print_outline(pager, index, as_json=as_json)


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
        typer.Argument(metavar="NODE", help="Node ids (n12), ranges of ids (n12-n16) or lines (L30-57)."),
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
    made = pager.expand(session.load_skill(pager, skill, scope=scope), nodes, style=style)
    if as_json:
        print_json(context_json(made))
    else:
        print_text(made.text)
