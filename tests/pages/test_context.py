"""Pages of the samples: every claim is true, ceilings are hard, and meters price what is rendered."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import SAMPLES
from golden import check, pages_text
from page_claims import assert_gaps_can_be_read, assert_page
from skillpager import SkillPager
from skillpager.pages.assemble import PageMeter
from skillpager.pages.render import PageRenderer
from skillpager.types import SkillIndex, Style


@pytest.fixture(scope="module")
def sample_indexes(quick_pager: SkillPager) -> list[tuple[SkillIndex, SkillPager]]:
    """Indexes of all samples."""
    return [(quick_pager.index(path), quick_pager) for path in sorted(SAMPLES.iterdir())]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_the_meter_prices_what_is_rendered(
    sample_indexes: list[tuple[SkillIndex, SkillPager]], data: st.DataObject
) -> None:
    index, pager = data.draw(st.sampled_from(sample_indexes))
    style = data.draw(st.sampled_from(list(Style)))
    page = PageRenderer(index, pager.token_counter, style=style, show="skillpager show demo")
    meter = PageMeter(page)
    chosen = data.draw(st.lists(st.integers(0, len(index.nodes) - 1), unique=True, min_size=1, max_size=25))
    for number in chosen:
        expected = meter.cost(number)
        meter.add(number)
        assert meter.tokens == expected
    context = page.render(chosen)
    if not context.complete:
        # parts counted one by one never come out far below the whole, nor more than a token a part above
        assert context.tokens <= meter.tokens + 2
        assert meter.tokens <= context.tokens + 3 * len(chosen) + 6


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_what_a_page_claims_is_true_and_its_ceiling_is_hard(
    sample_indexes: list[tuple[SkillIndex, SkillPager]], data: st.DataObject
) -> None:
    index, pager = data.draw(st.sampled_from(sample_indexes))
    limit = data.draw(st.integers(0, 3000))
    context = pager.page(
        index,
        data.draw(st.sampled_from(["restore one table", "404", "Deployment stuck", "周五 发布"])),
        max_tokens=limit,
        strategy=data.draw(st.sampled_from(["mmr", "topk", "full"])),
        style=data.draw(st.sampled_from(list(Style))),
        show="skillpager show x",
    )
    assert_page(pager, index, context, limit=limit)
    assert_gaps_can_be_read(pager, index, context)


def test_pages_of_the_samples_are_what_they_were(sample_pager: SkillPager) -> None:
    pytest.importorskip("rs_bpe")  # the golden file has exact token counts
    check("pages.txt", pages_text(sample_pager))
