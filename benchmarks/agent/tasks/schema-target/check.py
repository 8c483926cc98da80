"""Check of the task `schema-target`: an MSBuild target made incremental."""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, commands, fail, text

check = Check()
targets = [
    t for t in ElementTree.fromstring(text("Schema.targets")).iter() if t.tag.split("}")[-1] == "Target"
]
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
check.need("DateTime" not in text("Schema.targets"), "no time in the path")
check.need("CoreCompile" in target.get("BeforeTargets", ""), "before compilation")
inside = {
    e.tag.split("}")[-1]: e.get("Include", "")
    for g in target
    for e in g
    if g.tag.split("}")[-1] == "ItemGroup"
}
for item in ("FileWrites", "Compile"):
    check.need("schema.g.cs" in inside.get(item, ""), f"{item}: the file, inside the target")
calls = [" ".join(c) for c in commands("why.sh")]
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
