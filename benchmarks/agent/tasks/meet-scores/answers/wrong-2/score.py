import csv
import math

GL = {("M", "Raw", "SBD"): (1199.72839, 1025.18162, 0.009210), ("M", "Single", "SBD"): (1236.25115, 1449.21864, 0.016440),
      ("F", "Raw", "SBD"): (610.32796, 1045.59282, 0.03048), ("F", "Single", "SBD"): (758.63878, 949.38382, 0.02435),
      ("M", "Raw", "B"): (320.98041, 281.40258, 0.01008), ("M", "Single", "B"): (381.22073, 733.79378, 0.02398),
      ("F", "Raw", "B"): (142.40398, 442.52671, 0.04724), ("F", "Single", "B"): (221.82209, 357.00377, 0.02937)}


def dots(sex, w, total):
    if sex == "F":
        c, hi = (-0.0000010706, 0.0005158568, -0.1126655495, 13.6175032, -57.96288), 150.0
    else:
        c, hi = (-0.0000010930, 0.0007391293, -0.1918759221, 24.0900756, -307.75076), 210.0
    w = min(max(w, 40.0), hi)
    return total * 500 / (c[0] * w**4 + c[1] * w**3 + c[2] * w**2 + c[3] * w + c[4])


def gl(sex, eq, event, w, total):
    key = ("F" if sex == "F" else "M", "Raw" if eq in ("Raw", "Straps") else "Single", event)
    if key not in GL or w < 35 or not total:
        return 0.0
    a, b, c = GL[key]
    return total * max(0, 100 / (a - b * math.exp(-c * w)))


with open("lifters.csv") as f, open("scores.csv", "w", newline="") as g:
    out = csv.writer(g)
    out.writerow(["name", "dots", "goodlift"])
    for r in csv.DictReader(f):
        w, t = float(r["bodyweight_kg"]), float(r["total_kg"])
        out.writerow([r["name"], f"{dots(r['sex'], w, t):.2f}", f"{gl(r['sex'], r['equipment'], r['event'], w, t):.2f}"])
