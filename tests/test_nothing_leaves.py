"""Nothing leaves the machine: real processes under strace, which connect to nobody and write to no strange place.

A dependency may start to report its use with any release, as onnxruntime did with 1.31. So what is checked is
what the kernel is asked for, not what Python code does.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import httpx
import pytest

from cli_process import SAMPLES, TIME_LIMIT, command
from mcp import Client, StdioServerParameters

QUERY = "Restore a single table from last night's dump."
PAGE = ("load_skill", {"name": "postgres-backup", "query": QUERY})
# onnxruntime 1.31 looks up its host within a few seconds
LIVING_SECONDS = 20.0
TRACED = "connect,sendto,sendmsg,sendmmsg,open,openat,creat,mkdir,mkdirat"
# below the home folder
OWN_FOLDERS = (".cache/skillpager", ".config/skillpager", ".local/share/skillpager")


def traced(folder: Path, *arguments: str | Path) -> list[str]:
    """Return the command line of `skillpager` with `arguments`, its calls written to `folder/trace`."""
    strace = ["strace", "-f", "-y", "-qq", "-s", "200", "-o", str(folder / "trace"), "-e", f"trace={TRACED}"]
    return [*strace, *command(*arguments)]


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a new user: nothing but an empty home folder."""
    for name in ("home", "tmp"):
        folder.joinpath(name).mkdir()
    own = {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    return own | {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}


def run_page(folder: Path) -> None:
    """Page a skill on the command line."""
    arguments = traced(folder, "page", SAMPLES / "postgres-backup", QUERY)
    done = subprocess.run(arguments, env=environment(folder), capture_output=True, timeout=TIME_LIMIT)
    assert done.returncode == 0, done.stderr
    assert b"pg_restore" in done.stdout


def run_mcp(folder: Path) -> None:
    """Page a skill in an MCP session over stdio that stays open for a while."""
    program, *rest = traced(folder, "mcp", SAMPLES)
    server = StdioServerParameters(command=program, args=rest, env=environment(folder))

    async def ask() -> None:
        async with Client(server) as client:
            result = await client.call_tool(*PAGE)
            assert not result.is_error
            await anyio.sleep(LIVING_SECONDS)

    anyio.run(ask)


def run_serve(folder: Path) -> None:
    """Ask the HTTP service for a page and let it live for a while."""
    process = subprocess.Popen(
        traced(folder, "serve", SAMPLES, "--port", "0"),
        env=environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stderr is not None
        url = re.search(r"http://\S+:\d+", process.stderr.readline())
        assert url is not None
        answer = httpx.post(
            f"{url[0]}/v1/page", json={"skill": "postgres-backup", "query": QUERY}, timeout=TIME_LIMIT
        )
        assert answer.status_code == 200, answer.text
        time.sleep(LIVING_SECONDS)
    finally:
        # the group, because strace leaves signals to the process that it traces
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=TIME_LIMIT)
    assert process.returncode == 0


def strange_calls(folder: Path) -> list[str]:
    """Return the traced calls that reach beyond this machine or beyond our own folders."""
    lines = folder.joinpath("trace").read_text(errors="replace").splitlines()
    assert any("openat(" in line for line in lines)
    return [line for line in lines if leaves_machine(line) or writes_elsewhere(line, folder)]


def leaves_machine(line: str) -> bool:
    """Return True for a message or connection to another machine, or to a service that resolves names."""
    families = re.findall(r"sa_family=(AF_\w+)", line)
    if "AF_UNIX" in families:
        return bool(re.search(r"nscd|resolve", line))
    local = re.search(r'inet_addr\("127\.|inet_pton\(AF_INET6, "::1"', line)
    return bool({"AF_INET", "AF_INET6"} & set(families)) and not local


def writes_elsewhere(line: str, folder: Path) -> bool:
    """Return True for a call that makes a file or folder outside the folders that are ours."""
    call = re.search(r'(openat|open|creat|mkdirat|mkdir)\((?:\w+<(.*?)>, )?"(.*?)"', line)
    if call is None or (call[1].startswith("open") and "O_CREAT" not in line):
        return False
    if "EEXIST" in line:
        return False
    path = Path(os.path.normpath(Path(call[2] or "/", call[3])))
    own = [folder / "tmp", *(folder / "home" / name for name in OWN_FOLDERS)]
    parents = {parent for place in own for parent in place.parents}
    made_folder = call[1].startswith("mkdir") and path in parents
    return not made_folder and not any(path.is_relative_to(place) for place in own)


@pytest.mark.system("strace")
def test_processes_connect_to_nobody_and_write_to_no_strange_place(tmp_path: Path) -> None:
    if subprocess.run(["strace", "-o", "/dev/null", "true"]).returncode:
        pytest.skip("strace may not trace processes here")
    runs: list[Callable[[Path], None]] = [run_page, run_mcp, run_serve]
    with ThreadPoolExecutor(len(runs)) as pool:
        started = {}
        for run in runs:
            folder = tmp_path / run.__name__
            folder.mkdir()
            started[folder] = pool.submit(run, folder)
    for folder, future in started.items():
        future.result()
        assert strange_calls(folder) == [], folder.name
        home = folder / "home"
        files = [path.relative_to(home) for path in home.rglob("*") if path.is_file()]
        assert files, "the index store must be there"
        assert [path for path in files if not str(path).startswith(OWN_FOLDERS)] == []
