"""Hostile inputs for fuzzers: mutated texts, random compositions of CommonMark, queries.

Every input is a function of its number and a seed, so a failure can be made again from the two.
"""

import json
import lzma
import random
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

# fragments that parsers get wrong: openers without closers, line ends, rare characters, marks of a page
HOSTILE = (
    *("#", "# ", "###### x\n", "=\n", "---\n", "***\n", "- ", "* ", "+ ", "1. ", "1) ", "999999999. ", "> ", ">"),
    *("```", "~~~", "```\n", "~~~~ x\n", "`", "``", "    ", "\t", "  \n", "\\\n", "\\", "\n", "\n\n", "\r", "\r\n"),
    *("[", "]", "](", "![", "[a]: b\n", "[a]:\n", "[^1]: x\n", "[x](y.md)", "[x](../../etc)", "<", ">", "<!--"),
    *("-->", "<div>\n", "</div>", "<script>", "<![CDATA[", "<?", "<a href='", "&amp;", "&#0;", "&#x110000;", "&"),
    *("*", "**", "_", "__", "~~", "|", "| a | b |\n|---|---|\n", "|-|\n", "| c |\n", ":", ".", ". ", "e.g. ", "。"),
    *("\0", "\x01", "\x1b[31m", "\x7f", "\x85", "\u2028", "\u2029", "\u200b", "\u200d", "\u202e", "\u205f"),
    *("\ufeff", "\ufffd", "\ufffe", "\u0301", "\u0130", "ß", "ﬁ", "𝔘", "👩\u200d💻", "שלום", "设置", "\U0010ffff"),
    *("[… L1-9: Steps; show n1-n3]", "[Page of skill \"x\". […] = omitted lines]", "</skill_content>", "[file: x.md]"),
    *("name: ", "---\nname: x\n---\n", "...\n", "a: &a [*a]\n", "!!python/object:os.system x", "{", "}", "n1-n3", "{ids}"),
    *("a" * 300, "[" * 60, "> " * 40, "- " * 40, "*a _b " * 20, "(" * 50, "`" * 33, "|a" * 50),
)  # fmt: skip

WORDS = [
    *("run", "stop", "If", "See", "Step", "step", "3", "config.yaml", "--flag", "e.g.", "Mr.", "x=1", "a_b", "the"),
    *("设置", "é", "A.B", "1.2.3", "README.md", "n3"),
]  # fmt: skip
# openers and closers of inline markup
PAIRS = (
    *(("*", "*"), ("**", "**"), ("_", "_"), ("`", "`"), ("``", "``"), ("[", "](b.md)"), ("![", "](c)"), ("[", "]")),
    *(("<", ">"), ("<http://", ">"), ("&", ";"), ("\\", ""), ("(", ")"), ('"', '"'), ("***", "**"), ("[", "][a]")),
)  # fmt: skip


def draw_for(seed: str, number: int) -> random.Random:
    """Return the random numbers of one input."""
    return random.Random(f"{seed}/{number}")


def read_pool(path: Path, *, most: int, step: int = 1) -> list[str]:
    """Return texts of skills of a file of JSON lines, every `step`-th."""
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [json.loads(line)["skill_md"] for line in islice(file, 0, most * step, step)]


def window(texts: Sequence[str], draw: random.Random, size: int) -> str:
    """Return about `size` characters of one of the texts; a third begin where the text does."""
    text = draw.choice(texts)
    start = draw.randrange(max(1, len(text) - size)) if draw.random() < 0.67 else 0
    return text[start : start + draw.randint(1, size)]


def mutate(text: str, draw: random.Random, texts: Sequence[str]) -> str:
    """Return a text after a few cuts, repetitions, swaps, insertions and changed bytes."""
    for _ in range(draw.choice((1, 1, 2, 3, 5, 9))):
        start = draw.randrange(len(text) + 1)
        end = min(len(text), start + draw.choice((1, 2, 5, 20, 100)))
        match draw.randrange(8):
            case 0:
                text = text[:start] + text[end:]
            case 1:
                text = text[:end] + text[start:end] * draw.choice((1, 2, 8)) + text[end:]
            case 2:
                text = text[:start] + window(texts, draw, 60) + text[start:]
            case 3 | 4 | 5:
                text = text[:start] + draw.choice(HOSTILE) * draw.choice((1, 1, 1, 3, 12)) + text[start:]
            case 6:
                text = text[:start] + text[start:end].swapcase()[::-1] + text[end:]
            case _:
                text = _with_other_bytes(text, draw)
    return text


