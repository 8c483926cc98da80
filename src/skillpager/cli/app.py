"""The `skillpager` command: the options of the whole program and the list of its commands.

Data goes to stdout, everything else to stderr. Exit codes: 0 success, 1 it could not be done, 2 wrong usage
(a `SettingsError`, or what typer refuses), 130 interrupted.
"""

import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

# where each command is, in the order of `--help`
COMMANDS = {
    "index": "skillpager.cli.index:index",
    "page": "skillpager.cli.page:page",
    "route": "skillpager.cli.library:route",
    "ask": "skillpager.cli.library:ask",
    "outline": "skillpager.cli.page:outline",
    "show": "skillpager.cli.page:show",
    "enrich": "skillpager.cli.enrich:enrich",
    "list": "skillpager.cli.library:list_skills",
    "library": "skillpager.cli.library:app",
    "doctor": "skillpager.cli.doctor:doctor",
    "mcp": "skillpager.cli.serve:mcp",
    "serve": "skillpager.cli.serve:serve",
    "install": "skillpager.cli.install:install",
    "uninstall": "skillpager.cli.install:uninstall",
    "stub": "skillpager.cli.install:stub",
    "hook": "skillpager.cli.hook:hook",
    "cache": "skillpager.cli.cache:app",
    # named by a string, so that the benchmark may import the command line
    "bench": "skillpager.bench.cli.app:app",
}


class CommandGroup(TyperGroup):
    """The commands, each imported when it is asked for: `page` does not wait for the others."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's signature
        """Return the names of the commands."""
        return [*COMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of this name, None if there is none."""
        # with all of them at hand, typer answers a name that is not known with one that is near
        for name in [cmd_name] if cmd_name in COMMANDS else COMMANDS:
            if name not in self.commands:
                self.commands[name] = _import_command(name)
        return super().get_command(ctx, cmd_name)


def _import_command(name: str) -> Any:
    module, _, attribute = COMMANDS[name].partition(":")
    found = getattr(import_module(module), attribute)
    if isinstance(found, typer.Typer):
        group = get_group(found)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name)(found)
    return get_command(alone)


# without rich's boxes help is half as long, which counts for agents, and starts faster
app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def main() -> None:
    """Run the command line and exit."""
    # products of matrices are small here: threads take longer to start than they save, most of all under load
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        # pages are UTF-8 in every locale; a file name that is not UTF-8 is written as it was read
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    try:
        app(prog_name="skillpager")
    except SystemExit:
        if sys.argv[1:2] != ["hook"]:
            raise
        # to an agent any other exit code of a hook than 0 is an error, and 2, that of wrong usage, a refusal
        # of the prompt; the message is on stderr
        raise SystemExit(0) from None


def _print_version(value: bool) -> None:
    if value:
        from skillpager.cli.doctor import package_version
        from skillpager.cli.messages import print_text

        print_text(f"skillpager {package_version()}")
        raise typer.Exit


@app.callback()
def skillpager(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Print the part of a skill that an agent needs for a task, instead of the whole skill.

    A skill is a folder with a SKILL.md, or any Markdown file. It is indexed on first use and the index
    is cached. Data goes to stdout, notes and errors go to stderr.

    \b
    Examples:
      skillpager page examples/skills/postgres-backup "restore one table from a dump"
      skillpager outline examples/skills/git-bisect
      skillpager list examples/skills

    \b
    Exit codes: 0 success, 1 it could not be done (a message says why), 2 wrong usage, 130 interrupted.
    Settings, strongest first: command-line options, SKILLPAGER_* variables, skillpager.toml in the
    current folder, the user's config.toml, defaults. `skillpager doctor` lists them.
    """
