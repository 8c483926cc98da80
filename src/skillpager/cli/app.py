"""The `skillpager` command: the options of the whole program and the list of its commands.

Data goes to stdout, everything else to stderr. Exit codes: 0 success, 1 an error whose message says how to
fix it, 2 wrong usage, 130 interrupted.
"""

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from skillpager.cli import cache
from skillpager.cli.doctor import doctor, package_version
from skillpager.cli.graph import graph
from skillpager.cli.index import index
from skillpager.cli.install import install, stub, uninstall
from skillpager.cli.list import list_skills
from skillpager.cli.mcp import mcp
from skillpager.cli.messages import print_text
from skillpager.cli.page import outline, page, show
from skillpager.cli.serve import serve

# without rich's boxes help is half as long, which counts for agents, and starts faster
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def main() -> None:
    """Run the command line and exit."""
    for stream in (sys.stdout, sys.stderr):
        # pages are UTF-8 in every locale; a file name that is not UTF-8 is written as it was read
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    app(prog_name="skillpager")


def _print_version(value: bool) -> None:
    if value:
        print_text(f"skillpager {package_version()}")
        raise typer.Exit


@app.callback()
def skillpager(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
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


class BenchGroup(TyperGroup):
    """The commands of `skillpager bench`, imported when one of them is asked for.

    They are named by a string, so that the benchmark may import the command line, and `skillpager --help`
    does not wait for the benchmark.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        self._load()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of this name, None if there is none."""
        self._load()
        return super().get_command(ctx, cmd_name)

    def _load(self) -> None:
        if not self.commands:
            self.commands.update(get_group(import_module("skillpager.bench.cli.app").app).commands)


bench_app = typer.Typer(cls=BenchGroup, no_args_is_help=True, rich_markup_mode=None)


@bench_app.callback()
def bench() -> None:
    """Compare methods on skills and queries: IntraSkill-Bench.

    Needs `pip install "skillpager[bench]"`.
    """


for command in (index, page, outline, show, graph):
    app.command()(command)
app.command(name="list")(list_skills)
for command in (doctor, mcp, serve, install, uninstall, stub):
    app.command()(command)
app.add_typer(cache.app, name="cache")
app.add_typer(bench_app, name="bench")
