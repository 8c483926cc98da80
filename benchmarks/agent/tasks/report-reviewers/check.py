"""Check of the task `report-reviewers`: authors and reviewers found in a set of artifacts."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, load

check = Check()
a = load()
final = a.get("answer", {})
keys = {
    "target_product",
    "report_doc_id",
    "author_employee_ids",
    "key_reviewer_employee_ids",
    "all_employee_ids_union",
}
check.need(set(final) == keys, "answer: the fields of the skill")
check.need(final.get("target_product") == "HarborFlow", "answer: product")
check.need(final.get("report_doc_id") == "doc_hf_mrr_final", "answer: the right report")
check.need(final.get("author_employee_ids") == ["eid_1002"], "answer: author")
check.need(
    sorted(final.get("key_reviewer_employee_ids", [])) == ["eid_1003", "eid_1005"],
    "answer: reviewers who contributed",
)
union = final.get("all_employee_ids_union", [])
check.need(
    sorted(union) == ["eid_1002", "eid_1003", "eid_1005"] and union[0] == "eid_1002",
    "answer: all ids, authors first",
)
records = {str(r.get("employee_id")): r for r in a.get("evidence", [])}
check.need(sorted(records) == ["eid_1002", "eid_1003", "eid_1005"], "evidence: a record for each id")
for employee, artifact in (("eid_1003", "HarborFlow_planning_2"), ("eid_1005", "m2")):
    listed = records.get(employee, {}).get("evidence") or [{}]
    check.need(records.get(employee, {}).get("role") == "key_reviewer", f"evidence: role of {employee}")
    check.need(
        any(e.get("artifact_id") == artifact and e.get("artifact_type") and e.get("snippet") for e in listed),
        f"evidence: pointer and snippet for {employee}",
    )
check.need(a.get("recommendation") == "USE_EVIDENCE", "recommendation")
check.done()
