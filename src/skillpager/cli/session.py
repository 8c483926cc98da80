"""The objects that a command works with: settings with its options applied, a pager, skills and the query."""

import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.cli.messages import note, warn
from skillpager.cli.options import PagerOptions, StoreOptions
from skillpager.errors import SettingsError, SkillError, install_command
from skillpager.files import decode
from skillpager.library import Library, locate, settings_filter
from skillpager.library.discovery import search_folders, shown_folders
from skillpager.library.published import published_skills
from skillpager.settings import (
    DEFAULT_LIBRARY,
    INDEX_FOLDER,
    NO_LIBRARY,
    Settings,
    check_library,
    hide_secrets,
    load_settings,
)
from skillpager.types import SCOPES, Skill, SkillIndex, TokenCounter

if TYPE_CHECKING:
    from skillpager.pager import SkillPager

STDIN = "-"
STDIN_PLACE = "stdin"


def choose_settings(options: StoreOptions) -> Settings:
    """Return the settings of this process, with options applied."""
    chosen = {name: value for name, value in asdict(options).items() if value}
    try:
        check_library(chosen.get("library", DEFAULT_LIBRARY))
    except ValueError as error:
        raise SettingsError(f"--library is {chosen['library']!r}: {error}.") from error
    settings = replace(load_settings(), **chosen)
    if settings.scope not in SCOPES:
        raise SettingsError(f"Unknown scope {settings.scope!r}: choose one of {', '.join(SCOPES)}.")
    return settings


def library_name(settings: Settings) -> str | None:
    """Return the name of the store's library; None if the store is a file, or none is wanted."""
    return settings.library if settings.store and settings.library != NO_LIBRARY else None


def open_pager(options: StoreOptions) -> "SkillPager":
    """Return a pager with the options applied."""
    from skillpager.pager import SkillPager  # numpy, which commands without a pager need not load

    return SkillPager(settings=choose_settings(options))


def open_library(
    named: Sequence[Path], options: StoreOptions, *, search: Callable[[], Sequence[Path]] | None = None
) -> Library:
    """Return the skills of the named, else of the conventional folders, as far as the settings let them pass.

    Their pager is made when it is needed. `search` returns the folders to search if none are named.
    """
    settings = choose_settings(options)
    return Library(
        lambda: open_pager(options),
        named or search or partial(search_folders, settings.skills_dir),
        cache=settings.cache_dir / INDEX_FOLDER,
        keep=settings_filter(settings),
        published=library_name(settings),
    )


def missing_skills(library: Library) -> str:
    """Return in words that a library has no skills; an empty text if it has some."""
    if library.skills():
        return ""
    wanted = " that the settings `trusted` and `licences` let pass" if library.keep else ""
    published = f" and in the library {library.place}" if library.place else ""
    return f"no skills{wanted} in {shown_folders(library.folders)}{published}"


def require_skills(library: Library) -> None:
    """Raise a `SkillError` if a library has no skills."""
    if missing := missing_skills(library):
        widen = ", or widen the settings" if library.keep else ""
        raise SkillError(f"There are {missing}: name folders with skills{widen}.")


def load_skill(pager: "SkillPager", source: Path | str | Skill, query: str = "") -> SkillIndex:
    """Return the index of a skill, or a draft as `SkillPager.index` does, and print the skill's warnings."""
    index = pager.index(source, query=query)
    for warning in index.skill.warnings:
        warn(f"{index.skill.name}: {warning}")
    return index


def find_source(skill: str, pager: "SkillPager") -> Path | str | Skill:
    """Return the path that SKILL names, the published skill, or the Markdown on stdin for `-`."""
    settings = pager.settings
    if skill == STDIN:
        # a few bytes over the limit are enough for the pager to see that it is too large and refuse it
        data = sys.stdin.buffer.read(settings.max_bytes + 8)
        text = decode(data, STDIN_PLACE, complete=len(data) <= settings.max_bytes)
        # the pager takes a string without a line break for a path
        return text if "\n" in text or "\r" in text else f"{text}\n"
    try:
        return find_skill(skill, settings)
    except SkillError:
        if library := library_name(settings):
            published = published_skills(pager.store, library)
            name = skill.removeprefix(f"{library}:")  # as lists show it
            for found in published.skills() if published else ():
                if found.name == name:
                    return found.read(scope=settings.scope)
        raise


def find_skill(skill: str, settings: Settings) -> Path:
    """Return the path that SKILL names; a `SkillError` says where it was looked for."""
    return locate(skill, lambda: search_folders(settings.skills_dir))


def read_query(query: str, *, skill: str = "") -> str:
    """Return the query, read from stdin if it is `-`."""
    if query == STDIN:
        if skill == STDIN:
            raise SettingsError("SKILL and QUERY cannot both come from stdin: pass one as an argument.")
        query = sys.stdin.buffer.read().decode(errors="surrogateescape").strip()
    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise SettingsError("The query is not UTF-8: write or save it as UTF-8.") from error
    return query


def node_command(name: str, skill: str, options: PagerOptions, *flags: str) -> str:
    """Return the command `show` or `outline` for the nodes of a skill, with its options; empty for stdin."""
    if skill == STDIN:
        return ""
    # a page must not show a password; without the option the command reads the same nodes, from another index
    store = options.store if options.store and hide_secrets(options.store) == options.store else None
    chosen = {
        "--scope": options.scope,
        "--cache-dir": options.cache_dir,
        "--store": store,
        "--library": options.library,
    }
    words = ["skillpager", name, skill, *flags]
    words += [word for option, value in chosen.items() if value for word in (option, str(value))]
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def note_estimates(counter: TokenCounter) -> None:
    """Print a note if token counts are estimates."""
    if not counter.exact:
        note(f"Token counts are estimates: `{install_command('tokens')}` makes them exact.")
