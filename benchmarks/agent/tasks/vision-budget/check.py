"""Check of the task `vision-budget`: a token estimate and settings of a vision client."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, close, load, plain, run

check = Check()
for width, height, expected in [
    (1024, 1024, 765),
    (2048, 4096, 1445),
    (600, 400, 1105),
    (3000, 900, 2125),
    (1920, 1080, 2125),
]:
    check.need(
        run("estimate.py", str(width), str(height), "high").strip() == str(expected),
        f"estimate.py {width} {height} high",
    )
check.need(run("estimate.py", "4000", "3000", "low").strip() == "85", "estimate.py, low")
a = load()
for job, level in (
    ("D1", "high"),
    ("D2", "low"),
    ("D3", "auto"),
    ("D4", "high"),
    ("D5", "low"),
    ("video_frames", "auto"),
):
    check.need(plain(a.get(job)) == level, f"{job}: level")
for key, value in (
    ("max_images", 500),
    ("max_image_mb", 20),
    ("resize_above_mb", 15),
    ("video_max_tokens", 2000),
):
    check.need(close(a.get(key), value), key)
check.done()
