"""Check of the task `audit-csv`: a script that writes a security audit as CSV."""

import csv
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, close, load, run, text

check = Check()


def rows(report):
    """Return header and rows that the script writes for a report."""
    Path("given.json").write_text(json.dumps(report), encoding="utf-8")
    run("report.py", "given.json")
    with Path("security_audit.csv").open(newline="", encoding="utf-8-sig") as file:
        read = list(csv.reader(file))
    return (read[0] if read else []), [r for r in read[1:] if any(r)]


first = json.loads(text("trivy.json"))
head, found = rows(first)
check.need(
    head == ["Package", "Version", "CVE_ID", "Severity", "CVSS_Score", "Fixed_Version", "Title", "Url"],
    "the columns of the schema",
)
check.need([r[0] for r in found] == ["minimist", "qs", "tar"], "only high and critical findings")
table = {r[0]: dict(zip(head, r, strict=False)) for r in found}
for package, score in (("minimist", "9.8"), ("qs", "8.1"), ("tar", "N/A")):
    check.need(table.get(package, {}).get("CVSS_Score") == score, f"score of {package}")
check.need(table.get("minimist", {}).get("Fixed_Version") == "1.2.6", "version with the fix")
check.need(table.get("qs", {}).get("Fixed_Version") == "N/A", "mark for an unknown version")
check.need(table.get("qs", {}).get("Title") == 'Überlauf, "qs"', "quotes and special characters")
second = {
    "Results": [
        {
            "Target": "x",
            "Vulnerabilities": [
                {
                    "PkgName": "a",
                    "InstalledVersion": "1",
                    "VulnerabilityID": "C",
                    "Severity": "HIGH",
                    "CVSS": {"redhat": {"V3Score": 6.1}, "nvd": {"V2Score": 4.3}},
                    "FixedVersion": "2",
                    "Title": "t",
                    "PrimaryURL": "u",
                }
            ],
        }
    ]
}
check.need(rows(second)[1] == [["a", "1", "C", "HIGH", "6.1", "2", "t", "u"]], "score of the third source")
due = load().get("due_days", {})
for severity, days in (("CRITICAL", 1), ("HIGH", 7), ("MEDIUM", 30), ("LOW", 90)):
    check.need(close(due.get(severity), days), f"due_days: {severity}")
check.done()
