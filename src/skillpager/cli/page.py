"""`skillpager page`, `ask` and `route`: the part of a skill, or of a library's skills, that a query needs.

Commands import what they work with when they run, so that `--help` and completion do not wait for it.
"""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import note, print_json, print_text, print_trace, reported, warn
from skillpager.cli.options import (
    AsJson,
    EncoderOptions,
    PagerOptions,
    PickOptions,
    QueryArgument,
    SkillArgument,
    SkillFolders,
    StyleName,
)
from skillpager.cli.outline import print_map
from skillpager.cli.views import page_note, print_table, progress_bar, token_count
from skillpager.errors import SettingsError, SkillError

if TYPE_CHECKING:
    from skillpager.library import FoundSkill, LibraryPage, RoutedSkill
    from skillpager.types import Page

logger = logging.getLogger(__name__)


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

    query = session.read_query(query, skill=skill)
    pager = session.open_pager(options)
    if or_outline and not query.strip():
        index = session.load_skill(pager, session.find_source(skill, pager))
        print_map(pager, index, skill, options, as_json=as_json)
        return
    source = session.find_source(skill, pager, after=query)
    show = session.node_command("show", skill, options)
    made = pager.page(source, query, **asdict(picked), style=style, show=show, folder=True)
    # strategies that estimate no needs have no reasons, and a skill that fits the budget has no picks
    estimated = made.selection is not None and any(
        pick.sufficiency is not None for pick in made.selection.picks
    )
    reasons = pager.reasons(source, query, strategy=picked.strategy) if explain and estimated else {}
    index = session.load_skill(pager, source)
    if not index.nodes and not index.headings:
        raise SkillError(
            f"{skill} has nothing below its front matter: write the instructions there, or page another file."
        )

    def print_notes() -> None:
        if explain:
            _print_explanation(made, reasons, show)
        _print_note(made, len(index.nodes))

    _report(made, reasons, print_notes, as_json=as_json)


@dataclass(frozen=True, slots=True)
class SharedPageOptions:
    """Limits of a page that several skills share, as in `skillpager.library.LibraryPageOptions`."""

    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens",
            metavar="N",
            help="Longest page, names of skills and omission marks included. [default: no limit]",
        ),
    ] = None
    max_skills: Annotated[
        int | None,
        typer.Option("--max-skills", metavar="N", help="Most skills on the page. [default: 3]"),
    ] = None
    fill: Annotated[
        bool | None,
        typer.Option(
            "--fill/--no-fill",
            help="Fill the page up to --max-tokens, even with what the query hardly needs. "
            "[default: no-fill]",
            show_default=False,
        ),
    ] = None


