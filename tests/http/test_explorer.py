"""The explorer in a real headless Chromium, served by the real service with the shipped models."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from chromium import contrast, needs_chromium
from conftest import SAMPLES
from http_running import QUERY, running
from skillpager import SkillPager
from skillpager.display_text import not_covered
from skillpager.http.options import ServerOptions

SKILL = "postgres-backup"
LEGIBLE = ".pick .snippet", ".why p", ".pick .chip", ".stepper output", ".gap button", "#document p.off"
HOSTILE = """---
name: hostile
description: "<img src=x onerror=alert(0)>"
---

# <script>alert(1)</script>

Text <img src=x onerror=alert(2)> and [a link](javascript:alert(3)) and ![a picture](http://evil.example/x.png).

<script>alert(4)</script>

<style>* { display: none }</style>

```"><script>alert(5)</script>
<iframe src="javascript:alert(6)"></iframe>
```

| <b onclick=alert(7)> |
|---|
| </td></tr></table><form action="http://evil.example"> |

"""

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three samples, and a skill that means harm."""
    made = tmp_path_factory.mktemp("skills")
    for name in (SKILL, "http-status-reference", "kubernetes-debugging"):
        shutil.copytree(SAMPLES / name, made / name)
    (made / "hostile").mkdir()
    (made / "hostile" / "SKILL.md").write_text(HOSTILE + "x" * 20_000 + "\n", encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def url(pager: SkillPager, folder: Path) -> Iterator[str]:
    with running(pager, folder=folder) as service:
        yield str(service.client.base_url)


@contextmanager
def opened(
    browser: Browser, url: str, *, width: int = 1400, dark: bool = False, tolerated: int = 0, **state: object
) -> Iterator[Page]:
    """Open the explorer in a state; fail on anything that its console says, and on any request to others.

    Chromium notes every request that fails; what is `tolerated` is the status that one is to have.
    """
    said: list[str] = []
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
        permissions=["clipboard-read", "clipboard-write"],
    )
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("request", lambda request: None if request.url.startswith(url) else said.append(request.url))
    page.goto(f"{url}/#{urlencode(state)}")
    yield page
    context.close()
    assert [line for line in said if f"status of {tolerated}" not in line] == []


def paged(page: Page) -> None:
    """Wait until a page is shown."""
    expect(page.locator(".figures")).to_be_visible()
    expect(page.locator("#document .lit").first).to_be_attached()


def nodes(page: Page, selector: str) -> set[str]:
    """Return the ids of the nodes that a selector finds in the document."""
    found = page.locator(f"#document {selector}")
    return set(found.evaluate_all("found => found.map((element) => element.dataset.node).filter(Boolean)"))


def test_a_skill_is_shown_and_a_query_makes_its_page(browser: Browser, url: str, pager: SkillPager) -> None:
    with opened(browser, url) as page:
        expect(page.locator("#document h1").first).to_be_visible()
        assert page.locator("#skill-names option").count() == 4
        assert nodes(page, ".off, .lit") == set()
        page.get_by_label("Skill", exact=True).click()
        page.keyboard.type("postgres")
        page.keyboard.press("Enter")
        expect(page.locator("#document h1")).to_have_text("PostgreSQL backup and restore")
        page.locator("#query").fill(QUERY)
        paged(page)
        expected = pager.page(SAMPLES / SKILL, QUERY, strategy="navigator", show="")
        assert nodes(page, ".lit") == {node.id for node in expected.nodes}
        every = {node.id for node in pager.index(SAMPLES / SKILL).nodes}
        assert nodes(page, ".off") == every - nodes(page, ".lit")
        first = expected.selection.picks[0].node  # type: ignore[union-attr]
        lit = page.locator(f'[data-node="{first.id}"]').first
        assert lit.get_attribute("data-label") == f"1 {first.type}".replace("_", " ")
        assert lit.get_attribute("data-type") == first.type
        expect(page.locator(".figures")).to_contain_text(
            f"of {expected.full_tokens:,} tokens{expected.tokens:,}"
        )
        page.get_by_role("tab", name="Page", exact=True).click()
        assert page.locator("#page-text").text_content() == expected.text


def test_every_node_of_every_file_is_in_the_document(browser: Browser, url: str, pager: SkillPager) -> None:
    with opened(browser, url, skill="kubernetes-debugging") as page:
        expect(page.locator(".file")).to_have_count(5)
        assert nodes(page, "[data-node]") == {
            node.id for node in pager.index(SAMPLES / "kubernetes-debugging").nodes
        }
        for node in pager.index(SAMPLES / "kubernetes-debugging").nodes[:20]:
            assert page.locator(f'[data-node="{node.id}"]').text_content() == node.text


def test_sliders_are_those_of_the_strategy(browser: Browser, url: str, pager: SkillPager) -> None:
    with opened(browser, url, skill=SKILL, query=QUERY) as page:
        paged(page)
        page.get_by_text("Adjust").click()
        expect(page.locator("#mmr_lambda")).to_be_hidden()
        expect(page.locator("#sufficiency")).to_be_visible()
        page.locator("#strategy").select_option("mmr")
        expect(page.locator("#mmr_lambda")).to_be_visible()
        expect(page.locator("#sufficiency")).to_be_hidden()
        page.locator("#max_nodes").fill("5")
        page.locator("#mmr_lambda").fill("1")
        page.locator("#max_tokens").fill("700")
        expect(page).to_have_url(re.compile("max_tokens=700"))
        expected = pager.page(
            SAMPLES / SKILL, QUERY, strategy="mmr", max_nodes=5, mmr_lambda=1.0, max_tokens=700, show=""
        )
        expect(page.locator(".pick")).to_have_count(len(expected.selection.picks))  # type: ignore[union-attr]
        page.get_by_role("tab", name="Page", exact=True).click()
        expect(page.locator("#page-text")).to_have_text(expected.text, use_inner_text=False)
        page.get_by_role("button", name="Leave Token budget to the service").click()
        expect(page).not_to_have_url(re.compile("max_tokens"))
        expect(page.locator('output[for="max_tokens"]')).to_have_text("auto")


def test_picks_are_stepped_through_by_button_and_key(browser: Browser, url: str, pager: SkillPager) -> None:
    selection = pager.page(SAMPLES / SKILL, QUERY, strategy="navigator").selection
    assert selection is not None
    order = [pick.node.id for pick in selection.picks]
    with opened(browser, url, skill=SKILL, query=QUERY) as page:
        paged(page)
        expect(page.locator(".stepper output")).to_have_text(f"All {len(order)} picks")
        page.get_by_role("button", name="First pick (Home)").click()
        for rank, pick in enumerate(selection.picks[:4]):
            expect(page.locator(".stepper output")).to_contain_text(f"Pick {rank + 1} of {len(order)}")
            assert nodes(page, ".lit") == set(order[: rank + 1])
            assert nodes(page, ".now") == {pick.node.id}
            expect(page.locator(".now").first).to_be_in_viewport()
            current = page.locator('.pick[aria-current="step"]')
            assert [bar.text_content() for bar in current.locator(".bars > span").all()] == [
                f"{number:.2f}" for number in (pick.relevance, pick.redundancy, pick.marginal)
            ]
            expect(page.locator(".why")).to_contain_text("Reasons: ")
            expect(page.locator(".why")).to_contain_text(f"Estimated need: {100 * pick.marginal:.0f} %")
            page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowLeft")
        expect(page.locator(".stepper output")).to_contain_text("Pick 4 of")
        page.keyboard.press("Escape")
        expect(page.locator(".stepper output")).to_contain_text("All")
        page.keyboard.press("Home")
        page.keyboard.press("ArrowLeft")
        expect(page.locator(".stepper output")).to_contain_text("Pick 1 of")
        page.keyboard.press("End")
        expect(page.locator(".now")).to_have_count(0)


def test_what_is_left_out_folds_one_gap_or_all(browser: Browser, url: str) -> None:
    state = {"skill": "http-status-reference", "query": "what to do with 429", "strategy": "mmr"}
    with opened(browser, url, max_tokens=500, **state) as page:
        paged(page)
        gap = page.locator(".gap button").first
        expect(gap).to_contain_text(re.compile(r"L\d+–\d+ · \d+ parts · [\d,]+ tokens left out"))
        hidden = page.locator("#document .off").first
        expect(hidden).to_be_hidden()
        expect(page.locator('#document [data-label^="1 "]').first).to_be_in_viewport()
        gap.click()
        expect(hidden).to_be_visible()
        expect(gap).to_have_attribute("aria-expanded", "true")
        gap.click()
        expect(hidden).to_be_hidden()
        page.get_by_role("button", name="Show what is left out").click()
        expect(hidden).to_be_visible()
        page.get_by_role("button", name="Fold what is left out").click()
        expect(page.locator("#document .off[data-node]").filter(visible=True)).to_have_count(0)
        assert nodes(page, ".lit:not(:visible)") == set()
        # what is folded opens when it is chosen
        page.locator(".left-out summary").click()
        page.locator(".left-out button").first.click()
        expect(page.locator("#document .chosen").first).to_be_visible()
        expect(page.locator(".part")).to_contain_text("Left out: ")
        page.locator("#document p.lit").first.click()
        expect(page.locator(".part")).to_contain_text("On the page")


def test_graph_zooms_filters_and_is_walked(browser: Browser, url: str, pager: SkillPager) -> None:
    index = pager.index(SAMPLES / SKILL)
    with opened(browser, url, skill=SKILL, query=QUERY) as page:
        paged(page)
        page.get_by_role("tab", name="Graph").click()
        canvas = page.locator("canvas")
        expect(canvas).to_have_attribute("data-nodes", str(len(index.nodes)))
        expect(canvas).to_have_attribute("data-edges", str(len(index.edges)))
        expect(canvas).to_have_attribute("data-scale", re.compile(r"\d"))
        scale = float(str(canvas.get_attribute("data-scale")))
        assert scale >= 1  # legible
        page.get_by_role("button", name="Zoom in (+)").click()
        expect(canvas).to_have_attribute("data-scale", f"{scale * 1.25:.3f}")
        canvas.hover()
        page.mouse.wheel(0, -300)
        expect(canvas).not_to_have_attribute("data-scale", f"{scale * 1.25:.3f}")
        page.get_by_role("button", name="Show all (0)").click()
        expect(canvas).to_have_attribute("data-scale", re.compile(r"^0\.[1-9]"))
        steps = sum(node.type == "step" for node in index.nodes)
        page.get_by_role("checkbox", name="step", exact=False).uncheck()
        expect(canvas).to_have_attribute("data-nodes", str(len(index.nodes) - steps))
        page.get_by_role("checkbox", name="step", exact=False).check()
        sequence = sum(edge.kind == "sequence" for edge in index.edges)
        page.get_by_role("checkbox", name="sequence").uncheck()
        expect(canvas).to_have_attribute("data-edges", str(len(index.edges) - sequence))
        # drawn: more than the paper's colour
        colors = "(canvas) => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size"
        assert canvas.evaluate(colors) > 40
        canvas.focus()
        page.keyboard.press("ArrowDown")
        expect(page.locator("#graph-told")).to_contain_text("n0 · ")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        expect(page.locator("#graph-told")).not_to_contain_text("n1 · ")
        page.keyboard.press("Enter")
        expect(page.locator("#document .chosen").first).to_be_in_viewport()


def test_page_and_link_are_copied_and_the_link_brings_all_back(browser: Browser, url: str) -> None:
    with opened(browser, url, skill=SKILL, query=QUERY, strategy="mmr", max_nodes=6, step=3, fold=0) as page:
        paged(page)
        page.get_by_role("tab", name="Page", exact=True).click()
        page.get_by_role("button", name="Copy page").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        text = page.locator("#page-text").text_content()
        assert page.evaluate("navigator.clipboard.readText()") == text
        page.get_by_role("button", name="Copy link").click()
        link = page.evaluate("navigator.clipboard.readText()")
        lit = nodes(page, ".lit")
        page.goto("about:blank")
        page.goto(link)
        paged(page)
        assert page.locator("#page-text").text_content() == text
        assert nodes(page, ".lit") == lit
        assert len(lit) <= 3
        expect(page.locator("#strategy")).to_have_value("mmr")
        expect(page.locator('output[for="max_nodes"]')).to_have_text("6")
        expect(page.locator("#fold")).to_have_text("Fold what is left out")
        expect(page.get_by_role("tab", name="Page", exact=True)).to_have_attribute("aria-selected", "true")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 768, 1400])
