"""Check of the task `expense-spec`: a specification and task list in the house form."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, plain, text

check = Check()
body = text("SPEC.md")
before, _, after = body.partition("# Spec:")
check.need(after, "title of the specification")
check.need(
    "assumptions" in before.lower() and len(re.findall(r"^\s*(?:\d+[.)]|[-*]) ", before, re.M)) >= 2,
    "assumptions stand before the specification",
)
check.need(re.search(r"\bcorrect\b", before, re.I), "the assumptions end with a call to correct them")
titles = [plain(t) for t in re.findall(r"^## +(.+?)\s*$", after, re.M)]
house = [
    "objective",
    "tech stack",
    "commands",
    "project structure",
    "code style",
    "testing strategy",
    "boundaries",
    "success criteria",
    "open questions",
]
check.need(
    [t for t in titles if t in house] == house,
    "the nine sections in the house's order: missing " + ", ".join(h for h in house if h not in titles),
)
parts = {plain(p.partition("\n")[0]): p for p in re.split(r"^## +", after, flags=re.M)[1:]}
for tier in ("always", "ask first", "never"):
    check.need(tier in parts.get("boundaries", "").lower(), f"boundaries: {tier}")
check.need(re.search(r"\d", parts.get("success criteria", "")), "success criteria with numbers")
tasks = re.split(r"^- \[ \] ", text("tasks.md"), flags=re.M)[1:]
tasks = [t for t in tasks if re.match(r"\**Task\b.*?:", t)]
check.need(len(tasks) >= 2, "two tasks as boxes to tick")
for label in ("Acceptance", "Verify", "Files"):
    check.need(
        tasks and all(re.search(rf"^\s+[-*] \**{label}\**:", t, re.M) for t in tasks),
        f"{label} of every task",
    )
check.done()
