"""`skillpager index`: indexes many skills; one that fails does not stop the others."""

import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.bulk import Outcome, Source, failed_source, index_skills, path_source, source_of
from skillpager.cli import session
from skillpager.cli.messages import (
    FAILED,
    MAX_WARNINGS,
    note,
    print_error,
    print_json,
    reported,
    warn,
    warn_of_some,
)
from skillpager.cli.options import AsJson, PagerOptions
from skillpager.cli.views import counted, print_table, progress_bar
from skillpager.errors import EncoderError, SettingsError, SkillError
from skillpager.json_types import error_json
from skillpager.library import FoundSkill, Library
from skillpager.library.discovery import search_folders, shown_folders
from skillpager.library.published import Publisher, open_library
from skillpager.settings import Settings
from skillpager.types import Skill, TokenCounter

if TYPE_CHECKING:
    from skillpager.pager import SkillPager
    from skillpager.stores.postgres import PostgresLibrary


@reported
def index(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Skill folders, Markdown files, folders that contain skills, or names of known skills; "
            "archives (.zip, .skill, .tar.gz), git+URL[@REF] "
            "[default: all known skills]",
        ),
    ] = None,
    *,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", metavar="N", min=1, help="Processes. [default: one per processor]"),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Index on a Ray cluster: HOST:PORT; local for one that is started for the run; auto for "
            "that of RAY_ADDRESS or of this machine, else local.",
        ),
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Take skills that are not named here out of the store's library.")
    ] = False,
    options: PagerOptions,
    as_json: AsJson = False,
) -> None:
    """Index skills ahead of their first use.

    First the words and descriptions of all skills are stored, by which `skillpager route` finds them, then
    the nodes of each, from which pages are made. Skills that are in the cache and have not changed are
    skipped. A skill that cannot be indexed does not stop the others, but the exit code is then 1.

    With a PostgreSQL --store each skill is also published in its library, from which processes on other
    hosts offer it without the folder; a changed skill replaces the one of its name.

    \b
    Examples:
      skillpager index examples/skills
      skillpager index examples/skills/git-bisect examples/skills/postgres-backup/SKILL.md --json
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that temporary folders go
    started = time.monotonic()
    pager = session.open_pager(options)
    pager.store.entries()  # a store that cannot be used is an error: better before the work than after it
    library = library_to_publish(pager, prune=prune)
    try:
        found = prepare_routing(pager, paths or [])
        publisher = None if library is None else Publisher(library, found)

        def publish(outcome: Outcome, skill: Skill) -> None:
            if publisher is not None:
                publisher.publish(skill, Path(outcome.place), outcome.key)

        targets = find_targets(paths or [], pager.settings, found)
        # Ray prints to stdout what happens to its machines
        with redirect_stdout(sys.stderr), progress_bar("indexing skills") as progress:
            outcomes = index_skills(pager, targets, jobs=jobs, ray=ray, progress=progress, finished=publish)
    except KeyboardInterrupt:
        note("interrupted: what is done is kept, and the same command goes on from there")
        raise
    print_outcomes(outcomes, pager.token_counter, seconds=time.monotonic() - started, as_json=as_json)
    complete = all(outcome.stored for outcome in outcomes)
    if publisher is not None:
        report_published(publisher, prune=prune, complete=complete)
    if not complete:
        raise typer.Exit(FAILED)


def library_to_publish(pager: "SkillPager", *, prune: bool) -> "PostgresLibrary | None":
    """Return the library in which skills are published, or None; wrong options are a `SettingsError`."""
    library = session.library_name(pager.settings)
    if library is None:
        if prune:
            raise SettingsError("--prune needs a library: name a PostgreSQL database with --store.")
        return None
    if pager.settings.scope == "body":
        raise SettingsError("Whole skills are published: leave out the scope body, or add --library none.")
    return open_library(pager.store, library)


def prepare_routing(pager: "SkillPager", texts: Sequence[str]) -> list[FoundSkill]:
    """Return the skills below the folders among the arguments, or all known ones, ready to be routed to."""
    places = [Path(text).expanduser() for text in texts]
    library = Library(pager, [place for place in places if place.is_dir()] if texts else None)
    # an encoder that fails is reported with each skill that needs it
    with progress_bar("reading skills") as progress, suppress(EncoderError):
        library.prepare(progress)
    return library.found()


def find_targets(texts: Sequence[str], settings: Settings, found: Sequence[FoundSkill] = ()) -> list[Source]:
    """Return the skills that the arguments name, each once; a failed source for each that names none.

    Without arguments these are all known skills that are not shadowed. `found` are the skills below the
    folders among the arguments, or all known ones.
    """
    targets: dict[str, Source] = {}  # by address or real path
    for text in texts:
        try:
            if source := source_of(text, settings):
                targets[text] = source
                continue
            path = session.find_skill(text, settings)
            below = sorted(skill.path for skill in found if path in (skill.path, *skill.path.parents))
            for place in below or [path]:  # indexing a place that is not a skill gives the error message
                targets.setdefault(os.path.realpath(place), path_source(place, settings))
        except SkillError as error:
            targets[text] = failed_source(text, error)
    if texts:
        return [*targets.values()]
    known = [skill.path for skill in found if skill.shadowed_by is None]
    if not known:
        folders = shown_folders(search_folders(settings.skills_dir))
        raise SkillError(
            f"No skills found in {folders}: name skill folders, Markdown files or folders that contain "
            "skills."
        )
    return [path_source(path, settings) for path in known]


def report_published(publisher: Publisher, *, prune: bool, complete: bool) -> None:
    """Print what was published; with `prune`, take the other skills out of the library before."""
    count = f"{counted(len(publisher.names), 'skill')} in the library {publisher.place}"
    note(f"{count}: {publisher.changed:,} new or changed")
    if prune and complete:
        removed = publisher.prune()
        note(f"{counted(len(removed), 'skill')} removed{': ' if removed else ''}{', '.join(removed)}")
    elif prune:
        warn("nothing is removed from the library, since some skills failed")


def print_outcomes(
    outcomes: Sequence[Outcome], counter: TokenCounter, *, seconds: float, as_json: bool
) -> None:
    """Print the indexed skills to stdout and the failures to stderr."""
    indexed = [outcome for outcome in outcomes if outcome.error is None]
    failed = [(outcome.place, outcome.error) for outcome in outcomes if outcome.error is not None]
    if indexed:
        session.note_estimates(counter)
    if as_json:
        skills = [
            {
                "path": outcome.place,
                "name": outcome.name,
                "nodes": outcome.nodes,
                "full_tokens": outcome.tokens,
                "cached": outcome.cached,
                "kept": outcome.stored,
                "seconds": round(outcome.seconds, 4),
                "key": outcome.key,
            }
            for outcome in indexed
        ]
        failures = [{"path": path, **error_json(error)} for path, error in failed]
        print_json({"skills": skills, "failed": failures, "tokens_exact": counter.exact})
    elif indexed:
        rows = []
        for outcome in indexed:
            tokens = f"{'' if counter.exact else 'about '}{outcome.tokens:,}"
            took = "cached" if outcome.cached else f"{outcome.seconds:.2f} s"
            shown = took if outcome.stored else "not kept"  # evicted by those behind it
            rows.append([outcome.name, f"{outcome.nodes:,}", tokens, shown, outcome.place])
        print_table(["skill", "nodes", "tokens", "time", "path"], rows, right=["nodes", "tokens", "time"])
    warnings = [f"{outcome.name}: {warning}" for outcome in indexed for warning in outcome.warnings]
    warn_of_some(warnings, remedy="`skillpager library check` reports them by skill")
    for _, error in failed if as_json else failed[:MAX_WARNINGS]:
        print_error(error, as_json=as_json)
    if len(outcomes) > 1:
        note(summary(outcomes, seconds=seconds))
    if lost := sum(not outcome.stored for outcome in indexed):
        warn(
            f"{counted(lost, 'index', 'indexes')} not kept, because the store is full or was emptied: raise "
            "the setting max_cache_bytes and index them again."
        )


def summary(outcomes: Sequence[Outcome], *, seconds: float) -> str:
    """Return in one line what became of the skills, and how long it took."""
    failed = sum(outcome.error is not None for outcome in outcomes)
    cached = sum(outcome.cached and outcome.error is None for outcome in outcomes)
    new = len(outcomes) - failed - cached
    parts = [f"{new:,} indexed", f"{cached:,} not changed", f"{failed:,} failed"]
    counts = ", ".join(part for part in parts if not part.startswith("0 "))
    return f"{counted(len(outcomes), 'skill')}: {counts}; {seconds:,.1f} s"
