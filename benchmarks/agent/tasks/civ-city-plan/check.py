"""Check of the task `civ-city-plan`: adjacency bonuses and limits of a city plan."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, close, load, plain

check = Check()
a = load()
for district, bonus in (
    ("industrial_zone", 4),
    ("campus", 5),
    ("commercial_hub", 6),
    ("harbor", 5),
    ("theater_square", 5),
):
    check.need(close(a.get(district), bonus), f"{district}: its bonus")
check.need(close(a.get("max_specialty"), 3), "max_specialty")
check.need(
    sorted(plain(d).replace(" ", "") for d in a.get("not_counted", []))
    == ["aqueduct", "neighborhood", "spaceport"],
    "not_counted",
)
check.need(sorted(map(str, a.get("city_sites", []))) == ["S2", "S3"], "city_sites")
check.done()
