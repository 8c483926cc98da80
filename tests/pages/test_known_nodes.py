"""Pages for a reader who has some of the nodes."""

import re

import pytest

from conftest import SAMPLES
from golden import QUERIES
from skillpager import SkillPager
from skillpager.json_types import to_json
from skillpager.pages.marks import address_of

SKILL = SAMPLES / "postgres-backup"
QUERY = QUERIES["postgres-backup"]


@pytest.mark.parametrize("name", QUERIES)
def test_known_nodes_are_named_in_their_place_and_not_shown(pager: SkillPager, name: str) -> None:
    page = pager.page(SAMPLES / name, QUERIES[name], max_tokens=900)
    known = {node.id for node in page.nodes[::2]} | {node.id for node in page.nodes[:6]}
    rest = pager.page(SAMPLES / name, QUERIES[name], max_tokens=900, known=known)
    if rest == page:  # naming them would take as many tokens
        return
    assert rest.tokens < page.tokens
    assert [node.id for node in rest.nodes] == [node.id for node in page.nodes if node.id not in known]
    named = [node for gap in rest.omitted if gap.known for node in gap.nodes]
    assert named == [node.id for node in page.nodes if node.id in known]
    assert not rest.complete
    assert (rest.selection, rest.sufficiency) == (page.selection, page.sufficiency)
    for gap in rest.omitted:
        place = re.escape(address_of(pager.index(SAMPLES / name), gap))
        what = ", sent earlier" if gap.known else r"(: [^\[\]]+)?"
        in_common = rf"|^\[… \d+ files: .*{re.escape(gap.file)}" if not gap.known else ""
        assert re.search(rf"^\[… {place}{what}\]${in_common}", rest.text, re.MULTILINE)


def test_marks_and_json_say_which_gaps_the_reader_has(pager: SkillPager) -> None:
    plain = pager.page(SKILL, QUERY)
    page = pager.page(SKILL, QUERY, known=[node.id for node in plain.nodes], style="xml")
    assert page.text.count(", sent earlier]\n") == sum(gap.known for gap in page.omitted) > 0
    gaps = to_json(page)["omitted"]
    assert isinstance(gaps, list)
    ids = {node.id for node in plain.nodes}
    assert [gap["known"] for gap in gaps] == [set(gap["nodes"]) <= ids for gap in gaps]
    assert {gap["known"] for gap in gaps} == {True, False}
