"""Check of the task `binary-search`: functions that look for a binary black hole."""

import ast
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, number, squeezed, text

check = Check()
tree = ast.parse(text("search.py"))
constants = {
    t.id: ast.unparse(a.value)
    for a in ast.walk(tree)
    if isinstance(a, ast.Assign) and isinstance(a.value, ast.Constant)
    for t in a.targets
    if isinstance(t, ast.Name)
}
found = {f.name: f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)}


def source(name):
    """Return the source of a function and of the helpers that it calls."""
    if name not in found:
        return ""
    node, parts = found[name], []
    called = {c.func.id for c in ast.walk(node) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name)}
    parts.extend(squeezed(ast.unparse(found[each])) for each in (name, *sorted(called & set(found) - {name})))
    joined = " ".join(parts).replace('"', "'")
    return re.sub(
        r"(?<![\w.'])[A-Za-z_]\w*(?![\w'=(])", lambda w: constants.get(w.group(), w.group()), joined
    )


def crops(each, start, end):
    """Return whether the edges are cut off, in the function or by a helper that is told how much."""
    for found_ in re.finditer(r"\.crop\((?:left=)?([^,()]+),(?:right=)?([^,()]+)\)", each):
        if all(re.fullmatch(r"[\d.+*]+", part) for part in found_.groups()):
            return [sum(map(number, part.split("+"))) for part in found_.groups()] == [start, end]
        return (
            re.search(rf"[(,]{start}(\.0)?,{end}(\.0)?[,)]|={start}(\.0)?,\w+={end}(\.0)?\b", each)
            is not None
        )
    return False


td, fd = source("peak_td"), source("peak_fd")
check.need("get_td_waveform(" in td and "SEOBNRv4_opt" in td, "peak_td: template in the time domain")
check.need("delta_t=conditioned.delta_t" in td, "peak_td: the data's sampling")
check.need(".resize(len(conditioned))" in td, "peak_td: template as long as the data")
check.need(".cyclic_time_shift(" in td and "start_time)" in td, "peak_td: template shifted")
check.need(crops(td, 8, 4), "peak_td: edges")
check.need("get_fd_waveform(" in fd and "IMRPhenomD" in fd, "peak_fd: template in the frequency domain")
check.need(
    "delta_f=" in fd
    and (
        "1/conditioned.duration" in fd
        or "1.0/conditioned.duration" in fd
        or "psd.delta_f" in fd
        or "conditioned.delta_f" in fd
        or "to_frequencyseries().delta_f" in fd
    ),
    "peak_fd: the data's resolution",
)
check.need(".resize(len(psd))" in fd, "peak_fd: template as long as the spectrum")
check.need(crops(fd, 4, 4), "peak_fd: edges")
for name, each in (("peak_td", td), ("peak_fd", fd)):
    cutoffs = re.findall(r"low_frequency_cutoff=([^,)]+)", each)
    plain_ = all(number(c) == 18 for c in cutoffs if re.match(r"[\d.]+$", c)) and re.search(
        r"\b18\b", text("search.py")
    )
    check.need(cutoffs and plain_, f"{name}: cutoff of the filter")
    check.need("abs(" in each, f"{name}: magnitude of the ratio")
check.done()
