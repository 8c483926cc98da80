"""Pages of a small skill, word for word. A token is a word, so that every number can be counted by hand."""

from dataclasses import replace
from itertools import pairwise

import pytest

from skillpager.pages.addresses import find_nodes
from skillpager.pages.assemble import NodeMeter, PageMeter
from skillpager.pages.marks import address_of, omissions_of, whole_text
from skillpager.pages.render import PageRenderer
from skillpager.types import Budget, Selection, SkillIndex, Span, Style
from word_tokens import Words, index_of, words


class Characters:
    """Counts characters, as an estimate."""

    id, exact = "characters", False

    def count(self, text: str) -> int:
        return len(text)


ALPHA, ECHO, FOXTROT = words("Alpha", 40), words("Echo", 40), words("Foxtrot", 40)
BRAVO, CHARLIE, DELTA = (f"- {words(name, 30)}" for name in ("Bravo", "Charlie", "Delta"))
GOLF, HOTEL, INDIA = words("Golf", 40), words("Hotel", 40), words("X India", 39)

BODY = f"""# Top

{ALPHA}

## Use

Do this first:

{BRAVO}
{CHARLIE}
{DELTA}

### Deep

{ECHO}

## End

{FOXTROT}
"""
FIRST = f"---\nname: Prüfung\n---\n{BODY}"
OTHER = f"\n\n# Other\n\n{GOLF}\n\n{HOTEL}\n"
LAST = f"{INDIA}\n"


def legend(address: str, name: str = "Prüfung") -> str:
    """Return the first lines of a page, whose first mark has this address."""
    return f'[Page of skill "{name}". […] = omitted lines; read: skillpager show demo {address}]\n\n'


@pytest.fixture(scope="module")
def index() -> SkillIndex:
    """A skill of three files: nodes 0 to 5, 6 to 7, and 8."""
    return index_of(FIRST, OTHER, LAST)


def renderer(
    index: SkillIndex, *, style: Style = Style.MARKED, show: str = "skillpager show demo"
) -> PageRenderer:
    return PageRenderer(index, Words(), style=style, show=show)


def test_nodes_of_the_first_file(index: SkillIndex) -> None:
    page = renderer(index).render([4, 3])
    assert page.text == (
        legend("L6-13")
        + "[… L6-13]\n\n"
        + f"## Use\n\nDo this first:\n{DELTA}\n\n### Deep\n\n{ECHO}\n\n"
        + "[… L22: End]\n\n"
        + "[… refs/b.md:L5-7]\n\n"
        + "[… c d.md L1 n8]\n"
    )
    assert [node.ordinal for node in page.nodes] == [3, 4]
    assert (page.tokens, page.full_tokens) == (len(page.text.split()), index.full_tokens)
    assert (page.tokens_exact, page.complete, page.selection) == (True, False, None)
    assert [(gap.nodes, gap.tokens, gap.known) for gap in page.omitted] == [
        (("n0", "n1", "n2"), 105, False),
        (("n5",), 40, False),
        (("n6", "n7"), 80, False),
        (("n8",), 40, False),
    ]


def test_a_file_that_a_mark_names_is_not_named_again(index: SkillIndex) -> None:
    assert renderer(index).render(range(8)).text.startswith(legend("n8"))
    assert renderer(index).render([0, 7, 8]).text == (
        legend("L10-22")
        + f"# Top\n\n{ALPHA}\n\n"
        + "[… L10-22: Use; End]\n\n"
        + f"[… refs/b.md:L5]\n\n{HOTEL}\n\n[file: c d.md]\n\n{INDIA}\n"
    )


def test_a_heading_stands_over_the_first_node_below_it_and_a_lead_in_over_its_items(
    index: SkillIndex,
) -> None:
    text = renderer(index).render([1, 3, 5, 6]).text
    assert text == (
        legend("L6")
        + "[… L6]\n\n"
        + f"## Use\n\nDo this first:\n\n{BRAVO}\n\n"
        + f"[… L13]\n\n{DELTA}\n\n"
        + "[… L18: Deep]\n\n"
        + f"## End\n\n{FOXTROT}\n\n[file: refs/b.md]\n\n# Other\n\n{GOLF}\n\n"
        + "[… refs/b.md:L7]\n\n"
        + "[… c d.md L1 n8]\n"
    )


