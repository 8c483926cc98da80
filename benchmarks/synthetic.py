"""Generator of documents of any size, and of new queries, from the sample skills.

Documents are sections of the samples in random order. Every fourth longer word gets a unique number, so that
hardly any two nodes or embeddings are equal.
"""

import json
import random
import re
from itertools import count
from pathlib import Path

from options import SAMPLES
from skillpager.strategies.navigator.lexical import clauses_of

CHARACTERS_PER_NODE = 145
UNIQUE_WORD_SHARE = 1 / 4
_WORD = re.compile(r"\b[A-Za-z]{4,}\b")
_SECTION = re.compile(r"^(?=#{1,3} )", re.MULTILINE)
_FENCE = re.compile(r"^\s*(```|~~~)")
SEED = 7
# has an unclosed fence, which would swallow all that follows
ODD = "odd-markdown"


def document(size: int, *, seed: int = SEED) -> str:
    """Return Markdown of about `size` bytes, cut at a block."""
    draw = random.Random(seed)
    serial = count()
    blocks: list[str] = ["# Synthetic skill\n"]
    length = len(blocks[0])
    sections = _sections()
    while True:
        draw.shuffle(sections)
        for section in sections:
            for block in _blocks(section):
                fresh = _unique(block, draw, serial)
                length += len(fresh.encode()) + 1
                if length > size:
                    return "\n".join(blocks)
                blocks.append(fresh)


def queries(number: int, *, seed: int = SEED) -> list[str]:
    """Return `number` different queries, each the halves of two sample queries, in random order."""
    lines = _sample_queries().splitlines()
    # a language without spaces has no halves
    asked = [query.split() for query in (json.loads(line)["query"] for line in lines) if query.isascii()]
    mixed = [
        " ".join([*first[: len(first) // 2], *second[len(second) // 2 :]])
        for first in asked
        for second in asked
        if first is not second
    ]
    mixed = sorted(set(mixed))
    random.Random(seed).shuffle(mixed)
    return [f"{mixed[n % len(mixed)]} {n // len(mixed) or ''}".strip() for n in range(number)]


def queries_of_clauses(number: int, *, clauses: int, seed: int = SEED) -> list[str]:
    """Return `number` queries made of clauses of the sample queries, each with a number of its own.

    So no two share a clause, whose embedding would be in memory the second time.
    """
    draw = random.Random(seed)
    serial = count()
    lines = _sample_queries().splitlines()
    asked = [query for query in (json.loads(line)["query"] for line in lines) if query.isascii()]
    parts = sorted({part for query in asked for part in clauses_of(query)})
    return [
        "; ".join(f"{part} {next(serial)}" for part in draw.sample(parts, clauses)) for _ in range(number)
    ]


def _sample_queries() -> str:
    return (SAMPLES.parent / "queries.jsonl").read_text(encoding="utf-8")


def _sections() -> list[str]:
    texts = [_body(path) for path in sorted(SAMPLES.glob("*/SKILL.md")) if path.parent.name != ODD]
    return [section for text in texts for section in _SECTION.split(text) if section.strip()]


def _body(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return text.split("\n---\n", 1)[-1] if text.startswith("---") else text


def _blocks(section: str) -> list[str]:
    """Return the blocks of a section: runs of lines between blank ones, code fences intact."""
    blocks, lines, inside = [], list[str](), False
    for line in section.splitlines():
        if _FENCE.match(line):
            inside = not inside
        if line.strip() or inside:
            lines.append(line)
        elif lines:
            blocks.append("\n".join(lines) + "\n")
            lines = []
    if lines and not inside:
        blocks.append("\n".join(lines) + "\n")
    return blocks


def _unique(block: str, draw: random.Random, serial: "count[int]") -> str:
    def change(word: re.Match[str]) -> str:
        return f"{word[0]}{next(serial)}" if draw.random() < UNIQUE_WORD_SHARE else word[0]

    changed = _WORD.sub(change, block)
    # a block of short words alone is told apart by its end
    return changed if changed != block or _FENCE.match(block) else f"{block.rstrip()} {next(serial)}\n"
