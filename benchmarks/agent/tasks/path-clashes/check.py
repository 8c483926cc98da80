"""Check of the task `path-clashes`: clashes between outputs of MSBuild evaluations."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, load, plain, squeezed

check = Check()
a = load()


def groups(value):
    """Return groups of ids in a comparable form."""
    return sorted(sorted(int(i) for i in group) for group in value)


check.need(
    groups(a.get("output_clashes", [])) == [[1, 2], [7, 8]],
    "output_clashes: which evaluations write to the same output folder",
)
check.need(
    groups(a.get("intermediate_clashes", [])) == [[1, 2], [4, 5], [7, 8]],
    "intermediate_clashes: which evaluations write to the same intermediate folder",
)
check.need("publishreadytorun" in plain(a.get("core_cause")), "core_cause")
fix = squeezed(str(a.get("core_reference_fix")))
check.need("RemoveGlobalProperties" in fix and "PublishReadyToRun" in fix, "core_reference_fix")
check.need(a.get("append_target_framework_fixes_a_and_b") is False, "append_target_framework_fixes_a_and_b")
check.done()