def test_it_fits_the_screen_and_is_legible(browser: Browser, url: str, width: int, dark: bool) -> None:
    with opened(browser, url, width=width, dark=dark, skill=SKILL, query=QUERY, step=3, fold=0) as page:
        expect(page.locator("#document .lit").first).to_be_attached()
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(15, 17, 20)") is dark
        if width < 900:
            expect(page.locator("#side-body")).to_be_hidden()
            page.locator("#side-toggle").click()
        expect(page.locator(".stepper")).to_be_visible()
        for selector in LEGIBLE:
            assert contrast(page, selector) >= 4.5, selector  # WCAG 2.2, level AA
        if width < 900:
            page.locator("#side-toggle").click()
        for view in ("document", "graph"):
            page.locator(f"#tab-{view}").click()
            expect(page.locator(f"#view-{view}")).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view


def test_a_hostile_skill_does_nothing(browser: Browser, url: str) -> None:
    with opened(
        browser, url, skill="hostile", query="<img src=x onerror=alert(8)>", width=360, max_tokens=80
    ) as page:
        expect(page.locator("#document h1")).to_have_text("alert(1)")
        expect(page.locator("#summary .figures")).to_be_attached()
        assert page.evaluate("document.scripts.length") == 1
        assert page.locator("#document :is(img, iframe, style, script, form, b)").count() == 0
        assert page.locator("#document a[href]").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.locator("#tab-graph").click()
        expect(page.locator("#view-graph")).to_be_visible()


