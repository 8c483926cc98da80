"""Check of the task `speaker-segments`: a script that picks a threshold and merges segments."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, load, number, run

check = Check()
SECOND = {
    "n_segments": 40,
    "counts": {"0.4": 4, "0.5": 2, "0.6": 1, "0.7": 1, "0.8": 1, "0.9": 1, "1.0": 1, "1.1": 1, "1.2": 1},
    "segments": [[0.0, 5.0, 3], [5.15, 6.0, 3], [5.5, 5.9, 3], [6.2, 7.0, 3]],
}


def result():
    """Return what the script wrote, in a comparable form."""
    run("speakers.py")
    found = load("speakers.json")
    merged = [(round(float(s[0]), 3), round(float(s[1]), 3), str(s[2])) for s in found.get("merged", [])]
    return number(found.get("threshold")), number(found.get("max_speakers")), merged


threshold, most, merged = result()
check.need(threshold == 1.0, "threshold: raised step by step")
check.need(most == 6, "max_speakers for 13 segments")
check.need(
    merged == [(0.0, 3.0, "0"), (3.2, 3.9, "0"), (4.0, 7.0, "1"), (6.5, 6.8, "2"), (7.05, 8.0, "2")],
    "merged: default gap, sorted",
)
Path("clusters.json").write_text(json.dumps(SECOND), encoding="utf-8")
threshold, most, merged = result()
check.need(threshold == 0.5, "threshold: lowered step by step")
check.need(most == 10, "max_speakers for 40 segments")
check.need(merged == [(0.0, 6.0, "3"), (6.2, 7.0, "3")], "merged: segments within another")
check.done()
