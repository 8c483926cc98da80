"""Check of the task `airflow3-etl`: a DAG file and settings for Airflow 3."""

import ast
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, text

check = Check()
tree = ast.parse(text("etl.py"))
source = ast.unparse(tree)
calls = {
    ast.unparse(c.func): {k.arg: ast.unparse(k.value) for k in c.keywords}
    for c in ast.walk(tree)
    if isinstance(c, ast.Call)
}
imports = {f"{i.module}.{n.name}" for i in ast.walk(tree) if isinstance(i, ast.ImportFrom) for n in i.names}
for name in (
    "airflow.providers.standard.operators.bash.BashOperator",
    "airflow.providers.standard.operators.empty.EmptyOperator",
    "airflow.sdk.dag",
    "airflow.sdk.task",
):
    check.need(name in imports, f"import of {name}")
check.need("DummyOperator" not in source and "airflow.decorators" not in source, "old imports are gone")
check.need("execution_date" not in source, "execution_date is gone")
check.need("logical_date" in source, "the logical date")
check.need("yesterday_ds" not in source, "yesterday_ds is gone")
template = calls.get("BashOperator", {}).get("bash_command", "")
check.need("ds_add" in template and "-1" in template, "the day before, in the template")
dag = calls.get("dag", {})
check.need(
    re.search(r"timedelta\((days=)?1\)|timedelta\(hours=24\)|@daily|0 0 \* \* \*", dag.get("schedule", "")),
    "the daily schedule, said plainly",
)
check.need(dag.get("catchup") == "True", "catchup, said plainly")
load_ = calls.get("task", {})
check.need(
    load_.get("on_success_callback") == "tell" and load_.get("on_skipped_callback") in ("tell", "[tell]"),
    "the callback for skipped tasks",
)
settings = dict(
    line.replace("export ", "").strip().split("=", 1)
    for line in text("airflow.env").splitlines()
    if "=" in line and not line.startswith("#")
)
settings = {k.strip(): v.strip().strip("'\"").lower() for k, v in settings.items()}
check.need(
    settings.get("AIRFLOW__CORE__DAG_IGNORE_FILE_SYNTAX") == "regexp", "setting: syntax of .airflowignore"
)
check.need(
    settings.get("AIRFLOW__SCHEDULER__CREATE_CRON_DATA_INTERVAL") == "true", "setting: data intervals of cron"
)
steps = re.findall(r"(?<![\d.])\d+\.\d+(?:\.\d+)?", text("steps.txt"))
steps = steps[1:] if steps[:1] == ["2.7"] else steps
right = (
    steps[:1]
    and steps[0].startswith("2.11")
    and steps[1:]
    and all(re.match(r"3\.0\.1[1-9]|3\.[1-9]", s) for s in steps[1:])
)
check.need(right, "steps: the last 2.x first, then a 3.x that is late enough")
check.done()
