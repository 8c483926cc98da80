"""Check of the task `benchmark-plan`: a plan and commands for BenchmarkDotNet."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, close, commands, load, options, plain

check = Check()
a = load()
check.need(close(a.get("cases"), 120), "cases")
for key, low, high in (("minutes_default", 30, 50), ("minutes_short", 10, 16)):
    given_ = a.get(key) or [0, 0]
    check.need(close(given_[0], low, 0.6) and close(given_[-1], high, 0.6), key)
check.need(plain(a.get("place")) == "standalone project", "place")
check.need(a.get("checked_in") is False, "checked_in")
check.need("-report-github.md" in str(a.get("report")), "report: the Markdown report")
lines = [c for c in commands("run.sh") if c[0] == "dotnet"]
add = [c for c in lines if c[1] == "add"]
check.need(
    len(add) == 1 and add[0][-1] == "BenchmarkDotNet" and "--version" not in add[0] and "-v" not in add[0],
    "run.sh: the package without a version",
)
runs = [c for c in lines if c[1] == "run"]
check.need(len(runs) == 2, "run.sh: two runs")
for words, job in zip(runs, ("dry", "short"), strict=False):
    check.need({"-c", "Release"} <= set(words) or "--configuration" in words, f"{job}: release build")
    check.need("--" in words, f"{job}: arguments of the program behind --")
    positional, given = options(words[words.index("--") + 1 :] if "--" in words else [], ("--noOverwrite",))
    check.need([v.lower() for v in given.get("--job", given.get("-j", []))] == [job], f"{job}: the job")
    filters = given.get("--filter", given.get("-f", []))
    check.need(filters and "Parse" in filters[0] and "*" in filters[0], f"{job}: filter")
    check.need("--noOverwrite" in given, f"{job}: earlier results stay")
    check.need(re.search(r">", " ".join(words)), f"{job}: output goes to a file")
check.done()
