"""`skillpager index`: indexes many skills; one that fails does not stop the others."""

import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import (
    FAILED,
    MAX_WARNINGS,
    UsageError,
    is_verbose,
    note,
    print_error,
    print_json,
    reported,
    warn,
    warn_of_some,
)
from skillpager.cli.options import AsJson, PagerOptions
from skillpager.cli.views import byte_count, counted, print_table, progress_bar
from skillpager.errors import EncoderError, SkillError

if TYPE_CHECKING:
    from skillpager.bulk import Outcome, Source
    from skillpager.library import FoundSkill
    from skillpager.library.published import Publisher
    from skillpager.pager import SkillPager
    from skillpager.settings import Settings
    from skillpager.types import Skill, Store


@reported
def index(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Skill folders, Markdown files, folders that contain skills, or names of known skills; "
            "archives (.zip, .skill, .tar.gz), git+URL[@REF], s3://…, gs://…, az://… "
            "[default: all known skills]",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            min=1,
            help="Number of skills indexed in parallel. [default: one per processor]",
            show_default=False,
        ),
    ] = None,
    *,
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray",
            metavar="ADDRESS",
            help="Index on a Ray cluster: HOST:PORT; local for one that is started for the run; auto for "
            "that of RAY_ADDRESS or of this machine, else local.",
        ),
    ] = None,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="Take skills that this command does not name out of the store's library.",
        ),
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
    from skillpager.bulk import index_skills
    from skillpager.cli import session

    started = time.monotonic()
    pager = session.open_pager(options, show_batches=False)
    pager.store.entries()  # a store that cannot be used is an error: better before the work than after it
    library = session.library_name(pager.settings)
    if prune and library is None:
        raise UsageError("--prune needs a library: name a PostgreSQL database with --store.")
    try:
        found = prepare_routing(pager, paths or [])
        publisher = None if library is None else _open_publisher(pager.store, library, found)
        targets = find_targets(paths or [], pager.settings, found)
        finished = None if publisher is None else partial(publish_skill, publisher, pager)
        with progress_bar("skills") as progress, cleaned_up_on_sigterm():
            outcomes = index_skills(pager, targets, jobs=jobs, ray=ray, progress=progress, finished=finished)
    except KeyboardInterrupt:
        note("interrupted: what is done is kept, and the same command goes on from there")
        raise
    complete = all(outcome.stored for outcome in outcomes)
    if any(outcome.error is None for outcome in outcomes):
        session.report_estimates(pager.token_counter)
    print_outcomes(outcomes, exact=pager.token_counter.exact, as_json=as_json)
    if len(outcomes) > 1:
        note(summary(outcomes, seconds=time.monotonic() - started))
    if lost := sum(outcome.error is None and not outcome.stored for outcome in outcomes):
        warn(f"{counted(lost, 'index', 'indexes')} not kept: {loss_reason(pager.store)}")
    if publisher is not None:
        report_published(publisher, prune=prune, complete=complete)
    if not complete:
        raise typer.Exit(FAILED)


@contextmanager
def cleaned_up_on_sigterm() -> Iterator[None]:
    """End by an exception when the process is asked to end, so that temporary folders are removed."""

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def prepare_routing(pager: "SkillPager", texts: Sequence[str]) -> list["FoundSkill"]:
    """Return the skills below the folders among the arguments, or all known ones, ready to be routed to."""
    from skillpager.library import Library
    from skillpager.library.agent_folders import search_folders

    folders = [Path(text) for text in texts if Path(text).is_dir()]
    if not texts:
        folders = search_folders(pager.settings.skills_dir)
    library = Library(pager, folders)
    # an encoder that fails is reported with each skill that needs it
    with progress_bar("skills") as progress, suppress(EncoderError):
        library.prepare(progress)
    return library.found()


def find_targets(
    texts: Sequence[str], settings: "Settings", found: Sequence["FoundSkill"] = ()
) -> "list[Source]":
    """Return the skills that the arguments name, each once; a failed source for each that names none.

    Without arguments these are all known skills that are not shadowed.

    Args:
        texts: The arguments.
        settings: Settings of this process.
        found: The skills that a search of the folders among the arguments has found.

    Raises:
        SkillError: There are no arguments, and no skill is found anywhere.
    """
    from skillpager.bulk import failed_source, path_source, plain_path, source_of
    from skillpager.library import discover
    from skillpager.library.agent_folders import search_folders, shown_folders

    targets: dict[str, Source] = {}  # by address or real path

    def add(paths: Iterable[Path]) -> None:
        for path in paths:
            targets.setdefault(os.path.realpath(path), path_source(path, settings))

    for text in map(plain_path, texts):
        try:
            if source := source_of(text, settings):
                targets[text] = source
            else:
                add(_paths_below(text, settings, {skill.path for skill in found}))
        except SkillError as error:
            targets[text] = failed_source(text, text, error)
    if not texts:
        folders = search_folders(settings.skills_dir)
        add(skill.path for skill in found or discover(folders) if skill.shadowed_by is None)
        if not targets:
            raise SkillError(
                f"No skills found in {shown_folders(folders)}: name skill folders, Markdown files or "
                "folders that contain skills."
            )
    return list(targets.values())