def test_a_page_fault_has_headings_and_lead_in_but_no_legend(index: SkillIndex) -> None:
    assert renderer(index).excerpt([3, 8]).text == (
        f"## Use\n\nDo this first:\n{DELTA}\n\n"
        + "[… L18-22: Deep; End]\n\n"
        + "[… refs/b.md:L5-7]\n\n"
        + f"[file: c d.md]\n\n{INDIA}"
    )
    assert renderer(index).excerpt([7]).text == f"[file: refs/b.md]\n\n{HOTEL}"
    assert renderer(index, style=Style.PLAIN).excerpt([7, 3]).text == f"{DELTA}\n\n{HOTEL}"
    assert renderer(index, style=Style.XML).excerpt([8]).text == f"[file: c d.md]\n\n{INDIA}"
    assert renderer(index).excerpt([]).text == ""


def test_the_whole_is_every_file_without_front_matter(index: SkillIndex) -> None:
    whole = f"{BODY.rstrip()}\n\n[file: refs/b.md]\n\n{OTHER.strip()}\n\n[file: c d.md]\n\n{LAST}"
    assert whole_text(index) == renderer(index).render(range(9)).text == whole
    xml = renderer(index, style=Style.XML).render(range(9))
    assert xml.text == f'<skill_content name="Prüfung" complete="true">\n{whole.rstrip()}\n</skill_content>'
    assert (xml.complete, xml.omitted) == (True, ())
    plain = renderer(index, style=Style.PLAIN).render(range(9)).text
    assert plain == "\n\n".join(node.text for node in index.nodes)


@pytest.mark.parametrize("text", ["X = X", "\n\nX = X\n\n\n", "---\nname: skill\n---\r\n\r\nX = X\r\n"])
def test_the_whole_ends_with_one_line_break(text: str) -> None:
    assert renderer(index_of(text)).render([0]).text == "X = X\n"


def test_the_whole_keeps_the_blanks_at_its_ends() -> None:
    assert renderer(index_of("\n    X code X  \n\n")).render([0]).text == "    X code X  \n"


@pytest.mark.parametrize("style", list(Style))
def test_only_xml_escapes_what_could_close_its_element(style: Style) -> None:
    index = index_of(f"Say </skill_content> & <b>.\n\n{ALPHA}\n\n{ECHO}\n")
    page, escaped = renderer(index, style=style), "Say &lt;/skill_content> & <b>."
    for made in (page.render([0]), page.excerpt([0]), page.render(range(3)), page.excerpt(range(3))):
        assert (escaped in made.text) == (style is Style.XML)


def test_a_file_is_named_once() -> None:
    page = renderer(index_of(ALPHA, "\n\n".join(words(f"Node{number}", 40) for number in range(4))))
    named = "[file: refs/b.md]\n\n"
    assert page.render([1, 3]).text.count(named) == page.excerpt([1, 3]).text.count(named) == 1
    assert page.excerpt([0, 1, 3]).text.count(named) == 1


def test_xml_stands_around_the_marked_page(index: SkillIndex) -> None:
    marked = renderer(index).render([0, 3]).text.rstrip()
    xml = renderer(index, style=Style.XML).render([0, 3]).text
    assert xml == f'<skill_content name="Prüfung">\n{marked}\n</skill_content>'


@pytest.mark.parametrize(
    ("show", "first"),
    [
        ("", 'skill "Prüfung". […] = omitted lines]'),
        ("read", 'skill "Prüfung". […] = omitted lines; read: read L10-22]'),
        ("get({ids}) {ids}", 'skill "Prüfung". […] = omitted lines; read: get(L10-22) L10-22]'),
        ('get("Prüfung")', 'a skill. […] = omitted lines; read: get("Prüfung") L10-22]'),
    ],
)
def test_the_command_that_reads_what_is_omitted(show: str, first: str) -> None:
    for path in ("SKILL.md", "a b.md"):
        text = renderer(index_of(FIRST, first=path), show=show).render([0]).text
        assert text == f"[Page of {first}\n\n# Top\n\n{ALPHA}\n\n[… L10-22: Use; End]\n"


