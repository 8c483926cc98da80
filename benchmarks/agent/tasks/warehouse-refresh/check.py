"""Check of the task `warehouse-refresh`: a refreshed description of a warehouse."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, commands, plain, text

check = Check()
body = text(".astro/warehouse.md")
check.need(
    "| churn | HQ.MART_CUST.CHURN | ACCT_ID | MONTH |" in body and "| customers |" in body,
    "entries of the quick reference are kept",
)
check.need("<!-- churn: agreed with finance, do not change -->" in body, "comments are kept")
check.need("the trial flag is unreliable before 2021" in body, "descriptions by people are kept")
parts = {plain(p.partition("\n")[0]): p for p in re.split(r"^#### +", body, flags=re.M)[1:]}
leads = next((p for n, p in parts.items() if n.startswith("legacy leads")), "")
accounts = next((p for n, p in parts.items() if n.startswith("accounts")), "")
events = next((p for n, p in parts.items() if n.startswith("events")), "")
check.need("95500" in re.sub(r"[,_ ]", "", accounts), "row count of ACCOUNTS")
check.need(
    "<!-- REMOVED -->" in leads or re.search(r"<!-- REMOVED -->\s*#### LEGACY_LEADS", body),
    "LEGACY_LEADS is kept and marked as removed by the comment of a refresh",
)
check.need("412000000" in re.sub(r"[,_ ]", "", events), "EVENTS with its row count")
check.need(re.search(r"WARNING.*date filter", events, re.I), "the warning for large tables")
check.need("WARNING" not in accounts, "no warning for small tables")
calls = [[w for w in c if not w.startswith("cd")] for c in commands("after.sh")]
joined = [" ".join(c) for c in calls]
check.need(
    any(re.search(r"cli\.py concept import (-p|--path)[ =]\S*\.astro/warehouse\.md", c) for c in joined),
    "after.sh: import of concepts",
)
check.need(
    any(re.search(r"cli\.py cache clear --stale-only$", c) for c in joined),
    "after.sh: clear expired entries only",
)
check.done()
