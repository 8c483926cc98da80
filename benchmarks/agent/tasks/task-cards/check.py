"""Check of the task `task-cards`: sizes and a task card of a plan."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, load, number, plain, text

check = Check()
a = load()
sizes = {str(k): str(v).strip().upper() for k, v in a.get("sizes", {}).items()}
check.need(sizes == {"W1": "XS", "W2": "S", "W3": "M", "W4": "L", "W5": "XL"}, "sizes")
check.need(sorted(map(str, a.get("split", []))) == ["W4", "W5"], "split")
check.need(
    {k: plain(v) for k, v in a.get("parallel", {}).items()}
    == {"P1": "safe", "P2": "sequential", "P3": "coordinate"},
    "parallel",
)
check.need([int(number(n)) for n in a.get("checkpoint_every", [])] == [2, 3], "checkpoint_every")
card = text("task-4.md")
check.need(re.search(r"^#+ +Task \[?4\]?: ", card, re.M), "card: its title")
fields = [plain(f) for f in re.findall(r"^(?:\*\*|#+ +)([A-Z][A-Za-z ]+?)\s*(?::\*\*|\*\*:|:|$)", card, re.M)]
house = [
    "description",
    "acceptance criteria",
    "verification",
    "dependencies",
    "files likely touched",
    "estimated scope",
]
check.need([f for f in fields if f in house] == house, "card: its six fields in order")
parts = re.split(r"Acceptance criteria|Verification|Dependencies|Files likely touched|Estimated scope", card)
check.need(
    len(parts) > 5 and len(re.findall(r"^\s*[-*] \[ \]", parts[1], re.M)) >= 2,
    "card: criteria as boxes to tick",
)
check.need(
    len(parts) > 5 and "npm test" in parts[2] and "npm run build" in parts[2] and "[ ]" in parts[2],
    "card: how to verify, as boxes to tick",
)
check.need(len(parts) > 5 and {"2", "3"} <= set(re.findall(r"\d", parts[3])), "card: what it depends on")
check.need(len(parts) > 5 and re.search(r"\b(small|s)\b", parts[5], re.I), "card: its scope")
check.done()
