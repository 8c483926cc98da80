"""Check of the task `airflow-on-kubernetes`: Helm values and commands for Airflow."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, at, close, commands, options, text, yaml

check = Check()
v = yaml(text("values.yaml"))
wanted = {
    "executor": "KubernetesExecutor",
    "dags.gitSync.enabled": True,
    "dags.gitSync.repo": "https://git.acme.example/dags.git",
    "dags.gitSync.branch": "release",
    "dags.gitSync.subPath": "pipelines",
    "apiServer.replicas": 2,
    "dagProcessor.enabled": True,
    "postgresql.enabled": False,
    "data.metadataConnection.host": "db.acme.example",
    "data.metadataConnection.user": "airflow",
    "data.metadataConnection.pass": "CHANGEME",
    "data.metadataConnection.db": "airflow",
    "data.metadataConnection.port": 5432,
    "logs.persistence.enabled": True,
    "logs.persistence.size": "20Gi",
}
for path, value in wanted.items():
    check.need(at(v, path) == value, path)
check.need(
    at(v, "defaultAirflowTag") == "3.1.7" or at(v, "images.airflow.tag") == "3.1.7", "the version's tag"
)
check.need(
    close(at(v, "dags.gitSync.wait"), 120) or at(v, "dags.gitSync.period") == "120s",
    "dags.gitSync: every 120 seconds",
)
calls = commands("install.sh")
check.need(
    any(c[:3] == ["helm", "repo", "add"] and "https://airflow.apache.org" in c for c in calls),
    "install.sh: the chart's repository",
)
install = next(
    (c for c in calls if c[:2] == ["helm", "install"] or c[:3] == ["helm", "upgrade", "--install"]), []
)
positional, given = options(install, ("--create-namespace", "--install", "--wait"))
check.need(
    "airflow" in positional and any(p.endswith("/airflow") for p in positional),
    "install.sh: release and chart",
)
check.need("airflow" in given.get("--namespace", []) + given.get("-n", []), "install.sh: namespace")
check.need(
    "--create-namespace" in given or ["kubectl", "create", "namespace", "airflow"] in calls,
    "install.sh: the namespace is created",
)
check.need("values.yaml" in given.get("-f", []) + given.get("--values", []), "install.sh: the values")
forward = next((c for c in calls if c[:2] == ["kubectl", "port-forward"]), [])
check.need(
    any("api" in w and w.split("/")[-1].startswith("airflow-") for w in forward)
    and {"8080:8080", "8080"} & set(forward),
    "install.sh: forward to the API server",
)
check.done()
