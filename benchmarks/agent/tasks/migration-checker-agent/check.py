"""Check of the task `migration-checker-agent`: a custom agent file for VS Code."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, fail, yaml

check = Check()
path = Path("agents/migration-checker.agent.md")
if not path.is_file():
    fail("agents/migration-checker.agent.md was not written")
parts = path.read_text(encoding="utf-8").split("---", 2)
if len(parts) < 3:
    fail("no front matter")
head, body = yaml(parts[1]), parts[2]
check.need(head.get("description"), "description")
check.need(head.get("name") in (None, "migration-checker"), "name")
tools = head.get("tools") or []
check.need(
    tools and set(tools) <= {"search", "fetch", "codebase"} and "search" in tools, "tools that only read"
)
check.need(head.get("user-invokable") is False, "hidden from people")
check.need(head.get("disable-model-invocation") in (None, False), "other agents may call it")
check.need("agents" in head and head["agents"] == [], "may call no agents")
check.need(head.get("target") == "vscode", "target")
hand = (head.get("handoffs") or [{}])[0]
check.need(
    hand.get("label") == "Fix the migration" and hand.get("agent") == "implementation",
    "handoff: label and agent",
)
check.need(str(hand.get("prompt")).startswith("Fix the problems listed above"), "handoff: prompt")
check.need(hand.get("send") in (None, False), "handoff: not sent")
check.need(hand.get("model") == "GPT-5.2 (copilot)", "handoff: model")
check.need("#tool:search" in body, "the search tool is named in its syntax")
check.done()
