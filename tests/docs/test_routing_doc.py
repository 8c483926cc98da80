"""docs/routing.md shows the rows of benchmarks/routing."""

import generate_routing
from marked_blocks import read_blocks


def test_the_tables_show_the_rows() -> None:
    written = read_blocks(generate_routing.PAGE.read_text(encoding="utf-8"))
    made = generate_routing.blocks()
    assert written
    assert {name: made.get(name) for name in written} == written
