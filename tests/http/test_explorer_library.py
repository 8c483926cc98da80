"""The explorer's view of the library, in a real headless Chromium."""

import shutil
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from chromium import needs_chromium
from conftest import SAMPLES
from http_running import QUERY, TIME_LIMIT, running
from skillpager import SkillPager
from test_explorer import HOSTILE, opened

BOTH = "Find the commit that broke the build with git bisect, then restore one table from a dump."

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def url(pager: SkillPager, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a service with the samples and a skill that means harm."""
    folder = shutil.copytree(SAMPLES, tmp_path_factory.mktemp("library") / "skills")
    (folder / "broken").mkdir()
    (folder / "broken" / "SKILL.md").write_bytes(b"\xff\xfe\x00")
    (folder / "hostile").mkdir()
    (folder / "hostile" / "SKILL.md").write_text(HOSTILE, encoding="utf-8")
    with running(pager, folder=folder) as service:
        service.client.post("/v1/ask", json={"query": BOTH})  # the skills are read now
        yield str(service.client.base_url)


def told(url: str, **fields: object) -> Any:
    """Return the service's own answer."""
    return httpx.post(f"{url}/v1/ask", json={"strategy": "navigator", **fields}, timeout=TIME_LIMIT).json()


def test_skills_are_ranked_with_reasons_beside_the_page_from_several(browser: Browser, url: str) -> None:
    answer = told(url, query=BOTH)
    with opened(browser, url, view="library", query=BOTH) as page:
        rows = page.locator(".routed li")
        expect(rows.first).to_be_visible()
        best = max(answer["parts"], key=lambda part: part["chance"])
        expect(rows.first.locator(".name")).to_have_text(best["name"])
        routed = next(each for each in answer["route"]["skills"] if each["name"] == best["name"])
        expect(rows.first.locator(".reason")).to_contain_text(routed["terms"][0])
        expect(page.locator(".routed li.on")).to_have_count(2)
        expect(rows.first.locator(".state")).to_have_text(f"On the page: {best['page']['tokens']:,} tokens")
        assert page.locator(".library-text").all_inner_texts() == [
            part["page"]["text"] for part in answer["parts"]
        ]
        refused = answer["refused"][0]
        row = page.locator(".routed li", has_text=refused["name"]).first
        expect(row.locator(".state")).to_have_text(f"Refused: {refused['detail']}")
        said = page.locator(".verdict").inner_text()
        assert said.startswith(f"{answer['tokens']:,} tokens from 2 skills of 11 searched")
        # a screen reader is told the same
        expect(page.locator("#status")).to_have_text(said)
        name = f"{best['name']}, chance {100 * best['chance']:.0f}\u00a0%. On the page"
        expect(page.get_by_role("button", name=name)).to_be_visible()
        expect(page.get_by_role("region", name="Skills by chance")).to_be_visible()
        page.locator("summary", has_text="1 skill not offered, and why").click()
        expect(page.locator(".not-offered li")).to_contain_text("broken")
        page.locator("#copy-library-page").click()
        assert page.evaluate("navigator.clipboard.readText()") == answer["text"]


def test_a_skill_is_opened_for_the_same_query_and_the_way_back_is_a_tab(browser: Browser, url: str) -> None:
    with opened(browser, url, view="library", query=QUERY) as page:
        page.locator(".routed li", has_text="postgres-backup").locator("button").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#document h1")).to_have_text("PostgreSQL backup and restore")
        expect(page.locator("#document .lit").first).to_be_attached()
        expect(page.locator("#skill")).to_have_value("postgres-backup")
        page.locator("#tab-library").click()
        expect(page.locator(".routed li").first).to_be_visible()
        expect(page.locator("#side")).to_be_hidden()
        assert "view=library" in page.url
        page.keyboard.press("ArrowRight")
        expect(page.locator("#view-document")).to_be_visible()
        expect(page.locator("#side")).to_be_visible()


def test_no_chance_is_promised_if_a_skill_may_not_cover_the_query(browser: Browser, url: str) -> None:
    answer = told(url, query=QUERY)
    answer["covered"] = answer["parts"][0]["page"]["covered"] = 0.3
    with opened(browser, url, view="library") as page:
        page.route("**/v1/ask", lambda route: route.fulfill(json=answer))
        page.locator("#query").fill(QUERY)
        expect(page.locator(".verdict")).to_contain_text("saved, but may not cover the query (chance 30 %).")
        expect(page.locator(".library-page header")).to_contain_text("may not cover the query (chance 30 %)")
        expect(page.locator("#view-library")).not_to_contain_text(" sure")


def test_a_hostile_skill_is_text(browser: Browser, url: str) -> None:
    with opened(browser, url, view="library", query="alert hostile <script> picture link") as page:
        expect(page.locator(".routed li", has_text="hostile")).to_contain_text("<img src=x onerror=alert(0)>")
        assert page.locator("#view-library :is(img, script, iframe, a)").count() == 0
