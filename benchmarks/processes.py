"""Runner of fresh processes that measures wall-clock time, processor time and peak memory."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# ru_maxrss counts kilobytes on Linux, bytes on macOS
MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True)
class Spent:
    """What a process cost and said.

    Attributes:
        seconds: Wall clock from start to end.
        processor_seconds: User and system time of all its threads.
        peak_mb: Largest resident memory, in 10^6 bytes.
        output: Its standard output.
    """

    seconds: float
    processor_seconds: float
    peak_mb: float
    output: str


def spend(command: Sequence[str | Path], *, environment: Mapping[str, str] | None = None) -> Spent:
    """Return what `command` cost, run to its end in a process of its own.

    The caller must be small: a child's peak memory starts at what its parent held.

    Raises:
        RuntimeError: It failed; the message ends with what it said.
    """
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            list(map(str, command)), stdout=output, stderr=errors, env={**os.environ, **(environment or {})}
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            raise RuntimeError(f"a measured process failed: {errors.read()[-2000:]}")
        peak = usage.ru_maxrss * MAXRSS_BYTES / 1e6
        return Spent(seconds, usage.ru_utime + usage.ru_stime, peak, output.read())


def skillpager(*arguments: str | Path) -> list[str | Path]:
    """Return the command line of the installed `skillpager`, as a user's shell would find it."""
    script = Path(sys.executable).parent / "skillpager"
    own = [str(script)] if script.exists() else [sys.executable, "-m", "skillpager"]
    return [*own, *arguments]


def own_environment(cache: Path) -> dict[str, str]:
    """Return settings that keep a developer's own cache and configuration out of the measurement."""
    return {
        "SKILLPAGER_CACHE_DIR": str(cache),
        "XDG_CONFIG_HOME": str(cache / "config"),
        "SKILLPAGER_ENCODER": "builtin",
    }


def worker(name: str, request: Mapping[str, object]) -> list[str | Path]:
    """Return the command line of a script of this folder that reads a request from its argument."""
    return [sys.executable, Path(__file__).with_name(name), json.dumps(request)]
