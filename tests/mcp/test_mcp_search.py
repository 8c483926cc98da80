"""Finding skills through the MCP server: `search_skills`, and `load_skill` without a name."""

import re
from pathlib import Path

import pytest

from conftest import SAMPLES
from mcp_clients import answer, answers, error_of, form_of, server_of, text_of
from skillpager import SkillPager
from skillpager.mcp.server import SkillServer
from test_mcp_offers import skills_in

QUERY = "Restore a single table from last night's PostgreSQL dump."
ELSEWHERE = "Quel temps fait-il \u00e0 Tombouctou aujourd'hui ?"


@pytest.fixture(scope="module")
def server(pager: SkillPager) -> SkillServer:
    """A server of the sample skills."""
    return server_of(pager, SAMPLES)


def test_skills_are_ranked_with_their_reasons(server: SkillServer, pager: SkillPager) -> None:
    result = answer(server, "search_skills", query=QUERY, k=3)
    form = form_of(result)
    best = form["skills"][0]
    assert best["name"] == "postgres-backup"
    assert best["tokens"] == pager.index(SAMPLES / "postgres-backup").full_tokens
    assert 0 <= best["chance"] <= 1
    chances = [skill["chance"] for skill in form["skills"]]
    assert chances == sorted(chances, reverse=True)
    assert len(chances) <= 3
    assert form["searched"] == len(list(SAMPLES.iterdir()))
    assert (form["has_fit"], form["text"]) == (True, text_of(result))
    text = text_of(result)
    assert text.startswith(
        "The best of 10 skills, each with the chance that the task needs it:\n- postgres-backup ("
    )
    assert "restore" in best["reason"]
    assert f"why: {best['reason']}" in text
    assert str(SAMPLES) not in text


def test_that_no_skill_fits_is_said_plainly(server: SkillServer) -> None:
    found = form_of(answer(server, "search_skills", query=ELSEWHERE))
    said = "Perhaps none of 10 skills fits the query: the chance that one does is "
    assert found["text"].startswith(said)
    assert (" The nearest:\n- " in found["text"]) == bool(found["skills"])
    assert not found["has_fit"]
    page = form_of(answer(server, "load_skill", query=ELSEWHERE))
    assert page["text"].startswith("[No skill fits the query: 10 skills searched")
    assert (page["kind"], page["nodes"], page["parts"]) == ("none", [], [])


def test_without_a_name_the_page_is_that_of_the_skill_that_the_query_needs(server: SkillServer) -> None:
    named = answer(server, "load_skill", name="postgres-backup", query=QUERY)
    assert text_of(named) in text_of(answer(server, "load_skill", query=QUERY))


def test_two_tasks_get_one_page_of_two_skills_whose_parts_can_be_read_on(server: SkillServer) -> None:
    query = "Find the commit that broke the build with git bisect, then restore one table from a dump."
    first, again = answers(server, ("load_skill", {"query": query}), ("load_skill", {"query": query}))
    form = form_of(first)
    names = [part["skill"] for part in form["parts"]]
    assert sorted(names) == ["git-bisect", "postgres-backup"]
    assert form["skill"] == ", ".join(names)
    assert (form["kind"], form["text"], form["complete"]) == ("page", text_of(first), False)
    assert {node["skill"] for node in form["nodes"]} == set(names)
    assert all(0 <= part["chance"] <= 1 for part in form["parts"])
    assert text_of(first).rstrip().splitlines()[-1].startswith("[Page holds all that is needed with")
    # the gaps are read with the calls that the page names
    assert set(re.findall(r'read_skill_nodes\(name="([\w-]+)"', text_of(first))) == {
        gap["skill"] for gap in form["omitted"]
    }
    gap = form["omitted"][0]
    read = answer(server, "read_skill_nodes", name=gap["skill"], ids=gap["nodes"])
    assert form_of(read)["skill"] == gap["skill"]
    assert "sent earlier" in text_of(again)
    assert len(text_of(again)) < len(text_of(first)) / 2


def test_a_budget_bounds_a_page_of_several(server: SkillServer, pager: SkillPager) -> None:
    query = "Find the commit that broke the build with git bisect, then restore one table from a dump."
    for budget in (200, 600):
        form = form_of(answer(server, "load_skill", query=query, budget_tokens=budget))
        assert form["tokens"] <= budget
        assert form["tokens"] == pager.token_counter.count(form["text"])
        assert form["parts"]
    assert error_of(answer(server, "load_skill", query=query, budget_tokens=5)).startswith("Nothing fits")


@pytest.mark.parametrize("asked", [{}, {"query": " "}, {"query": QUERY, "mode": "full"}, {"mode": "outline"}])
def test_without_a_name_a_query_is_needed(server: SkillServer, asked: dict[str, object]) -> None:
    assert error_of(answer(server, "load_skill", **asked)).startswith(
        "Without a name load_skill makes a page"
    )


def test_a_ceiling_cuts_the_list(pager: SkillPager, tmp_path: Path) -> None:
    server = server_of(pager, skills_in(tmp_path, 60, "Crop the maps with a lens."), ceiling=1000)
    form = form_of(answer(server, "search_skills", query="Crop the maps with a lens.", k=40))
    assert 0 < len(form["skills"]) < 40
    assert not form["complete"]
