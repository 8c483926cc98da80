"""Check of the task `metering-scala`: a Python module as idiomatic Scala."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, text

check = Check()
source = re.sub(r"//.*", "", re.sub(r"/\*.*?\*/", "", text("Metering.scala"), flags=re.S))
flat = re.sub(r"\s+", " ", source)
check.need(re.search(r"\bval MaxRetryCount\b", flat), "name of the constant")
check.need(
    "private[this]" in flat or re.search(r"class Meter\(\s*unit\s*:", flat),
    "the attribute is private to the object",
)
check.need(
    re.search(r"object Meter\b", flat) and re.search(r"def apply\(\s*\)", flat),
    "default construction by a companion object",
)
check.need(re.search(r"sealed (trait|abstract class) Shape|enum Shape", flat), "closed set of shapes")
check.need(
    len(re.findall(r"case class \w+\([^)]*\)\s*extends Shape", flat)) >= 2, "a case class for each shape"
)
check.need(re.search(r"\bmatch\b", flat) and not re.search(r"\bif\b", flat), "a match instead of conditions")
check.need(re.search(r"def findOwner\b[^=]*Option\[", flat), "findOwner returns an Option")
check.need("tapEach" in flat or re.search(r"\.foreach\(", flat), "side effects apart from the mapping")
check.need(not re.search(r"\bfor\s*\([^)]*\)\s*(?!yield)\S", flat), "no loops")
check.need(re.search(r"def total\b.*?(\.sum\b|foldLeft|foldRight|\.fold\b|reduce)", flat), "total by a fold")
check.need("zipWithIndex" in flat, "numbered with indices")
check.need(re.search(r"def save\b[^=]*(Try\[|Either\[)", flat), "save returns its outcome")
check.need(re.search(r"def doubledWithTrace\b", flat), "names of functions")
check.need(not re.search(r"\bvar\b|\bnull\b|asInstanceOf|: Any\b", flat), "no var, null or casts")
check.done()
