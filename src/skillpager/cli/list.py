"""What `skillpager list` finds and prints."""

from collections.abc import Sequence
from pathlib import Path

from skillpager.cli.messages import note, print_json, warn
from skillpager.cli.views import print_table
from skillpager.errors import SkillError
from skillpager.library import FoundSkill, discover, found_json, search_folders
from skillpager.settings import load_settings

DESCRIPTION_CHARS = 100


def find(folders: Sequence[Path]) -> list[FoundSkill]:
    """Return the skills below `folders`, or below the conventional ones when none is given.

    Raises:
        SkillError: A folder does not exist.
        SettingsError: A setting is not valid.
    """
    check_folders(folders)
    places = list(folders) or search_folders(load_settings().skills_dir)
    found = discover(places)
    if not found:
        note(f"no skills in {', '.join(map(str, places))}")
    return found


def check_folders(folders: Sequence[Path]) -> None:
    """Refuse what is not a folder.

    Raises:
        SkillError: One of them is none.
    """
    for folder in folders:
        if not folder.is_dir():
            raise SkillError(f"{folder} is not a folder: name folders that contain skills.")


def print_found(found: Sequence[FoundSkill], *, as_json: bool) -> None:
    """Print skills as a table or as JSON; shadowed and broken ones are told on stderr too."""
    if as_json:
        print_json({"skills": [found_json(skill) for skill in found]})
    elif found:
        print_table(["skill", "state", "path", "description"], [_row(skill) for skill in found])
    for skill in found:
        if skill.problem is not None:
            warn(f"{skill.path} cannot be read: {skill.problem}")
        elif skill.shadowed_by is not None:
            warn(f"{skill.path} is shadowed by {skill.shadowed_by}, found first under the name {skill.name}.")


def _row(skill: FoundSkill) -> list[str]:
    from skillpager.output.outline import snippet

    state = "broken" if skill.problem is not None else "shadowed" if skill.shadowed_by else "ok"
    return [skill.name, state, str(skill.path), snippet(skill.description, DESCRIPTION_CHARS)]
