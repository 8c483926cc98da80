"""Constructs that make a parser of Markdown slow, large or wrong, each as a function of the size wanted.

Constructs of CommonMark are here alone, nested, unclosed, repeated and alternating; so are tables, front
matter, sentences, names of headings and files, links, and rare characters. The texts are deterministic.
"""

from collections.abc import Callable
from itertools import count

Construct = Callable[[int], str]


def repeated(unit: str, *, before: str = "", after: str = "") -> Construct:
    """Return a construct that repeats `unit`, between `before` and `after`."""
    return lambda size: before + unit * max(1, size // len(unit)) + after


def numbered(unit: Callable[[int], str], *, before: str = "", after: str = "") -> Construct:
    """Return a construct of `unit(0)`, `unit(1)` and so on, between `before` and `after`."""

    def build(size: int) -> str:
        parts: list[str] = []
        length = 0
        for number in count():
            if length >= size:
                break
            parts.append(unit(number))
            length += len(parts[-1])
        return before + "".join(parts) + after

    return build


def halves(first: str, second: str, *, between: str = "", before: str = "", after: str = "") -> Construct:
    """Return a construct that repeats `first`, then `second` as often."""

    def build(size: int) -> str:
        times = max(1, size // (len(first) + len(second)))
        return before + first * times + between + second * times + after

    return build


def growing(unit: Callable[[int], str]) -> Construct:
    """Return a construct of units whose length grows with their number, so that about √size fit."""
    return numbered(lambda number: unit(number + 1))


def nested(marker: str, line: str, *, gap: str = "", after: str = "") -> Construct:
    """Return lines, each one `marker` deeper than the one before: about √size of them."""
    return growing(lambda depth: marker * depth + line + "\n" + gap)


def front_matter(inner: Construct) -> Construct:
    """Return a construct as the whole front matter, with a short body."""
    return lambda size: f"---\nname: x\n{inner(size)}\n---\n# Title\n\nText.\n"


def square_table(size: int) -> str:
    """Return a table with as many columns as rows; all rows but the header have one cell."""
    side = max(1, size // 7)
    return "|a" * side + "|\n" + "|-" * side + "|\n" + "|b\n" * side


def full_square_table(size: int) -> str:
    """Return a table with as many columns as rows, all cells filled."""
    side = max(1, int((size / 2) ** 0.5))
    return "|a" * side + "|\n" + "|-" * side + "|\n" + ("|b" * side + "|\n") * side


def named_and_cited(size: int) -> str:
    """Return many headings, and then text that names each of them."""
    total = max(1, size // 60)
    headings = "".join(f"## Topic alpha{number} beta\n\nx\n\n" for number in range(total))
    return headings + "".join(f"See topic alpha{number} beta now.\n\n" for number in range(total))


def deep_headings_cited(size: int) -> str:
    """Return six open headings with long titles, and many nodes below them that name each other."""
    head = "".join(f"{'#' * level} {'Deep level word ' * 8}{level}\n\n" for level in range(1, 7))
    return head + "Go to deep level word deep level word now. Done.\n\n" * max(1, size // 50)


CONSTRUCTS: dict[str, Construct] = {
    # plain text and blank space
    "letters": repeated("x"),
    "words": repeated("word "),
    "paragraphs": repeated("A sentence of some words. And another one!\n\n"),
    "sentences": repeated("A sentence of some words stands here. "),
    "full stops": repeated("."),
    "abbreviations": repeated("e.g. x, i.e. y etc. z vs. Mr. A. "),
    "conditions": repeated("If so, go on. Then stop. "),
    "blanks": repeated(" ", before="x", after="y"),
    "blanks before a stop": repeated(" ", before="x.", after="."),
    "tabs": repeated("\t"),
    "empty lines": repeated("\n", before="x", after="y"),
    "carriage returns": repeated("x\r"),
    "backslashes": repeated("\\"),
    "unclosed entities": repeated("&"),
    # headings
    "headings": repeated("# A\n"),
    "heading levels": numbered(lambda number: f"{'#' * (6 - abs(number % 10 - 5))} Part {number}\n\nSee part {number // 2}.\n\n"),
    "setext headings": repeated("Title\n===\n"),
    "long setext heading": repeated("word\n", after="===\n"),
    "long heading": repeated("word ", before="# "),
    "heading of brackets": repeated("[", before="# "),
    "heading of links": repeated("[a](b) ", before="# "),
    "heading of link beginnings": repeated("[a](", before="# "),
    "heading of less-than signs": repeated("<", before="# "),
    "heading of tags": repeated("<a>", before="# "),
    "heading of backticks": repeated("`", before="# "),
    "heading of stars": repeated("*", before="# "),
    "heading of underscores": repeated("_", before="# "),
    "heading of numbers": repeated("1.", before="# "),
    "heading of blanks": repeated(" ", before="# a", after="b"),
    "heading of flags": repeated("--flag ", before="# "),
    "heading of ideographs": repeated("设置", before="# "),
    "numbered headings": numbered(lambda number: f"## {number}. Step {number}: do part {number}\n\nx\n\n"),
    "same headings": repeated("## Same\n\nGo to same.\n\n"),
    "identifier headings": numbered(lambda number: f"## my_func{number}() --flag-{number}\n\nUse my_func{number}().\n\n"),
    "headings that share beginnings": numbered(lambda number: f"## a b c d e f g {number}\n\na b c d e f g h\n\n"),
    # thematic breaks
    "long thematic break": repeated("- "),
    # lists
    "bullets": repeated("- item\n"),
    "long bullets": repeated("- an item that is long enough to be a fragment alone, " + "very " * 30 + "\n"),
    "alternating nested bullets": repeated("- a\n * b\n  + c\n"),
    "numbers": numbered(lambda number: f"{number + 1}. item\n"),
    "bullets on a line": repeated("- ", after="a"),
    "mixed bullets on a line": repeated("- + * 1. ", after="a"),
    "deep bullets on lines": repeated("- " * 70 + "a\n"),
    "markers on lines": repeated("-\n  - a\n"),
    "nested list": nested("  ", "- a"),
    "nested numbers": nested("   ", "1. a"),
    "list stairs beyond the limit": numbered(lambda number: "  " * (number % 200) + "- a\n"),
    "long item": repeated("word\n  ", before="- "),
    "item of paragraphs": repeated("  word\n\n", before="- a\n\n"),
    # quotes
    "quotes": repeated("> a\n"),
    "quotes on lines": repeated(">" * 70 + "a\n"),
    "nested quotes": nested(">", "a"),
    "lazy quote": repeated("a\n", before="> "),
    "quotes and bullets on lines": repeated("> - > - a\n"),
    "quote of a table": repeated("> | a |\n", before="> | a |\n> |---|\n"),
    "quotes beyond the limit": repeated("> " * 70 + "a\n\n"),
    # code
    "fence": repeated("code\n", before="```\n", after="```\n"),
    "unindented fences in items": repeated("- ```\nx\n"),
    "unmarked fences in quotes": repeated("> ```\nx\n\n"),
    "empty lines of code": repeated("```\nx" + "\n" * 1_190 + "y\n```\n\n"),
    "unclosed fence": repeated("code\n", before="```\n"),
    "alternating fences": repeated("```\n~~~\n"),
    "growing fences": growing(lambda length: "`" * (length + 2) + "\n"),
    "indented code": repeated("    code\n"),
    "growing backtick runs": growing(lambda length: "`" * length + " "),
    "code span that is not closed": repeated("a ", before="`"),
    # HTML
    "divs": repeated("<div>\n\n</div>\n\n"),
    "unclosed div": repeated("a\n", before="<div>\n"),
    "unclosed comments": repeated("<!-- a\n\n"),
    "cdata": repeated("<![CDATA[ a\n\n"),
    "inline cdata": repeated("a <![CDATA["),
    "unclosed elements": repeated("<pre>\n"),
    "unclosed elements apart": repeated("<pre> a\n\n", before="<!--\n\n<?\n\n"),
    "unclosed comments and fences": repeated("<!-- a\n```\n"),
    "unclosed comments in items": repeated("- <!-- a\n"),
    "unclosed comments in quotes": repeated("> <!-- a\n>\n"),
    "fences in tags": repeated("<a>\n```\nx\n\ny\n```\n</a>\n"),
    "fences and closing tags": repeated("```\n</a>\n<a>\n```\n"),
    "lists in tags": repeated("<div>\n- a\n# b\n"),
    "blanks between closing tags": repeated("</a>      ", after="x"),
    "tags": repeated("<a>"),
    "less-than signs": repeated("<"),
    "attributes": repeated(" b='c'", before="x <a"),
    "unclosed attributes": repeated("<a b='"),
    "unclosed autolinks": repeated("<http:"),
    # links and references
    "link lines": numbered(lambda number: f"- [part {number}](references/part{number}.md)\n"),
    "link beginnings": repeated("[a]("),
    "link of parentheses": halves("(", ")", before="[a](", after=")"),
    "nested images": halves("![", "](a)"),
    "brackets": repeated("["),
    "nested brackets": halves("[", "]"),
    "labels": repeated("[a][b] "),
    "definitions": numbered(lambda number: f"[a{number}]: http://b.c\n"),
    "definitions and labels": numbered(lambda number: f"[a{number}]: b.md\n\n[a{number}] [a{number}][]\n\n"),
    "definition with titles": repeated("[a]: b 'c\n"),
    "definition with a long title": repeated("c\n", before="[a]: b '"),
    "definition with a long label": repeated("c\n", before="["),
    "definition of a long address": repeated("c", before="[a]: "),
    "footnotes": numbered(lambda number: f"Text[^{number}].\n\n[^{number}]: Note.\n\n"),
    "addresses": repeated("https://a.b/c?d=e. "),
    "long address": repeated("a.", before="https://"),
    # emphasis
    "stars": repeated("*"),
    "emphasis openers": repeated("*a "),
    "nested emphasis": halves("*a ", "b* "),
    "long mixed runs": repeated("a**b_c* "),
    "words with underscores": repeated("a_b_"),
    # tables
    "table": repeated("| b | c |\n", before="| a | b |\n|---|---|\n"),
    "wide table": halves("|a", "|-", between="|\n", after="|\n|b|\n"),
    "wide table row": repeated("|b", before="|a|\n|-|\n"),
    "square table": square_table,
    "full square table": full_square_table,
    "pipes": repeated("|"),
    "escaped pipes": repeated("\\|", before="|a|\n|-|\n"),
    "delimiter row of dashes": repeated("-", before="|a|\n|"),
    "table of code": repeated("| `a` | [b](c.md) |\n", before="| a | b |\n|---|---|\n"),
    # names of headings and files
    "named and cited headings": named_and_cited,
    "deep headings cited": deep_headings_cited,
    "steps cited": numbered(lambda number: f"## Step {number}\n\nAfter step {number // 3}, run `cmd{number}`.\n\n"),
    "file names": numbered(lambda number: f"Read docs/part{number}.md first. "),
    "file name of dashes": repeated("-"),
    "code span words": numbered(lambda number: f"Run `command{number % 50}` before `other{number}`.\n\n"),
    "cues": repeated("Before you install, ensure you must verify the prerequisites.\n\n"),
    "flags": repeated("--flag "),
    "assignments": repeated("a = "),
    "blanks and signs": repeated("  =  "),
    "angle placeholders": repeated("<a b"),
    # characters
    "ideograph sentences": repeated("第一句。第二句！"),
    "wide stops": repeated("。"),
    "no-break blanks": repeated("A\u00a0.NET application. "),
    "line separators": repeated("a\u2028"),
    "wide blanks": repeated("A\u3000。"),
    "zeros": repeated("a\0"),
    "byte order marks": repeated("\ufeff"),
    "bold ideograph sentences": repeated("好。**坏。**行。"),
    "closers behind a wide stop": repeated("”**", before="好。"),
    "combining marks": repeated("\u0301", before="a"),
    "right-to-left": repeated("שלום عالم. "),
    "capital dotted i": repeated("\u0130. "),
    "quotation marks": repeated("\"'”’»"),
    # front matter
    "front matter fields": front_matter(numbered(lambda number: f"key{number}: value\n")),
    "front matter list": front_matter(repeated("- a\n", before="tags:\n")),
    "front matter nesting": front_matter(nested(" ", "a:")),
    "front matter brackets": front_matter(repeated("[", before="a: ")),
    "front matter question marks": front_matter(repeated("? ")),
    "front matter flow list": front_matter(repeated("a, ", before="a: [", after="]")),
    "front matter quoted text": front_matter(repeated("\\x41", before='a: "', after='"')),
    "front matter unclosed quote": front_matter(repeated("b\n\n", before='a: "')),
    "front matter block text": front_matter(repeated("  word\n", before="a: |\n")),
    "front matter colons": front_matter(repeated("b: ", before="a: ")),
    "front matter sexagesimal": front_matter(repeated("1:", before="a: ", after="1")),
    "front matter anchors": front_matter(numbered(lambda number: f"a{number}: &b{number} c\n")),
    "front matter that is not closed": repeated("a: b\n", before="---\n"),
}  # fmt: skip
