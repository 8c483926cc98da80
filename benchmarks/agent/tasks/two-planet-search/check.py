"""Check of the task `two-planet-search`: a search for two planets, and a reading of its results."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, close, load, plain, squeezed, text

check = Check()
a = load()
check.need(
    {k: plain(v) for k, v in a.get("classes", {}).items()}
    == {"C1": "very strong", "C2": "strong", "C3": "weak"},
    "classes by detection efficiency",
)
check.need(a.get("snr_ok") == {"C1": True, "C2": False, "C3": True}, "snr_ok")
check.need(close(a.get("next_period"), 8.4, 0.01), "next_period")
flat = squeezed(re.sub(r"#.*", "", text("find_planets.py")))
check.need("deffind(" in flat, "the function find")
check.need(
    "remove_outliers(sigma=3)" in flat
    or "remove_outliers(sigma=3.0)" in flat
    or re.search(r"SIGMA\w*=3(\.0)?\D", flat, re.I),
    "outlier limit",
)
check.need(0 <= flat.find("remove_outliers(") < flat.find("flatten("), "outliers before flattening")
objects = re.findall(r"transitleastsquares\(([^()]*(?:\([^()]*\)[^()]*)*)\)", flat)
objects = [o for o in objects if o.count(",") >= 1]
check.need(objects and all(o.count(",") >= 2 for o in objects), "uncertainties of the flux are passed")
window = re.search(r"0\.95|1-0?\.05|1\.05|1\+0?\.05|0\.05|±5", flat)
check.need(window and "period_min=" in flat and "period_max=" in flat, "refinement by five percent")
check.need(
    re.search(r"transit_mask\([^)]*,\w+(\.period|period)?[^)]*,[^)]*duration[^)]*,[^)]*T0", flat, re.I),
    "mask: period, duration and epoch",
)
check.need(re.search(r"\[~\w+\]|logical_not|~\w*mask", flat), "masked points are taken out")
check.need(
    flat.count(".power(") >= 3 or (flat.count(".power(") >= 2 and flat.count("def") > 1),
    "search, refinement, second search",
)
check.done()
