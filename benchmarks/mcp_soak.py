"""Memory of the MCP server while it answers for an hour: `python benchmarks/mcp_soak.py SKILLS...`.

One client asks for pages of all skills below some folders, each query another one, made of words of the
skills. A row of `mcp_soak.csv` is a minute: calls so far, resident and anonymous memory of the server in MB.
The command fails if memory in the last fifth is above that of the third fifth by more than `MAX_GROWTH`:
caches have filled up by then.
"""

import argparse
import csv
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mcp_start import INITIALIZE, ask

ROWS = Path(__file__).parent / "mcp_soak.csv"
COLUMNS = "minute", "calls", "resident", "anonymous"
MAX_GROWTH = 0.03
WORDS = 6
SEED = 5


def memory_of(process: int) -> tuple[float, float]:
    """Return the resident memory of a process, and that which no file holds, in MB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    fields = dict(line.split(":", 1) for line in status.splitlines())
    resident, anonymous = (int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon"))
    return round(resident, 1), round(anonymous, 1)


def main() -> None:
    """Ask, measure, write the rows and judge them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("skills", nargs="+", type=Path)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between two calls")
    options = parser.parse_args()
    texts = {
        path.parent.name: path.read_text(encoding="utf-8")
        for folder in options.skills
        for path in sorted(folder.glob("*/SKILL.md"))
    }
    draw, rows, calls = random.Random(SEED), [], 0
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "SKILLPAGER_CACHE_DIR": cache}
        command = [sys.executable, "-m", "skillpager", "mcp", *map(str, options.skills)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, env=environment, text=True, **pipes) as process:
            ask(process, 0, "initialize", INITIALIZE)
            for minute in range(1, options.minutes + 1):
                end = time.monotonic() + 60
                while time.monotonic() < end:
                    calls += 1
                    name = draw.choice(sorted(texts))
                    query = " ".join(draw.sample(texts[name].split(), WORDS))
                    ask(
                        process,
                        calls,
                        "tools/call",
                        {"name": "load_skill", "arguments": {"name": name, "query": query}},
                    )
                    time.sleep(options.pause)
                rows.append((minute, calls, *memory_of(process.pid)))
                print(*rows[-1], flush=True)
                with ROWS.open("w", encoding="utf-8", newline="") as file:
                    csv.writer(file, lineterminator="\n").writerows(
                        [("minute", "calls", "resident", "anonymous"), *rows]
                    )
            process.terminate()
    fifth = max(1, len(rows) // 5)
    before, after = (
        statistics.median(row[3] for row in part) for part in (rows[2 * fifth : 3 * fifth], rows[-fifth:])
    )
    print(f"anonymous memory: {before:.0f} MB in the third fifth, {after:.0f} MB in the last")
    sys.exit(after > before * (1 + MAX_GROWTH))


if __name__ == "__main__":
    main()