def _paths_below(text: str, settings: "Settings", found: set[Path]) -> list[Path]:
    """Return the paths of the skills at or below the place that an argument names.

    Raises:
        SkillError: There is no such place, or no skill in it.
    """
    from skillpager.cli.session import find_skill
    from skillpager.library import discover
    from skillpager.parsing.skill import ENTRY_FILE, ENTRY_NAMES

    path = find_skill(text, settings)
    below = [path] if path in found else [place for place in found if path in place.parents]
    below = sorted(below) or [skill.path for skill in discover([path])]
    if not below and path.is_dir() and not any((path / name).exists() for name in ENTRY_NAMES):
        raise SkillError(f"There is no skill in or below {path}: a skill is a folder with a {ENTRY_FILE}.")
    return below or [path]  # a file that is not a skill: indexing it gives the error message


def _open_publisher(store: "Store", library: str, found: "Sequence[FoundSkill]") -> "Publisher":
    """Return what publishes the skills of this run in a library of a PostgreSQL store."""
    from skillpager.library.published import Publisher
    from skillpager.stores.postgres import PostgresStore

    assert isinstance(store, PostgresStore)
    return Publisher(store.library(library), found)


def report_published(publisher: "Publisher", *, prune: bool, complete: bool) -> None:
    """Print what was published; with `prune`, take the other skills out of the library before."""
    count = f"{counted(len(publisher.names), 'skill')} in the library {publisher.place}"
    note(f"{count}: {publisher.changed:,} new or changed")
    if prune and complete:
        removed = publisher.prune()
        note(f"{counted(len(removed), 'skill')} removed{': ' if removed else ''}{', '.join(removed)}")
    elif prune:
        warn("nothing is removed from the library, since some skills failed")


def publish_skill(publisher: "Publisher", pager: "SkillPager", outcome: "Outcome", skill: "Skill") -> None:
    """Publish a skill that was indexed.

    Published is all of it, so one of which only the body was indexed is read and indexed again.

    Raises:
        SkillError: It cannot be read again, or its name cannot be stored.
        StoreError: The store cannot be written.
    """
    from skillpager.indexing import index_key
    from skillpager.library import skill_faults
    from skillpager.parsing.skill import read_skill

    path, key = Path(outcome.place), outcome.key
    if pager.settings.scope == "body":
        if skill.root is None:
            raise SkillError(
                f"{outcome.place} cannot be published with the scope body: its other files are not here any "
                "more. Index it with --scope skill."
            )
        with skill_faults(path):
            skill = read_skill(path, max_bytes=pager.settings.max_bytes)
        key = index_key(skill, pager.recipe)
        if key != outcome.key:
            pager.index(skill)
    publisher.publish(skill, path, key)


def print_outcomes(outcomes: "Sequence[Outcome]", *, exact: bool, as_json: bool) -> None:
    """Print the indexed skills to stdout and the failures to stderr."""
    from skillpager.json_types import error_json

    indexed = [outcome for outcome in outcomes if outcome.error is None]
    failed = [(outcome.place, outcome.error) for outcome in outcomes if outcome.error is not None]
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
        print_json({"skills": skills, "failed": failures, "tokens_exact": exact})
    elif indexed:
        rows = []
        for outcome in indexed:
            tokens = f"{'' if exact else 'about '}{outcome.tokens:,}"
            took = "cached" if outcome.cached else f"{outcome.seconds:.2f} s"
            shown = took if outcome.stored else "not kept"  # evicted by those behind it
            rows.append([outcome.name, f"{outcome.nodes:,}", tokens, shown, outcome.place])
        print_table(["skill", "nodes", "tokens", "time", "path"], rows, right=["nodes", "tokens", "time"])
    warnings = [f"{outcome.name}: {warning}" for outcome in indexed for warning in outcome.warnings]
    warn_of_some(warnings, remedy="`skillpager library check` reports them by skill")
    for _, error in failed if as_json or is_verbose() else failed[:MAX_WARNINGS]:
        print_error(error, as_json=as_json)


def loss_reason(store: "Store") -> str:
    """Return in words why indexes that were stored are gone at the end of the run, and what to do."""
    from skillpager.stores.sqlite import SqliteStore

    if isinstance(store, SqliteStore) and store.max_bytes is not None:
        limit = byte_count(store.max_bytes)
        return f"the cache has room for {limit}. Raise the setting max_cache_bytes and index them again."
    return "they were deleted meanwhile. Index them again."


def summary(outcomes: "Sequence[Outcome]", *, seconds: float) -> str:
    """Return in one line what became of the skills, and how fast."""
    failed = sum(outcome.error is not None for outcome in outcomes)
    cached = sum(outcome.cached and outcome.error is None for outcome in outcomes)
    new = len(outcomes) - failed - cached
    parts = [f"{new:,} indexed", f"{cached:,} not changed", f"{failed:,} failed"]
    counts = ", ".join(part for part in parts if not part.startswith("0 "))
    speed = f", {new / seconds:.1f} a second" if new > 1 else ""
    return f"{counted(len(outcomes), 'skill')}: {counts}; {seconds:,.1f} s{speed}"
