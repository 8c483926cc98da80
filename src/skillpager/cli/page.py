"""`skillpager page`, `outline` and `show`: read a skill in part.

Commands import what they work with when they run, so that `--help` and completion do not wait for it.
"""

import logging
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import note, print_json, print_text, print_trace, reported
from skillpager.cli.options import AsJson, PagerOptions, PickOptions, QueryArgument, SkillArgument, StyleName

logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    from skillpager.pager import SkillPager
    from skillpager.types import Page, SkillIndex


@reported
def page(
    skill: SkillArgument,
    query: QueryArgument,
    picked: PickOptions,
    options: PagerOptions,
    style: StyleName = None,
    or_outline: Annotated[
        bool,
        typer.Option("--or-outline", help="If the query is empty, print the outline; stubs use this."),
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Say on stderr why nodes are on the page, and why the next best are not."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the part of SKILL that QUERY needs.

    Each omission has a mark that names the omitted lines and their sections; the first line of the page
    names the command that prints them. --explain says why nodes were picked, which are the next best,
    and what to change to get them. --json has every number of the selection; with --explain it has the
    reasons for each node, too.

    \b
    Examples:
      skillpager page examples/skills/postgres-backup "restore one table from a dump"
      skillpager page examples/skills/kubernetes-debugging "pod stuck in Pending" --max-tokens 800 --fill
      skillpager page examples/skills/postgres-backup "restore one table" -k 8 --explain
      echo "restore one table" | skillpager page examples/skills/postgres-backup - --json
      cat examples/skills/git-bisect/SKILL.md | skillpager page - "skip a commit" -k 3
    """
    from skillpager.cli import session
    from skillpager.json_types import to_json

    query = session.read_query(query, skill=skill)
    pager = session.open_pager(options)
    if or_outline and not query.strip():
        _print_map(pager, session.load_skill(pager, skill), skill, options, as_json=as_json)
        return
    source = session.find_source(skill, pager, after=query)
    show = session.show_command(skill, options)
    made = pager.page(source, query, **asdict(picked), style=style, show=show, folder=True)
    has_reasons = explain and _is_estimated(made)
    reasons = pager.reasons(source, query, strategy=picked.strategy) if has_reasons else {}
    index = pager.index(source)
    session.report_warnings(index)
    _check_skill(index, skill)
    if as_json:
        form = to_json(made)
        print_json({**form, "reasons": reasons} if reasons else form)
    else:
        print_text(made.text)
        if explain:
            _print_explanation(made, reasons, show)
        _print_notes(made, len(index.nodes))
    _check_content(made)


def _is_estimated(made: "Page") -> bool:
    """Return whether a strategy picked the nodes of a page by their estimated need, for which it has reasons.

    One that estimates no needs has none to give, and a skill that fits the budget has no picks.
    """
    return made.selection is not None and any(pick.sufficiency is not None for pick in made.selection.picks)


def _print_explanation(made: "Page", reasons: Mapping[str, Mapping[str, float]], show: str) -> None:
    """Print to stderr why nodes are on a page and others are not; `--verbose` adds every number."""
    from skillpager.output.outline import explain_page, trace

    print_trace(explain_page(made, reasons, show=show))
    if made.selection:
        logger.debug("every number of the selection:\n%s", trace(made.selection))


def _print_notes(made: "Page", nodes: int) -> None:
    """Print what a page holds, of a skill with so many nodes, and whether the skill covers the query."""
    from skillpager.cli.views import page_note
    from skillpager.pages.gaps import not_covered

    if made.least_tokens is None:
        selection = made.selection
        # a strategy may pick from other pieces than the index's nodes
        note(page_note(made, len(selection.picks) + len(selection.skipped) if selection else nodes))
    if said := not_covered(made.covered):
        note(f"the skill {said}")


def _check_skill(index: "SkillIndex", skill: str) -> None:
    """Raise `SkillError` if a skill has nothing to page: no text and no heading."""
    from skillpager.errors import SkillError

    if not index.nodes and not index.headings:
        raise SkillError(
            f"{skill} has nothing below its front matter: write the instructions there, or page another file."
        )


def _check_content(made: "Page") -> None:
    """Raise `SettingsError` if a page holds nothing because nothing fits; what it has instead is printed."""
    from skillpager.errors import SettingsError
    from skillpager.output.formatting import nothing_fits

    if made.least_tokens is not None:
        raise SettingsError(nothing_fits(made, "--max-tokens"))


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
    from skillpager.cli.views import print_nodes

    pager = session.open_pager(options)
    index = session.load_skill(pager, skill)
    session.report_estimates(pager.token_counter)
    if nodes and not as_json:
        print_nodes(index, exact=pager.token_counter.exact)
    else:
        _print_map(pager, index, skill, options, as_json=as_json)


def _print_map(
    pager: "SkillPager", index: "SkillIndex", skill: str, options: PagerOptions, *, as_json: bool
) -> None:
    from skillpager.cli import session
    from skillpager.json_types import to_json

    if as_json:
        print_json(to_json(index, "nodes", "headings"))
        return
    show, list_nodes = session.show_command(skill, options), session.nodes_command(skill, options)
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
    made = pager.expand(session.load_skill(pager, skill, after=nodes[-1]), nodes, style=style)
    if as_json:
        print_json(to_json(made))
    else:
        print_text(made.text)