def test_an_estimate_is_no_exact_count() -> None:
    index = index_of(FIRST, counter=Characters())
    page = PageRenderer(index, Characters()).render([5])
    assert not page.tokens_exact
    assert page.tokens == len(page.text)


def test_what_the_reader_has_is_a_gap_of_its_own(index: SkillIndex) -> None:
    page = renderer(index).knowing(frozenset({1, 2, 7})).render([0])
    assert page.text == (
        legend("L14-22")
        + f"# Top\n\n{ALPHA}\n\n"
        + "[… L10-13, sent earlier]\n\n"
        + "[… L14-22: Use; End]\n\n"
        + "[… refs/b.md:L5]\n\n"
        + "[… refs/b.md:L7, sent earlier]\n\n"
        + "[… c d.md L1 n8]\n"
    )
    assert [gap.known for gap in page.omitted] == [True, False, False, True, False]
    xml = renderer(index, style=Style.XML).knowing(frozenset({1}))
    assert xml.render([0]).text.startswith('<skill_content name="Prüfung">\n[Page of')
    assert "[… L10-12, sent earlier]" in xml.render([0]).text


def test_the_most_frequent_type_of_a_gap_comes_first() -> None:
    index = index_of("\n\n".join(words(f"Node{number}", 40) for number in range(9)))
    (gap,) = omissions_of(index.nodes, ())
    assert list(gap.types.items())[:3] == [("step", 2), ("example", 2), ("param", 2)]
    (gap,) = omissions_of(index.nodes[1:8], ())
    assert next(iter(gap.types.items())) == ("example", 2)


def test_the_empty_page_names_all_as_omitted(index: SkillIndex) -> None:
    page = renderer(index).knowing(frozenset({8})).empty(None)
    assert (page.text, page.tokens, page.nodes, page.complete) == ("", 0, (), False)
    assert [(gap.nodes[0], gap.nodes[-1], gap.known) for gap in page.omitted] == [
        ("n0", "n5", False),
        ("n6", "n7", False),
        ("n8", "n8", True),
    ]


# ---- gaps that are shown


@pytest.mark.parametrize("style", [Style.MARKED, Style.XML])
@pytest.mark.parametrize(("short", "filled"), [("Short end.", True), ("Short word end.", False)])
def test_a_gap_is_shown_that_takes_no_more_tokens_than_its_mark(
    style: Style, short: str, filled: bool
) -> None:
    mark = "[… L3]"
    assert Words().count(mark) == 2
    index = index_of("\n\n".join([ALPHA, short, ECHO, FOXTROT]))
    page = renderer(index, style=style).render([0, 2])
    assert [node.ordinal for node in page.nodes] == ([0, 1, 2] if filled else [0, 2])
    assert (mark in page.text) != filled
    assert (f"{ALPHA}\n\n{short}\n\n{ECHO}" in page.text) == filled


@pytest.mark.parametrize(("short", "filled"), [("Short.", True), ("Short end.", False)])
def test_headings_count_on_both_sides_of_that_comparison(short: str, filled: bool) -> None:
    hidden = f"# Title\n\n{short}\n\n# Next"
    assert Words().count("[… L5: Title]\n\n# Next") == 5
    page = renderer(index_of(f"{ALPHA}\n\n{hidden}\n\n{ECHO}\n\n{FOXTROT}\n")).render([0, 2])
    assert [node.ordinal for node in page.nodes] == ([0, 1, 2] if filled else [0, 2])
    assert (f"{ALPHA}\n\n{hidden}\n\n{ECHO}\n\n[… " in page.text) == filled


@pytest.mark.parametrize(
    ("style", "count", "whole"),
    [(Style.MARKED, 15, True), (Style.MARKED, 16, False), (Style.XML, 14, True), (Style.XML, 17, False)],
)
def test_a_page_that_saves_nothing_is_the_whole_skill(style: Style, count: int, whole: bool) -> None:
    page_renderer = renderer(index_of(f"{ALPHA}\n\n{words('Echo', count)}\n"), style=style)
    selection = Selection("picks", "what", (), (), Budget())
    page = page_renderer.render([0], selection=selection)
    assert (page.complete, page.selection) == (whole, selection)
    assert not page_renderer.knowing(frozenset({1})).render([0]).complete


