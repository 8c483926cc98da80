"""`skillpager install`, `uninstall` and `stub`: into the agents that people already run."""

import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import UsageError, note, print_json, print_text, reported, warn
from skillpager.cli.options import AsJson, SkillArgument

if TYPE_CHECKING:
    from skillpager.install.changes import Change
    from skillpager.install.hosts import Host


def complete_agent(incomplete: str) -> list[str]:
    """Return the agents whose names begin with `incomplete`."""
    from skillpager.install.hosts import HOSTS

    return [host.name for host in HOSTS if host.name.startswith(incomplete)]


Agent = Annotated[
    str | None,
    typer.Option(
        "--agent",
        metavar="NAME",
        help="claude-code, claude-desktop, codex, cursor, gemini, vscode, windsurf or zed; without it, "
        "agents are listed.",
        autocompletion=complete_agent,
    ),
]
HostScope = Annotated[
    str,
    typer.Option("--scope", metavar="SCOPE", help="user: your own file. project: the current folder's."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the change and make none.")]


@reported
def install(
    agent: Agent = None,
    scope: HostScope = "user",
    skills_dirs: Annotated[
        list[Path] | None,
        typer.Option(
            "--skills-dir",
            metavar="DIR",
            help="Folder of skills to offer besides the conventional ones; may be repeated.",
        ),
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Add SkillPager's MCP server to an agent.

    The change of the agent's configuration file is printed, then you are asked. Everything else in the file
    stays as it is, to the character. Without --agent the known agents are listed.

    \b
    Examples:
      skillpager install
      skillpager install --agent claude-code --dry-run
      skillpager install --agent vscode --scope project --skills-dir examples/skills --yes
    """
    from skillpager.install import changes as host_files
    from skillpager.install.hosts import Places, file_of, find_host, own_command, server_entry

    if agent is None:
        _print_hosts(as_json=as_json)
        return
    host = find_host(agent)
    file = file_of(host, scope, Places())
    command = own_command(scope)
    entry = server_entry(host, command, skills_dirs=_folders(skills_dirs or []))
    change = host_files.plan_install(host, file, entry)
    _carry_out(change, host, keep=True, yes=yes, dry_run=dry_run, as_json=as_json)
    if scope == "project" and Path(command[0]).is_absolute():
        warn(f"{file} names {command[0]}, which others who share the project do not have.")
    if find_spec("mcp") is None:
        warn('The server needs the package "mcp": run `pip install "skillpager[mcp]"`.')


@reported
def uninstall(
    agent: Agent = None,
    scope: HostScope = "user",
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Take SkillPager's MCP server out of an agent.

    The file becomes what it was before `skillpager install`; if it has changed since, only the entry goes.

    \b
    Examples:
      skillpager uninstall
      skillpager uninstall --agent claude-code --dry-run
      skillpager uninstall --agent cursor --scope project --yes
    """
    from skillpager.install import changes as host_files
    from skillpager.install.hosts import Places, file_of, find_host

    if agent is None:
        _print_hosts(as_json=as_json)
        return
    host = find_host(agent)
    change = host_files.plan_uninstall(host, file_of(host, scope, Places()))
    _carry_out(change, host, keep=False, yes=yes, dry_run=dry_run, as_json=as_json)


@reported
def stub(
    skill: SkillArgument,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder of skills to write it to.", show_default=True)
    ] = Path(".claude/skills"),
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens", metavar="N", min=1, help="Ceiling on its pages. [4000 for a larger skill]"
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a skill that is no stub.")] = False,
) -> None:
    """Write a small skill that stands for SKILL and fetches pages of it.

    It has the name and description of SKILL; its body calls `skillpager page` with what the skill is asked
    for. Keep SKILL itself out of the folders where agents look for skills.

    \b
    Examples:
      skillpager stub examples/skills/postgres-backup
      skillpager stub examples/skills/git-bisect --out .agents/skills --max-tokens 2000
    """
    from skillpager.cli.session import STDIN, find_skill
    from skillpager.install.stubs import write_stub
    from skillpager.settings import load_settings

    if skill == STDIN:
        raise UsageError("A stub names its original by path: give a folder or file instead of -.")
    source = find_skill(skill, load_settings())
    file = write_stub(source, out, max_tokens=max_tokens, force=force)
    print_text(str(file))
    note(f"It names {source.resolve()}: write it anew if that moves, or its name or description changes.")
    if shutil.which("skillpager") is None:
        warn("`skillpager` is not on the search path of this shell, so agents will not find it either.")


def _carry_out(
    change: "Change", host: "Host", *, keep: bool, yes: bool, dry_run: bool, as_json: bool
) -> None:
    """Show a change, ask, and make it."""
    from skillpager.install import changes as host_files

    diff = host_files.shown(change)
    if as_json:
        print_json(
            {"agent": host.name, "file": str(change.path), "changed": not change.is_none, "diff": diff}
        )
    elif diff:
        print_text(diff)
    if change.is_none:
        state = "has SkillPager already" if keep else "does not have SkillPager"
        note(f"Nothing to do: {change.path} {state}.")
    elif not dry_run:
        _ask(change.path, yes=yes)
        host_files.write(change, keep=keep)
        note(f"{change.path} is changed: restart {host.title} if it runs.")


def _ask(path: Path, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            f"There is nobody to ask: add --yes to change {path}, or --dry-run to see the change."
        )
    typer.confirm(f"Change {path}?", abort=True, err=True)


def _folders(paths: Sequence[Path]) -> list[Path]:
    from skillpager.errors import SettingsError

    for path in paths:
        if not path.is_dir():
            raise SettingsError(f"{path} is not a folder: name folders that contain skills.")
    return [path.resolve() for path in paths]


def _print_hosts(*, as_json: bool) -> None:
    """Print which agents are known, which are here, and where SkillPager is installed."""
    from skillpager.cli.views import print_table
    from skillpager.errors import SettingsError
    from skillpager.install.changes import is_installed
    from skillpager.install.hosts import HOSTS, SCOPES, Places, file_of, is_used

    places = Places()
    rows: list[dict[str, str | bool]] = []
    for host in HOSTS:
        for scope in SCOPES:
            try:
                file = file_of(host, scope, places)
            except SettingsError:
                continue
            state = {"found": is_used(host, places), "installed": is_installed(host, file)}
            rows.append({"agent": host.name, "scope": scope, "file": str(file), **state})
    if as_json:
        print_json({"agents": rows})
        return
    words = {True: "yes", False: "no"}
    print_table(
        ["agent", "scope", "file", "found", "installed"],
        [[words[cell] if isinstance(cell, bool) else cell for cell in row.values()] for row in rows],
    )
    note("Choose one: skillpager install --agent NAME [--scope project] [--dry-run]")
