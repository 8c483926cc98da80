"""Check of the task `harbour-deck`: texts and commands for a deck made from a template."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, at, close, commands, load, options

check = Check()
replaced = load("replacement-text.json")
check.need(set(replaced) <= {"slide-0", "slide-1"}, "only slides that the inventory has")


def paragraphs(slide, shape):
    """Return the paragraphs of a shape."""
    return (at(replaced, f"{slide}.{shape}") or {}).get("paragraphs") or []


for slide, shape, words in (
    ("slide-0", "shape-0", "Harbour report 2025"),
    ("slide-0", "shape-1", "Operations team"),
    ("slide-1", "shape-0", "Results"),
):
    found = paragraphs(slide, shape)
    check.need(len(found) == 1 and found[0].get("text") == words, f"{slide} {shape}: its text")
    if shape == "shape-0" and found:
        check.need(found[0].get("bold") is True, f"{slide} {shape}: bold as before")
    if slide == "slide-0" and found:
        check.need(found[0].get("alignment") == "CENTER", f"{slide} {shape}: centred as before")
points = paragraphs("slide-1", "shape-1")
check.need(
    [p.get("text") for p in points] == ["Traffic up 4 %", "Two new cranes"], "bullets: text without signs"
)
check.need(
    points and all(p.get("bullet") is True and p.get("level") == 0 for p in points),
    "bullets: marked, with their level",
)
check.need(points and all("alignment" not in p for p in points), "bullets: no alignment")
check.need(points and all(close(p.get("font_size"), 18) for p in points), "bullets: font size as before")
check.need(not paragraphs("slide-1", "shape-2"), "the draft stamp gets no paragraphs")
check.need(
    not any("replacement_paragraphs" in s for slide in replaced.values() for s in slide.values()),
    "the field is called paragraphs",
)
calls = [c for c in commands("deck.sh") if any(w.endswith(".py") for w in c)]
tails = [
    [w.split("/")[-1] if w.endswith(".py") else w for w in c if w not in ("python", "python3")] for c in calls
]
check.need(len(tails) == 4, "deck.sh: four calls")
tails += [[]] * 4
check.need(
    tails[0] == ["rearrange.py", "template.pptx", "working.pptx", "0,7"],
    "deck.sh: the slides by their indices",
)
check.need(tails[1] == ["inventory.py", "working.pptx", "text-inventory.json"], "deck.sh: the inventory")
check.need(
    tails[2] == ["replace.py", "working.pptx", "replacement-text.json", "output.pptx"], "deck.sh: the texts"
)
positional, given = options(tails[3])
check.need(
    positional[:3] == ["thumbnail.py", "output.pptx", "check"] and given.get("--cols") == ["6"],
    "deck.sh: the overview with most slides in a grid",
)
check.done()
