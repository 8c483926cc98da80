"""Check of the task `lean-session-memory`: which events of a session become memories, and how."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, at, load

check = Check()
memories = load().get("memories", {})
kinds = {"E1": "ProofPattern", "E3": "FailedApproach", "E5": "ProjectConvention", "E7": "UserPreference"}
for event in ("E2", "E4", "E6"):
    check.need(event not in memories, f"{event} is not kept")
for event, kind in kinds.items():
    check.need(memories.get(event, {}).get("entity_type") == kind, f"{event}: kept, with its type")
    check.need(
        at(memories, f"{event}.attributes.project") == "/home/ines/lean/ergodic",
        f"{event}: project by its full path",
    )
proof = at(memories, "E1.attributes") or {}
check.need(
    set(proof)
    == {
        "project",
        "goal_pattern",
        "tactics",
        "helper_lemmas",
        "difficulty",
        "confidence",
        "file",
        "timestamp",
    },
    "E1: the attributes of the format",
)
check.need(
    proof.get("tactics") == ["refine", "gcongr", "simp"]
    and sorted(proof.get("helper_lemmas", [])) == ["integral_mono", "maximal_ergodic"],
    "E1: tactics in order, lemmas",
)
check.need(proof.get("difficulty") in ("small", "medium", "large"), "E1: a difficulty of the scale")
confidence = proof.get("confidence")
check.need(
    isinstance(confidence, (int, float)) and 0.8 <= confidence <= 1.0, "E1: confidence of a clean proof"
)
failed = at(memories, "E3.attributes") or {}
check.need(
    set(failed) == {"project", "failed_tactic", "error", "context", "alternative", "timestamp"},
    "E3: the attributes of the format",
)
check.need(
    "comp_assoc" in str(failed.get("failed_tactic")) and "iterate_succ'" in str(failed.get("alternative")),
    "E3: what failed and what worked",
)
check.done()
