"""Check of the task `reflow-metrics`: a script that computes metrics of reflow runs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, close, load, run

check = Check()
EXPECTED = {
    "runs": [
        {
            "run_id": "R10",
            "max_ramp": 3.0,
            "ramp_tc": "TC10",
            "min_tal_s": 28.0,
            "tal_tc": "TC10",
            "min_peak": 225.0,
            "peak_ok": False,
        },
        {
            "run_id": "R2",
            "max_ramp": 4.7,
            "ramp_tc": "TC1",
            "min_tal_s": 38.36,
            "tal_tc": "TC2",
            "min_peak": 236.0,
            "peak_ok": True,
        },
        {
            "run_id": "R3",
            "max_ramp": None,
            "ramp_tc": None,
            "min_tal_s": None,
            "tal_tc": None,
            "min_peak": None,
            "peak_ok": False,
        },
    ],
    "required_min_speed_cm_min": 67.5,
}
run("metrics.py")
found = load("metrics.json")
runs = found.get("runs", [])
check.need([r.get("run_id") for r in runs] == [r["run_id"] for r in EXPECTED["runs"]], "order of the runs")
table = {r.get("run_id"): r for r in runs}
for wanted in EXPECTED["runs"]:
    given_ = table.get(wanted["run_id"], {})
    for key, value in wanted.items():
        ok = close(given_.get(key), value, 0.006) if isinstance(value, float) else given_.get(key) == value
        check.need(ok and key in given_, f"{wanted['run_id']}: {key}")
check.need(close(found.get("required_min_speed_cm_min"), 67.5), "required_min_speed_cm_min")
check.done()
