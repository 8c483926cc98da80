"""Check of the task `af-test-run`: commands that test a DAG."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, commands, options

check = Check()
runs = {name: list(commands(name)) for name in ("test.sh", "failed.sh", "missing.sh")}
first = runs["test.sh"]
check.need(len(first) == 1, "test.sh: one command and no checks before it")
positional, given = options(first[0] if first else [])
check.need(positional == ["af", "runs", "trigger-wait", "sales_rollup"], "test.sh: start the run and wait")
check.need(given.get("--timeout") == ["1200"], "test.sh: 20 minutes")
try:
    check.need(
        json.loads((given.get("--conf") or ["{}"])[0]) == {"region": "eu"}, "test.sh: the configuration"
    )
except json.JSONDecodeError:
    check.need(False, "test.sh: the configuration as JSON")
second = [options(c) for c in runs["failed.sh"]] + [([], {})] * 2
check.need(
    second[0][0] == ["af", "runs", "diagnose", "sales_rollup", "manual__2025-03-01"],
    "failed.sh: overview of the run",
)
check.need(
    second[1][0] == ["af", "tasks", "logs", "sales_rollup", "manual__2025-03-01", "load"]
    and second[1][1].get("--try") == ["2"],
    "failed.sh: log of the second attempt",
)
check.need(runs["missing.sh"] == [["af", "dags", "errors"]], "missing.sh: errors of parsing")
check.done()