@pytest.mark.parametrize("start", ["X ", "  "])
def test_no_blank_lines_stand_before_the_first_node_of_a_page(start: str) -> None:
    first = f"{start}end."
    index = index_of(f"\r\n\r\n{first}\n\n{ALPHA}\n\n{ECHO}\n\n{FOXTROT}\n")
    assert renderer(index).render([1]).text.startswith(f"{legend('L7-9', 'skill')}{first}\n\n{ALPHA}\n\n[… ")


# ---- windows of the source, which have no ids that can be read


def windows_of(index: SkillIndex, *cuts: int) -> SkillIndex:
    """Return an index whose nodes are windows of its files: the body of each, the first cut at offsets."""
    spans = []
    for place, file in enumerate(index.skill.files):
        edges = [file.body_start, *(() if place else cuts), len(file.text)]
        spans += [Span(file.path, *_lines(file.text, *edge), *edge) for edge in pairwise(edges)]
    nodes = [
        replace(index.nodes[0], id=f"c{number}", ordinal=number, span=span, text=file_text(index, span))
        for number, span in enumerate(spans)
    ]
    return replace(index, nodes=tuple(replace(node, tokens=Words().count(node.text)) for node in nodes))


def file_text(index: SkillIndex, span: Span) -> str:
    """Return the source at a place."""
    text = next(file.text for file in index.skill.files if file.path == span.file)
    return text[span.start : span.end]


def _lines(text: str, start: int, end: int) -> tuple[int, int]:
    return text.count("\n", 0, start) + 1, text.count("\n", 0, end - 1) + 1


def test_windows_are_read_by_their_lines() -> None:
    index = index_of(FIRST, OTHER, LAST)
    deep = FIRST.index("### Deep")
    windows = windows_of(index, FIRST.index("## Use"), deep)
    assert renderer(windows).render([1]).text == (
        legend("L4-7")
        + "[… L4-7]\n\n"
        + f"# Top\n\n{windows.nodes[1].text}\n\n"
        + "[… L16-22]\n\n"
        + "[… refs/b.md:L1-7]\n\n"
        + "[… c d.md L1]\n"  # an address has no spaces
    )
    assert "lines]\n" in renderer(windows).render(range(4)).text


def test_a_heading_in_the_window_before_is_not_repeated_but_one_right_behind_it_is_named() -> None:
    text = f"# A\n\n## B\n\n{ALPHA}\n\n# C\n\n{ECHO}\n\n## D\n\n{BRAVO}\n\n### E\n\n{FOXTROT}\n"
    index = index_of(text, OTHER)
    windows = windows_of(index, text.index("# C"), text.index("## D"), text.index("Foxtrot"))
    page = renderer(windows).excerpt([0, 3])
    assert page.text == (
        f"# A\n\n## B\n\n{ALPHA}\n\n\n\n" + "[… L7-16]\n\n" + f"# C\n\n## D\n\n### E\n\n{FOXTROT}\n"
    )


# ---- what marks name


def test_lines_read_a_gap_with_what_stands_in_the_same_line() -> None:
    sentences = [words(name, 40) for name in ("One", "Two", "Three", "Four")]
    index = index_of(f"{ALPHA}\n\n{' '.join(sentences)}\n\n{ECHO}\n")
    gaps = [omissions_of(index.nodes[first:end], ())[0] for first, end in ((0, 1), (2, 4), (4, 6))]
    addresses = [address_of(index, gap) for gap in gaps]
    assert addresses == ["L1", "L3", "L3-5"]
    assert [find_nodes(index, [address]) for address in addresses] == [[0], [1, 2, 3, 4], [1, 2, 3, 4, 5]]


def test_a_mark_names_the_first_sections_and_no_title_ends_it() -> None:
    long = f"A title of {'more ' * 9}letters at the end"
    titles = ["One [of](x) `two]`", long, "", "Three", "Four", "Five"]
    index = index_of(f"{ALPHA}\n\n" + "\n\n".join(f"## {title}\n\n{ECHO}" for title in titles))
    named = "One of two); A title of more more more more more more more more more let…; Three; Four; …"
    assert renderer(index).render([0]).text.endswith(f"\n\n[… L5-25: {named}]\n")


