"""`skillpager list` and `skillpager library`: the skills that are found, their check, and published ones."""

from pathlib import Path
from typing import Annotated

import typer

from skillpager.cli.messages import (
    FAILED,
    UsageError,
    confirm,
    note,
    print_json,
    print_text,
    reported,
    warn_of_some,
)
from skillpager.cli.options import (
    AsJson,
    EncoderOptions,
    LibraryName,
    SkillFolders,
    StoreAddress,
    StoreOptions,
    Yes,
)
from skillpager.cli.views import counted, print_table, progress_bar

DESCRIPTION_CHARS = 100

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@reported
def list_skills(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DIR",
            help="Folders to search. [default: the conventional folders, see above]",
            show_default=False,
        ),
    ] = None,
    store: StoreAddress = None,
    library: LibraryName = None,
    as_json: AsJson = False,
) -> None:
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
    from skillpager.cli import session
    from skillpager.json_types import to_json
    from skillpager.library import Library
    from skillpager.library.agent_folders import search_folders, shown_folders
    from skillpager.library.published import beside
    from skillpager.output.formatting import snippet
    from skillpager.settings import cache_folder

    session.check_folders(folders or [])
    settings = session.choose_settings(EncoderOptions(store=store, library=library))
    places = folders or search_folders(settings.skills_dir)
    # as a library it reads only skills that are new or have changed
    cache = cache_folder(settings)
    found = Library(lambda: session.open_pager(StoreOptions()), places, cache=cache).found()
    published = session.open_published(settings)
    if published is not None:
        found += beside(found, published.skills(), None)
    if not found:
        there = "" if published is None else f" and in the library {published.place}"
        note(f"no skills in {shown_folders(places)}{there}")
    rows, faults = [], []
    for skill in found:
        state = "user only" if skill.user_only else "ok"
        if skill.problem is not None:
            state = "broken"
            faults.append(f"{skill.path} cannot be read: {skill.problem}")
        elif skill.shadowed_by is not None:
            state = "shadowed"
            faults.append(
                f"{skill.path} is shadowed by {skill.shadowed_by}, which was found first and has the same "
                f"name, {skill.name}."
            )
        rows.append([skill.name, state, str(skill.path), snippet(skill.description, DESCRIPTION_CHARS)])
    if as_json:
        print_json({"skills": [to_json(skill) for skill in found]})
    elif rows:
        print_table(["skill", "state", "path", "description"], rows)
    warn_of_some(faults, remedy="see the column `state`, or `skillpager list --json` for the reasons")


@app.callback()
def library() -> None:
    """Check a library of skills, or take skills out of a published one."""


@app.command()
@reported
def check(
    folders: SkillFolders = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND", help="Leave out findings of this kind, such as licence. May be repeated."
        ),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Check skills as their authors would before others use them.

    Found are departures from the Agent Skills specification, dead links, files that are too long, missing
    licences, copies, skills that take each other's queries, and descriptions that hosts
    have no room for; each with file, line and remedy. The exit code is 1 if there are errors, 0 if there
    are only warnings. docs/library-check.md describes every kind.

    \b
    Examples:
      skillpager library check examples/skills --ignore front-matter
      skillpager library check examples/skills/git-bisect --json
    """
    from skillpager.cli import session
    from skillpager.json_types import to_json
    from skillpager.library.agent_folders import search_folders, shown_folders
    from skillpager.library.checks import check_library
    from skillpager.library.skill_checks import Kind
    from skillpager.settings import load_settings
    from skillpager.tokens import default_counter

    session.check_folders(folders or [])
    for kind in sorted(set(ignore or ()) - set(Kind)):
        raise UsageError(f"There is no kind {kind!r} of findings: the kinds are {', '.join(Kind)}.")
    ignored = [Kind(kind) for kind in ignore or ()]
    places = folders or search_folders(load_settings().skills_dir)
    session.report_estimates(default_counter())
    with progress_bar("skills") as progress:
        checked = check_library(places, ignore=ignored, progress=progress)
    if as_json:
        print_json(to_json(checked))
    else:
        for finding in checked.findings:
            print_text(str(finding))
    if not checked.skills:
        note(f"no skills in {shown_folders(places)}")
    else:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in checked.counts.items())
        warnings = len(checked.findings) - checked.errors
        total = f"{counted(checked.errors, 'error')} and {counted(warnings, 'warning')}"
        note(f"{counted(checked.skills, 'skill')}: {total}{f' ({kinds})' if kinds else ''}")
    if checked.errors:
        raise typer.Exit(FAILED)


@app.command()
@reported
def remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of published skills.")],
    store: StoreAddress = None,
    library: LibraryName = None,
    *,
    yes: Yes = False,
) -> None:
    """Take skills out of the library of a PostgreSQL store.

    Processes on all hosts stop offering them within seconds. Their indexes stay until they are evicted.
    The database is that of --store or SKILLPAGER_STORE.

    \b
    Examples:
      skillpager library remove git-bisect --yes
    """
    from skillpager.cli import session
    from skillpager.factories import make_store
    from skillpager.library.published import remove_published
    from skillpager.stores.postgres import PostgresStore

    settings = session.choose_settings(EncoderOptions(store=store, library=library))
    name = session.library_name(settings)
    if name is None:
        raise UsageError("There is no library: name a PostgreSQL database with --store.")
    opened = make_store(settings)
    assert isinstance(opened, PostgresStore)
    published = opened.library(name)
    confirm(
        f"Take {counted(len(names), 'skill')} out of the library {published.place}?",
        yes=yes,
        remedy="add --yes to remove them",
    )
    note(f"removed: {', '.join(remove_published(published, names))}")
