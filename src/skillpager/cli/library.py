"""`skillpager library`: what concerns many skills at once; so far their check."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.list import check_folders
from skillpager.cli.messages import FAILED, UsageError, confirm, note, print_json, print_text, reported
from skillpager.cli.options import AsJson, LibraryName, PagerOptions, SearchedFolders, StoreAddress, Yes
from skillpager.cli.views import counted, progress_bar

if TYPE_CHECKING:
    from skillpager.library.skill_checks import Kind, Limits

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def library() -> None:
    """Check a library of skills, or take skills out of a published one."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Kinds of findings that are left out, and where findings begin; what is not given is the default."""

    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND", help="Leave out findings of this kind, such as licence. May be repeated."
        ),
    ] = None
    max_description: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Most characters of a description. [default: 1024]")
    ] = None
    max_lines: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Most lines of a SKILL.md. [default: 500]")
    ] = None
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Most tokens of its text. [default: 5000]")
    ] = None
    near_copy: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0.3,
            max=1.0,
            help="Least share of common text in near-copies. [default: 0.8]",
        ),
    ] = None
    overlap: Annotated[
        float | None,
        typer.Option(
            metavar="COSINE",
            min=0.5,
            max=1.0,
            help="Least similarity of descriptions that overlap. [default: 0.8]",
        ),
    ] = None

    def kinds(self) -> "list[Kind]":
        """Return the kinds that are left out; a `UsageError` names one that there is not."""
        from skillpager.library.skill_checks import Kind

        unknown = sorted(set(self.ignore or ()) - set(Kind))
        if unknown:
            raise UsageError(f"There is no kind {unknown[0]!r} of findings: the kinds are {', '.join(Kind)}.")
        return [Kind(kind) for kind in self.ignore or ()]

    def limits(self) -> "Limits":
        """Return the limits of the check."""
        from skillpager.library.skill_checks import Limits

        default = Limits()
        return Limits(
            description=self.max_description or default.description,
            body_lines=self.max_lines or default.body_lines,
            body_tokens=self.max_tokens or default.body_tokens,
            near_copy=self.near_copy or default.near_copy,
            overlap=self.overlap or default.overlap,
        )


@app.command()
@reported
def check(folders: SearchedFolders = None, *, options: CheckOptions, as_json: AsJson = False) -> None:
    """Check skills as their authors would before others use them.

    Found are departures from the Agent Skills specification, dead links, files that are too long, missing
    licences, copies, skills that take each other's queries, and descriptions that hosts
    have no room for; each with file, line and remedy. The exit code is 1 if there are errors, 0 if there
    are only warnings. docs/library-check.md describes every kind.

    \b
    Examples:
      skillpager library check examples/skills --ignore front-matter
      skillpager library check examples/skills/git-bisect --max-lines 400 --json
    """
    from skillpager.cli.session import report_estimates
    from skillpager.json_types import to_json
    from skillpager.library.agent_folders import search_folders, shown_folders
    from skillpager.library.checks import check_library
    from skillpager.settings import load_settings
    from skillpager.tokens import default_counter

    check_folders(folders or [])
    ignored, limits = options.kinds(), options.limits()
    places = folders or search_folders(load_settings().skills_dir)
    report_estimates(default_counter())
    with progress_bar("skills") as progress:
        checked = check_library(places, limits=limits, ignore=ignored, progress=progress)
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
    from skillpager.cli.session import choose_settings, library_name, open_store
    from skillpager.library.published import remove_published
    from skillpager.stores.postgres import PostgresStore

    settings = choose_settings(PagerOptions(store=store, library=library))
    name = library_name(settings)
    if name is None:
        raise UsageError("There is no library: name a PostgreSQL database with --store.")
    opened = open_store(settings)
    assert isinstance(opened, PostgresStore)
    shelf = opened.library(name)
    confirm(
        f"Take {counted(len(names), 'skill')} out of the library {shelf.place}?",
        yes=yes,
        remedy="add --yes to remove them",
    )
    note(f"removed: {', '.join(remove_published(shelf, names))}")
