"""Check of the task `schema-target`: an MSBuild target made incremental."""

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, fail, text

check = Check()
root = ElementTree.fromstring(text("Schema.targets"))
for element in root.iter():
    element.tag = element.tag.split("}")[-1]
properties = {p.tag: (p.text or "").strip() for group in root.iter("PropertyGroup") for p in group}


def expanded(value):
    """Return a value with the file's own properties put in."""
    for _ in range(3):
        value = re.sub(r"\$\((\w+)\)", lambda found: properties.get(found.group(1), found.group()), value)
    return value


for element in root.iter():
    for name, value in element.attrib.items():
        element.set(name, expanded(value))
targets = list(root.iter("Target"))
target = next((t for t in targets if t.get("Name") == "GenerateSchema"), None)
if target is None:
    fail("Schema.targets has no target GenerateSchema")
inputs, outputs = target.get("Inputs", ""), target.get("Outputs", "")
check.need("@(SchemaFile)" in inputs, "inputs: the schema files")
check.need(
    "$(MSBuildProjectFile)" in inputs
    or "$(MSBuildProjectFullPath)" in inputs
    or "$(MSBuildAllProjects)" in inputs,
    "inputs: the project file",
)
check.need(
    "$(IntermediateOutputPath)" in outputs and "schema.g.cs" in outputs, "outputs: in the intermediate folder"
)
check.need(not any("DateTime" in v for e in root.iter() for v in e.attrib.values()), "no time in the path")
check.need("CoreCompile" in target.get("BeforeTargets", ""), "before compilation")
inside = {e.tag: e.get("Include", "") for g in target.iter("ItemGroup") for e in g}
for item in ("FileWrites", "Compile"):
    check.need("schema.g.cs" in inside.get(item, ""), f"{item}: the file, inside the target")
joined = text("why.sh")
check.need(all(f"bl:{n}.binlog" in joined for n in ("first", "second")), "why.sh: two builds with logs")
check.need(
    "msbuild second.binlog" in joined
    and "second-full.log" in joined
    and any(f"v={w}" in joined.lower() or f"verbosity={w}" in joined.lower() for w in ("diag", "diagnostic")),
    "why.sh: the second log as text with all details",
)
check.need("is newer than output" in joined, "why.sh: the message to look for")
check.done()
