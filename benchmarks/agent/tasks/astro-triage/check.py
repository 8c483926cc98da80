"""Check of the task `astro-triage`: commands of the Astro CLI."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, commands, options

check = Check()
calls = [c for c in commands("triage.sh") if c and c[0] == "astro"]
check.need(len(calls) == 5, f"five calls of astro, there are {len(calls)}")
switches = ("--save", "--secret", "--scheduler", "-s", "--error")
parsed = [options(c, switches) for c in calls[:5]] + [([], {})] * (5 - len(calls[:5]))


def has(index, words, **wanted):
    """Return whether a call has these words and options."""
    positional, given = parsed[index]
    names = {
        "count": ("-c", "--log-count"),
        "keyword": ("--keyword", "-k"),
        "deployment": ("--deployment-id", "-d"),
        "key": ("--key", "-k"),
        "value": ("--value", "-v"),
        "env": ("--env", "-e"),
    }
    right = all(any(given.get(n) == [v] for n in names[k]) for k, v in wanted.items())
    return positional == ["astro", "deployment", *words] and right


check.need(
    has(0, ["logs", "clx9k2"], keyword="billing_sync", count="100"), "1: search of the logs, 100 lines"
)
check.need(
    has(1, ["logs", "clx9k2"], keyword="Failed to import", count="50") and "--scheduler" in parsed[1][1],
    "2: search of the scheduler's log",
)
check.need(
    has(2, ["variable", "list"], deployment="clx9k2", env=".env.backup")
    and {"--save", "-s"} & set(parsed[2][1]),
    "3: backup of the variables",
)
check.need(
    has(3, ["variable", "create"], deployment="clx9k2", key="PAGER_TOKEN", value="abc123")
    and {"--secret", "-s"} & set(parsed[3][1]),
    "4: secret variable",
)
check.need(has(4, ["variable", "list"], deployment="clx9k2", key="AWS_REGION"), "5: one variable")
check.done()
