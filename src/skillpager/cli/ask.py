"""`skillpager ask`: one page from the skills of a library that a task needs."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import note, print_json, print_text, print_trace, reported, warn
from skillpager.cli.options import AsJson, PagerOptions, QueryArgument, SearchedFolders, StyleName

if TYPE_CHECKING:
    from skillpager.library import FoundSkill, LibraryPage


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
    folders: SearchedFolders = None,
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
    from skillpager.cli.views import progress_bar
    from skillpager.errors import SettingsError, SkillError
    from skillpager.json_types import to_json
    from skillpager.library.library_page import MAX_SKILLS
    from skillpager.output.formatting import too_few_tokens

    query = session.read_query(query, skill="")
    named = [*(folders or []), *(skills or [])]
    library = session.open_library(named, options, search=False)
    if missing := session.missing_skills(library):
        remedy = "name folders with skills"
        raise SkillError(f"There are {missing}: {remedy}{', or widen the settings' if library.keep else ''}.")
    with progress_bar("skills") as progress:
        made = library.page(
            query,
            max_skills=MAX_SKILLS if limits.max_skills is None else limits.max_skills,
            max_tokens=limits.max_tokens,
            fill=limits.fill,
            style=style,
            folder=True,
            show=lambda skill: session.show_command(word_of(skill, by_path=bool(named)), options),
            progress=progress,
        )
    if as_json:
        print_json(to_json(made))
    else:
        print_text(made.text)
        if explain:
            _print_explanation(made)
        _print_notes(made)
    if made.least_tokens is not None:
        raise SettingsError(too_few_tokens(made.least_tokens, "--max-tokens"))


def _print_explanation(made: "LibraryPage") -> None:
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


def _print_notes(made: "LibraryPage") -> None:
    """Print what the page holds, and which skills could not be read."""
    from skillpager.cli.views import page_note, token_count
    from skillpager.library import RefusalReason
    from skillpager.output.formatting import chance_words, percent
    from skillpager.pages.gaps import not_covered

    for part in made.parts:
        selection = part.page.selection
        nodes = len(selection.picks) + len(selection.skipped) if selection else len(part.page.nodes)
        note(f"{part.skill.name}: {page_note(part.page, nodes)}")
        if said := not_covered(part.page.covered):
            note(f"the skill {part.skill.name} {said}")
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


def word_of(skill: "FoundSkill", *, by_path: bool) -> str:
    """Return what names a skill on the command line: its name if that is looked for where it was found.

    A name that is a path, too, would be read as one.
    """
    name = skill.name
    if skill.published is not None:
        return str(skill.path) if os.path.lexists(name) else name
    if by_path or "/" in name or "\\" in name or os.path.lexists(name):
        return str(skill.path)
    return name
