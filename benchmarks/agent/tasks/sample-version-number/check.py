"""Solved if each release has the version that the checklist asks for."""

import json
import sys
from pathlib import Path

# an announced error breaks nothing; a default that users notice and the end of a platform do; in doubt minor
EXPECTED = {"spring": "2.3.2", "summer": "3.0.0", "autumn": "2.4.0", "winter": "3.0.0"}

try:
    answer = json.loads(Path("answer.json").read_text(encoding="utf-8"))
except (OSError, ValueError) as error:
    print(f"answer.json cannot be read: {error}")
    sys.exit(1)
given = answer if isinstance(answer, dict) else {}
wrong = [name for name, version in EXPECTED.items() if given.get(name) != version]
print(f"wrong version: {', '.join(wrong)}" if wrong else "all versions are right")
sys.exit(1 if wrong else 0)
