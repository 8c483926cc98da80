"""`skillpager list`, `route`, `ask` and `library check`: many skills, found for a query, and checked."""

import os
from typing import Annotated

import typer

from skillpager.cli import session
from skillpager.cli.messages import FAILED, note, print_json, print_text, reported, warn
from skillpager.cli.options import (
    AsJson,
    Context,
    EncoderOptions,
    Fill,
    Force,
    MaxTokens,
    PagerOptions,
    QueryArgument,
    SkillFolders,
    StrategyName,
    StyleName,
)
from skillpager.cli.views import counted, note_page, print_table, progress_bar, token_count
from skillpager.display_text import chance_words, percent, snippet, too_few_tokens
from skillpager.errors import SettingsError, SkillPagerError
from skillpager.json_types import to_json
from skillpager.library import FoundSkill, LibraryPage, RefusalReason
from skillpager.library.discovery import check_folders, search_folders, shown_folders
from skillpager.library.routing.routes import MAX_TERMS, no_fit_words
from skillpager.settings import load_settings
from skillpager.tokens import default_counter

DESCRIPTION_CHARS = 100

app = typer.Typer(help="Check a library of skills.", no_args_is_help=True, rich_markup_mode=None)


@reported
def list_skills(folders: SkillFolders = None, *, options: EncoderOptions, as_json: AsJson = False) -> None:
    """List the skills in and below folders, and those that a PostgreSQL store has.

    Without DIR these folders are searched, in this order: those of SKILLPAGER_SKILLS_DIR; those in which
    agents look for skills in the current folder (.agents/skills, .claude/skills, .github/skills and more);
    the same in your home folder; and those of Claude Code's plugins. docs/hosts.md names them all. If two
    skills have the same name, the first one found is used, one in a folder before a published one. Copies of
    a skill are listed once.

    \b
    Examples:
      skillpager list examples/skills
      skillpager list --json
    """
    library = session.open_library(folders or [], options)
    found = library.found()
    if not found:
        note(session.missing_skills(library))
    rows = []
    for skill in found:
        state, told = "user only" if skill.user_only else "ok", snippet(skill.description, DESCRIPTION_CHARS)
        if skill.problem is not None:
            state, told = "broken", skill.problem
        elif skill.shadowed_by is not None:
            state, told = "shadowed", f"{skill.shadowed_by} has the same name and was found first"
        rows.append([skill.name, state, str(skill.path), told])
    if as_json:
        print_json({"skills": [to_json(skill) for skill in found]})
    elif rows:
        print_table(["skill", "state", "path", "description"], rows)


@reported
def route(
    query: QueryArgument,
    folders: SkillFolders = None,
    k: Annotated[
        int, typer.Option("--max-skills", "-k", metavar="N", min=1, help="Print at most N skills.")
    ] = 10,
    *,
    options: EncoderOptions,
    as_json: AsJson = False,
) -> None:
    """Find the skills that QUERY needs, best first, each with its chance and the terms that it shares.

    If perhaps no skill fits, a note says so, and the exit code is 0, as it is with `ask`. Names, descriptions
    and bodies of the skills are searched, and what they mean; skills need not be indexed. The first search
    reads all skills and remembers them, later ones read only what is new. `skillpager index` does the same
    ahead of time.

    \b
    Examples:
      skillpager route "which commit broke the tests" examples/skills
      skillpager route "restore one table from a dump" examples/skills -k 3
      skillpager route "the pod is stuck in Pending" examples/skills --json
    """
    query = session.read_query(query)
    library = session.open_library(folders or [], options)
    session.require_skills(library)
    with progress_bar("reading skills") as progress:
        found = library.route(query, k=k, progress=progress)
    if as_json:
        print_json(to_json(found))
        return
    if no_fit := no_fit_words(found):
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


