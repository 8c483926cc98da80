"""Sections: by headings and offsets, and by the titles that fragments carry."""

from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import SAMPLES
from node_lines import document
from skillpager.parsing.fragments import split_skill
from skillpager.parsing.skill import read_skill, skill_from_text
from skillpager.sections import Section, find_sections, heading_paths, nodes_under, section_numbers, trail_of
from skillpager.types import Fragment, Heading, Skill, Span

NODES = document("""
    before
    # Top
    one
    ## Set up
    two
    three
    # Top
    ## Set up
    four
    === more.md
    five
""")


def paths_of(skill: Skill, places: list[Span]) -> list[list[str]]:
    headings = [tile for tile in split_skill(skill) if isinstance(tile, Heading)]
    return [[heading.title for heading in path] for path in heading_paths(headings, places)]


def test_headings_and_fragments_agree_on_the_path_of_every_fragment() -> None:
    for path in SAMPLES.iterdir():
        skill = read_skill(path)
        fragments = [tile for tile in split_skill(skill) if isinstance(tile, Fragment)]
        found = paths_of(skill, [fragment.span for fragment in fragments])
        assert found == [list(fragment.heading_path) for fragment in fragments]


@settings(max_examples=50)
@given(st.text(alphabet="#- a\n", max_size=60))
def test_they_agree_on_any_text(text: str) -> None:
    skill = skill_from_text(f"a\n{text}")
    fragments = [tile for tile in split_skill(skill) if isinstance(tile, Fragment)]
    found = paths_of(skill, [fragment.span for fragment in fragments])
    assert found == [list(fragment.heading_path) for fragment in fragments]


def test_a_heading_is_above_what_begins_behind_its_beginning() -> None:
    skill = skill_from_text("# A\n\n### B\n\n## C\n")
    places = [Span("SKILL.md", 1, 1, offset, offset) for offset in (13, 0, 1, 6, 12)]
    assert paths_of(skill, places) == [["A", "C"], [], ["A"], ["A", "B"], ["A", "B"]]
    assert paths_of(skill, [Span("other.md", 1, 1, 9, 9)]) == [[]]


def test_sections_are_numbered_by_neighbours_of_one_path() -> None:
    assert section_numbers(NODES).tolist() == [0, 1, 2, 2, 2, 3]
    assert section_numbers(NODES[:1]).tolist() == [0]
    assert section_numbers([]).tolist() == []


def test_sections_come_in_document_order_the_outer_before_the_inner() -> None:
    file = ("SKILL.md",)
    assert find_sections(NODES) == [
        Section(file, 0, 5),
        Section((*file, "Top"), 1, 5),
        Section((*file, "Top", "Set up"), 2, 5),
        Section(("more.md",), 5, 6),
    ]
    assert find_sections([]) == []
    assert all(
        section.holds(node) == (section.first <= position < section.end)
        for section in find_sections(NODES)
        for position, node in enumerate(NODES)
    )


def test_nodes_are_found_by_a_title_or_by_neighbouring_titles() -> None:
    assert nodes_under(NODES, "top") == [1, 2, 3, 4]
    assert nodes_under(NODES, "TOP > set  up") == [2, 3, 4]
    assert nodes_under(NODES, "Set up > Top") == []
    assert trail_of(NODES[5]) == ("more.md",)
