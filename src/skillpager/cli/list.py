"""`skillpager list`: the skills that are found, and which of them cannot be used."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import note, print_json, reported, warn_of_some
from skillpager.cli.options import AsJson, LibraryName, PagerOptions, StoreAddress
from skillpager.errors import SkillError

if TYPE_CHECKING:
    from skillpager.library import FoundSkill

DESCRIPTION_CHARS = 100


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
    from skillpager.cli.views import print_table
    from skillpager.json_types import to_json
    from skillpager.library import Library
    from skillpager.library.agent_folders import search_folders, shown_folders
    from skillpager.library.published import beside
    from skillpager.output.formatting import snippet
    from skillpager.settings import cache_folder

    check_folders(folders or [])
    settings = session.choose_settings(PagerOptions(store=store, library=library))
    places = folders or search_folders(settings.skills_dir)
    # as a library it reads only skills that are new or have changed
    cache = cache_folder(settings)
    found = Library(lambda: session.open_pager(PagerOptions()), places, cache=cache).found()
    published = session.open_published(settings)
    if published is not None:
        found += beside(found, published.skills(), None)
    if not found:
        there = "" if published is None else f" and in the library {published.place}"
        note(f"no skills in {shown_folders(places)}{there}")
    if as_json:
        print_json({"skills": [to_json(skill) for skill in found]})
    elif found:
        rows = []
        for skill in found:
            usable = "user only" if skill.user_only else "ok"
            state = "broken" if skill.problem is not None else "shadowed" if skill.shadowed_by else usable
            rows.append([skill.name, state, str(skill.path), snippet(skill.description, DESCRIPTION_CHARS)])
        print_table(["skill", "state", "path", "description"], rows)
    _warn_of_unusable(found)


def _warn_of_unusable(found: Sequence["FoundSkill"]) -> None:
    """Warn of skills that cannot be used: of each up to `MAX_WARNINGS`, of the others by their number."""
    faults = []
    for skill in found:
        if skill.problem is not None:
            faults.append(f"{skill.path} cannot be read: {skill.problem}")
        elif skill.shadowed_by is not None:
            faults.append(
                f"{skill.path} is shadowed by {skill.shadowed_by}, which was found first and has the same "
                f"name, {skill.name}."
            )
    warn_of_some(faults, remedy="see the column `state`, or `skillpager list --json` for the reasons")


def check_folders(folders: Sequence[Path]) -> None:
    """Raise a `SkillError` for an argument that is not a folder."""
    for folder in folders:
        if not folder.is_dir():
            raise SkillError(f"{folder} is not a folder: name folders that contain skills.")
