"""Check of the task `offline-bar-chart`: a chart page that needs no network."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, fail, squeezed

check = Check()
path = Path("dist/chart.html")
if not path.is_file():
    fail("dist/chart.html was not written")
raw = path.read_bytes()
page = raw.decode("utf-8")
code = re.sub(r"<!--.*?-->", "", page, flags=re.S)
flat = squeezed(code)
check.need(
    re.search(r"""src=["'](\.\./|/)?vendor/d3\.v7\.9\.0\.min\.js["']""", flat),
    "the pinned library by its path",
)
check.need(not re.search(r"""(src|href)=["']?(https?:)?//""", flat), "nothing from the network")
check.need(b"\r\n" not in raw, "LF line ends")
check.need("Math.random" not in code and not re.search(r"d3\.random", code), "no randomness")
check.need(".transition(" not in flat, "no transitions of D3")
check.need(
    re.search(r"""<div[^>]*id=["']tooltip["']""", code)
    or re.search(r"""attr\(["']id["'],["']tooltip["']\)""", flat),
    "the tooltip's element",
)
check.need(
    re.search(r"\.tooltip\{[^}]*opacity:0[;}]", flat) and re.search(r"\.visible\{[^}]*opacity:1", flat),
    "hidden by opacity, shown by the class",
)
check.need(re.search(r"\.tooltip\{[^}]*pointer-events:none", flat), "the tooltip does not catch the mouse")
check.need(
    re.search(r"""classed\(["']visible["'],true\)""", flat)
    and re.search(r"""classed\(["']visible["'],false\)""", flat),
    "the class is set and taken away",
)
check.need("event.pageX" in code and "event.pageY" in code, "the tooltip is placed at the mouse")
check.need(
    (
        re.search(r"""classed\(["']selected["'],true\)""", flat)
        and re.search(r"""classed\(["']selected["'],false\)""", flat)
    )
    or re.search(r"""classed\(["']selected["'],(function\b|\(?\w+(,\w+)?\)?=>)""", flat),
    "a click marks one bar",
)
check.need(
    re.search(r"\.sort\(|\.toSorted\(|d3\.sort\(|d3\.groupSort\(", flat),
    "rows are sorted before they are drawn",
)
check.need("viewBox" in code, "a fixed view box")
for region in ("north", "east", "south"):
    check.need(region in code, f"data of {region}")
check.done()
