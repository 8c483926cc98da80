"""`skillpager install`, `uninstall` and `stub`: set up the agents on this machine."""

import shutil
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Annotated

import typer

from skillpager.cli.messages import confirm, note, print_text, reported, warn
from skillpager.cli.options import SkillArgument, SkillsDirs, Yes
from skillpager.cli.session import STDIN, find_skill
from skillpager.cli.views import print_table
from skillpager.errors import MissingExtraError, SettingsError, install_command
from skillpager.install import hosts, listing
from skillpager.install.changes import Change, diff, installed_entry, plan_install, plan_uninstall, write
from skillpager.install.hosts import Host, Places
from skillpager.install.stubs import write_stub
from skillpager.library.discovery import check_folders
from skillpager.settings import load_settings
from skillpager.tokens import default_counter

# of the server's tools and instructions, in a host's context (docs/hosts.md)
SERVER_TOKENS = 800


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """The agent whose configuration file is changed, and how."""

    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="NAME",
            help="amp, auggie, claude-code, claude-desktop, cline, codex, copilot, cursor, droid, gemini, "
            "kilo, kiro, opencode, qwen, vscode, windsurf or zed. [default: list them and change nothing]",
        ),
    ] = None
    scope: Annotated[
        str,
        typer.Option(
            metavar="SCOPE", help="user: your own configuration file. project: that of this folder."
        ),
    ] = "user"
    hook: Annotated[
        bool, typer.Option("--hook", help="Not the server, but a hook that shows a page with each prompt.")
    ] = False
    replace_listing: Annotated[
        bool,
        typer.Option(
            "--replace-listing",
            help="Also take your skills out of the list that Claude Code's model reads. With uninstall: only "
            "put them back.",
        ),
    ] = False
    yes: Yes = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the change without making it.")] = False


