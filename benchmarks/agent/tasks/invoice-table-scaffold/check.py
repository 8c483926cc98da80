"""Check of the task `invoice-table-scaffold`: files and decisions of a new component."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, close, load, number, plain

check = Check()
folder = Path("src/components/InvoiceTable")
for name in (
    "InvoiceTable.tsx",
    "InvoiceTable.test.tsx",
    "InvoiceTable.stories.tsx",
    "use-invoice-table.ts",
    "types.ts",
):
    check.need((folder / name).is_file(), f"file {folder / name}")
a = load()
wanted = {
    "search term and page": "url",
    "invoices from the API": "server state",
    "theme": "context",
    "row menu open": "local",
    "selected ids, needed by two sibling parts": "lifted",
}
state = {plain(k): plain(v) for k, v in a.get("state", {}).items()}
for item, kind in wanted.items():
    check.need(
        state.get(plain(item), "").removesuffix(" state") == kind.removesuffix(" state"), f"state: {item}"
    )
check.need(sorted(int(number(w)) for w in a.get("widths", [])) == [320, 768, 1024, 1440], "widths")
check.need(close(a.get("contrast_normal"), 4.5) and close(a.get("contrast_large"), 3), "contrast")
check.need(plain(a.get("loading")).startswith("skeleton"), "loading")
check.need(close(a.get("split_above_lines"), 200), "split_above_lines")
check.done()
