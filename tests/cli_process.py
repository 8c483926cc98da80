"""The command line: run it as a real process, on a terminal, or within this process."""

import contextlib
import errno
import json
import logging
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import sample_indexes
from skillpager.cli.app import app

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "examples" / "skills"
TIME_LIMIT = 240.0  # a process that hangs; a busy machine is no failure


@dataclass(frozen=True)
class Ran:
    """What a process left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """All of stdout, decoded."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, str]:
        """The error on the last line of stderr, decoded."""
        error: dict[str, str] = json.loads(self.err.splitlines()[-1])["error"]
        return error


def command(*arguments: str | Path) -> list[str]:
    """Return the command line of `skillpager` with `arguments`."""
    return [sys.executable, "-m", "skillpager", *map(str, arguments)]


def environment(cache: Path, *, samples: bool = True, **changes: str) -> dict[str, str]:
    """Return an environment with a home folder and a cache of its own, which has the indexes of the samples."""
    if samples:
        hashing = changes.get("SKILLPAGER_ENCODER") == "hashing"
        sample_indexes.fill(cache, "hashing" if hashing else "builtin")
    home = cache.parent / "home"
    home.mkdir(exist_ok=True)
    known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    own = {"HOME": str(home), "SKILLPAGER_CACHE_DIR": str(cache), "PYTHONWARNINGS": "error"}
    own |= {"COLUMNS": "100", "TERM": "xterm-256color"}
    return {**known, **own, **changes}


def run(*arguments: str | Path, env: dict[str, str], stdin: bytes = b"", cwd: Path = ROOT) -> Ran:
    """Run the command to its end."""
    done = subprocess.run(
        command(*arguments), input=stdin, capture_output=True, env=env, cwd=cwd, timeout=TIME_LIMIT
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def invoke(*arguments: str | Path, env: dict[str, str], stdin: bytes = b"", cwd: Path = ROOT) -> Ran:
    """Run the command within this process, which is cheap where a process is not the point."""
    root, ours = logging.getLogger(), logging.getLogger("skillpager")
    handlers, level = list(root.handlers), ours.level
    others: dict[str, str | None] = {name: None for name in os.environ if name.startswith("SKILLPAGER_")}
    try:
        with contextlib.chdir(cwd):
            done = CliRunner().invoke(
                app,
                list(map(str, arguments)),
                input=stdin,
                env={**others, **env},
                prog_name="skillpager",
                catch_exceptions=False,
            )
    finally:
        root.handlers[:] = handlers
        ours.setLevel(level)
    return Ran(done.exit_code, done.stdout, done.stderr)


def run_on_terminal(*arguments: str | Path, env: dict[str, str], cwd: Path = ROOT, typed: bytes = b"") -> Ran:
    """Run the command on a terminal at which something is typed; `out` holds stdout and stderr."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(*arguments), stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=cwd, close_fds=True
    )
    os.close(theirs)
    os.write(ours, typed)
    said = b""
    try:
        while select.select([ours], [], [], TIME_LIMIT)[0]:
            said += os.read(ours, 65536)
    except OSError as error:
        if error.errno != errno.EIO:  # that of the terminal of a process that has ended
            raise
    os.close(ours)
    return Ran(process.wait(TIME_LIMIT), said.decode().replace("\r\n", "\n"), "")


def wait_until(holds: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait until something holds; a busy machine is no failure."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.02)


def hide(folder: Path, *packages: str) -> str:
    """Return a PYTHONPATH under which `packages` are not installed."""
    folder.mkdir()
    lines = ["import sys", *(f"sys.modules[{package!r}] = None" for package in packages)]
    (folder / "sitecustomize.py").write_text("\n".join(lines))
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
