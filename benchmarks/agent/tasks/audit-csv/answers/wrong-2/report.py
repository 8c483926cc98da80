import csv
import json
import sys

HEAD = ["Package", "Version", "CVE_ID", "Severity", "CVSS_Score", "Fixed_Version", "Title", "Url"]


def score(v):
    for s in ("nvd", "ghsa", "redhat"):
        x = (v.get("CVSS") or {}).get(s, {}).get("V3Score")
        if x is not None:
            return x
    return "N/A"


rows = []
for r in json.load(open(sys.argv[1])).get("Results", []):
    for v in r.get("Vulnerabilities") or []:
        if v.get("Severity") in ("HIGH", "CRITICAL"):
            rows.append([v["PkgName"], v["InstalledVersion"], v["VulnerabilityID"], v["Severity"], score(v), v.get("FixedVersion") or "", v.get("Title"), v.get("PrimaryURL")])
with open("security_audit.csv", "w", newline="", encoding="utf-8") as f:
    w = csv.writer(f)
    w.writerow(HEAD)
    w.writerows(rows)
