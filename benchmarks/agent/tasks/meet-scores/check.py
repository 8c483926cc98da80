"""Check of the task `meet-scores`: a script that computes powerlifting scores."""

import csv
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, close, run

check = Check()
FIRST = [
    ["Ana", 443.65, 90.25],
    ["Bo", 447.62, 92.04],
    ["Cy", 492.47, 83.49],
    ["Di", 123.39, 96.78],
    ["Ed", 385.38, 67.22],
    ["Flo", 190.67, 0.0],
]
SECOND_INPUT = """\
name,sex,equipment,event,bodyweight_kg,total_kg
Gil,M,Unlimited,B,82.5,240
Hal,M,Single,SBD,92.04,1035
Ivy,F,Straps,SBD,38.5,250
Jo,Mx,Raw,SBD,225.0,900
"""
SECOND = [["Gil", 162.57, 85.79], ["Hal", 661.84, 112.85], ["Ivy", 371.2, 87.13], ["Jo", 446.06, 84.06]]


def scores():
    """Return the rows that the script wrote."""
    run("score.py")
    with Path("scores.csv").open(newline="", encoding="utf-8") as file:
        return [(r["name"], r["dots"], r["goodlift"]) for r in csv.DictReader(file)]


for given_, expected in ((None, FIRST), (SECOND_INPUT, SECOND)):
    if given_:
        Path("lifters.csv").write_text(given_, encoding="utf-8")
    found = {n: (d, g) for n, d, g in scores()}
    for name, dots, goodlift in expected:
        check.need(name in found and close(found[name][0], dots, 0.011), f"dots of {name}")
        check.need(name in found and close(found[name][1], goodlift, 0.011), f"goodlift of {name}")
check.done()
