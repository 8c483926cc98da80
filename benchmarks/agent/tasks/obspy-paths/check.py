"""Check of the task `obspy-paths`: expressions for fields of ObsPy objects."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, load, squeezed

check = Check()
a = load()


def path(key):
    """Return an expression without spaces, with the lists by their attributes."""
    found = squeezed(str(a.get(key))).replace('"', "'")
    found = re.sub(r"\['(\w+)'\]", r".\1", found)
    return found.replace("cat.events[", "cat[").replace(".traces[", "[")


station = r"inv(\.networks)?\[0\](\.stations)?\[0\](\.channels)?\[0\]"
check.need(
    path("second_event_magnitude_type") == "cat[1].magnitudes[0].magnitude_type",
    "second_event_magnitude_type",
)
check.need(path("first_origin_depth") == "cat[0].origins[0].depth", "first_origin_depth")
check.need(re.fullmatch(station + r"\.sample_rate", path("channel_rate")), "channel_rate")
check.need(re.fullmatch(station + r"\.location_code", path("channel_location")), "channel_location")
check.need(path("trace_rate") == "st[0].stats.sampling_rate", "trace_rate")
check.need(path("trace_location") == "st[0].stats.location", "trace_location")
check.need(path("samples") in ("st[0].stats.npts", "len(st[0])", "len(st[0].data)"), "samples")
check.need(path("previews") == "obspy.core.preview", "previews")
check.need(path("times") == "obspy.core.utcdatetime", "times")
check.need(path("read_stations").removesuffix("()").split(".")[-1] == "read_inventory", "read_stations")
check.need(
    path("remove_instrument").removesuffix("()").split(".")[-1] == "remove_response", "remove_instrument"
)
check.done()
