"""Agents, really run: installs each in a prefix of its own, runs `skillpager install`, asks for its servers.

    python benchmarks/hosts.py [--prefix DIR] [--only NAME,NAME] [--latest] [--sessions] [--write]

Programs come from the npm registry (a Node.js of version 20 or later), without a login, and run with a home
folder that is deleted afterwards. `--sessions` also runs a page end to end, against a scripted model.
`--write` puts the tables into docs/hosts.md. `--prefix` keeps the programs for the next time.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from host_sessions import Session, claude_code, codex, private_environment, run_session
from skillpager.install.hosts import HOSTS, SCOPES, Places, file_of, find_host
from skillpager.mcp.tools import TOOLS

ROOT = Path(__file__).parent.parent
SKILLS = ROOT / "examples" / "skills"
PAGE = ROOT / "docs" / "hosts.md"
INSTALL_SECONDS = 600
# an agent starts the server to ask it; on a busy machine that takes a while
ASK_SECONDS = 90
TRIES = 5
# a row of the sessions: characters of the call, its result and what the host puts beside them
CALLED = "characters that the first call added to the conversation"
ANSI = re.compile(r"\x1b\[[0-9;]*m")
# kinds of answers: what the agent says about the server
AGREED = re.compile(r"\bconnected|^listed", re.IGNORECASE)
# on a busy machine some agents do not wait for the server: they are asked again
WAITING = re.compile(r"connecting|disconnected|failed", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Program:
    """An agent's program, and how it is asked.

    Attributes:
        agent: Its name for `skillpager install`.
        package: Its npm package.
        version: The version that was checked.
        program: Name of its command.
        ask: The arguments that make it list its servers.
        answer: Finds what it says about the server, as the group `state`.
        connects: Whether it starts the server for the answer; some only list what is configured.
        trust: Makes it trust a folder, given home and project.
    """

    agent: str
    package: str
    version: str
    program: str
    ask: tuple[str, ...]
    answer: str
    connects: bool = True
    trust: Callable[[Path, Path], None] | None = None


def trust_in_gemini(home: Path, project: Path) -> None:
    """Write the list in which Gemini CLI has the folders that its user trusts."""
    file = home / ".gemini" / "trustedFolders.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({str(project): "TRUST_FOLDER"}))


def trust_in_codex(home: Path, project: Path) -> None:
    """Write what Codex writes when its user trusts a project."""
    file = home / ".codex" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    with file.open("a") as config:
        config.write(f'\n[projects."{project}"]\ntrust_level = "trusted"\n')


def trust_in_claude_code(home: Path, project: Path) -> None:
    """Write what Claude Code writes when its user trusts a folder and approves its server."""
    file = home / ".claude.json"
    data = json.loads(file.read_text()) if file.exists() else {}
    agreed = {"hasTrustDialogAccepted": True, "enabledMcpjsonServers": ["skillpager"]}
    data.setdefault("projects", {}).setdefault(str(project), {}).update(agreed)
    file.write_text(json.dumps(data))


def trust_in_copilot(home: Path, project: Path) -> None:
    """Write the list in which Copilot CLI has the folders that its user trusts."""
    file = home / ".copilot" / "config.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"trusted_folders": [str(project)]}))


LINE = r"skillpager: .* - (?P<state>.+)"
PROGRAMS = (
    Program(
        *("claude-code", "@anthropic-ai/claude-code", "2.1.197", "claude", ("mcp", "list"), LINE),
        trust=trust_in_claude_code,
    ),
    Program("codex", "@openai/codex", "0.169.0", "codex", ("app-server",), "", trust=trust_in_codex),
    Program("gemini", "@google/gemini-cli", "0.61.0", "gemini", ("mcp", "list"), LINE, trust=trust_in_gemini),
    Program("qwen", "@qwen-code/qwen-code", "0.15.10", "qwen", ("mcp", "list"), LINE),
    Program("opencode", "opencode-ai", "1.18.33", "opencode", ("mcp", "list"), r"skillpager (?P<state>\w+)"),
    Program("droid", "droid", "0.215.0", "droid", ("mcp", "list"), r"skillpager\s+stdio\s+(?P<state>\w+)"),
    Program(
        *("copilot", "@github/copilot", "1.0.102", "copilot", ("mcp", "list")),
        *(r"(?P<state>skillpager) \(local\)", False, trust_in_copilot),
    ),
    Program(
        *("auggie", "@augmentcode/auggie", "0.36.0", "auggie", ("mcp", "list")),
        *(r"(?P<state>skillpager)\s+stdio", False),
    ),
    Program(
        *("amp", "@ampcode/cli", "0.0.1790142911-g7618fb", "amp", ("mcp", "list")),
        *(r"(?P<state>skillpager)\s+command", False),
    ),
    Program("kilo", "@kilocode/cli", "7.7.7", "kilo", ("mcp", "list"), r"skillpager (?P<state>\w+)"),
    Program("cline", "cline", "3.0.65", "cline", (), "", False),
)
SESSIONS: Mapping[str, Callable[[Path, Path], tuple[list[str], dict[str, str]]]] = {
    "claude-code": claude_code,
    "codex": codex,
}


@dataclass
class Result:
    """What happened with an agent: its version, answers by the scope of the entry, and its session."""

    agent: str
    version: str = ""
    answers: dict[str, str] = field(default_factory=dict)
    session: Session | None = None


def main() -> None:
    """Run, print, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--prefix", type=Path, help="folder for the programs; default: a temporary one")
    parser.add_argument("--only", default="", help="agents, with commas; other rows stay")
    parser.add_argument("--latest", action="store_true", help="the newest versions instead of those checked")
    parser.add_argument("--sessions", action="store_true", help="run a page end to end, too")
    parser.add_argument("--write", action="store_true", help="write the tables of docs/hosts.md")
    options = parser.parse_args()
    wanted = [name for name in options.only.split(",") if name]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        prefix = (options.prefix or Path(folder)).resolve()
        for program in PROGRAMS:
            if not wanted or program.agent in wanted:
                results.append(check(program, prefix, latest=options.latest, sessions=options.sessions))
                print(f"{program.agent}: {results[-1].version} {results[-1].answers}", file=sys.stderr)
    blocks = {"hosts": hosts_table(results, rows_now() if wanted else {})}
    if options.sessions and sum(result.session is not None for result in results) == len(SESSIONS):
        blocks["sessions"] = sessions_table(results)
    for block in blocks.values():
        print(block)
    if options.write:
        write_blocks(blocks)


