"""Check of the task `regions-dag`: a DAG for dag-factory and its loader."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, at, fail, squeezed, text, yaml

check = Check()
dag = yaml(text("region_loads.yml")).get("region_loads") or fail("no DAG region_loads")
either = at(dag, "schedule.datasets.__or__") or []
both = next((e["__and__"] for e in either if isinstance(e, dict) and "__and__" in e), [])
check.need(
    sorted(map(str, both)) == ["s3://lake/raw/clients", "s3://lake/raw/orders"], "schedule: both datasets"
)
check.need([e for e in either if isinstance(e, str)] == ["s3://lake/raw/override"], "schedule: or the third")
check.need(dag.get("catchup") is False, "no catchup")
listed = dag.get("tasks")
check.need(isinstance(listed, list), "tasks as a list")
tasks = (
    {t.get("task_id"): t for t in listed}
    if isinstance(listed, list)
    else {str(k): v for k, v in (listed or {}).items()}
)
for name in ("list_regions", "load_region"):
    each = tasks.get(name, {})
    check.need(
        each.get("operator") == "airflow.providers.standard.operators.python.PythonOperator",
        f"{name}: full path of the operator",
    )
    check.need(
        each.get("python_callable_name") == name
        and each.get("python_callable_file") == "$CONFIG_ROOT_DIR/regions.py",
        f"{name}: function and file",
    )
load_ = tasks.get("load_region", {})
check.need(at(load_, "expand.op_args") == "list_regions.output", "load_region: one run for each element")
check.need(at(load_, "partial.op_kwargs.mode") == "full", "load_region: the fixed argument")
check.need(load_.get("dependencies") in (["list_regions"], None), "load_region: depends on list_regions")
limit = load_.get("execution_timeout") or at(load_, "default_args.execution_timeout") or {}
check.need(
    isinstance(limit, dict)
    and limit.get("__type__") == "datetime.timedelta"
    and (limit.get("hours") == 2 or limit.get("minutes") == 120 or limit.get("seconds") == 7200),
    "load_region: two hours as a typed object",
)
tell = load_.get("on_failure_callback") or {}
check.need(
    isinstance(tell, dict)
    and tell.get("callback") == "airflow.providers.slack.notifications.slack.send_slack_notification",
    "load_region: callback on failure",
)
check.need(
    isinstance(tell, dict)
    and tell.get("slack_conn_id") == "slack_prod"
    and str(tell.get("channel")).lstrip("#") == "data",
    "load_region: connection and channel",
)
loader = squeezed(text("load_dags.py"))
check.need(
    "fromdagfactoryimportload_yaml_dags" in loader or "dagfactory.load_yaml_dags(" in loader,
    "load_dags.py: the loader of 1.x",
)
check.need("globals_dict=globals()" in loader, "load_dags.py: the module's names")
check.need("config_filepath=" in loader and "region_loads.yml" in loader, "load_dags.py: just this file")
check.done()
