import csv
import json
from collections import defaultdict

cfg = json.load(open("config.json"))
runs = defaultdict(lambda: defaultdict(list))
for r in csv.DictReader(open("thermocouples.csv")):
    runs[r["run_id"]][r["tc_id"]].append((float(r["time_s"]), float(r["temp_c"])))
ids = sorted(set(cfg["run_ids"]))


def ramp(p):
    best = None
    for (t0, y0), (t1, y1) in zip(p, p[1:]):
        if t1 > t0 and any(cfg["tmin"] <= y <= cfg["tmax"] for y in (y0, y1)):
            s = (y1 - y0) / (t1 - t0)
            best = s if best is None else max(best, s)
    return best


def above(p, thr):
    total = 0.0
    for (t0, y0), (t1, y1) in zip(p, p[1:]):
        if t1 <= t0:
            continue
        if y0 > thr and y1 > thr:
            total += t1 - t0
        elif (y0 <= thr < y1) or (y1 <= thr < y0):
            tc = t1 if y1 > thr else t0  #  (thr - y0) / (y1 - y0) * (t1 - t0)
            total += t1 - tc if y1 > thr else tc - t0
    return total


def r2(x):
    return None if x is None else round(x, 2)


out = []
for i in ids:
    tcs = {k: sorted(v, key=lambda x: x[0]) for k, v in runs[i].items()}
    ramps = sorted((-v, k) for k, v in ((k, ramp(p)) for k, p in tcs.items()) if v is not None)
    tals = sorted((above(p, cfg["liquidus_c"]), k) for k, p in tcs.items())
    peaks = sorted((max(y for _, y in p), k) for k, p in tcs.items())
    out.append({"run_id": i, "max_ramp": r2(-ramps[0][0]) if ramps else None, "ramp_tc": ramps[0][1] if ramps else None,
                "min_tal_s": r2(tals[0][0]) if tals else None, "tal_tc": tals[0][1] if tals else None,
                "min_peak": r2(peaks[0][0]) if peaks else None,
                "peak_ok": bool(peaks) and peaks[0][0] >= cfg["liquidus_c"] + cfg["peak_margin_c"]})
speed = r2(cfg["heated_length_cm"] / cfg["min_dwell_s"] * 60) if cfg.get("min_dwell_s") else None
json.dump({"runs": out, "required_min_speed_cm_min": speed}, open("metrics.json", "w"))
