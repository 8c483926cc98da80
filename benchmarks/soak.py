"""A soak of the HTTP service: `wrk` asks for pages while skills change: `python benchmarks/soak.py`.

Each row of `soak.csv` is an interval: answers, those with an error status, connections that failed,
latencies, the memory of the service, and how many changes of skills there have been. The
command fails if there was an error, or if memory grew after the first fifth by more than `MAX_GROWTH`.
"""

import argparse
import contextlib
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from http_load import Service, serving, write_script
from machine import describe, load_average
from options import SAMPLES

ROWS = Path(__file__).parent / "soak.csv"
CONNECTIONS = 8
SECONDS = 30
# an answer that takes longer counts as failed: on a busy machine, too, only a lost one does
TIMEOUT = "60s"
# pauses of a change, as of a team that edits its skills all the time
CHANGE_SECONDS = 2.0
# versions of a skill that follow each other in turn: after one turn all of them are cached
VERSIONS = 8
# of memory after the first fifth
MAX_GROWTH = 0.10
DONE = """
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '{"requests": %d, "status_errors": %d, "failed": %d, "p50_ms": %f, "p99_ms": %f}\\n',
    summary.requests, e.status, e.connect + e.read + e.write + e.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
"""


@dataclass(frozen=True, slots=True)
class Row:
    """What happened in an interval; memory in MB and load of the machine at its end."""

    seconds: int
    requests: int
    status_errors: int
    failed: int
    p50_ms: float
    p99_ms: float
    memory_mb: float
    changes: int
    load: float


def main() -> None:
    """Soak, write the rows, and fail if there was an error or memory grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--out", type=Path, default=ROWS)
    chosen = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is not installed: apt-get install wrk")
    for name, value in describe().items():
        print(f"{name}: {value}")
    rows: list[Row] = []
    with chosen.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        for row in soak(chosen.minutes * 60):
            rows.append(row)
            writer.writerow(asdict(row))
            file.flush()
            print(row, flush=True)
    sys.exit(verdict(rows))


def verdict(rows: list[Row]) -> str | None:
    """Print the sums; return what went wrong, None for nothing."""
    errors = sum(row.status_errors + row.failed for row in rows)
    warm = rows[len(rows) // 5].memory_mb
    growth = rows[-1].memory_mb / warm - 1
    print(
        f"{sum(row.requests for row in rows):,} answers, {errors} errors, {rows[-1].changes:,} changes, "
        f"memory {warm:.0f} MB after a fifth, {rows[-1].memory_mb:.0f} MB at the end ({growth:+.1%})"
    )
    if errors:
        return f"{errors} errors"
    return f"memory grew by {growth:.1%}" if growth > MAX_GROWTH else None


def soak(seconds: float) -> Iterator[Row]:
    """Yield a row for each interval."""
    with tempfile.TemporaryDirectory() as name:
        folder, skills = Path(name), Path(name) / "skills"
        shutil.copytree(SAMPLES, skills)
        with serving(folder, [], skills) as service, changing(skills) as changes:
            script = write_script(folder, service)
            script.write_text(script.read_text().partition("done = ")[0] + DONE)
            began = time.monotonic()
            while time.monotonic() - began < seconds:
                told = _load(service, script)
                yield Row(
                    seconds=round(time.monotonic() - began),
                    **told,
                    memory_mb=round(resident_mb(service.pid), 1),
                    changes=len(changes),
                    load=round(load_average(), 1),
                )


def _load(service: Service, script: Path) -> dict[str, float]:
    command = [
        "wrk",
        "-t1",
        f"-c{CONNECTIONS}",
        f"-d{SECONDS}",
        f"--timeout={TIMEOUT}",
        "-s",
        str(script),
        service.url,
    ]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return {name: round(value, 2) if isinstance(value, float) else value for name, value in told.items()}


@contextlib.contextmanager
def changing(skills: Path) -> Iterator[list[str]]:
    """Change a skill every `CHANGE_SECONDS`, whole or not at all; yields the changed ones so far."""
    documents = {path: path.read_text(encoding="utf-8") for path in sorted(skills.glob("*/SKILL.md"))}
    changes: list[str] = []
    ended = threading.Event()

    def change() -> None:
        while not ended.wait(CHANGE_SECONDS):
            turn, place = divmod(len(changes), len(documents))
            path, text = list(documents.items())[place]
            new = path.with_suffix(".new")
            new.write_text(
                f"{text}\n\n## Revision\n\nThis is revision {turn % VERSIONS}.\n", encoding="utf-8"
            )
            new.replace(path)
            changes.append(path.parent.name)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield changes
    finally:
        ended.set()
        thread.join()


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
