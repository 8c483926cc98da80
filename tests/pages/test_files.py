"""Pages, marks, page faults and outlines of skills of many files."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from messages import raises
from page_claims import assert_gaps_can_be_read, assert_page
from skillpager import SkillPager
from skillpager.errors import NodeNotFoundError
from skillpager.output.outline import MAX_MAP_TOKENS
from skillpager.pages.marks import files_mark, introduction, words_of_files
from skillpager.pages.render import PageRenderer
from skillpager.parsing.skill import skill_from_files
from skillpager.types import ListContext

SIX = [
    (f"{letter}.md", words) for letter, words in zip("abcdef", ("Errors", "x ] y", "", *"123"), strict=True)
]
MANY = [
    *((f"{f}/{n}.md", "") for f, most in (("go/deep", 4), ("ts", 3)) for n in range(most)),
    ("b.md", ""),
    ("c d.md", ""),
]


@pytest.mark.parametrize(
    ("files", "mark"),
    [
        (SIX, "; c.md; d.md: 1; e.md: 2; f.md: 3]"),
        (SIX[:3], "[…#1 3 files: a.md: Errors; b.md: x ) y; c.md]"),
        ([("a].md", "x" * 60)], f'[…#1 1 files: "a].md": {"x" * 49}…]'),
        (MANY, "[…#1 9 files: go/deep/ (4: 0.md, 1.md, 2.md, …); ts/ (3: 0.md, 1.md, 2.md); (2: b.md, c d.md)]"),
        ([(f"{n}/a.md", "") for n in range(8)], "; 7/ (1: a.md)]"),
        ([(f"{n}/a.md", "") for n in range(10)], "; 7/ (1: a.md); …]"),
    ],
)  # fmt: skip
def test_the_mark_of_many_files(files: list[tuple[str, str]], mark: str) -> None:
    made = files_mark(files, "#1")
    assert made == mark if mark.startswith("[") else made.endswith(mark)


@pytest.mark.parametrize(
    ("text", "lead_in", "words"),
    [
        ("**Set up X:**\nRun x.", None, "Set up X"),
        ("Plain.\nMore.", None, ""),
        ("Table 2: limits *\n| a |", None, "Table 2: limits"),
        ("_To restore X:_\n- one", "", "To restore X"),
        ("还原：\n- 一", "", "还原"),
        ("- one:", "", ""),  # nothing is below
        ("On: X\n- one", "", ""),
        ("- one", "**To restore X:**", "To restore X"),
        ("- one", "还原：", "还原"),
        ("- one", "On: X", ""),
    ],
)
def test_a_line_introduces_what_is_below(
    quick_pager: SkillPager, text: str, lead_in: str | None, words: str
) -> None:
    node = quick_pager.index("One.\n\nTwo.\n").nodes[1]
    span = quick_pager.index("Lead.\n").nodes[0].span
    of_list = None if lead_in is None else ListContext(lead_in, span if lead_in else None, 0, 1)
    where = span if lead_in and words else node.span
    assert introduction(replace(node, text=text, list_context=of_list)) == (where, words)


def skill_of(*texts: str) -> list[tuple[str, str]]:
    """Return a SKILL.md that mentions a file for each text."""
    lines = "".join(f"- `refs/{n}.md`: XML of part {n}.\n" for n in range(len(texts)))
    files = [(f"refs/{n}.md", text) for n, text in enumerate(texts)]
    return [("SKILL.md", f"# S\n\nRead:\n\n{lines}"), *files]


TEXTS = [f"# File {n}\n\nFirst of {n}.\n\n## Part\n\nSecond of {n}.\n" for n in range(9)]


def test_files_left_out_in_a_row_have_one_mark(quick_pager: SkillPager) -> None:
    index = quick_pager.index(skill_from_files([*skill_of(*TEXTS), ("AGENTS.md", TEXTS[6])]))
    last = index.nodes[-1].ordinal
    text = PageRenderer(index, quick_pager.token_counter).render([last]).text
    (mark,) = re.findall(r"^\[… .* files: .*\]$", text, re.MULTILINE)
    assert mark == "[… 8 files: refs/ (8: 0.md, 1.md, 2.md, …)]"
    text = PageRenderer(index, quick_pager.token_counter).render([last - 6]).text
    (_, mark) = re.findall(r"^\[… .* files: .*\]$", text, re.MULTILINE)
    words = "(also in AGENTS.md); File 6; XML of part 6"
    assert mark.startswith(f"[… 3 files: refs/6.md: {words}; refs/7.md: File 7; ")
    gathered = replace(index.skill.files[-1], path="ALL.md", same_as="refs/")
    index = replace(index, skill=replace(index.skill, files=(*index.skill.files, gathered)))
    assert words_of_files(index)["SKILL.md"] == "S"
    assert words_of_files(index)["refs/0.md"].startswith("(also in ALL.md); File 0; ")


@pytest.mark.parametrize(("first", "mark"), [("One.", ""), ("One.\n\nTwo.", "[… L3]\n\n")])
def test_the_rest_of_the_first_file_has_its_own_mark(quick_pager: SkillPager, first: str, mark: str) -> None:
    texts = {"SKILL.md": first, **{f"{name}.md": f"# {name}\n\n{'Text. ' * 50}" for name in "ABC"}}
    index = quick_pager.index(skill_from_files([*texts.items()]))
    text = PageRenderer(index, quick_pager.token_counter).render([0]).text
    assert text.endswith(f"One.\n\n{mark}[… 3 files: A.md: A; B.md: B; C.md: C]\n")


@settings(max_examples=40, deadline=None)
@given(st.sets(st.integers(0, 27), max_size=8), st.sampled_from(["marked", "xml", "plain"]))
def test_every_page_of_many_files_says_what_it_left_out(
    quick_pager: SkillPager, chosen: set[int], style: str
) -> None:
    index = quick_pager.index(skill_from_files(skill_of(*TEXTS)))
    page = quick_pager.renderer(index, style).render(number for number in chosen if number < len(index.nodes))
    assert_page(quick_pager, index, page)
    assert_gaps_can_be_read(quick_pager, index, page)


def test_every_line_of_every_file_can_be_read(quick_pager: SkillPager) -> None:
    files = [*skill_of(*TEXTS), ("AGENTS.md", TEXTS[0]), ("two words.md", "Text.\n")]
    files += [("XML.md", "# Only a title"), ("x.md", "\n    x = 1")]
    index = quick_pager.index(skill_from_files(files))
    for path, text in files:
        shown = quick_pager.expand(index, path).text
        assert all(line in shown for line in text.splitlines())
    both, lines = (quick_pager.expand(index, named) for named in ("refs/1.md AGENTS.md", "refs/1.md:L1-9"))
    assert quick_pager.expand(index, ["AGENTS.md", "refs/1.md"]).nodes == both.nodes == lines.nodes
    copy = quick_pager.expand(index, "AGENTS.md:L3-5")
    assert copy.text == "[file: AGENTS.md, same text as refs/0.md]\n\nFirst of 0.\n\n## Part\n"
    assert quick_pager.expand(index, "AGENTS.md:L3-5", style="plain").text == "First of 0.\n\n## Part\n"
    short = quick_pager.expand(index, "AGENTS.md", max_tokens=25)
    assert short.tokens <= 25
    assert "File" not in quick_pager.expand(index, "AGENTS.md", max_tokens=1).text
    assert copy.text.startswith(short.text[:40])
    whole = quick_pager.whole(index).text
    assert "\n[file: AGENTS.md, same text as refs/0.md]\n\n[file: " in whole
    assert "\n[file: x.md]\n\n    x = 1\n" in whole
    for wrong in ("AGENTS.md:L5-3", "refs/none.md"):
        with raises(NodeNotFoundError):
            quick_pager.expand(index, wrong)


def test_an_outline_names_the_files_of_a_large_skill(quick_pager: SkillPager, tmp_path: Path) -> None:
    texts = [
        f"# File {n}\n\n" + "".join(f"## P{k}\n\nText {n} {k}.\n\n" for k in range(40)) for n in range(70)
    ]
    index = quick_pager.index(skill_from_files(skill_of(*texts)))
    made = quick_pager.outline(index, list_file="outline s")
    assert quick_pager.token_counter.count(made) <= MAX_MAP_TOKENS
    assert all(f"\nrefs/{n}.md " in made for n in range(70))
    assert "to see its sections: `outline s refs/69.md`" in made
    of_file = quick_pager.outline(index, file="refs/69.md").splitlines()
    first = index.nodes[-40]
    assert of_file[1:4] == ["refs/69.md", "  File 69 L1", f"    P0 L3-5 {first.tokens}t: 1 {first.type}"]
    with raises(NodeNotFoundError):
        quick_pager.outline(index, file="none.md")