def test_problems_are_told_in_the_words_of_the_service(browser: Browser, url: str) -> None:
    with opened(browser, url, tolerated=404, skill="postgres") as page:
        expect(page.locator("#problem")).to_contain_text("did you mean 'postgres-backup'?")
        page.get_by_label("Skill", exact=True).fill(SKILL)
        page.keyboard.press("Enter")
        expect(page.locator("#problem")).to_be_hidden()
        expect(page.locator("#document h1")).to_be_visible()


def test_a_token_is_asked_for_and_kept_for_the_tab(browser: Browser, pager: SkillPager, folder: Path) -> None:
    with (
        running(pager, ServerOptions(port=0, token="secret"), folder=folder) as service,
        opened(browser, str(service.client.base_url), tolerated=401, skill=SKILL, query=QUERY) as page,
    ):
        expect(page.locator("#token-dialog")).to_be_visible()
        page.keyboard.press("Escape")
        page.keyboard.type("wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#token-wrong")).to_be_visible()
        page.locator("#token").fill("secret")
        page.get_by_role("button", name="Go on").click()
        paged(page)
        page.reload()
        paged(page)
        expect(page.locator("#token-dialog")).to_be_hidden()
        assert page.evaluate("localStorage.length") == 0


def test_a_hardly_covered_page_promises_nothing(browser: Browser, url: str, pager: SkillPager) -> None:
    query = "tune postgres memory settings"
    said = not_covered(pager.page(SAMPLES / SKILL, query, strategy="navigator").covered)
    with opened(browser, url, skill=SKILL, query=query, step=1) as page:
        expect(page.locator("#summary .note")).to_have_text(f"The skill {said}.")
        expect(page.locator("#side-line")).to_contain_text(f"saved · {said}")
        expect(page.locator(".figures")).to_contain_text("chance that nothing is missing–")
        expect(page.locator(".why p").last).to_have_text(re.compile(r"Adds \d+ tokens; \d+ tokens so far\.$"))


def test_too_few_tokens_for_anything_are_told(browser: Browser, url: str) -> None:
    with opened(browser, url, skill=SKILL, query=QUERY, max_tokens=10) as page:
        expect(page.locator("#summary .note")).to_contain_text("Nothing fits: the smallest page")