@reported
def ask(
    query: QueryArgument,
    folders: SkillFolders = None,
    *,
    options: PagerOptions,
    max_tokens: MaxTokens = None,
    max_skills: Annotated[
        int, typer.Option("--max-skills", metavar="N", help="Most skills on the page.")
    ] = 3,
    fill: Fill = None,
    strategy: StrategyName = None,
    style: StyleName = None,
    force: Force = False,
    context: Context = "",
    as_json: AsJson = False,
) -> None:
    """Find the skills that QUERY needs, and print one page with what it needs of each.

    If one skill suffices, the page is that of `skillpager page`. Several skills share --max-tokens; each
    part stands under its skill's name. If no skill fits, a line says so and names the nearest ones
    (--force: the page of the first).

    \b
    Examples:
      skillpager ask "restore one table from a dump" examples/skills
      skillpager ask "Find the commit that broke it. Then restore the table." examples/skills
      skillpager ask "pod stuck in Pending" examples/skills --max-tokens 600
      echo "remove duplicate rows" | skillpager ask - examples/skills --json
    """
    query = session.read_query(query)
    library = session.open_library(folders or [], options)
    session.note_estimates(library.pager.token_counter)
    session.require_skills(library)
    with progress_bar("reading skills") as progress:
        made = library.page(
            query,
            max_tokens=max_tokens,
            max_skills=max_skills,
            fill=fill,
            strategy=strategy,
            style=style,
            folder=True,
            force=force,
            context=context,
            hint="for the page of the first: --force",
            show=lambda skill: show_command(skill, options, by_path=bool(folders)),
            progress=progress,
        )
    if as_json:
        print_json(to_json(made))
    else:
        print_text(made.text)
        _note_parts(made)
    if made.least_tokens is not None:
        raise SkillPagerError(too_few_tokens(made.least_tokens, "--max-tokens"))


def show_command(skill: FoundSkill, options: PagerOptions, *, by_path: bool) -> str:
    """Return the command that prints nodes of a skill when their ids follow it.

    The skill is named by its name if that is looked for where it was found. A name that is a path, too, would
    be read as one.
    """
    word = skill.name
    if os.path.lexists(word) or (skill.published is None and (by_path or "/" in word or "\\" in word)):
        word = str(skill.path)
    return session.node_command("show", word, options)


def _note_parts(made: LibraryPage) -> None:
    """Print what the page holds, and which skills could not be read."""
    for part in made.parts:
        note_page(part.page, part.skill.name)
    if len(made.parts) > 1:
        saved = percent(1 - made.tokens / made.full_tokens, digits=1)
        line = f"{len(made.parts)} skills, {token_count(made.tokens, exact=made.tokens_exact)}, {saved} saved"
        note(f"{line}; {made.promise}" if made.promise else line)
    if made.parts:  # what its page promises holds only if it is
        first = made.parts[0]
        note(f"{first.skill.name} is a right skill with an estimated chance of {chance_words(first.chance)}")
    for each in made.refused:
        if each.reason is RefusalReason.UNREADABLE:
            warn(f"{each.skill.name!r} is passed over: {each.detail}")


@app.command()
@reported
def check(
    folders: SkillFolders = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Leave out findings of a kind, such as licence; may be repeated."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="KIND", help="Show only findings of a kind; may be repeated.")
    ] = None,
    severity: Annotated[
        str | None, typer.Option(metavar="SEVERITY", help="Show only this severity: error or warning.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check skills as their authors would before others use them.

    Found are departures from the Agent Skills specification, dead links, files that are too long, missing
    licences, copies, and skills that take each other's queries; each with file, line and remedy. A summary by
    kind comes first, on stderr. The exit code is 1 if there are errors, 0 if there are only warnings.
    docs/library-check.md describes every kind.

    \b
    Examples:
      skillpager library check examples/skills --ignore front-matter
      skillpager library check examples/skills/git-bisect --json
    """
    from skillpager.library.checks import check_library  # numpy
    from skillpager.library.skill_checks import Kind, Severity

    places = check_folders(folders or []) or search_folders(load_settings().skills_dir)
    for kind in sorted({*(ignore or ()), *(only or ())} - set(Kind)):
        raise SettingsError(f"There is no kind {kind!r} of findings: the kinds are {', '.join(Kind)}.")
    if severity not in (None, *Severity):
        raise SettingsError(f"There is no severity {severity!r}: choose one of {', '.join(Severity)}.")
    session.note_estimates(default_counter())
    left_out = {kind for kind in Kind if kind in (ignore or ()) or (only and kind not in only)}
    wanted = Severity(severity) if severity else None
    with progress_bar("checking skills") as progress:
        checked = check_library(places, ignore=left_out, severity=wanted, progress=progress)
    if checked.skills:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in checked.counts.items())
        warnings = len(checked.findings) - checked.errors
        total = f"{counted(checked.errors, 'error')} and {counted(warnings, 'warning')}"
        note(f"{counted(checked.skills, 'skill')}: {total}{f' ({kinds})' if kinds else ''}")
    else:
        note(f"no skills in {shown_folders(places)}")
    if as_json:
        print_json(to_json(checked))
    else:
        print_text("\n".join(map(str, checked.findings)))
    if checked.errors:
        raise typer.Exit(FAILED)
