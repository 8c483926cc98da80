"""Check of the task `aot-library`: a library made ready for AOT analysis."""

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, close, load, plain, squeezed, text

check = Check()
project = ElementTree.fromstring(text("Lib.csproj"))
found = list(project.iter("IsAotCompatible"))
check.need(found and plain(found[0].text) == "true", "Lib.csproj: the property that turns the analysis on")
condition = "".join(
    e.get("Condition", "")
    for g in project.iter("PropertyGroup")
    for e in (g, *g)
    if (e is g and any(c.tag == "IsAotCompatible" for c in g)) or e.tag == "IsAotCompatible"
)
check.need(
    "TargetFramework" in condition
    and re.search(r"IsTargetFrameworkCompatible|==\s*'net8\.0'|!=\s*'netstandard2\.0'|StartsWith", condition),
    "Lib.csproj: only for net8.0 and later",
)
a = load()
check.need(
    sorted(map(str, a.get("json_context_types", []))) == ["Plan", "Tenant"],
    "json_context_types: our own types only",
)
statement = squeezed(str(a.get("serialize_error")))
check.need(
    "(IJsonModel<ResponseError>)error).Write(writer," in statement
    and "ModelReaderWriterOptions" in statement,
    "serialize_error: the type's own writer",
)
numbers = [int(n) for n in re.findall(r"\d+", str(a.get("batch")))]
check.need(numbers and min(numbers) >= 5 and max(numbers) <= 10, "batch")
check.need(close(a.get("tries"), 3), "tries")
check.need("requiresunreferencedcode" in plain(a.get("then")), "then: the attribute")
check.need(a.get("may_use_pragma") is False, "may_use_pragma")
check.done()