def check(program: Program, prefix: Path, *, latest: bool = False, sessions: bool = False) -> Result:
    """Install a program, ask it in each scope, and run its session."""
    result = Result(program.agent)
    command = npm_install(program, prefix, latest=latest)
    if command is None:
        result.answers["user"] = "npm could not install it"
        return result
    host = find_host(program.agent)
    for scope in SCOPES if host.project and program.ask else SCOPES[:1]:
        with private_home() as (home, project):
            result.version = result.version or version_of(command, home)
            install(program.agent, scope, home, project)
            result.answers[scope] = ask(program, command, home, project)
            if "no answer" in result.answers[scope]:
                break
            if program.trust and not AGREED.search(result.answers[scope]):
                program.trust(home, project)
                answer = ask(program, command, home, project)
                result.answers[scope] += f"; once it is approved: {answer}"
    if sessions and program.agent in SESSIONS:
        with private_home() as (home, project):
            install(program.agent, "user", home, project)
            result.session = run_session(*SESSIONS[program.agent](command, home), project)
    return result


def npm_install(program: Program, prefix: Path, *, latest: bool = False) -> Path | None:
    """Return the path of a program, installed if it is not there; None if npm fails."""
    folder = prefix / program.agent
    command = folder / "node_modules" / ".bin" / program.program
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is not installed: the agents come from its registry.")
    if not command.exists() or latest:
        folder.mkdir(parents=True, exist_ok=True)
        package = f"{program.package}@{'latest' if latest else program.version}"
        done = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), package],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
        if done.returncode:
            print(done.stderr[-1_000:], file=sys.stderr)
    return command if command.exists() else None


@contextmanager
def private_home() -> Iterator[tuple[Path, Path]]:
    """Make a home folder and an empty project, deleted at the end."""
    folder = Path(tempfile.mkdtemp(prefix="skillpager-host-"))
    home, project = folder / "home", folder / "project"
    home.mkdir()
    project.mkdir()
    try:
        yield home, project
    finally:
        # an agent may still write while it ends
        shutil.rmtree(folder, ignore_errors=True)


def install(agent: str, scope: str, home: Path, project: Path) -> None:
    """Run `skillpager install` for an agent."""
    arguments = ["install", "--agent", agent, "--scope", scope, "--skills-dir", str(SKILLS), "--yes"]
    subprocess.run(
        [sys.executable, "-m", "skillpager", *arguments],
        env=private_environment(home),
        cwd=project,
        check=True,
        capture_output=True,
    )


def version_of(command: Path, home: Path) -> str:
    """Return the version that a program says it has."""
    said = run([str(command), "--version"], home, home) or ""
    found = re.search(r"\d+\.\d+\.\d+(?:-\w+)?", said)
    return found[0] if found else ""


def ask(program: Program, command: Path, home: Path, project: Path) -> str:
    """Return what an agent says about the server."""
    if program.agent == "codex":
        answer = ask_codex(command, home, project)
        listed = re.search(r"^skillpager\s", run([str(command), "mcp", "list"], home, project) or "", re.M)
        # it starts the servers of a project only in a conversation
        return "listed" if answer == "not listed" and listed else answer
    if not program.ask:
        return compare_cline(command, home, project)
    for attempt in range(TRIES):
        said = run([str(command), *program.ask], home, project)
        if said is None:
            return f"no answer within {ASK_SECONDS} s"
        found = re.search(program.answer, said)
        state = found["state"].strip() if found else ""
        if state and not WAITING.search(state):
            return state if program.connects else "listed"
        time.sleep(attempt)
    return state or "not listed"


