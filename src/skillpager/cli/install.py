"""`skillpager install`, `uninstall` and `stub`: set up the agents on this machine."""

import shutil
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from skillpager.cli.messages import UsageError, confirm, note, print_json, print_text, reported, warn
from skillpager.cli.options import AsJson, SkillArgument, SkillsDirs, Yes, completion
from skillpager.cli.views import print_table
from skillpager.errors import SettingsError, install_command
from skillpager.install.changes import Change, diff, installed_entry, plan_install, plan_uninstall, write
from skillpager.install.hosts import (
    HOOKS,
    HOSTS,
    SCOPES,
    Host,
    Places,
    file_of,
    find_host,
    hook_entry,
    is_used,
    own_command,
    server_entry,
)


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """The agent whose configuration file is changed, and how."""

    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="NAME",
            help="amp, auggie, claude-code, claude-desktop, cline, codex, copilot, cursor, droid, gemini, "
            "kilo, kiro, opencode, qwen, vscode, windsurf or zed. [default: list the agents and change "
            "nothing]",
            autocompletion=completion("skillpager.install.hosts", "AGENTS"),
        ),
    ] = None
    scope: Annotated[
        str,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="user: your own configuration file. project: the one in the current folder.",
        ),
    ] = "user"
    hook: Annotated[
        bool,
        typer.Option(
            "--hook",
            help="Instead of the server: the hook that shows the agent a page with each prompt "
            "(claude-code; see `skillpager hook --help`).",
        ),
    ] = False
    yes: Yes = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the change without making it.")] = False
    as_json: AsJson = False


@reported
def install(
    options: InstallOptions,
    skills_dirs: SkillsDirs = None,
) -> None:
    """Add SkillPager's MCP server to an agent, or with --hook a hook.

    Prints the change to the agent's configuration file and asks before making it. Everything else in the
    file, comments and formatting included, stays as it is. Run again, it renews the command and keeps what
    you added to the entry. Without --agent it lists the known agents.

    \b
    Examples:
      skillpager install
      skillpager install --agent claude-code --dry-run
      skillpager install --agent vscode --scope project --skills-dir examples/skills --yes
      skillpager install --agent claude-code --hook --dry-run
    """
    if options.agent is None:
        _print_hosts(options)
        return
    for folder in skills_dirs or []:
        if not folder.is_dir():
            raise SettingsError(f"{folder} is not a folder: name folders that contain skills.")
    folders = [folder.resolve() for folder in skills_dirs or []]
    host = find_host(options.agent, hook=options.hook)
    file = file_of(host, options.scope, Places())
    command = own_command(options.scope)
    now = installed_entry(host, file)
    if options.hook:
        entry = hook_entry(command, skills_dirs=folders, now=now)
    else:
        entry = server_entry(host, command, skills_dirs=folders, now=now)
    change = plan_install(host, file, entry, private=options.scope == "user")
    _make_change(change, host, options, keep=True)
    if options.scope == "project" and Path(command[0]).is_absolute():
        warn(f"{file} names {command[0]}, a path that other members of the project do not have.")
    if not options.hook and find_spec("mcp") is None:
        warn(f'The server needs the package "mcp": run `{install_command("mcp")}`.')


@reported
def uninstall(options: InstallOptions) -> None:
    """Remove SkillPager's MCP server from an agent, or with --hook its hook.

    The configuration file is restored to what it was before `skillpager install`. If it was changed since,
    only SkillPager's entry is removed.

    \b
    Examples:
      skillpager uninstall
      skillpager uninstall --agent claude-code --dry-run
      skillpager uninstall --agent cursor --scope project --yes
    """
    if options.agent is None:
        _print_hosts(options)
        return
    host = find_host(options.agent, hook=options.hook)
    change = plan_uninstall(host, file_of(host, options.scope, Places()))
    _make_change(change, host, options, keep=False)
    for hook in [] if options.hook else [each for each in HOOKS if each.name == host.name]:
        if installed_entry(hook, file_of(hook, options.scope, Places())):
            warn(f"The hook stays: `skillpager uninstall --agent {hook.name} --hook` removes it.")


@reported
def stub(
    skill: SkillArgument,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Folder of skills to write the stub to."),
    ] = Path(".claude/skills"),
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens",
            metavar="N",
            min=1,
            help="Longest page that the stub asks for. [default: 4000 if the skill is longer]",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a skill of the same name that is not a stub.")
    ] = False,
) -> None:
    """Write a stub: a small skill that fetches pages of SKILL.

    The stub has the name and description of SKILL. Its body runs `skillpager page` with the task that the
    agent uses the skill for. Keep SKILL itself out of the folders in which agents look for skills.

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
    note(
        f"The stub names {source.resolve()}: write it again if that path or the skill's name or description "
        "changes."
    )
    if shutil.which("skillpager") is None:
        warn("`skillpager` is not on the PATH of this shell, so agents will probably not find it either.")


def _make_change(change: Change, host: Host, options: InstallOptions, *, keep: bool) -> None:
    """Show a change, ask, and make it; warn if the agent's file of the other scope has an entry, too."""
    shown = diff(change)
    if options.as_json:
        print_json(
            {"agent": host.name, "file": str(change.path), "changed": not change.is_none, "diff": shown}
        )
    elif shown:
        print_text(shown)
    if change.is_none:
        state = "already has SkillPager" if keep else "does not have SkillPager"
        note(f"Nothing to do: {change.path} {state}.")
    elif not options.dry_run:
        remedy = f"add --yes to change {change.path}, or --dry-run to see the change"
        confirm(f"Change {change.path}?", yes=options.yes, remedy=remedy)
        write(change, keep=keep)
        note(f"{change.path} changed: restart {host.title} if it is running.")
    for scope, file in _files(host, Places()):
        if scope != options.scope and installed_entry(host, file) is not None:
            both = "runs both" if options.hook else "starts one of the two, most agents the project's"
            flag = " --hook" if options.hook else ""
            warn(
                f"{file} has an entry for SkillPager too, and an agent {both}: `skillpager uninstall --agent "
                f"{host.name} --scope {scope}{flag}` removes it."
            )


def _files(host: Host, places: Places) -> list[tuple[str, Path]]:
    """Return the files in which an agent may have an entry, by scope."""
    found = []
    for scope in SCOPES:
        with suppress(SettingsError):  # it has no such file here
            found.append((scope, file_of(host, scope, places)))
    return found


def _print_hosts(options: InstallOptions) -> None:
    """Print the known agents: whether they are on this machine, and whether they have SkillPager."""
    places = Places()
    rows: list[dict[str, str | bool]] = []
    for host in HOOKS if options.hook else HOSTS:
        for scope, file in _files(host, places):
            state = {"found": is_used(host, places), "installed": installed_entry(host, file) is not None}
            rows.append({"agent": host.name, "scope": scope, "file": str(file), **state})
    if options.as_json:
        print_json({"agents": rows})
        return
    words = {True: "yes", False: "no"}
    print_table(
        ["agent", "scope", "file", "found", "installed"],
        [[words[cell] if isinstance(cell, bool) else cell for cell in row.values()] for row in rows],
    )
    note("Choose one: skillpager install --agent NAME [--scope project] [--dry-run]")
