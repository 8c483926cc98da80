"""Check of the task `session-adr`: a decision record and the state of the old one."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, fail, plain

check = Check()
new = [p for p in Path("docs/decisions").glob("*012*") if p.is_file()]
if len(new) != 1:
    fail("one record with number 012 in docs/decisions")
body = new[0].read_text(encoding="utf-8")
check.need(re.search(r"^# ADR-012: \S", body, re.M), "title with the number")
titles = [plain(t) for t in re.findall(r"^## +(.+?)\s*$", body, re.M)]
house = ["status", "date", "context", "decision", "alternatives considered", "consequences"]
check.need([t for t in titles if t in house] == house, "the six sections in the house's order")
parts = {plain(p.partition("\n")[0]): p.partition("\n")[2] for p in re.split(r"^## +", body, flags=re.M)[1:]}
check.need(plain(parts.get("status", "")).startswith("accepted"), "status Accepted")
check.need("2025-03-04" in parts.get("date", ""), "the date")
options_ = re.split(r"^### +", parts.get("alternatives considered", ""), flags=re.M)[1:]
check.need(len(options_) == 2, "a heading for each of the two alternatives")
for option in options_:
    for label in ("pros", "cons", "rejected"):
        check.need(
            re.search(rf"^\s*[-*] +\**{label}\**:", option, re.M | re.I), f"{label} of each alternative"
        )
check.need("ADR-007" in body, "the new record names ADR-007")
old = Path("docs/decisions/ADR-007-redis-sessions.md")
status = re.search(r"## Status\s+(.+)", old.read_text(encoding="utf-8")) if old.is_file() else None
check.need(
    status and re.search(r"superseded by .*ADR-012", status.group(1), re.I),
    "the old record is kept, superseded by ADR-012",
)
check.done()
