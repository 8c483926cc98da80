"""Blocks of a page that a script writes: each stands between `<!-- NAME -->` and `<!-- /NAME -->`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

BLOCK = re.compile(r"<!-- (?P<name>[^/\n][^\n]*?) -->\n(?P<text>.*?)<!-- /(?P=name) -->", re.DOTALL)


def read_blocks(text: str) -> dict[str, str]:
    """Return the text of each block of a page by its name."""
    return {found["name"]: found["text"] for found in BLOCK.finditer(text)}


def write_blocks(page: Path, blocks: Mapping[str, str]) -> None:
    """Replace blocks of a page; those without a new text stay."""

    def fill(found: re.Match[str]) -> str:
        name = found["name"]
        return f"<!-- {name} -->\n{blocks.get(name, found['text'])}<!-- /{name} -->"

    page.write_text(BLOCK.sub(fill, page.read_text(encoding="utf-8")), encoding="utf-8")


def table(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    rows = [f"| {' | '.join(map(str, line))} |\n".replace("|  |", "| |") for line in (head, *lines)]
    return "".join([rows[0], "|---" * len(head) + "|\n", *rows[1:]])
