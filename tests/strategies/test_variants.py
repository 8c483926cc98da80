"""Folders that say the same for other languages: a query needs those that it names, else the best one."""

import numpy as np
import pytest

from skillpager import SkillPager
from skillpager.parsing.skill import skill_from_files
from skillpager.strategies.navigator.strategy import Variants, variant_groups
from skillpager.types import Query

FILES = [
    "SKILL.md",
    *(
        f"{language}/{name}.md"
        for language in ("go", "typescript", "ruby-on-rails")
        for name in ("batches", "files")
    ),
    "ruby-on-rails/gems.md",
    "shared/batches.md",
    "shared/errors.md",
    "shared/limits.md",
]


def test_folders_with_half_of_their_files_in_common_are_variants() -> None:
    (group,) = variant_groups(dict.fromkeys(FILES, frozenset()))
    assert {name: len(files) for name, files in group.items()} == {
        "go": 2,
        "typescript": 2,
        "ruby-on-rails": 3,
    }


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["a/x.md", "b/x.md"], []),  # one file in common is chance
        (["p/a/x.md", "p/a/y.md", "p/b/x.md", "p/b/y.md"], ["a", "b"]),
        (["p/a/x.md", "p/a/y.md", "q/b/x.md", "q/b/y.md"], []),  # no siblings
        ([*(f"a/{n}.md" for n in range(5)), *(f"b/{n}.md" for n in range(3, 8))], []),  # two of five
    ],
)
def test_variants_are_siblings_with_several_files(files: list[str], names: list[str]) -> None:
    assert [name for group in variant_groups(dict.fromkeys(files, frozenset())) for name in group] == names


@pytest.mark.parametrize(("shared", "names"), [(8, ["curl", "python"]), (7, [])])
def test_folders_with_half_of_their_headings_in_common_are_variants(shared: int, names: list[str]) -> None:
    common = {f"Heading {number}" for number in range(shared)}
    headings = {
        "curl/examples.md": common | {f"Curl {number}" for number in range(16 - shared)},
        "python/requests.md": common | {f"Python {number}" for number in range(30)},
    }
    assert [name for group in variant_groups(headings) for name in group] == names


@pytest.mark.parametrize(
    ("query", "context", "kept"),
    [
        ("upload files in TypeScript", "", {"typescript"}),
        ("batches with Ruby on Rails", "Go", {"ruby-on-rails"}),
        ("batches in typescript and go", "", {"typescript", "go"}),
        ("batches in typescript: where do the files go", "", {"typescript"}),
        ("upload files", "", {"go"}),  # none is named: that whose nodes are needed most
        ("upload files", "Linux, TypeScript 5", {"typescript"}),
    ],
)
def test_a_query_needs_the_variants_that_it_or_else_its_context_names(
    hashing_pager: SkillPager, query: str, context: str, kept: set[str]
) -> None:
    skill = skill_from_files([(path, f"# {path}\n\nText of {path}.\n") for path in FILES], name="api")
    nodes = hashing_pager.index(skill).nodes
    needs = np.array([0.9 if node.span.file.startswith("go/") else 0.1 for node in nodes])
    asked = Query(query, np.zeros(2, np.float32), context=context)
    others = {nodes[ordinal].span.file.partition("/")[0] for ordinal in Variants(nodes).others(asked, needs)}
    assert others == {"go", "typescript", "ruby-on-rails"} - kept
