"""Check of the task `clickhouse-ingest-review`: a review of an insert job in the house form."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, plain, text

check = Check()
body = text("review.md")
heads = [plain(h) for h in re.findall(r"^#{2,3} +(.+?)\s*$", body, re.M)]
house = ["rules checked", "findings", "violations", "compliant", "recommendations"]
check.need([h for h in heads if h in house] == house, "the headings of the report form, in order")
listed = body.partition("## Findings")[0]
bad = ("insert-batch-size", "insert-mutation-avoid-update", "insert-async-small-batches")
good = ("insert-mutation-avoid-delete", "insert-optimize-avoid-final")
for rule, outcome in [*((r, "violation") for r in bad), *((r, "compliant") for r in good)]:
    check.need(re.search(rf"`?{rule}`?[^\n]*{outcome}", listed, re.I), f"{rule}: listed with its outcome")
violations = body.partition("### Violations")[2].partition("### Compliant")[0]
for rule in bad:
    check.need(rule in violations, f"{rule}: among the violations")
for label in ("Current", "Required", "Fix"):
    check.need(len(re.findall(rf"\b{label}\b\**:", violations)) >= 3, f"{label} for every violation")
check.need(
    re.search(r"10[ ,.]?(?:000|k)\b", violations, re.I)
    and re.search(r"100[ ,.]?(?:000|k)\b", violations, re.I),
    "the required batch size",
)
check.need("ReplacingMergeTree" in body or "CollapsingMergeTree" in body, "the engine for updates")
check.done()
