"""Check of the task `dotnet-ai-stack`: packages and limits of AI features in .NET."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, close, load, plain

check = Check()
a = load()
for key, name in (
    ("priority", "microsoft.ml"),
    ("summary", "microsoft.extensions.ai"),
    ("assistant", "microsoft.agents.ai"),
    ("ingest", "microsoft.extensions.ai.dataingestion"),
):
    check.need(plain(a.get(key)) == name, f"{key}: the package")
words = plain(a.get("install_assistant")).split()
check.need(words[:2] == ["dotnet", "add"], "install_assistant: dotnet add, a project may be named")
check.need(
    "microsoft.agents.ai" in words and "--prerelease" in words, "install_assistant: prerelease of the package"
)
check.need(plain(a.get("predictor")).startswith("predictionenginepool"), "predictor: the pooled type")
for key, value in (("max_iterations", 10), ("min_score", 0.75), ("top", 5)):
    check.need(close(a.get(key), value), key)
check.need(a.get("semantic_kernel") is False, "semantic_kernel")
check.done()