def _with_other_bytes(text: str, draw: random.Random) -> str:
    """Return a text with a few changed bytes; rarely, broken characters are kept as lone surrogates."""
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(draw.choice((1, 3, 10)) if data else 0):
        data[draw.randrange(len(data))] = draw.randrange(256)
    return data.decode("utf-8", "surrogateescape" if draw.random() < 0.02 else "replace")


# ---- random compositions of CommonMark


def compose(draw: random.Random, size: int) -> str:
    """Return blocks of every kind, nested and at times not closed, of about `size` characters."""
    parts: list[str] = []
    while sum(map(len, parts)) < size:
        parts.append(_block(draw, draw.choice((0, 0, 1, 2, 4))))
        parts.append(draw.choice(("\n", "\n\n", "\n\n", "", "\n \n", "\r\n\r\n")))
    return "".join(parts)


def _block(draw: random.Random, depth: int) -> str:
    kinds: list[Callable[[], str]] = [
        lambda: _line(draw),
        lambda: "\n".join(_line(draw) for _ in range(draw.randint(1, 4))),
        lambda: f"{'#' * draw.randint(1, 7)} {_line(draw)}{draw.choice(('', ' #', ' ##'))}",
        lambda: f"{_line(draw)}\n{draw.choice(('===', '---', '-', '=  '))}",
        lambda: draw.choice(("---", "* * *", "___", "- - -")),
        lambda: _fence(draw),
        lambda: "\n".join(f"    {_line(draw)}" for _ in range(draw.randint(1, 3))),
        lambda: _table(draw),
        lambda: (
            f"[{_word(draw)}]: {draw.choice(('<a b>', 'b.md', 'http://a.b', ''))} {draw.choice(('', chr(34)))}"
        ),
        lambda: draw.choice(
            ("<div>\nx\n\n", "<!-- a\n", "<?php x\n", "<b>x</b>\n", "<pre>\n\n</pre>", "</p>")
        ),
        lambda: f"{_line(draw)}:",
    ]
    if depth and draw.random() < 0.6:
        marker = draw.choice(("- ", "* ", "+  ", "1. ", "10) ", "> ", ">", "-\t", "- [ ] "))
        inner = "\n".join(_block(draw, depth - 1) for _ in range(draw.randint(1, 3))).split("\n")
        again = (
            marker
            if marker.startswith(">") or draw.random() < 0.3
            else " " * draw.choice((len(marker), 2, 0))
        )
        return "\n".join([marker + inner[0], *(again + line for line in inner[1:])])
    return draw.choice(kinds)()


def _line(draw: random.Random) -> str:
    return " ".join(_inline(draw) for _ in range(draw.randint(1, 8))) + draw.choice(
        ("", ".", "!", ":", "。", "  ", "\\")
    )


def _inline(draw: random.Random) -> str:
    if draw.random() < 0.6:
        return _word(draw)
    opener, closer = draw.choice(PAIRS)
    inner = _inline(draw) if draw.random() < 0.5 else _word(draw)
    return opener + inner + (closer if draw.random() < 0.8 else "")


def _word(draw: random.Random) -> str:
    return draw.choice(WORDS) if draw.random() < 0.95 else draw.choice(HOSTILE)


def _fence(draw: random.Random) -> str:
    mark = draw.choice(("```", "~~~", "````"))
    body = "\n".join(_line(draw) for _ in range(draw.randint(0, 3)))
    return f"{mark}{draw.choice(('', 'sh', 'python x'))}\n{body}\n{mark if draw.random() < 0.8 else ''}"


def _table(draw: random.Random) -> str:
    width = draw.randint(1, 4)
    rows = ["|".join(_inline(draw) for _ in range(width)) for _ in range(draw.randint(1, 4))]
    return "\n".join(f"|{row}|" for row in [rows[0], "|".join(["---"] * width), *rows[1:]])


# ---- queries


def query(draw: random.Random, texts: Sequence[str]) -> str:
    """Return a hostile query: control characters, surrogates, blanks, markup, up to 100 kB."""
    match draw.randrange(7):
        case 0:
            return "".join(chr(draw.randrange(1, 0x250)) for _ in range(draw.randint(1, 60)))
        case 1:
            return draw.choice(("", " ", "\n", "\0", "\u200b", "\ufeff", "?", "...", "\u3000", "\x1b"))
        case 2:
            return draw.choice(HOSTILE) * draw.choice((1, 2, 50))
        case 3:
            return "restore \ud800 a \udfff table"[draw.randrange(4) :]
        case 4:
            return " ".join(_word(draw) for _ in range(draw.randint(1, 30)))
        case 5:
            return mutate(window(texts, draw, 300), draw, texts)
        case _:
            unit = draw.choice(("word ", "a", "设", ". ", "and then ", "x, ", "\n", "\0", "?"))
            return unit * (draw.choice((1_000, 8_000, 100_000)) // len(unit))
