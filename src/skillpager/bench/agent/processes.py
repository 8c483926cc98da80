"""Commands of agents and checks: in a process group of their own, bounded in time and output.

They run on this machine with the rights of the user. The environment holds no secrets and the group is killed
at the end, but nothing keeps a command from reading or changing other files, or from the network: who wants
that runs the benchmark in a container.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

# variables that a command gets from ours: none of them holds a key
PASSED_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT", "VIRTUAL_ENV")
# of the output, from its beginning and from its end
MOST_BYTES = 7_500
# the pipe of a killed group is read to its end, unless a process has left the group and holds it open
CLOSING_SECONDS = 1.0
BLOCK = 65_536


@dataclass(frozen=True, slots=True)
class Done:
    """The end of a command.

    Attributes:
        code: Its exit code, negative for a signal.
        output: stdout and stderr; the middle of a long one is left out, and says so.
        timed_out: Whether it was killed because its time was over.
    """

    code: int
    output: str
    timed_out: bool


def clean_environment(home: Path) -> dict[str, str]:
    """Return the environment of a command: where programs are found, the language, and a home of its own."""
    kept = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
    temporary = home / "tmp"
    temporary.mkdir(exist_ok=True)
    # `python3` is the one that runs the benchmark, with its packages
    kept["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
    return {**kept, "HOME": str(home), "TMPDIR": str(temporary), "TERM": "dumb", "PYTHONUTF8": "1"}


def run_bounded(command: Sequence[str], folder: Path, *, seconds: float, env: Mapping[str, str]) -> Done:
    """Run a command in a folder without input, and kill its process group at the end.

    Raises:
        OSError: It cannot be started.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    output = _Output(process.stdout)
    reader = threading.Thread(target=output.read, daemon=True)
    reader.start()
    timed_out = False
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        timed_out = True
    finally:
        _kill_group(process)
        process.wait()
        reader.join(CLOSING_SECONDS)
    return Done(process.returncode, output.text(), timed_out)


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process and all it has started, except what has left its group."""
    try:
        if hasattr(os, "killpg"):
            # the group outlives its first process while another is in it, and keeps the number
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass  # nobody is left, which macOS reports of a group of ended processes as a lack of permission


class _Output:
    """The beginning and the end of what a pipe brings; the middle is read and dropped."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self._head = b""
        self._tail = b""
        self._dropped = 0

    def read(self) -> None:
        """Read until the pipe is closed."""
        with self._pipe:
            while block := self._pipe.read1(BLOCK):  # type: ignore[attr-defined]
                with self._lock:
                    room = MOST_BYTES - len(self._head)
                    self._head += block[:room]
                    tail = self._tail + block[room:]
                    self._tail = tail[-MOST_BYTES:]
                    self._dropped += len(tail) - len(self._tail)

    def text(self) -> str:
        """Return what was read so far."""
        with self._lock:
            head, tail = (part.decode("utf-8", "replace") for part in (self._head, self._tail))
            return f"{head}\n[… {self._dropped:,} bytes …]\n{tail}" if self._dropped else head + tail
