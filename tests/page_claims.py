"""What every page claims, checked against the index that it was made from."""

import re
from itertools import pairwise

from skillpager import SkillPager
from skillpager.pages.marks import address_of, is_file_address
from skillpager.parsing.fragments import split_skill
from skillpager.types import Fragment, Page, Skill, SkillIndex, Style

_LINE_END = re.compile(r"\r\n|\r|\n")


def assert_tiles(skill: Skill) -> int:
    """Check that tiles joined are the file, and places are true; return how many fragments there are."""
    tiles = split_skill(skill)
    fragments = [tile for tile in tiles if isinstance(tile, Fragment)]
    assert [fragment.ordinal for fragment in fragments] == list(range(len(fragments))), "ordinals"
    for file in skill.files:
        own = [tile for tile in tiles if tile.span.file == file.path]
        assert "".join(tile.text for tile in own) == file.text, "tiles joined are not the file"
        assert all(tile.text == file.text[tile.span.start : tile.span.end] for tile in own), "not a slice"
        assert all(one.span.end == other.span.start for one, other in pairwise(own)), "not adjacent"
        line = 1
        for tile in own:
            first = tile.text[:-1] if tile.text.endswith("\n") else tile.text
            breaks = len(_LINE_END.findall(first[:-1] if first.endswith("\r") else first))
            assert tile.span.start_line == line, "start line"
            assert tile.span.end_line == line + breaks, "end line"
            line += len(_LINE_END.findall(tile.text))
            # a line end may be cut in two: `\r` ends one tile and `\n` begins the next
            if tile.text.endswith("\r") and file.text[tile.span.end : tile.span.end + 1] == "\n":
                line -= 1
    return len(fragments)


def assert_page(pager: SkillPager, index: SkillIndex, page: Page, *, limit: int | None = None) -> None:
    """Check tokens and ceiling, that nodes stand in the text, and that each gap is what was left out."""
    assert page.tokens == pager.token_counter.count(page.text), "tokens of the text"
    assert limit is None or page.tokens <= limit, f"{page.tokens} tokens over the ceiling of {limit}"
    shown = [node.id for node in page.nodes]
    omitted = [node for omission in page.omitted for node in omission.nodes]
    assert sorted([*shown, *omitted], key=_number) == [node.id for node in index.nodes], "shown and omitted"
    assert not (page.complete and omitted), "complete"
    assert page.complete or omitted or not page.text, "not complete"
    shown_text = _unescaped(page)
    if page.complete and page.style is not Style.PLAIN and len(index.skill.files) == 1:
        (file,) = index.skill.files
        body = file.text[file.body_start :].strip("\r\n").strip()
        assert _unescaped(page, body) in shown_text, "the whole skill"
    position = 0
    for node in page.nodes:
        found = shown_text.find(_unescaped(page, node.text.rstrip()), position)
        assert found >= 0, f"{node.id} is not in the page"
        position = found
    in_common = 0
    is_answer = not page.nodes and "[In place of a page: " in shown_text  # which has no marks
    for omission in page.omitted:
        nodes = [index.nodes[_number(node)] for node in omission.nodes]
        first, last = nodes[0], nodes[-1]
        assert [node.ordinal for node in nodes] == list(range(first.ordinal, last.ordinal + 1)), "a gap"
        assert {node.span.file for node in nodes} == {omission.file}, "file of a gap"
        assert (omission.start_line, omission.end_line) == (first.span.start_line, last.span.end_line), (
            "lines"
        )
        assert omission.tokens == sum(node.tokens for node in nodes), "tokens of a gap"
        if page.style is Style.PLAIN or not page.text or is_answer:
            continue
        place = re.escape(_unescaped(page, address_of(index, omission)))
        if not re.search(rf"^\[…(#\d+)? {place}[\],:]", shown_text, re.MULTILINE):
            own = [node.id for node in index.nodes if node.span.file == omission.file]
            assert own == list(omission.nodes), "mark"
            in_common += 1
    marks = re.findall(r"^\[…(?:#\d+)? (\d+) files: ", shown_text, re.MULTILINE)
    assert in_common == sum(map(int, marks)), "marks of files"


def assert_gaps_can_be_read(pager: SkillPager, index: SkillIndex, page: Page) -> None:
    """Check that the addresses of a page's gaps bring what was left out."""
    for omission in page.omitted:
        address = address_of(index, omission)
        if not is_file_address(omission.file):
            address = address.split()[-1]  # the ids
        read = pager.expand(index, address)
        assert {node.id for node in read.nodes} >= set(omission.nodes), "nodes of a gap"
        for node in omission.nodes:
            assert index.nodes[_number(node)].text in read.text, "text of a gap"


def _unescaped(page: Page, text: str | None = None) -> str:
    """Return a text, by default that of the page, as it is before style `xml` escapes its own closing tag."""
    text = page.text if text is None else text
    return text.replace("&lt;", "<") if page.style is Style.XML else text


def _number(node: str) -> int:
    return int(node.removeprefix("n"))
