"""Check of the task `security-settings`: security settings of a web service."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, at, close, load, plain, text

check = Check()
a = load()
for key, value in (
    ("salt_rounds", 12),
    ("session_hours", 24),
    ("upload_megabytes", 5),
    ("invalid_input_status", 422),
):
    check.need(close(a.get(key), value), key)
check.need(plain(a.get("same_site")) == "lax", "same_site")
for key, requests in (("api_limit", 100), ("auth_limit", 10)):
    check.need(close(at(a, f"{key}.requests"), requests) and close(at(a, f"{key}.minutes"), 15), key)
check.need(
    sorted(plain(t) for t in a.get("upload_types", [])) == ["image/jpeg", "image/png", "image/webp"],
    "upload_types",
)
check.need(sorted(map(str, a.get("needs_approval", []))) == ["C1", "C2", "C4", "C6"], "needs_approval")
ignored = {line.strip() for line in text(".gitignore").splitlines()}
for pattern in (".env", ".env.local", ".env.*.local", "*.pem", "*.key"):
    check.need(pattern in ignored, f".gitignore: {pattern}")
check.need(
    ".env.*" not in ignored or "!.env.example" in ignored, ".gitignore: .env.example stays in the repository"
)
check.done()
