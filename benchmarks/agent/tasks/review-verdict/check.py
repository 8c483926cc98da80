"""Check of the task `review-verdict`: severities and verdict of a code review."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, load, plain

check = Check()
a = load()
want = {"N1": "critical", "N2": "important", "N3": "suggestion", "N5": "important"}
report = {str(k): plain(v) for k, v in a.get("report", {}).items()}
for note, category in want.items():
    check.need(report.get(note) == category, f"{note}: its category")
check.need("N4" not in report and [str(n) for n in a.get("left_out", [])] == ["N4"], "N4 is left out")
check.need(plain(a.get("dead_code")) == "ask", "dead code: what to do")
check.need(
    sorted(map(str, a.get("may_defer", []))) == ["N2", "N5"], "which may be postponed with a justification"
)
check.need(
    plain(a.get("fixer")) == "alder" and plain(a.get("decider")) == "human", "who fixes and who decides"
)
check.done()
