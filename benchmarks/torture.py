"""Run the torture tests at full size: `make torture`, or `make torture PART=fuzz` for one part again.

Writes `benchmarks/torture.csv`, a row for each figure; the rows of parts that were not run stay as they are.
Exits with 1 if anything failed. The load runs beside the other parts, which run one after the other.
Everything stays on this machine, and no process is left behind.

    make torture                              about an hour on two cores
    make torture PART=kills SCALE=0.1         a tenth of one part
    make torture POOL=skills.jsonl.xz         also mutates these skills (JSON lines with a field `skill_md`)
    make torture MINUTES=5                    less load
"""

import argparse
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from machine import describe

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests" / "torture"
FOLDER = ROOT / "build" / "torture"
RESULTS = ROOT / "benchmarks" / "torture.csv"
COLUMNS = ("part", "measure", "value", "unit")
SHARE = "share of the full amounts"
# the part that lasts as long as it is told to, and runs beside the others
LOAD = "load"
# a test that takes longer than this hangs
TEST_SECONDS = 3_600


@dataclass
class Running:
    """A part that runs: pytest in a process group of its own, its output in a file."""

    part: str
    process: "subprocess.Popen[bytes]"
    started: float
    log: Path
    finished: bool = False

    def end(self) -> None:
        """End it with everything that it started."""
        with suppress(ProcessLookupError):  # it has ended, and all its children with it
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def main() -> None:
    """Run the parts, write their figures, print a summary."""
    options = _options()
    parts = options.part or sorted(path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py"))
    FOLDER.mkdir(parents=True, exist_ok=True)
    before = [part for part in parts if part == LOAD]
    after = [part for part in parts if part != LOAD]
    failed: list[str] = []
    running: list[Running] = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` ends what was started
    try:
        running += [_start(part, options) for part in before]
        for part in after:
            running.append(_start(part, options))
            failed += _finish(running[-1])
        for each in running[: len(before)]:
            failed += _finish(each)
    finally:
        for each in running:
            each.end()
        _write([each.part for each in running if each.finished], options.scale)
    print(f"\n{len(parts) - len(failed)} of {len(parts)} parts passed; figures: {RESULTS.relative_to(ROOT)}")
    print(
        f"failed: {', '.join(failed)}"
        if failed
        else "nothing failed; python docs/generate_torture.py shows it"
    )
    sys.exit(1 if failed else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Torture SkillPager.")
    parser.add_argument("--part", action="append", help="only this part; may be given several times")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full amounts")
    parser.add_argument("--pool", type=Path, help="file of skills to mutate")
    parser.add_argument("--minutes", type=float, help="length of the load, instead of 30")
    return parser.parse_args()


def _start(part: str, options: argparse.Namespace) -> Running:
    (FOLDER / f"{part}.rows").unlink(missing_ok=True)
    log = FOLDER / f"{part}.log"
    environment = {**os.environ}
    if options.pool:
        environment["TORTURE_POOL"] = str(options.pool.resolve())
    if options.minutes:
        environment["TORTURE_MINUTES"] = str(options.minutes)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n0",
        f"--torture={options.scale}",
        f"--timeout={TEST_SECONDS}",
    ]
    command += ["--tb=short", "--durations=3", "--basetemp", str(FOLDER / f"{part}-files")]
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*command, str(TESTS / f"test_{part}.py")],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    print(f"{part}: started", flush=True)
    return Running(part, process, time.monotonic(), log)


def _finish(running: Running) -> list[str]:
    """Wait for a part, print what it says, and return its name if it failed."""
    code = running.process.wait()
    seconds = time.monotonic() - running.started
    running.end()
    passed = "passed" if code == 0 else f"FAILED (exit code {code})"
    shown = running.log.read_text(encoding="utf-8", errors="replace")
    print(f"{running.part}: {passed} after {seconds:.0f} s", flush=True)
    if code:
        print(shown[-6_000:], flush=True)
    shutil.rmtree(FOLDER / f"{running.part}-files", ignore_errors=True)
    row = {
        "part": running.part,
        "measure": "result",
        "value": "passed" if code == 0 else "failed",
        "unit": "",
    }
    time_row = {"part": running.part, "measure": "duration", "value": f"{seconds:.0f}", "unit": "s"}
    with (FOLDER / f"{running.part}.rows").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n" + json.dumps(time_row) + "\n")
    running.finished = True
    return [running.part] if code else []


def _write(parts: list[str], scale: float) -> None:
    """Replace the rows of the parts that were run."""
    rows = []
    if RESULTS.exists():
        with RESULTS.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["part"] not in (*parts, "run")]
    for part in parts:
        lines = (FOLDER / f"{part}.rows").read_text(encoding="utf-8").splitlines()
        rows += [json.loads(line) for line in lines]
        rows += [{"part": part, "measure": SHARE, "value": f"{scale:g}", "unit": ""}]
    rows.sort(key=lambda row: row["part"])
    run = {"date": f"{datetime.now(UTC):%Y-%m-%d}", **describe()}
    rows = [
        {"part": "run", "measure": name, "value": value, "unit": ""} for name, value in run.items()
    ] + rows
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
