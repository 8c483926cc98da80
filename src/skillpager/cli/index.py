"""`skillpager index`: indexes many skills; one that fails does not stop the others."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import FAILED, print_error, print_json, reported, warn
from skillpager.cli.options import AsJson, PagerOptions
from skillpager.cli.views import print_table, progress_bar
from skillpager.errors import EncoderError, SkillError

if TYPE_CHECKING:
    from skillpager.bulk import Outcome, Source
    from skillpager.library import FoundSkill
    from skillpager.pager import SkillPager
    from skillpager.settings import Settings
    from skillpager.types import Skill


@reported
def index(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Skill folders, Markdown files, folders that contain skills, or names of known skills; "
            "archives (.zip, .skill, .tar.gz), tables of addresses (.csv, .jsonl), git+URL[@REF], "
            "s3://…, https://… "
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
            metavar="[ADDRESS]",
            help="Index on a Ray cluster: HOST:PORT, ray://HOST:PORT, or local for one that is started for "
            "the run. Without an address: the one of RAY_ADDRESS or of this machine, else local.",
        ),
    ] = None,
    options: PagerOptions,
    as_json: AsJson = False,
) -> None:
    """Index skills ahead of their first use.

    First the words and descriptions of all skills are stored, by which `skillpager route` finds them, then
    the nodes of each, from which pages are made. Skills that are in the cache and have not changed are
    skipped. A skill that cannot be indexed does not stop the others, but the exit code is then 1.

    \b
    Examples:
      skillpager index examples/skills
      skillpager index examples/skills/git-bisect examples/skills/postgres-backup/SKILL.md --json
    """
    from skillpager.cli.session import open_pager, report_estimates

    pager = open_pager(options, show_batches=False)
    pager.store.entries()  # a store that cannot be used is an error: better before the work than after it
    found = prepare_routing(pager, paths or [])
    outcomes = index_all(pager, find_targets(paths or [], pager.settings, found), jobs=jobs, ray=ray)
    if any(outcome.error is None for outcome in outcomes):
        report_estimates(pager.token_counter)
    print_outcomes(outcomes, exact=pager.token_counter.exact, as_json=as_json)
    if not all(outcome.stored for outcome in outcomes):
        raise typer.Exit(FAILED)


def prepare_routing(pager: "SkillPager", texts: Sequence[str]) -> list["FoundSkill"]:
    """Return the skills below the folders among the arguments, or all known ones, ready to be routed to."""
    from skillpager.folders.agents import search_folders
    from skillpager.library import Library

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
) -> "list[Path | Source | Outcome]":
    """Return the skills that the arguments name, each once; a failed outcome for each that names none.

    Without arguments these are all known skills that are not shadowed.

    Args:
        texts: The arguments.
        settings: Settings of this process.
        found: What a search of the folders among the arguments has found; they are not searched again.

    Raises:
        SkillError: There are no arguments, and no skill is found anywhere.
    """
    from skillpager.bulk import Outcome, Source, source_of
    from skillpager.cli.session import find_skill
    from skillpager.folders.agents import search_folders, shown_folders
    from skillpager.library import discover
    from skillpager.parsing.skill import ENTRY_FILE, ENTRY_NAMES

    targets: list[Path | Source | Outcome] = []
    places = {skill.path for skill in found}
    for text in texts:
        if source := source_of(text, settings):
            targets.append(source)
            continue
        try:
            path = find_skill(text, settings)
        except SkillError as error:
            targets.append(Outcome(text, text, error=error))
            continue
        # what is no folder of skills is passed on as it is: indexing it gives the error message
        below = [path] if path in places else [place for place in places if path in place.parents]
        below = sorted(below) or [skill.path for skill in discover([path])]
        if not below and path.is_dir() and not any((path / name).exists() for name in ENTRY_NAMES):
            bare = SkillError(
                f"There is no skill in or below {path}: a skill is a folder with a {ENTRY_FILE}."
            )
            targets.append(Outcome(str(path), text, error=bare))
            continue
        targets += below or [path]
    if not texts:
        folders = search_folders(settings.skills_dir)
        known = found or discover(folders)
        targets += [skill.path for skill in known if skill.shadowed_by is None]
        if not targets:
            raise SkillError(
                f"No skills found in {shown_folders(folders)}: name skill folders, Markdown files or "
                "folders that contain skills."
            )
    first: dict[str | int, Path | Source | Outcome] = {}
    for number, target in enumerate(targets):
        if isinstance(target, Source):  # two addresses may differ in what is not shown
            first[number] = target
        else:
            place = target if isinstance(target, Path) else target.place
            first.setdefault(os.path.realpath(place), target)
    return list(first.values())


def index_all(
    pager: "SkillPager",
    targets: "Sequence[Path | Source | Outcome]",
    *,
    jobs: int | None = None,
    ray: str | None = None,
) -> "list[Outcome]":
    """Index skills in parallel, with a progress bar; return their outcomes in the order of `targets`.

    Args:
        pager: The pager.
        targets: What `find_targets` returns.
        jobs: Number of workers.
        ray: Address of a Ray cluster; None to work on this machine.

    Raises:
        SkillPagerError: A fault that would fail every skill, such as a wrong setting.
    """
    from skillpager.bulk import Outcome, index_skills, local_place, ray_place
    from skillpager.bulk.sources import failed_source, path_source

    sources = []
    for target in targets:
        if isinstance(target, Outcome):
            assert target.error is not None
            sources.append(failed_source(target.place, target.name, target.error))
        else:
            sources.append(path_source(target, pager.settings) if isinstance(target, Path) else target)
    place = local_place(pager, jobs) if ray is None else ray_place(pager, ray, jobs)

    def report(_: "Outcome", skill: "Skill") -> None:
        for warning in skill.warnings:
            warn(f"{skill.name}: {warning}")

    with progress_bar("skills") as progress:
        return index_skills(pager, sources, place, progress=progress, finished=report)


def print_outcomes(outcomes: "Sequence[Outcome]", *, exact: bool, as_json: bool) -> None:
    """Print the indexed skills to stdout and the failures to stderr."""
    from skillpager.output.json import error_json

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
            shown = took if outcome.stored else "not kept"
            rows.append([outcome.name, f"{outcome.nodes:,}", tokens, shown, outcome.place])
        print_table(["skill", "nodes", "tokens", "time", "path"], rows, right=["nodes", "tokens", "time"])
    for _, error in failed:
        print_error(error, as_json=as_json)
