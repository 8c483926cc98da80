"""Check of the task `layout-shift-check`: reading of measurements, and a measuring protocol."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, commands, load, plain

check = Check()
a = load()
check.need(plain(a.get("cls_rating")).replace("-", " ") == "needs improvement", "cls_rating")
check.need(sorted(map(str, a.get("red_flags", []))) == ["LayoutCount", "ScriptDuration"], "red_flags")
steps = [plain(s) for s in a.get("steps", [])]
check.need(
    steps == ["load", "wait 3", "scroll to bottom", "wait 2", "ui actions", "wait 2", "read"],
    "steps with their waiting times",
)
calls = [c for c in commands("cls.sh") if "measure-cls.ts" in " ".join(c)]
check.need(
    len(calls) == 1 and calls[0][:2] in (["npx", "ts-node"], ["npx", "tsx"]), "cls.sh: the script is run"
)
check.need(calls and any(w.rstrip("/") == "http://localhost:3000" for w in calls[0]), "cls.sh: the page")
check.need(calls and "--scroll" in calls[0], "cls.sh: with scrolling")
check.need(calls and any(w.endswith("skill/measure-cls.ts") for w in calls[0]), "cls.sh: path of the script")
check.done()
