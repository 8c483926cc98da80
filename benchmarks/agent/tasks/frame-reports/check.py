"""Check of the task `frame-reports`: reports of a frame extraction."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, close, load, plain

check = Check()
a = load()
dock, gate = a.get("dock", {}), a.get("gate", {})
keys = {
    "success",
    "source_video",
    "output_directory",
    "frames_extracted",
    "extraction_params",
    "video_metadata",
    "output_files",
    "warnings",
}
for name, each in (("dock", dock), ("gate", gate)):
    check.need(set(each) == keys, f"{name}: the fields of the schema")
check.need(dock.get("success") is True and dock.get("source_video") == "dock.mp4", "dock: success and name")
check.need(dock.get("frames_extracted") == 24, "dock: number of frames")
check.need(
    dock.get("extraction_params")
    == {"interval": 25, "start_frame": 100, "end_frame": 700, "output_format": "png"},
    "dock: parameters",
)
about = dock.get("video_metadata") or {}
check.need(
    about.get("total_frames") == 900
    and close(about.get("fps"), 29.97)
    and about.get("resolution") == [1280, 720],
    "dock: data of the video",
)
check.need(close(about.get("duration_seconds"), 30.03, 0.006), "dock: duration in seconds")
files = [re.fullmatch(r"frame_(\d{6})\.png", str(f).split("/")[-1]) for f in dock.get("output_files", [])]
numbers = [int(f.group(1)) for f in files if f]
check.need(
    len(files) == 24 and all(files) and numbers in (list(range(24)), list(range(1, 25))),
    "dock: names of the files, counted on with six digits",
)
check.need(dock.get("warnings") == [], "dock: no warnings")
check.need(
    gate.get("success") is False and gate.get("frames_extracted") == 0 and gate.get("output_files") == [],
    "gate: failure without frames",
)
check.need(
    gate.get("extraction_params")
    == {"interval": 25, "start_frame": 0, "end_frame": None, "output_format": "jpg"},
    "gate: parameters with defaults",
)
zero = gate.get("video_metadata") or {}
check.need(
    zero.get("total_frames") == 0
    and zero.get("fps") == 0
    and zero.get("duration_seconds") == 0
    and zero.get("resolution") == [0, 0],
    "gate: data of the video as zeros",
)
warnings = [plain(w) for w in gate.get("warnings", [])]
check.need(
    len(warnings) == 1
    and warnings[0].startswith("extraction failed")
    and "cannot open video" in warnings[0]
    and "gate.avi" in warnings[0],
    "gate: the warning",
)
check.need(close(a.get("every_2_5_s"), 74), "every_2_5_s")
check.done()