def test_parts_without_a_heading_are_named_by_what_introduces_them() -> None:
    items = "\n".join(f"- {words(name, 30)}" for name in ("Bravo", "Charlie", "Delta"))
    rows = "\n".join(f"| {number} | {ECHO} |" for number in range(9))
    parts = ["**Backups**", ECHO, f"To restore:\n\n{items}", f"The *limits*:\n\n| a | b |\n|---|---|\n{rows}"]
    index = index_of(f"# T\n\n## Shown\n\n{ALPHA}\n\n" + "\n\n".join(parts) + f"\n\n## Next\n\n{ECHO}\n")
    assert renderer(index).render([0]).text.endswith(": Backups; To restore; The *limits; Next]\n")
    index = index_of(f"# T\n\n{ALPHA}\n\n" + "\n\n".join(f"**{part}**\n\n{ECHO}" for part in "ABCDE"))
    assert renderer(index).render([0]).text.endswith(": A; B; C; D; …]\n")


@pytest.mark.parametrize(
    ("line", "count", "named"),
    [
        *(("# Xs go.", 30, ": Xs go.; Late; Next"), ("# Go on.", 23, ": Go on.; Late; Next")),
        *(("# Go on.", 22, ": Late; Next"), ("# Go on.", 5, ": Late; Next")),
        *(("# Go on.", 4, ": Next"), ("---", 30, ": Late; Next")),
    ],
)
def test_the_next_section_does_not_stand_for_a_long_part_without_a_name(
    line: str, count: int, named: str
) -> None:
    lines = "\n".join([line] * count)
    index = index_of(
        f"# T\n\n## Shown\n\n{ALPHA}\n\n```\n{lines}\n```\n\n**Late**\n\n{ECHO}\n\n## Next\n\n{ECHO}\n"
    )
    assert renderer(index).render([0]).text.endswith(f"[… L7-{count + 16}{named}]\n")


# ---- meters and the cache


@pytest.mark.parametrize("text", [FIRST, "\n\n".join(words(f"Node{number}", 9) for number in range(11))])
def test_the_legend_is_priced_as_that_of_a_page_with_all_but_one_node(text: str) -> None:
    index = index_of(text, counter=Characters())
    name = index.skill.name
    first = f'[Page of skill "{name}". […] = omitted lines]\n\n'
    assert PageRenderer(index, Characters()).frame_tokens() == len(first)
    xml = f'<skill_content name="{name}">\n{first.rstrip()}\n\n\n</skill_content>'
    assert PageRenderer(index, Characters(), style=Style.XML).frame_tokens() == len(xml)
    assert PageRenderer(index, Characters(), style=Style.PLAIN).frame_tokens() == 0


def test_a_skill_without_nodes_takes_no_tokens() -> None:
    empty = renderer(index_of("---\nname: none\n---\n"), style=Style.XML)
    assert (empty.frame_tokens(), empty.gap_tokens, PageMeter(empty).tokens) == (0, 0, 0)
    assert renderer(index_of("One.")).gap_tokens == 0


def test_the_meter_prices_every_page_to_the_word(index: SkillIndex) -> None:
    page = renderer(index)
    meter = PageMeter(page)
    assert meter.gap_tokens == page.joint(0, 5).tokens  # of the first file
    assert page.joint(0, 5) is page.joint(0, 5)
    assert meter.tokens == page.render([]).tokens
    shown: list[int] = []
    for ordinal in (4, 8, 0, 6, 2):
        shown.append(ordinal)
        made = page.render(shown)
        assert meter.cost(ordinal) == made.tokens
        meter.add(ordinal)
        assert meter.tokens == made.tokens


def test_the_meter_of_nodes_sums_their_tokens(index: SkillIndex) -> None:
    meter = NodeMeter(index.nodes)
    assert (meter.tokens, meter.gap_tokens) == (0, 0)
    assert meter.cost(1) == 34
    meter.add(1)
    meter.add(2)
    assert meter.tokens == 65
    assert NodeMeter(index.nodes, gap_tokens=7).gap_tokens == 7