@reported
def ask(
    query: QueryArgument,
    folders: SkillFolders = None,
    skills: Annotated[
        list[Path] | None,
        typer.Option("--skills", metavar="DIR", help="The same as DIR.", show_default=False),
    ] = None,
    *,
    options: PagerOptions,
    limits: SharedPageOptions,
    style: StyleName = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Say on stderr which skills were chosen and refused, and why their nodes are there.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find the skills that QUERY needs, and print one page with what it needs of each.

    If one skill suffices, the page is that of `skillpager page`. Several skills share --max-tokens; each
    part stands under its skill's name. If no skill fits, a line says so and names the nearest ones.

    \b
    Examples:
      skillpager ask "restore one table from a dump" examples/skills
      skillpager ask "Find the commit that broke it. Then restore the table." examples/skills
      skillpager ask "pod stuck in Pending" examples/skills --max-tokens 600 --explain
      echo "remove duplicate rows" | skillpager ask - examples/skills --json
    """
    from skillpager.cli import session

    query = session.read_query(query, skill="")
    named = [*(folders or []), *(skills or [])]
    library = session.open_library(named, options, search=False)
    if missing := session.missing_skills(library):
        remedy = "name folders with skills"
        raise SkillError(f"There are {missing}: {remedy}{', or widen the settings' if library.keep else ''}.")
    with progress_bar("skills") as progress:
        made = library.page(
            query,
            **{name: value for name, value in asdict(limits).items() if value is not None},
            style=style,
            folder=True,
            show=lambda skill: show_command(skill, options, by_path=bool(named)),
            progress=progress,
        )

    def print_notes() -> None:
        if explain:
            _print_choice(made)
        _print_parts(made)

    _report(made, {}, print_notes, as_json=as_json)


def show_command(skill: "FoundSkill", options: PagerOptions, *, by_path: bool) -> str:
    """Return the command that prints nodes of a skill when their ids follow it.

    The skill is named by its name if that is looked for where it was found. A name that is a path, too, would
    be read as one.
    """
    from skillpager.cli import session

    word = skill.name
    if os.path.lexists(word) or (skill.published is None and (by_path or "/" in word or "\\" in word)):
        word = str(skill.path)
    return session.node_command("show", word, options)


def _report(
    made: "Page | LibraryPage",
    reasons: Mapping[str, Mapping[str, float]],
    print_notes: Callable[[], None],
    *,
    as_json: bool,
) -> None:
    """Print a page, and notes on it; raise a `SettingsError` if it holds nothing because nothing fits."""
    from skillpager.json_types import to_json
    from skillpager.output.formatting import too_few_tokens

    if as_json:
        print_json({**to_json(made), **({"reasons": reasons} if reasons else {})})
    else:
        print_text(made.text)
        print_notes()
    if made.least_tokens is not None:
        raise SettingsError(too_few_tokens(made.least_tokens, "--max-tokens"))


def _print_explanation(made: "Page", reasons: Mapping[str, Mapping[str, float]], show: str) -> None:
    """Print to stderr why nodes are on a page and others are not; `--verbose` adds every number."""
    from skillpager.output.outline import explain_page, trace

    print_trace(explain_page(made, reasons, show=show))
    if made.selection:
        logger.debug("every number of the selection:\n%s", trace(made.selection))


def _print_note(made: "Page", nodes: int, name: str = "") -> None:
    """Print what a page holds, of a skill with that number of nodes, and whether it covers the query."""
    from skillpager.pages.gaps import not_covered

    if made.least_tokens is None:
        if selection := made.selection:  # a strategy may pick from other pieces than the index's nodes
            nodes = len(selection.picks) + len(selection.skipped)
        note((f"{name}: " if name else "") + page_note(made, nodes))
    if uncovered := not_covered(made.covered):
        note(f"the skill {f'{name} ' if name else ''}{uncovered}")


def _print_choice(made: "LibraryPage") -> None:
    """Print to stderr which skills have a part and why, and which have none."""
    from skillpager.display_text import one_line
    from skillpager.output.formatting import chance_words
    from skillpager.output.outline import explain_page

    for part in made.parts:
        print_trace(f"{one_line(part.skill.name)} (chance {chance_words(part.chance)})")
        print_trace(explain_page(part.page, show=part.show))
    for each in made.refused:
        name = one_line(each.skill.name)
        print_trace(f"not on the page: {name} (chance {chance_words(each.chance)}): {one_line(each.detail)}")


def _print_parts(made: "LibraryPage") -> None:
    """Print what the page holds, and which skills could not be read."""
    from skillpager.library import RefusalReason
    from skillpager.output.formatting import chance_words, percent

    for part in made.parts:
        _print_note(part.page, len(part.page.nodes), part.skill.name)
    if len(made.parts) > 1:
        saved = percent(1 - made.tokens / made.full_tokens, digits=1)
        line = f"{len(made.parts)} skills, {token_count(made.tokens, exact=made.tokens_exact)}, {saved} saved"
        if made.sufficiency is not None:
            chance = chance_words(made.sufficiency)
            line += f"; all parts hold what is needed with an estimated chance of {chance}"
        note(line)
    for each in made.refused:
        if each.reason is RefusalReason.UNREADABLE:
            warn(f"{each.skill.name} is passed over: {each.detail}")


@reported
def route(
    query: QueryArgument,
    folders: SkillFolders = None,
    k: Annotated[
        int, typer.Option("--max-skills", "-k", metavar="N", min=1, help="Print at most N skills.")
    ] = 10,
    *,
    options: EncoderOptions,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print every number that the chances were computed from.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find the skills that QUERY needs, best first, each with its chance and the terms that it shares.

    If perhaps no skill fits, a note says so. Names, descriptions and bodies of the skills are searched,
    and what they mean; skills need not be indexed. The first search reads all skills and remembers them,
    later ones read only what is new. `skillpager index` does the same ahead of time.

    \b
    Examples:
      skillpager route "which commit broke the tests" examples/skills
      skillpager route "restore one table from a dump" examples/skills -k 3 --explain
      skillpager route "the pod is stuck in Pending" examples/skills --json
    """
    from skillpager.cli import session
    from skillpager.json_types import to_json
    from skillpager.library.routing.routes import MAX_TERMS, no_fit_words
    from skillpager.output.formatting import chance_words, snippet

    query = session.read_query(query, skill="")
    library = session.open_library(folders or [], options, counts=False)
    with progress_bar("skills") as progress:
        found = library.route(query, k=k, progress=progress)
    if as_json:
        print_json(to_json(found, *(["features"] if explain else [])))
        return
    if found.searched and (no_fit := no_fit_words(found)):
        note(no_fit)
    rows = [
        [
            routed.skill.name,
            chance_words(routed.chance),
            " ".join(routed.terms[:MAX_TERMS]),
            snippet(routed.skill.description),
            str(routed.skill.path),
        ]
        for routed in found.skills
    ]
    if rows:
        print_table(["skill", "chance", "terms", "description", "path"], rows, right=["chance"])
    if explain:
        print_text("\n".join(_explained(routed) for routed in found.skills))


def _explained(routed: "RoutedSkill") -> str:
    """Return the reasons of a routed skill as lines of text."""
    from skillpager.library.routing.routes import reason_words

    lines = [f"\n{routed.skill.name}: {reason_words(routed)}"]
    if routed.skill.user_only:
        lines.append("  only its user may start it, no model")
    lines += [f"  {name} {value:.3f}" for name, value in routed.features]
    return "\n".join(lines)
