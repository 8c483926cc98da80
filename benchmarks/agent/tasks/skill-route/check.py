"""Check of the task `skill-route`: which skills of a pack apply, in order."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, load, plain

check = Check()
FEATURE = [
    "idea-refine",
    "spec-driven-development",
    "planning-and-task-breakdown",
    "context-engineering",
    "incremental-implementation",
    "test-driven-development",
    "code-review-and-quality",
    "git-workflow-and-versioning",
    "documentation-and-adrs",
    "shipping-and-launch",
]
BUGFIX = ["debugging-and-error-recovery", "test-driven-development", "code-review-and-quality"]
a = load()
check.need(
    [plain(s) for s in a.get("agent_a", [])] == FEATURE,
    "agent_a: the ten skills of a complete feature, in order",
)
check.need(
    [plain(s) for s in a.get("agent_b", [])] == BUGFIX, "agent_b: the three skills of a bug fix, in order"
)
for key, name in (
    ("browser_tests", "browser-testing-with-devtools"),
    ("pipeline", "ci-cd-and-automation"),
    ("slow_page_review", "performance-optimization"),
):
    check.need(plain(a.get(key)) == name, key)
check.done()
