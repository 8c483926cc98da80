"""Pages per second of the HTTP service, with `wrk` on loopback: `python benchmarks/http_load.py`.

`run.py` runs it as the section `http` if wrk is installed.

Requests page the sample skills in turn, by POST and with the full answer. Indexes and query embeddings are
warm; every page is made again. If the machine has other work, the processor time per answer says more than
the rate.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path

from machine import describe, load_average
from options import SAMPLES, Options
from results import Check, Report, Table

CONNECTIONS = (1, 4, 16, 64, 256)
SECONDS = 10
QUICK_CONNECTIONS, QUICK_SECONDS = (4,), 1
PAGES_PER_SECOND = 600.0
COLUMNS = ("connections", "pages/s", "p50 (ms)", "p99 (ms)", "refused/s", "CPU per answer (ms)")
# one request of each skill in turn, and what is measured as one line of JSON
SCRIPT = """
local bodies = {%s}
local turn = 0
request = function()
  turn = turn %% #bodies + 1
  return wrk.format("POST", "/v1/page", {["Content-Type"] = "application/json"}, bodies[turn])
end
done = function(summary, latency)
  io.write(string.format('{"requests": %%d, "seconds": %%f, "refused": %%d, "p50": %%f, "p99": %%f}\\n',
    summary.requests, summary.duration / 1e6, summary.errors.status,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
"""


@dataclass(frozen=True, slots=True)
class Service:
    """A service that answers.

    Attributes:
        url: Where.
        pid: Its process.
    """

    url: str
    pid: int


@dataclass(frozen=True, slots=True)
class Load:
    """What the service did at one number of connections; the fields are those of `COLUMNS`."""

    connections: int
    pages: float
    p50: float
    p99: float
    refused: float
    cpu: float


def measure(options: Options) -> Report:
    """Return the report on the HTTP service; one without numbers if wrk is not installed."""
    title = "HTTP: pages per second"
    if shutil.which("wrk") is None:
        return Report(title, [], note="Not measured: wrk is not installed.")
    chosen, seconds = (QUICK_CONNECTIONS, QUICK_SECONDS) if options.quick else (CONNECTIONS, SECONDS)
    loads = list(_loads(chosen, seconds, ()))
    note = "wrk and the service share the processors. Queries repeat, and every page is made again."
    table = Table("By connections", COLUMNS, [list(astuple(load)) for load in loads])
    best = max(load.pages for load in loads)
    check = Check("pages per second over HTTP, repeated queries", best, PAGES_PER_SECOND, "/s", at_most=False)
    return Report(title, [table], [check], note)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds", type=int, default=SECONDS, help="how long for each number of connections"
    )
    parser.add_argument("--connections", type=int, nargs="+", default=CONNECTIONS)
    parser.add_argument("options", nargs="*", help="options of `skillpager serve`, behind --")
    chosen = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is not installed: apt-get install wrk")
    for name, value in describe().items():
        print(f"{name}: {value}")
    print("  ".join(COLUMNS), " load before")
    before = load_average()
    for load in _loads(chosen.connections, chosen.seconds, chosen.options):
        cells = (f"{value:>{len(column)}.4g}" for column, value in zip(COLUMNS, astuple(load), strict=True))
        print("  ".join(cells), f" {before:.1f}", flush=True)
        before = load_average()


def _loads(connections: Sequence[int], seconds: int, options: Sequence[str]) -> Iterator[Load]:
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), options) as service:
        script = write_script(Path(folder), service)
        for number in connections:
            yield _load(service, script, number, seconds)


@contextmanager
def serving(folder: Path, options: Sequence[str], skills: Path = SAMPLES) -> Iterator[Service]:
    """Serve skills from a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "skillpager", "serve", str(skills), "--port", "0", *options],
        env={**os.environ, "SKILLPAGER_CACHE_DIR": str(folder / "cache")},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    url = re.search(r"http://\S+:\d+", process.stderr.readline())
    assert url is not None, process.stderr.read()
    try:
        yield Service(url[0], process.pid)
    finally:
        process.terminate()
        process.wait()


def write_script(folder: Path, service: Service) -> Path:
    """Ask for each page once, so that all is warm, and return wrk's script that asks for them."""
    with urllib.request.urlopen(f"{service.url}/v1/skills") as answer:
        skills = json.load(answer)["skills"]
    bodies = [json.dumps({"skill": skill["name"], "query": skill["description"]}) for skill in skills]
    for body in bodies:
        headers = {"Content-Type": "application/json"}
        urllib.request.urlopen(
            urllib.request.Request(f"{service.url}/v1/page", body.encode(), headers)
        ).close()
    script = folder / "pages.lua"
    # long brackets: Lua reads no escapes in them, so that JSON's own stay
    script.write_text(SCRIPT % ", ".join(f"[==[{body}]==]" for body in bodies), encoding="utf-8")
    return script


def _load(service: Service, script: Path, connections: int, seconds: int) -> Load:
    before = processor_seconds(service.pid)
    done = subprocess.run(
        ["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "-s", str(script), service.url],
        capture_output=True,
        check=True,
        text=True,
    )
    spent = processor_seconds(service.pid) - before
    told = json.loads(done.stdout.splitlines()[-1])
    return Load(
        connections,
        (told["requests"] - told["refused"]) / told["seconds"],
        told["p50"],
        told["p99"],
        told["refused"] / told["seconds"],
        1000 * spent / told["requests"],
    )


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
