"""Check of the task `mt-activation`: a .NET Framework activation log explained and cured."""

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, load, plain, text

check = Check()
a = load()
check.need(plain(a.get("failing_entry_point")).startswith("dllgetclassobject"), "failing_entry_point")
check.need("2.0.50727" in str(a.get("limited_to_version")), "limited_to_version")
check.need("80131700" in str(a.get("hresult")), "hresult")
check.need(plain(a.get("dialog")) == "suppressed", "dialog")
check.need("parent" in plain(a.get("set_by")), "set_by")
check.need(a.get("is_bug") is False, "is_bug")
startup = next(ElementTree.fromstring(text("mt.exe.config")).iter("startup"), None)
check.need(
    startup is not None and startup.get("useLegacyV2RuntimeActivationPolicy") == "true",
    "mt.exe.config: the attribute for legacy activations",
)
versions = [e.get("version", "") for e in startup.iter("supportedRuntime")] if startup is not None else []
check.need(bool(versions) and all(v.startswith("v4.0") for v in versions), "mt.exe.config: version 4.0")
lines = [line.strip().lower() for line in text("capture.cmd").splitlines()]
make = next((i for i, s in enumerate(lines) if re.search(r"\b(mkdir|md)\b.*clrloadlogs", s)), None)
on = next(
    (i for i, s in enumerate(lines) if re.search(r"set \"?complus_clrloadlogdir=\"?c:\\clrloadlogs", s)), None
)
ran = next((i for i, s in enumerate(lines) if re.search(r"\bmt\.exe\"? -nologo|^mt -nologo", s)), None)
off = next(
    (i for i, s in enumerate(lines) if re.search(r"set \"?complus_clrloadlogdir=\"?\s*$|^endlocal", s)), None
)
check.need(make is not None, "capture.cmd: the folder is made first")
check.need(on is not None, "capture.cmd: the variable")
check.need(
    None not in (make, on, ran) and make < ran and on < ran, "capture.cmd: folder and variable before the run"
)
check.need(None not in (ran, off) and ran < off, "capture.cmd: recording is switched off after the run")
check.done()
