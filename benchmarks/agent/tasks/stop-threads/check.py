"""Check of the task `stop-threads`: replacements for ways to stop threads."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, load, plain, squeezed

check = Check()
a = load()
sleep, gate, end = (squeezed(str(a.get(key))) for key in ("sleep", "gate", "end"))
check.need(
    "token.WaitHandle.WaitOne(" in sleep and "750" in sleep, "sleep: wait on the token's handle for 750 ms"
)
check.need(
    "WaitHandle.WaitAny(" in gate and "token.WaitHandle" in gate and "ready" in gate,
    "gate: wait for any of event and token",
)
check.need(plain(a.get("batch")) == "one per unit", "batch: one source for each unit")
check.need(plain(a.get("vendor")) == "child process", "vendor: a child process")
check.need(plain(a.get("reports")) == "no change", "reports: no change")
check.need(
    "Response.Redirect(" in end and "true" not in end.lower() and "Response.End" not in end,
    "end: redirect without the second argument",
)
check.done()
