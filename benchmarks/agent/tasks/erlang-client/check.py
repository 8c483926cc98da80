"""Check of the task `erlang-client`: an Erlang client of example processes."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, squeezed, text

check = Check()
source = re.sub(r"%.*", "", text("client.erl"))
flat = squeezed(source)
check.need("-module(client)." in flat, "the module's name")
exported = "".join(re.findall(r"-export\(\[(.*?)\]\)", flat))
for name in ("request/2", "add/3", "subscribe/1", "publish/2", "work/2"):
    check.need(name in exported or "-compile(export_all)" in flat, f"export of {name}")
sent = re.findall(r"(\w+)!\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}", flat)
bodies = [body for _, body in sent]
refs = re.findall(r"(\w+)=(?:erlang:)?make_ref\(\)", flat)
check.need(refs, "request: a reference of its own")
shape = any(
    re.fullmatch(rf"(self\(\)|\w+),{ref},\w+", b) and not b.startswith(("work,", "add,"))
    for b in bodies
    for ref in refs
)
check.need(shape, "request: sender, reference and request, in this order")
check.need(
    any(re.search(rf"receive\{{{ref},\w+\}}->\{{ok,", flat) for ref in refs),
    "request: takes only the answer with its reference",
)
check.need(re.search(r"\{add,\w+,\w+\}", flat), "add: its request")
check.need(
    any(b in ("subscribe,self()",) or re.fullmatch(r"subscribe,\w+", b) for b in bodies),
    "subscribe: its message",
)
check.need(any(re.fullmatch(r"publish,\w+", b) for b in bodies), "publish: its message")
check.need(any(re.fullmatch(r"work,\w+,(self\(\)|\w+)", b) for b in bodies), "work: its message, sender last")
check.need(re.search(r"\{result,(\w+)\}->\{ok,\1\}", flat), "work: its answer")
check.need(
    len(re.findall(r"after(?:5000|\?[A-Z_]+)->", flat, re.I)) >= 2 and "5000" in flat,
    "waiting time of five seconds in both",
)
check.need(flat.count("{error,timeout}") >= 2, "{error, timeout} in both")
check.done()
