"""What names nodes: ids, ranges, lines; and what to say when nothing stands there."""

import pytest

from conftest import SAMPLES
from messages import raises
from skillpager import SkillIndex, SkillPager
from skillpager.errors import NodeNotFoundError
from skillpager.pages.addresses import find_nodes
from skillpager.parsing.skill import skill_from_files


@pytest.fixture(scope="module")
def index(quick_pager: SkillPager) -> SkillIndex:
    """A skill of several files."""
    return quick_pager.index(SAMPLES / "kubernetes-debugging")


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        *((["n3"], [3]), (["3"], [3]), (["N3"], [3]), (["n3-n5"], [3, 4, 5])),
        (["3-5", "n4", "1"], [1, 3, 4, 5]),
        (["n3,n5 n7"], [3, 5, 7]),
    ],
)
def test_ids_and_ranges(index: SkillIndex, addresses: list[str], expected: list[int]) -> None:
    assert find_nodes(index, addresses) == expected


def test_lines_are_those_of_the_first_file_unless_another_is_named(index: SkillIndex) -> None:
    other = next(node for node in index.nodes if node.span.file == "references/storage.md")
    here = next(node for node in index.nodes if node.span.file == "SKILL.md")
    assert find_nodes(index, [f"L{here.span.start_line}"])[0] == here.ordinal
    assert find_nodes(index, [f"references/storage.md:L{other.span.start_line}"])[0] == other.ordinal
    last = index.nodes[5].span.end_line
    assert find_nodes(index, [f"L{here.span.start_line}-{last}"]) == [0, 1, 2, 3, 4, 5]


def test_ranges_hold_their_ends_and_the_whole_skill(index: SkillIndex) -> None:
    total = len(index.nodes)
    assert find_nodes(index, []) == []
    assert find_nodes(index, ["n5-n5"]) == [5]
    assert find_nodes(index, [f"n0-{total - 1}"]) == list(range(total))
    for wrong, words in (
        *(
            (f"n{total}", "no node"),
            ("n5-n3", r"^The range 'n5-n3' .* write n3-5\.$"),
            ("n3 five", "^'five' is"),
            ("no go", "^'no go' is .*', …; the outline lists them"),
        ),
        ("storage.md", "There is no file 'storage.md' .* its files are 'references/storage.md', 'SKILL.md'"),
    ):
        with pytest.raises(NodeNotFoundError, match=words):
            find_nodes(index, [wrong])


def test_lines_name_every_node_that_they_touch(quick_pager: SkillPager) -> None:
    index = quick_pager.index("# A\n\nFirst\nparagraph.\n\nSecond\nparagraph.\n\nThird.\n")
    first, second, third = (node.span for node in index.nodes)
    assert [(span.start_line, span.end_line) for span in (first, second, third)] == [(3, 4), (6, 7), (9, 9)]
    assert find_nodes(index, ["L4"]) == find_nodes(index, ["l3"]) == find_nodes(index, ["L1-3"]) == [0]
    assert find_nodes(index, ["L4-6"]) == find_nodes(index, ["L4-L6"]) == [0, 1]
    assert find_nodes(index, ["L7-9", "L5-6"]) == [1, 2]
    assert quick_pager.expand(index, "L4-6").nodes == ()  # a part of each
    with pytest.raises(NodeNotFoundError):
        find_nodes(index, ["L5"])
    with pytest.raises(NodeNotFoundError):
        find_nodes(index, ["L7-6", "L8"])


@pytest.mark.parametrize(
    "address",
    [
        *("n9999", "n5-n3", "L9-3", "n3 five", "five", "L99999", "missing.md:L1", "-3", " , "),
        pytest.param("n" + "9" * 5000, id="many digits"),
    ],
)
def test_what_is_not_there_is_a_clear_error(index: SkillIndex, address: str) -> None:
    with raises(NodeNotFoundError):
        find_nodes(index, [address])


SECTIONS = (
    "# Top\n\nOne.\n\n## Set up\n\nTwo.\n\n### If a > b\n\nThree.\n\n## Use\n\nFour.\n\n### Set up\n\nFive.\n"
)


@pytest.mark.parametrize(
    ("section", "texts"),
    [
        *(("Top", ["One.", "Two.", "Three.", "Four.", "Five."]), ("set  UP", ["Two.", "Three.", "Five."])),
        *(("Top > Set up", ["Two.", "Three."]), ("Use > Set up", ["Five."]), ("If a > b", ["Three."])),
    ],
)
def test_a_section_is_what_stands_under_its_heading(
    quick_pager: SkillPager, section: str, texts: list[str]
) -> None:
    index = quick_pager.index(SECTIONS)
    assert [index.nodes[ordinal].text for ordinal in find_nodes(index, [section])] == texts


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        *(("L1-2", "# Top\n\n"), ("SKILL.md:L8-9", "\n### If a > b\n"), ("L13-99", "## Use\n")),
        *(("L5,", "## Set up\n"), ("L1-3", "# Top\n\nOne.\n")),
    ],
)
def test_lines_are_shown_as_they_are(quick_pager: SkillPager, address: str, shown: str) -> None:
    index = quick_pager.index(skill_from_files([("SKILL.md", SECTIONS[: SECTIONS.index("\nFour.")])]))
    assert quick_pager.expand(index, address, style="plain").text == shown
    source = SECTIONS.splitlines(keepends=True)
    for first, last, above, node in (10, 13, "### If a > b\n\n", 2), (9, 13, "", 2), (6, 11, "", 1):
        inner = quick_pager.expand(index, f"L{first}-{last}")
        here = "".join(source[first - 1 : last])
        assert inner.text == f"[file: SKILL.md]\n\n## Set up\n\n{above}{here}"
        assert inner.nodes == index.nodes[node:3]


@pytest.mark.parametrize("address", ["L99", "L0-2", "none.md:L1"])
def test_lines_that_a_file_does_not_have(index: SkillIndex, quick_pager: SkillPager, address: str) -> None:
    with raises(NodeNotFoundError):
        quick_pager.expand(index, address.replace("99", "999"))


def test_a_title_is_an_address_too(quick_pager: SkillPager) -> None:
    index = quick_pager.index(SECTIONS + "\n## 1\n\nSix.\n\n## Here, there\n\nSeven.\n")
    assert find_nodes(index, ["use"]) == find_nodes(index, ["Use"]) == [3, 4]
    assert find_nodes(index, ["Use > Set up", "n0"]) == [0, 4]
    assert find_nodes(index, ["Here, there"]) == [6]
    # what can be an id is one
    assert find_nodes(index, ["1"]) == [1]


@pytest.mark.parametrize("section", ["Setup", "us", "if", "zzz", "Set up > Use"])
def test_a_section_that_is_not_there_lists_those_that_come_close(
    quick_pager: SkillPager, section: str
) -> None:
    eight = SECTIONS + "".join(f"\n## Part {number}\n\nMore.\n" for number in "1234")
    with raises(NodeNotFoundError):
        find_nodes(quick_pager.index(eight), [section])


def test_a_skill_may_have_no_nodes_or_no_sections(quick_pager: SkillPager) -> None:
    for text, address in ("# Only\n\n## Headings\n", "n0"), ("Just text.\n", "Top"):
        with raises(NodeNotFoundError):
            find_nodes(quick_pager.index(text), [address])
    assert not quick_pager.expand("# Only\n\n## Headings\n", "L1").complete
    assert quick_pager.expand("Just text.\n", "SKILL.md").complete
