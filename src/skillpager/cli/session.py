"""The objects that a command works with: settings with its options applied, a pager, skills and the query."""

import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.cli.messages import UsageError, are_notes_shown, note, warn
from skillpager.cli.options import PagerOptions, StoreOptions
from skillpager.errors import SettingsError, SkillError, install_command
from skillpager.library import Library, locate, settings_filter
from skillpager.library.agent_folders import search_folders, shown_folders
from skillpager.parsing.skill import ENTRY_FILE, decode
from skillpager.settings import (
    DEFAULT_LIBRARY,
    NO_LIBRARY,
    Settings,
    cache_folder,
    check_library,
    hide_secrets,
    load_settings,
)
from skillpager.tokens import default_counter
from skillpager.types import TokenCounter

if TYPE_CHECKING:
    from skillpager.library.published import PublishedSkills
    from skillpager.pager import SkillPager
    from skillpager.types import Skill, SkillIndex, Store

STDIN = "-"
STDIN_PLACE = "stdin"


def choose_settings(options: StoreOptions, *, faults: list[SettingsError] | None = None) -> Settings:
    """Return the settings of this process, with options applied; `faults` as in `load_settings`."""
    chosen = {name: value for name, value in asdict(options).items() if value}
    try:
        check_library(chosen.get("library", DEFAULT_LIBRARY))
    except ValueError as error:
        raise SettingsError(f"--library is {chosen['library']!r}: {error}.") from error
    return replace(load_settings(faults=faults), **chosen)


def library_name(settings: Settings) -> str | None:
    """Return the name of the store's library; None if the store is a file, or none is wanted."""
    return settings.library if settings.store and settings.library != NO_LIBRARY else None


def open_pager(options: StoreOptions, *, show_batches: bool = True) -> "SkillPager":
    """Return a pager with the options applied; on a terminal it shows the progress of an LLM classifier."""
    # numpy and the splitter, which commands without a pager need not load
    from skillpager.pager import SkillPager

    def print_batch(done: int, total: int) -> None:
        sys.stderr.write(f"\rtyping nodes: batch {done} of {total}" + ("\n" if done == total else ""))
        sys.stderr.flush()

    watched = show_batches and are_notes_shown() and sys.stderr.isatty()
    return SkillPager(settings=choose_settings(options), progress=print_batch if watched else None)


def check_folders(folders: Sequence[Path]) -> None:
    """Raise a `SkillError` for an argument that is not a folder."""
    for folder in folders:
        if not folder.is_dir():
            raise SkillError(f"{folder} is not a folder: name folders that contain skills.")


def open_library(
    folders: Sequence[Path], options: StoreOptions, *, counts: bool = True, search: bool = True
) -> Library:
    """Return the skills of folders, with the options applied; their pager is made when needed.

    Args:
        folders: The folders; none for the conventional ones.
        options: Options of the command.
        counts: Whether the command shows counts of tokens.
        search: Search at once, and print a note if there are no skills.
    """
    check_folders(folders)
    settings = choose_settings(options)
    if counts:
        report_estimates(default_counter())
    library = library_of(folders or search_folders(settings.skills_dir), options, settings)
    if search and (missing := missing_skills(library)):
        note(missing)
    return library


def library_of(folders: Sequence[Path], options: StoreOptions, settings: Settings) -> Library:
    """Return the skills of folders that the settings let pass; their pager is made when needed."""
    return Library(
        lambda: open_pager(options, show_batches=False),
        folders,
        cache=cache_folder(settings),
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


def open_published(settings: Settings, store: "Store | None" = None) -> "PublishedSkills | None":
    """Return the published skills on offer; None if the store has no libraries, or none is wanted.

    Args:
        settings: Settings of this process.
        store: Their store, if it is open already.
    """
    library = library_name(settings)
    if library is None:
        return None
    from skillpager.factories import make_store
    from skillpager.library.published import published_skills

    return published_skills(make_store(settings) if store is None else store, library)


def load_skill(pager: "SkillPager", source: "Path | str | Skill") -> "SkillIndex":
    """Return the index of a skill, and print the skill's warnings."""
    index = pager.index(source)
    for warning in index.skill.warnings:
        warn(f"{index.skill.name}: {warning}")
    return index


def find_source(skill: str, pager: "SkillPager", *, after: str = "") -> "Path | str | Skill":
    """Return the path that SKILL names, the published skill, or the Markdown on stdin for `-`.

    Args:
        skill: The argument SKILL.
        pager: Has the settings, and the store with published skills.
        after: The argument after it, in case the two are in the wrong order.

    Raises:
        SkillError: There is no such skill, or stdin is not UTF-8 text.
        StoreError: The store with published skills cannot be read.
        UsageError: `after` is the skill.
    """
    settings = pager.settings
    if skill == STDIN:
        _explain_end("skill")
        # a few bytes over the limit are enough for the pager to see that it is too large and refuse it
        data = sys.stdin.buffer.read(settings.max_bytes + 8)
        text = decode(data, STDIN_PLACE, complete=len(data) <= settings.max_bytes)
        # the pager takes a string without a line break for a path
        return text if "\n" in text or "\r" in text else f"{text}\n"
    try:
        return find_skill(skill, settings)
    except SkillError:
        if (published := open_published(settings, pager.store)) is not None:
            # lists show the name behind that of the library
            found = published.find(skill.removeprefix(f"{settings.library}:"))
            if found is not None:
                return found.read(scope=settings.scope)
        if _is_skill(after):
            raise UsageError(f"{skill!r} is no skill, but {after!r} is: SKILL comes first.") from None
        raise


def _is_skill(text: str) -> bool:
    """Return whether a text is the path of a skill folder or of a Markdown file."""
    try:
        path = Path(text).expanduser()
        return (path / ENTRY_FILE).is_file() or (path.suffix.lower() == ".md" and path.is_file())
    except (OSError, RuntimeError, ValueError):  # no text of a path
        return False


def _explain_end(what: str) -> None:
    """Print how to end the input of a command, if that is typed."""
    if sys.stdin.isatty():
        end = "Ctrl-Z and Enter" if sys.platform == "win32" else "Ctrl-D on a line of its own"
        note(f"Type the {what}; {end} ends it.")


def find_skill(skill: str, settings: Settings) -> Path:
    """Return the path that SKILL names; a `SkillError` says where it was looked for."""
    return locate(skill, lambda: search_folders(settings.skills_dir))


def read_query(query: str, *, skill: str) -> str:
    """Return the query, read from stdin if it is `-`.

    Raises:
        UsageError: Skill and query are both to come from stdin.
        SettingsError: The query is not UTF-8.
    """
    if query == STDIN:
        if skill == STDIN:
            raise UsageError("SKILL and QUERY cannot both come from stdin: pass one of them as an argument.")
        _explain_end("query")
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
    words = ["skillpager", name, skill, *flags]
    chosen = {
        "scope": options.scope,
        "cache-dir": options.cache_dir,
        "store": store,
        "library": options.library,
    }
    for option, value in chosen.items():
        words += [f"--{option}", str(value)] if value else []
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def report_estimates(counter: TokenCounter) -> None:
    """Print a note if token counts are estimates."""
    if not counter.exact:
        note(f"Token counts are estimates: `{install_command('tokens')}` makes them exact.")
