"""The files of deploy/: linters accept them, and what they say of the service is true of it."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import yaml
from typer.testing import CliRunner

from cli_process import environment, run
from conftest import ROOT
from skillpager.cli.app import app
from skillpager.http.options import DEFAULT_PORT, PROBES

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "skillpager"
# the first whose kubelet has the `sleep` of preStop, and the newest that the schemas know
KUBERNETES = ("1.30", kubernetes_validate.latest_version())
EVERYTHING = {
    "replicas": 3,
    "imagePullSecrets": [{"name": "registry"}],
    "ingress": {"enabled": True, "className": "nginx", "host": "skills.test", "tlsSecret": "tls"},
    "otel": {"endpoint": "http://collector:4318"},
    "extraArgs": ["--verbose"],
    "allowedHosts": ["skills.internal"],
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "skills": {"volume": {"configMap": {"name": "skills"}}},
}
LEAST = {"replicas": 1, "store": {"address": "", "passwordSecret": ""}}


def checked(*command: str | Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr


def rendered(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the objects of the chart."""
    texts = helm_python.Chart.load(CHART).render(values, name="team", namespace="tools")
    documents = [each for text in texts.values() for each in yaml.safe_load_all(text) if each]
    return sorted(documents, key=lambda each: str(each["kind"]))


def options_of_serve() -> set[str]:
    shown = CliRunner().invoke(app, ["serve", "--help"], prog_name="skillpager").output
    return set(re.findall(r"--[a-z-]+", shown))


def test_yaml_is_clean_and_the_compose_file_follows_its_specification() -> None:
    checked("yamllint", "--strict", "--config-file", DEPLOY / ".yamllint.yaml", DEPLOY)
    checked("check_jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")


@pytest.mark.parametrize("values", [{}, EVERYTHING, LEAST], ids=["defaults", "everything", "least"])
@pytest.mark.parametrize("version", KUBERNETES)
def test_helm_and_kubernetes_accept_what_the_chart_renders(values: dict[str, Any], version: str) -> None:
    report = helm_python.lint(CHART, values, strict=True)
    assert report["errors"] == []
    assert [each for each in report["messages"] if each["error"] != "icon is recommended"] == []
    documents = rendered(values)
    for document in documents:
        kubernetes_validate.validate(document, version, strict=True)
    kinds = {document["kind"] for document in documents}
    assert {"Deployment", "Service"} <= kinds
    assert ("Ingress" in kinds) == (values is EVERYTHING)
    assert ("PodDisruptionBudget" in kinds) == (values is not LEAST)


@pytest.mark.parametrize(
    "values",
    [
        {"replicas": 0},
        {"tokenSecret": ""},
        {"replica": 2},
        {"store": {"address": "postgresql://me:password@host/db"}},
    ],
)
def test_wrong_values_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(helm_python.HelmError):
        rendered(values)


@pytest.mark.parametrize("values", [{}, EVERYTHING, LEAST])
def test_the_chart_starts_the_service_as_it_can_be_started(values: dict[str, Any]) -> None:
    (deployment,) = (each for each in rendered(values) if each["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    given = {argument.partition("=")[0] for argument in container["args"] if argument.startswith("--")}
    assert given <= options_of_serve()
    assert {
        container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("liveness", "readiness", "startup")
    } <= PROBES
    assert f"--port={container['ports'][0]['containerPort']}" in container["args"]
    security = container["securityContext"]
    assert security["readOnlyRootFilesystem"]
    assert not security["allowPrivilegeEscalation"]


def test_the_compose_file_starts_the_service_as_it_can_be_started(tmp_path: Path) -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    service = compose["services"]["skillpager"]
    given = [argument for argument in service["command"] if argument.startswith("--")]
    assert {argument.partition("=")[0] for argument in given} <= options_of_serve()
    assert f":{DEFAULT_PORT}/readyz" in service["healthcheck"]["test"][-1]
    assert service["deploy"]["replicas"] == 2
    # everything but the variables is right: the one that is missing is named
    done = run("serve", tmp_path, *given, env=environment(tmp_path / "cache"))
    assert done.code == 2
    assert "SKILLPAGER_SERVER_TOKEN" in done.err
    assert "SKILLPAGER_SERVER_TOKEN" in service["environment"]
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    assert f"EXPOSE {DEFAULT_PORT}" in dockerfile
    assert 'ENTRYPOINT ["skillpager", "serve"]' in dockerfile
    variables = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))
    assert variables == set(re.findall(r"^(\w+)=", (DEPLOY / "env.example").read_text(), re.MULTILINE))