@reported
def install(
    options: InstallOptions,
    skills_dirs: SkillsDirs = None,
    project: Annotated[
        bool, typer.Option("--project", help="With --hook: it searches the project's folders of skills, too.")
    ] = False,
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
      skillpager install --agent claude-code --replace-listing --dry-run
    """
    if options.agent is None:
        _print_hosts(options)
        return
    _check_replace_listing(options)
    if project and not options.hook:
        raise SettingsError("--project needs --hook: the server searches the project's folders anyway.")
    folders = [folder.resolve() for folder in check_folders(skills_dirs or [])]
    host = hosts.find_host(options.agent, hook=options.hook)
    file = hosts.file_of(host, options.scope, Places())
    command = hosts.own_command(options.scope)
    now = installed_entry(host, file)
    if options.hook:
        entry = hosts.hook_entry(command, skills_dirs=folders, project=project, now=now)
    else:
        entry = hosts.server_entry(host, command, skills_dirs=folders, now=now)
    _make_change(plan_install(host, file, entry, private=options.scope == "user"), host, options)
    if options.scope == "project" and Path(command[0]).is_absolute():
        warn(f"{file} names {command[0]}, a path that other members of the project do not have.")
    if not options.hook and find_spec("mcp") is None:
        warn(f'The server needs the package "mcp": run `{install_command("mcp")}`.')
    if options.replace_listing:
        _replace_listing(options)


@reported
def uninstall(options: InstallOptions) -> None:
    """Remove SkillPager's MCP server from an agent, or with --hook its hook.

    Everything else in the agent's configuration file stays as it is. A file that is empty then is deleted.
    What --replace-listing changed is undone with the server, or alone with --replace-listing.

    \b
    Examples:
      skillpager uninstall
      skillpager uninstall --agent claude-code --dry-run
      skillpager uninstall --agent cursor --scope project --yes
    """
    if options.agent is None:
        _print_hosts(options)
        return
    _check_replace_listing(options)
    host = hosts.find_host(options.agent, hook=options.hook)
    settings = listing.settings_file(Places())
    with_listing = options.agent == listing.AGENT and options.scope == "user" and not options.hook
    # first, so that no skill is ever without both
    if options.replace_listing or (with_listing and listing.is_replaced(settings)):
        change = listing.plan_show(settings)
        if _is_agreed(change, options) or (change.is_none and not options.dry_run):
            listing.show(settings, change)
    if not options.replace_listing:
        _make_change(plan_uninstall(host, hosts.file_of(host, options.scope, Places())), host, options)


@reported
def stub(
    skill: SkillArgument,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder of skills to write the stub to.")
    ] = Path(".claude/skills"),
    max_tokens: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Longest page to ask for. [default: 4000 if it is longer]"),
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
    if skill == STDIN:
        raise SettingsError("A stub names its original by path: give a folder or file instead of -.")
    source = find_skill(skill, load_settings())
    file = write_stub(source, out, max_tokens=max_tokens, force=force)
    print_text(str(file))
    note(f"The stub names {source.resolve()}: write it again when its path, name or description changes.")
    if shutil.which("skillpager") is None:
        warn("`skillpager` is not on the PATH of this shell, so agents will probably not find it either.")


def _check_replace_listing(options: InstallOptions) -> None:
    """Refuse --replace-listing where it has no meaning."""
    if options.replace_listing and (
        options.agent != listing.AGENT or options.scope != "user" or options.hook
    ):
        raise SettingsError(
            f"--replace-listing is for --agent {listing.AGENT} with --scope user, without --hook: only this "
            "agent has a setting for it, and only the server offers the skills instead."
        )
    if options.replace_listing and find_spec("mcp") is None:
        raise MissingExtraError(
            'Without the package "mcp" no server would offer the skills that leave the list: run '
            f"`{install_command('mcp')}`."
        )


def _replace_listing(options: InstallOptions) -> None:
    """Take the user's skills out of the agent's list, and tell the tokens that this saves."""
    file, skills = listing.settings_file(Places()), listing.listed_skills(Places())
    change, record = listing.plan_hide(file, [skill.path.name for skill in skills])
    hidden = [skill for skill in skills if skill.path.name in set(record.names)]
    if _is_agreed(change, options):
        listing.hide(file, change, record)
    before = listing.listing_tokens(hidden, default_counter())
    note(
        f"The list of {len(hidden):,} of your skills took up to {before:,} tokens of each conversation; the "
        f"server takes about {SERVER_TOKENS:,}. You can still start each skill as a command."
    )
    note("Run this again for skills that you add; those of plugins and projects stay in the list.")


def _make_change(change: Change, host: Host, options: InstallOptions) -> None:
    if _is_agreed(change, options):
        write(change)
        note(f"{change.path} changed: restart {host.title} if it is running.")


def _is_agreed(change: Change, options: InstallOptions) -> bool:
    """Show a change and ask; return whether it is to be made."""
    print_text(diff(change))
    if change.is_none:
        note(f"Nothing to do: {change.path} is as it should be.")
        return False
    if not options.dry_run:
        remedy = f"add --yes to change {change.path}, or --dry-run to see the change"
        confirm(f"Change {change.path}?", yes=options.yes, remedy=remedy)
    return not options.dry_run


def _print_hosts(options: InstallOptions) -> None:
    """Print the known agents: whether they are on this machine, and whether they have SkillPager."""
    places = Places()
    rows = []
    for host, scope in product(hosts.HOOKS if options.hook else hosts.HOSTS, hosts.SCOPES):
        with suppress(SettingsError):  # it has no such file here
            file = hosts.file_of(host, scope, places)
            states = hosts.is_used(host, places), installed_entry(host, file) is not None
            rows.append([host.name, scope, str(file), *("yes" if state else "no" for state in states)])
    print_table(["agent", "scope", "file", "found", "installed"], rows)
    note("Choose one: skillpager install --agent NAME [--scope project] [--dry-run]")
