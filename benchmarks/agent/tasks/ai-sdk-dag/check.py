"""Check of the task `ai-sdk-dag`: a DAG moved to the official AI provider."""

import ast
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, squeezed, text

check = Check()
needs = [line.split("#")[0].strip() for line in text("requirements.txt").splitlines()]
check.need(not any("airflow-ai-sdk" in line for line in needs), "requirements.txt: the old package is gone")
found = [re.fullmatch(r"apache-airflow-providers-common-ai\s*\[([^]]*)\](.*)", line) for line in needs]
check.need(
    any(f and "openai" in f.group(1) and re.search(r"0\.([4-9]|\d\d)|[1-9]\.\d", f.group(2)) for f in found),
    "requirements.txt: the provider with its extra, from 0.4.0",
)
line = next(
    (e for e in text(".env").splitlines() if e.strip().startswith("AIRFLOW_CONN_PYDANTICAI_CORTEX=")), ""
)
try:
    connection = json.loads(line.partition("=")[2].strip().strip("'"))
    connection = json.loads(connection) if isinstance(connection, str) else connection
except json.JSONDecodeError:
    connection = {}
extra = connection.get("extra", {})
extra = json.loads(extra) if isinstance(extra, str) else extra
check.need(connection.get("conn_type") == "pydanticai", ".env: type of the connection")
check.need(connection.get("password") == "KEY", ".env: the key as password")
check.need(
    str(connection.get("host")).rstrip("/") == "https://llm.corp.example/v1", ".env: the server as host"
)
check.need(extra.get("model") == "openai:llama3.1-8b", ".env: the model with its prefix in extra")
tree = ast.parse(text("tickets.py"))
source = ast.unparse(tree)
calls = {ast.unparse(c.func): c for c in ast.walk(tree) if isinstance(c, ast.Call)}
named = {
    t.id: squeezed(ast.unparse(a.value))
    for a in ast.walk(tree)
    if isinstance(a, ast.Assign)
    for t in a.targets
    if isinstance(t, ast.Name)
}


def given(name, key):
    """Return a keyword's source in the call of a decorator."""
    keywords = calls[name].keywords if name in calls else []
    value = next((squeezed(ast.unparse(k.value)) for k in keywords if k.arg == key), "")
    value = named.get(value, value)
    inner = value.strip("[]")
    return f"[{named[inner]}]" if inner in named else value


check.need("airflow_ai_sdk" not in source and "OpenAIModel" not in source, "tickets.py: no old imports")
check.need("Agent" not in calls, "tickets.py: no Agent object")
for name in ("task.agent", "task.llm"):
    check.need(given(name, "llm_conn_id").strip("'") == "pydanticai_cortex", f"{name}: the connection")
    check.need(not given(name, "model"), f"{name}: no model argument")
check.need(
    "FunctionToolset(" in given("task.agent", "toolsets")
    and "find_ticket" in given("task.agent", "toolsets"),
    "task.agent: tools that are logged",
)
check.need("research" in given("task.agent", "system_prompt"), "task.agent: the system prompt")
check.need(given("task.llm", "serialize_output") == "True", "task.llm: output as a dict")
check.need(
    given("task.llm", "output_type") == "Verdict" and "class Verdict(BaseModel)" in source,
    "task.llm: output type of pydantic's BaseModel",
)
check.done()
