"""The `skillpager` command: the options of the whole program and the list of its commands.

Data goes to stdout, everything else to stderr. Exit codes: 0 success, 1 an error whose message says how to
fix it, 2 wrong usage, 130 interrupted.
"""

import difflib
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

# where each command is, in the order of `--help`
COMMANDS = {
    "index": "skillpager.cli.index:index",
    "page": "skillpager.cli.page:page",
    "route": "skillpager.cli.page:route",
    "ask": "skillpager.cli.page:ask",
    "outline": "skillpager.cli.outline:outline",
    "show": "skillpager.cli.outline:show",
    "graph": "skillpager.cli.outline:graph",
    "list": "skillpager.cli.library:list_skills",
    "library": "skillpager.cli.library:app",
    "doctor": "skillpager.cli.doctor:doctor",
    "mcp": "skillpager.cli.mcp:mcp",
    "serve": "skillpager.cli.serve:serve",
    "install": "skillpager.cli.install:install",
    "uninstall": "skillpager.cli.install:uninstall",
    "stub": "skillpager.cli.install:stub",
    "hook": "skillpager.cli.hook:hook",
    "cache": "skillpager.cli.cache:app",
    # named by a string, so that the benchmark may import the command line
    "bench": "skillpager.bench.cli.app:app",
}


@contextmanager
def _hinted(beginning: str, hint: str) -> Iterator[None]:
    """Append a hint to a usage error whose message begins so, unless it has one already."""
    try:
        yield
    except Exception as error:  # its class has no public name
        message = getattr(error, "message", "")
        if message.startswith(beginning) and "Did you mean" not in message:
            error.message = f"{message}{hint}"  # type: ignore[attr-defined]
        raise


class Command(TyperCommand):
    """A command that takes a query, of which users forget the quotes."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments and options of the command."""
        hint = ": put a query of several words in quotes" if "query" in (p.name for p in self.params) else ""
        with _hinted("Got unexpected extra argument", hint):
            return super().parse_args(ctx, args)


class CommandGroup(TyperGroup):
    """The commands, each imported when it is asked for: `page` does not wait for the others."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options of the whole program; `help` and `version` are other words for two of them."""
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        elif args == ["version"]:
            args = ["--version"]
        with _hinted("No such option", "; options of a command stand after its name"):
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return name, command and remaining arguments; an unknown name is answered with the known ones."""
        near = difflib.get_close_matches(args[0], COMMANDS, 1)
        hint = f" Did you mean {near[0]!r}?" if near else f" The commands are {', '.join(COMMANDS)}."
        with _hinted("No such command", hint):
            return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's signature
        """Return the names of the commands."""
        return [*COMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of this name, None if there is none."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.commands[cmd_name] = _import_command(cmd_name)
        return super().get_command(ctx, cmd_name)


def _import_command(name: str) -> Any:
    module, _, attribute = COMMANDS[name].partition(":")
    found = getattr(import_module(module), attribute)
    if isinstance(found, typer.Typer):
        group = get_group(found)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, cls=Command)(found)
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
    _open_closed_streams()
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
    finally:
        # the process ends: to look through all that was imported for garbage takes a tenth of a page's time
        gc.freeze()


def _open_closed_streams() -> None:
    """Open the standard streams that the caller has closed, with no input and no reader."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # takes the lowest free descriptor, that of the closed stream, and stays open to the end
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


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
    Exit codes: 0 success, 1 an error (the message says how to fix it), 2 wrong usage, 130 interrupted.
    Settings, strongest first: command-line options, SKILLPAGER_* variables, skillpager.toml in the
    current folder, the user's config.toml, defaults. `skillpager doctor` lists them.
    """
