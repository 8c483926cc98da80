"""`skillpager page`, `outline` and `show`: a page, a map and some nodes of one skill."""

import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli import session
from skillpager.cli.messages import print_aside, print_json, print_text, reported
from skillpager.cli.options import (
    AsJson,
    Context,
    Fill,
    Force,
    MaxTokens,
    PagerOptions,
    QueryArgument,
    SkillArgument,
    StrategyName,
    StyleName,
)
from skillpager.cli.views import note_page, progress_bar
from skillpager.display_text import too_few_tokens
from skillpager.errors import SkillError, SkillPagerError
from skillpager.json_types import to_json
from skillpager.types import SkillIndex

if TYPE_CHECKING:
    from skillpager.pager import SkillPager

FORCE_HINT = "for a map: outline in place of show; for the page nevertheless: --force"


@dataclass(frozen=True, slots=True)
class PickOptions:
    """How nodes are picked, as in `skillpager.types.PageOptions`."""

    max_nodes: Annotated[
        int | None,
        typer.Option(
            "--max-nodes",
            "-k",
            metavar="N",
            help="Pick at most N nodes. [default: no limit with navigator, else 20, or 60 of over 100 nodes]",
        ),
    ] = None
    max_tokens: MaxTokens = None
    fill: Fill = None
    sufficiency: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Stop once the page holds everything needed with this estimated probability, such as 0.9. "
            "[default: stop when each remaining node adds too little for its tokens]",
        ),
    ] = None
    mmr_lambda: Annotated[
        float | None,
        typer.Option(
            "--lambda", metavar="X", help="Use mmr, weighing relevance (1) and variety (0). [default: 0.7]"
        ),
    ] = None
    strategy: StrategyName = None


@reported
def page(
    skill: SkillArgument,
    query: QueryArgument,
    picked: PickOptions,
    options: PagerOptions,
    style: StyleName = None,
    force: Force = False,
    context: Context = "",
    or_outline: Annotated[
        bool, typer.Option("--or-outline", help="If the query is empty, print the outline, as stubs do.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say on stderr why nodes are, or are not, on the page.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the part of SKILL that QUERY needs.

    Each omission has a mark that names the omitted lines and their sections; the first line of the page
    names the command that prints them. If SKILL hardly covers QUERY, a short answer says what SKILL is about
    instead. --explain says why nodes were picked, which are the next best, and what to change to get them.
    --json has every number of the selection; with --explain it has the reasons for each node, too.

    \b
    Examples:
      skillpager page examples/skills/postgres-backup "restore one table from a dump"
      skillpager page examples/skills/kubernetes-debugging "pod stuck in Pending" --max-tokens 800 --fill
      skillpager page examples/skills/postgres-backup "restore one table" -k 8 --explain
      echo "restore one table" | skillpager page examples/skills/postgres-backup - --json
      cat examples/skills/git-bisect/SKILL.md | skillpager page - "skip a commit" -k 3
    """
    from skillpager.pager import check_query  # numpy

    query = session.read_query(query, skill=skill)
    pager = session.open_pager(options)
    source = session.find_source(skill, pager)
    if or_outline and not query.strip():
        print_map(pager, session.load_skill(pager, source), skill, options, "", as_json=as_json)
        return
    check_query(query)
    likely = pager.for_draft(query, picked.strategy, picked.mmr_lambda)
    index = session.load_skill(pager, source, likely)
    if not index.nodes and not index.headings:
        raise SkillError(
            f"{skill} has nothing below its front matter: write the instructions there, or page another file."
        )
    show = session.node_command("show", skill, options)
    how = asdict(picked) | {"style": style, "force": force, "context": context}
    made = pager.page(index, query, **how, show=show, folder=True, hint=FORCE_HINT)
    # strategies that estimate no needs have no reasons, and a skill that fits the budget has no picks
    chances = [pick.sufficiency for pick in made.selection.picks] if made.selection and explain else []
    reasons = pager.reasons(index, query, strategy=picked.strategy) if any(chances) else {}
    if as_json:
        print_json({**to_json(made), **({"reasons": reasons} if reasons else {})})
    else:
        print_text(made.text)
        if explain:
            from skillpager.output.outline import explain_page  # numpy

            print_aside(explain_page(made, reasons, show=show))
        note_page(made)
    if not index.embeddings.any(axis=1).all():  # a draft: the next page shall have the index
        sys.stdout.flush()
        with progress_bar("indexing"):
            pager.index(index.skill)
    if made.least_tokens is not None:
        raise SkillPagerError(too_few_tokens(made.least_tokens, "--max-tokens"))


@reported
def outline(
    skill: SkillArgument,
    options: PagerOptions,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file of SKILL, for its headings.")] = "",
    nodes: Annotated[bool, typer.Option("--nodes", help="List every node: id, type, lines, tokens.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print a map of SKILL: its headings with lines, tokens, and the types of their nodes.

    The map takes at most 400 tokens, or a tenth of the skill's up to 2,000; sections that do not fit are
    folded into others, and then into their files. --json has all headings and nodes.

    \b
    Examples:
      skillpager outline examples/skills/git-bisect
      skillpager outline examples/skills/postgres-backup --nodes
      skillpager outline examples/skills/kubernetes-debugging references/storage.md
      skillpager outline examples/skills/kubernetes-debugging --scope body --json
    """
    pager = session.open_pager(options)
    index = session.load_skill(pager, session.find_source(skill, pager))
    session.note_estimates(pager.token_counter)
    if nodes and not as_json:
        print_text(pager.outline(index, nodes=True, file=file))
    else:
        print_map(pager, index, skill, options, file, as_json=as_json)


def print_map(
    pager: "SkillPager", index: SkillIndex, skill: str, options: PagerOptions, file: str, *, as_json: bool
) -> None:
    """Print the map of a skill, with the commands that read its sections; or all nodes as JSON."""
    if as_json:
        print_json(to_json(index, "nodes", "headings"))
        return
    show = session.node_command("show", skill, options)
    list_nodes = session.node_command("outline", skill, options, "--nodes")
    list_file = session.node_command("outline", skill, options)
    print_text(
        pager.outline(
            index, show=show, list_nodes=list_nodes, list_file=list_file, file=file, folder=not file
        )
    )


@reported
def show(
    skill: SkillArgument,
    nodes: Annotated[
        list[str],
        typer.Argument(
            metavar="NODE", help="Ids (n12, n12-n16), lines (L30-57), files or the title of a section."
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
    pager = session.open_pager(options)
    index = session.load_skill(pager, session.find_source(skill, pager))
    made = pager.expand(index, nodes, style=style)
    if as_json:
        print_json(to_json(made))
    else:
        print_text(made.text)
