"""Folders that say the same for other languages: a query needs those that it names, else the best one."""

import numpy as np
import pytest

from skillpager import SkillPager
from skillpager.json_types import to_json
from skillpager.pages.marks import variants_mark
from skillpager.parsing.skill import skill_from_files
from skillpager.strategies.navigator.strategy import MAX_TOLD, Variants, variant_groups
from skillpager.types import PageOptions, Query, SkillIndex

GROUP = {"go": 2, "typescript": 2, "ruby-on-rails": 3}
FILES = ["SKILL.md", *(f"{folder}/{name}.md" for folder in GROUP for name in ("batches", "files"))]
FILES += ["ruby-on-rails/gems.md", *(f"shared/{name}.md" for name in ("batches", "errors", "limits"))]
SAID = "[Variants: typescript, ruby-on-rails; this page shows go. Name another in the query to read it.]"


def index_of(pager: SkillPager, files: list[str] = FILES) -> SkillIndex:
    texts = [(path, f"# {path}\n\nText of {path}.\n\n{'More of it, ' * 50}\n") for path in files]
    return pager.index(skill_from_files(texts, name="api"))


def test_folders_with_half_of_their_files_in_common_are_variants() -> None:
    (group,) = variant_groups(dict.fromkeys(FILES, frozenset()))
    assert [(name, len(files)) for name, files in group.items()] == [*GROUP.items()]


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["a/x.md", "b/x.md"], []),  # one file in common is chance
        (["p/a/x.md", "p/a/y.md", "p/b/x.md", "p/b/y.md"], ["p/a", "p/b"]),
        (["p/a/x.md", "p/a/y.md", "q/b/x.md", "q/b/y.md"], []),  # no siblings
        ([*(f"a/{n}.md" for n in range(5)), *(f"b/{n}.md" for n in range(3, 8))], []),  # two of five
    ],
)
def test_variants_are_siblings_with_several_files(files: list[str], names: list[str]) -> None:
    assert [name for group in variant_groups(dict.fromkeys(files, frozenset())) for name in group] == names


@pytest.mark.parametrize(("shared", "names"), [(8, ["curl", "python"]), (7, [])])
def test_half_of_the_headings_make_variants(hashing_pager: SkillPager, shared: int, names: list[str]) -> None:
    common = {f"Heading {number}" for number in range(shared)}
    titles = {
        "SKILL.md": common,
        "curl/examples.md": common | {f"Curl {number}" for number in range(16 - shared)},
        "python/requests.md": common | {f"Python {number}" for number in range(30)},
    }
    texts = [(path, "".join(f"# T\n\n## {each}\n\nText.\n\n" for each in of)) for path, of in titles.items()]
    nodes = hashing_pager.index(skill_from_files(texts)).nodes
    told = Variants(nodes).choose(Query("x", np.zeros(2, np.float32)), np.ones(len(nodes)))
    assert sorted(name for first, others in told.items() for name in (first, *others)) == names


@pytest.mark.parametrize(
    ("query", "context", "kept"),
    [
        ("upload files in TypeScript", "", {"typescript"}),
        ("batches with Ruby on Rails", "Go", {"ruby-on-rails"}),
        ("batches in typescript and go", "", {"typescript", "go"}),
        ("batches: where does typescript go", "", {"typescript"}),
        ("how do I go about uploads in typescript", "", {"typescript"}),
        ("how do I go about uploads", "Linux, TypeScript 5", {"typescript"}),
        ("port the uploads from typescript to go", "", {"typescript", "go"}),
        ("go", "TypeScript", {"go"}),
        ("upload files", "", {"go"}),  # none is named: that whose nodes are needed most
        ("upload files", "Linux, TypeScript 5", {"typescript"}),
    ],
)
def test_a_query_needs_the_variants_that_it_or_else_its_context_names(
    hashing_pager: SkillPager, query: str, context: str, kept: set[str]
) -> None:
    nodes = index_of(hashing_pager).nodes
    needs = np.array([0.9 if node.span.file.startswith("go/") else 0.1 for node in nodes])
    asked = Query(query, np.zeros(2, np.float32), context=context)
    unnamed = {"go": ["typescript", "ruby-on-rails"]} if kept == {"go"} and "go" not in query.split() else {}
    assert Variants(nodes).choose(asked, needs) == unnamed
    others = {node.span.file.partition("/")[0] for node in nodes if not needs[node.ordinal]}
    assert others == GROUP.keys() - kept


@pytest.mark.parametrize("options", [{}, {"style": "xml"}, {"max_tokens": 300, "fill": True}])
def test_a_page_of_a_variant_that_nobody_named_names_others(pager: SkillPager, options: PageOptions) -> None:
    page = pager.page(index_of(pager), "upload files", force=True, **options)
    assert SAID in page.text.split("\n\n")[:3]
    assert page.selection is not None
    assert to_json(page.selection)["variants"] == {"go": ["typescript", "ruby-on-rails"]}
    # the meter of a page with a limit counts the mark
    assert "max_tokens" not in options or page.tokens <= page.selection.picks[-1].total_tokens


def test_a_page_of_no_variant_names_none_nor_does_a_whole_or_plain_one(pager: SkillPager) -> None:
    for query, options in ("errors", {}), ("files", {"fill": True}), ("files", {"style": "plain"}):
        page = pager.page(index_of(pager), query, force=True, **options)
        assert page.nodes
        assert "[Variants" not in page.text


def test_nothing_is_told_of_variants_below_a_folder_that_is_left_out(hashing_pager: SkillPager) -> None:
    files = [f"{one}/{other}/{name}.md" for one in "pqr" for other in "xyz" for name in "mn"]
    nodes = index_of(hashing_pager, files).nodes
    outer, inner = {"p": ["q", "r"]}, {f"{one}/x": [f"{one}/y", f"{one}/z"] for one in "pqr"[:MAX_TOLD]}
    cases = ("upload", outer | {"p/x": inner["p/x"]}), ("y", outer), ("p, q, r", inner)
    for text, told in cases:
        query = Query(text, np.zeros(2, np.float32))
        assert Variants(nodes).choose(query, np.full(len(nodes), 0.1)) == told
        assert Variants(nodes).choose(query, np.zeros(len(nodes))) == {}


def test_the_names_of_folders_cannot_end_the_mark_of_variants() -> None:
    names = ["b], or: ç", 61 * "d", 'say "d"', *map(str, range(12))]
    mark = variants_mark("p/a; all", [f"p/{name}" for name in names], "#1")
    shown = rf'"b], or: ç", {59 * "d"}…, "say \"d\"", 0, 1, 2, 3, 4, 5, 6, 7, 8, …; this page shows "a; all"'
    assert mark == f"[Variants#1: {shown}. Name another in the query to read it.]"
    assert "…" not in variants_mark("a", [*"bcdefghijklm"], "")
