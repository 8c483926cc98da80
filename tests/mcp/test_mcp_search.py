"""Finding skills through the MCP server: `search_skills`, and `load_skill` without a name."""

import re
from pathlib import Path

import pytest

from conftest import SAMPLES
from mcp_clients import answer, answers, error_of, server_of, text_of
from skillpager import SkillPager
from skillpager.mcp.server import SkillServer
from test_mcp_offers import server, skills_in

__all__ = ["server"]
QUERY = "Restore a single table from last night's PostgreSQL dump."
ELSEWHERE = "Quel temps fait-il \u00e0 Tombouctou aujourd'hui ?"


def test_skills_are_ranked_with_their_reasons(server: SkillServer, pager: SkillPager) -> None:
    text = text_of(answer(server, "search_skills", query=QUERY, k=3))
    head, first, *_ = text.splitlines()
    assert head == "The best of 10 skills, each with the chance that the task needs it:"
    tokens = pager.index(SAMPLES / "postgres-backup").full_tokens
    assert re.fullmatch(rf"- postgres-backup \((over )?\d+ %, {tokens:,} tokens\): .+", first)
    chances = [int(chance) for chance in re.findall(r"^- \S+ \(\D*(\d+) %", text, re.MULTILINE)]
    assert chances == sorted(chances, reverse=True)
    assert len(chances) <= 3
    assert re.search(r"^  why: .*restore", text, re.MULTILINE)
    assert str(SAMPLES) not in text


def test_that_no_skill_fits_is_said_plainly(server: SkillServer) -> None:
    found = text_of(answer(server, "search_skills", query=ELSEWHERE))
    assert found.startswith("Perhaps none of 10 skills fits the query: the chance that one does is ")
    page = text_of(answer(server, "load_skill", query=ELSEWHERE))
    assert page.startswith("[No skill fits the query: 10 skills searched")
    assert "chance of" not in page


def test_without_a_name_the_page_is_that_of_the_skill_that_the_query_needs(server: SkillServer) -> None:
    named = answer(server, "load_skill", name="postgres-backup", query=QUERY)
    assert text_of(named) in text_of(answer(server, "load_skill", query=QUERY))


def test_two_tasks_get_one_page_of_two_skills_whose_parts_can_be_read_on(server: SkillServer) -> None:
    query = "Bisect by hand to find the commit that broke the build, then restore one table from a dump."
    first, again = answers(server, ("load_skill", {"query": query}), ("load_skill", {"query": query}))
    text = text_of(first)
    page, skill = text.rstrip().splitlines()[-2:]
    assert page.startswith("[Page holds all that is needed with")
    assert re.fullmatch(r"\[postgres-backup is a right skill with an estimated chance of \d+ %\]", skill)
    # the gaps are read with the calls that the page names
    assert 'read_skill_nodes(name="postgres-backup", ids=' in text
    assert "git bisect start" in text
    assert "pg_restore" in text
    assert "sent earlier" in text_of(again)
    assert len(text_of(again)) < len(text_of(first)) / 2


def test_a_budget_bounds_a_page_of_several(server: SkillServer, pager: SkillPager) -> None:
    query = "Find the commit that broke the build with git bisect, then restore one table from a dump."
    for budget in (200, 600):
        text = text_of(answer(server, "load_skill", query=query, budget_tokens=budget))
        assert pager.token_counter.count(text) <= budget
        assert "postgres-backup" in text
    assert error_of(answer(server, "load_skill", query=query, budget_tokens=5)).startswith("Nothing fits")


@pytest.mark.parametrize("asked", [{}, {"query": " "}, {"query": QUERY, "mode": "full"}, {"mode": "outline"}])
def test_without_a_name_a_query_is_needed(server: SkillServer, asked: dict[str, object]) -> None:
    assert error_of(answer(server, "load_skill", **asked)).startswith(
        "Without a name load_skill makes a page"
    )


def test_a_ceiling_cuts_the_list(pager: SkillPager, tmp_path: Path) -> None:
    server = server_of(pager, skills_in(tmp_path, 60, "Crop the maps with a lens."), ceiling=1000)
    text = text_of(answer(server, "search_skills", query="Crop the maps with a lens.", k=40))
    assert 0 < text.count("  why: ") < 40
    assert pager.token_counter.count(text) <= 1000
