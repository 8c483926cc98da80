"""Start-up time of `skillpager mcp`: from the start of the process to the first page.

    python benchmarks/mcp_start.py [--runs 9] [--skills 2000]

The skill is indexed beforehand; `--skills` adds as many others. A run starts a process, sends
`initialize` and `tools/list`, then `load_skill` with a query,
and measures the time until the tools are listed and until the page is there.
CPU time is reported too: other work on the machine adds little to it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

SAMPLES = Path(__file__).parent.parent / "examples" / "skills"
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
PAGE = {"name": "postgres-backup", "query": "Restore a single table from last night's dump."}


@dataclass(frozen=True)
class Start:
    """Seconds to the list of tools and to the first page, and seconds of CPU until each."""

    listed: float
    listed_cpu: float
    answered: float
    answered_cpu: float


def ask(process: "subprocess.Popen[str]", number: int, method: str, params: object) -> dict[str, object]:
    """Send a request and return its result."""
    _send(process.stdin, {"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    assert process.stdout is not None
    answer = json.loads(process.stdout.readline())
    result: dict[str, object] = answer["result"]
    return result


def _send(stream: IO[str] | None, message: object) -> None:
    assert stream is not None
    stream.write(json.dumps(message) + "\n")
    stream.flush()


def write_skills(folder: Path, number: int) -> Path:
    """Write small skills."""
    for each in range(number):
        file = folder / f"skill-{each}" / "SKILL.md"
        file.parent.mkdir(parents=True)
        file.write_text(f"---\nname: skill-{each}\ndescription: Does task {each}.\n---\nDo task {each}.\n")
    return folder


def start(cache: Path, others: Path) -> Start:
    """Start a server, ask for one page, and end it."""
    environment = {**os.environ, "SKILLPAGER_CACHE_DIR": str(cache)}
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "skillpager", "mcp", str(SAMPLES), str(others)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        ask(process, 1, "initialize", INITIALIZE)
        _send(process.stdin, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        ask(process, 2, "tools/list", {})
        listed, listed_cpu = time.perf_counter() - began, _cpu_seconds(process.pid)
        result = ask(process, 3, "tools/call", {"name": "load_skill", "arguments": PAGE})
        answered = time.perf_counter() - began
        assert not result.get("isError"), result
        cpu = _cpu_seconds(process.pid)
    return Start(listed, listed_cpu, answered, cpu)


def _cpu_seconds(process: int) -> float:
    """Return the CPU time of a process; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--skills", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cache, others = Path(folder, "cache"), write_skills(Path(folder, "skills"), options.skills)
        others.mkdir(exist_ok=True)
        start(cache, others)  # indexes the skill
        starts = [start(cache, others) for _ in range(options.runs)]
    for name in ("listed", "listed_cpu", "answered", "answered_cpu"):
        values = [getattr(each, name) for each in starts]
        print(f"{name:15} median {statistics.median(values):.2f} s, {min(values):.2f} to {max(values):.2f} s")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
