"""Solved if the client does the right thing after each answer."""

import json
import sys
from pathlib import Path

EXPECTED = {
    "a": ("retry", 7),
    "b": ("stop", None),  # POST without a key: the work may have been done
    "c": ("retry", None),
    "d": ("retry", 30),  # 403 that speaks of a limit
    "e": ("slow down", 600),  # less than a tenth is left; the reset is a Unix time
    "f": ("stop", 3600),  # longer than ten minutes
    "g": ("stop", None),
    "h": ("go on", None),
}

try:
    answer = json.loads(Path("answer.json").read_text(encoding="utf-8"))
except (OSError, ValueError) as error:
    print(f"answer.json cannot be read: {error}")
    sys.exit(1)
wrong = []
for name, (action, wait) in EXPECTED.items():
    given = answer.get(name) if isinstance(answer, dict) else None
    given = given if isinstance(given, dict) else {}
    # where the client stops or goes on, a wait is of no account
    if given.get("action") != action or (action in ("retry", "slow down") and given.get("wait") != wait):
        wrong.append(name)
print(f"wrong: {', '.join(wrong)}" if wrong else "all are right")
sys.exit(1 if wrong else 0)