def ask_codex(command: Path, home: Path, project: Path) -> str:
    """Ask Codex by the protocol of its editors: `codex mcp list` does not connect."""
    messages = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "hosts", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "mcpServerStatus/list", "params": {}},
    ]
    with start([str(command), "app-server"], home, project, stdin=subprocess.PIPE) as process:
        limit = threading.Timer(ASK_SECONDS, process.kill)
        limit.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("".join(json.dumps(message) + "\n" for message in messages))
            process.stdin.flush()
            for line in process.stdout:
                answer = json.loads(line)
                if answer.get("id") == 2:
                    servers = answer.get("result", {}).get("data", [])
                    tools = [tool for server in servers for tool in server.get("tools", {})]
                    if tools and len(tools) != len(TOOLS):
                        return f"connected, {len(tools)} of {len(TOOLS)} tools"
                    return "connected" if tools else "not listed"
        finally:
            limit.cancel()
            process.kill()
    return "no answer"


def compare_cline(command: Path, home: Path, project: Path) -> str:
    """Let Cline, which has no command that lists servers, add another one: file and form must be ours."""
    run([str(command), "mcp", "install", "probe", "--yes", "--", "/bin/echo", "a"], home, project)
    file = file_of(find_host("cline"), "user", Places(home=home, project=project, environ={}))
    servers = json.loads(file.read_text())["mcpServers"]
    ours, theirs = servers.get("skillpager", {}), servers.get("probe", {})
    same = set(theirs) == set(ours) and set(theirs["transport"]) == set(ours["transport"]) - {"env"}
    return "not asked; its own command writes the same file and form" if same else "writes another form"


def run(command: Sequence[str], home: Path, project: Path) -> str | None:
    """Return what a program prints, without colors; None if it does not end in time."""
    with start(command, home, project, stderr=subprocess.STDOUT) as process:
        try:
            said, _ = process.communicate(timeout=ASK_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return None
    return ANSI.sub("", said)


def start(
    command: Sequence[str],
    home: Path,
    project: Path,
    *,
    stdin: int = subprocess.DEVNULL,
    stderr: int = subprocess.DEVNULL,
) -> "subprocess.Popen[str]":
    """Start a program in a project, with this home folder and no keys; its output can be read."""
    return subprocess.Popen(
        command,
        env=private_environment(home),
        cwd=project,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        encoding="utf-8",
        errors="replace",
    )


def rows_now() -> dict[str, str]:
    """Return the rows of the table in docs/hosts.md, by the title of the agent."""
    table = PAGE.read_text(encoding="utf-8").partition("<!-- hosts -->\n")[2].partition("<!--")[0]
    return {line.split("|")[1].strip(): line for line in table.splitlines()}


def hosts_table(results: Sequence[Result], others: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the table of what happened, every known agent in it; `others` are rows of agents not run now."""
    by_agent = {result.agent: result for result in results}
    ask_by = {program.agent: program for program in PROGRAMS}
    lines = [
        "| host | version | asked with | entry of the user | entry of the project |",
        "|---|---|---|---|---|",
    ]
    for host in HOSTS:
        result, program = by_agent.get(host.name), ask_by.get(host.name)
        if result is None or program is None:
            lines.append(others.get(host.title, f"| {host.title} | | not run | | |"))
            continue
        asked = f"`{' '.join((program.program, *program.ask))}`" if program.ask else ""
        user, project = (result.answers.get(scope, "") for scope in SCOPES)
        lines.append(f"| {host.title} | {result.version} | {asked} | {_cell(user)} | {_cell(project)} |")
    return "\n".join(lines) + "\n"


def sessions_table(results: Sequence[Result]) -> str:
    """Return the table of the sessions."""
    ran = [(result, result.session) for result in results if result.session]
    titles = [f"{find_host(result.agent).title} {result.version}" for result, _ in ran]
    lines = ["| | " + " | ".join(titles) + " |", "|---|" + "---|" * len(titles)]
    lines.append(_row("requests before the tools were there", [str(each.waits) for _, each in ran]))
    lines.append(_row(CALLED, [f"{each.page_chars:,}" for _, each in ran]))
    steps = ran[0][1].steps if ran else {}
    lines += [_row(step, ["yes" if each.steps[step] else "no" for _, each in ran]) for step in steps]
    return "\n".join(lines) + "\n"


def _row(name: str, cells: Sequence[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return re.sub(r"[✔✓●⏸✗✘!]\s*", "", text).replace("|", "\\|").strip()


def write_blocks(blocks: Mapping[str, str]) -> None:
    """Put each block between its markers in docs/hosts.md."""
    text = PAGE.read_text(encoding="utf-8")
    for name, block in blocks.items():
        before, begin, rest = text.partition(f"<!-- {name} -->\n")
        _, end, behind = rest.partition(f"<!-- /{name} -->")
        if not begin or not end:
            raise SystemExit(f"{PAGE} has no markers of {name}.")
        text = before + begin + block + end + behind
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
