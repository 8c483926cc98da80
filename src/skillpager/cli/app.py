"""The command line: `index page outline show graph list mcp serve install stub cache bench doctor`.

Data goes to stdout, all else to stderr. Exit codes: 0 fine, 1 a mistake that the message tells how
to mend, 2 wrong usage, 130 interrupted.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from skillpager.bench.cli import app as cli_bench
from skillpager.cli import cache as cli_cache
from skillpager.cli import install as cli_hosts
from skillpager.cli import mcp as cli_mcp
from skillpager.cli import page as cli_skill
from skillpager.cli import serve as cli_serve
from skillpager.cli.messages import FAILED, print_text, reported
from skillpager.cli.options import (
    AsJson,
    CacheDir,
    ClassifierName,
    EncoderName,
    Scope,
)

# without rich's boxes help is half as long, which counts for agents, and starts faster
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

# the encoder itself uses every processor; a second skill fills the time in which the first is split
DEFAULT_JOBS = 2


def main() -> None:
    """Run the command line and exit."""
    for stream in (sys.stdout, sys.stderr):
        # pages are UTF-8 wherever they go; a file name that is not UTF-8 goes out as it came in
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    app(prog_name="skillpager")


def _print_version(value: bool) -> None:
    if value:
        from skillpager.cli.doctor import package_version

        print_text(f"skillpager {package_version()}")
        raise typer.Exit


@app.callback()
def skillpager(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Print the part of a skill that suffices for a query, instead of the whole skill.

    A skill is a folder with a SKILL.md, or any Markdown file. It is indexed on first use; the index
    is kept in a cache. Data goes to stdout, notes and errors to stderr.

    \b
    Examples:
      skillpager page examples/skills/postgres-backup "restore one table from a dump"
      skillpager outline examples/skills/git-bisect
      skillpager list examples/skills

    \b
    Exit codes: 0 fine, 1 an error that the message tells how to mend, 2 wrong usage, 130 interrupted.
    Settings: options, then SKILLPAGER_* variables, then skillpager.toml in the current folder, then
    the user's config.toml, then defaults; `skillpager doctor` lists them.
    """


@app.command()
@reported
def index(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Skill folders, Markdown files, folders that contain skills, or names of known skills; "
            "without any, all known skills.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", metavar="N", min=1, help="Skills to work on at a time.")
    ] = DEFAULT_JOBS,
    scope: Scope = None,
    encoder: EncoderName = None,
    classifier: ClassifierName = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Index skills ahead of their first use.

    What is in the store and has not changed is skipped. A skill that cannot be indexed does not stop
    the others; the exit code is then 1.

    \b
    Examples:
      skillpager index examples/skills
      skillpager index examples/skills/git-bisect examples/skills/postgres-backup/SKILL.md --json
    """
    from skillpager.cli import index as cli_index
    from skillpager.cli.session import open_pager, tell_estimates

    pager = open_pager(encoder=encoder, classifier=classifier, cache_dir=cache_dir, tell_batches=False)
    targets = cli_index.find_targets(paths or [], pager.settings)
    outcomes = cli_index.index_all(pager, targets, scope=scope, jobs=jobs)
    tell_estimates(pager)
    cli_index.report(outcomes, exact=pager.token_counter.exact, as_json=as_json)
    if not all(outcome.kept for outcome in outcomes):
        raise typer.Exit(FAILED)


for command in (cli_skill.page, cli_skill.outline, cli_skill.show, cli_skill.graph):
    app.command()(command)


@app.command(name="list")
@reported
def list_skills(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DIR", help="Folders to look in; the conventional ones by default.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the skills below the folders, or in the conventional places.

    Those are SKILLPAGER_SKILLS_DIR, then .agents/skills and .claude/skills of the current folder, then
    of your home folder. The first skill of a name is the one in use.

    \b
    Examples:
      skillpager list examples/skills
      skillpager list --json
    """
    from skillpager.cli import list as cli_list

    cli_list.print_found(cli_list.find(folders or []), as_json=as_json)


@app.command()
@reported
def doctor(
    encoder: EncoderName = None,
    classifier: ClassifierName = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Tell what is installed and set, and try whether paging works.

    The exit code is 1 if it does not.

    \b
    Examples:
      skillpager doctor
      skillpager doctor --json
    """
    from skillpager.cli.doctor import diagnose, print_diagnosis
    from skillpager.cli.session import choose_settings

    diagnosis = diagnose(choose_settings(encoder=encoder, classifier=classifier, cache_dir=cache_dir))
    print_diagnosis(diagnosis, as_json=as_json)
    if not diagnosis.healthy:
        raise typer.Exit(FAILED)


for command in (cli_mcp.mcp, cli_serve.serve, cli_hosts.install, cli_hosts.uninstall, cli_hosts.stub):
    app.command()(command)
app.add_typer(cli_cache.app, name="cache")
app.add_typer(cli_bench.app, name="bench")
