import csv
import json

cfg = json.load(open("features.json"))


def parse(s):
    s = s.strip()
    if "e" in s.lower():
        return float(s)
    return float(s.replace(",", "."))


def convert(v, col):
    lo, hi = cfg[col]["range"]
    if lo <= v <= hi:
        return v
    for f in cfg[col]["factors"]:
        if lo <= v * f <= hi:
            return v * f
    return v


with open("labs.csv") as f:
    rows = list(csv.DictReader(f))
out = []
for r in rows:
    if any((r[c] or "").strip() in ("", "NaN", "None", "nan", "none") for c in cfg):
        continue
    out.append({"patient": r["patient"], **{c: f"{convert(parse(r[c]), c):.2f}" for c in cfg}})
with open("clean.csv", "w", newline="") as f:
    w = csv.DictWriter(f, ["patient", *cfg])
    w.writeheader()
    w.writerows(out)
