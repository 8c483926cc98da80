"""Statistics, against scipy, closed formulas and the paper's own intervals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skillpager.bench.data.skillrouter import POOL_SKILLS
from skillpager.bench.report import paper
from skillpager.bench.report.paper import PaperRow, PaperTable
from skillpager.bench.report.statistics import SAMPLES, Interval, UpperBound, bootstrap, bootstrap_p, holm

TABLES = (paper.MAIN, paper.CONCEPT, paper.LAMBDA, paper.NODE_BUDGET, paper.GRAPH)
PUBLISHED = [(table, row) for table in TABLES for row in table.rows]


def successes(count: int, total: int) -> np.ndarray:
    """Return `total` verdicts, `count` of them positive."""
    return np.arange(total) < count


# ---- bootstrap


@pytest.mark.parametrize(("table", "row"), PUBLISHED, ids=lambda value: getattr(value, "label", ""))
def test_the_papers_intervals_are_reproduced(table: PaperTable, row: PaperRow) -> None:
    count = round(row.sufficiency * table.queries / 100)
    found = bootstrap(successes(count, table.queries)).scaled(100)
    assert found.value == pytest.approx(row.sufficiency, abs=0.05)
    assert (found.low, found.high) == pytest.approx((row.low, row.high), abs=0.21)


def test_a_ratio_agrees_with_a_naive_loop() -> None:
    random = np.random.default_rng(3)
    wholes = random.integers(100, 5000, size=60).astype(float)
    parts = wholes * random.random(60)
    drawn = random.integers(0, 60, size=(SAMPLES, 60))
    ratios = parts[drawn].sum(axis=1) / wholes[drawn].sum(axis=1)
    found = bootstrap(parts, wholes)
    assert found.value == pytest.approx(parts.sum() / wholes.sum())
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(ratios, [0.025, 0.975])), abs=0.006)


def test_whole_clusters_are_drawn() -> None:
    skills = [f"s{i // 5}" for i in range(100)]
    per_skill = np.random.default_rng(5).integers(0, 2, size=20)
    alike = np.repeat(per_skill, 5)
    found = bootstrap(alike, clusters=skills)
    assert found == bootstrap(per_skill)
    queries = bootstrap(alike)
    assert found.high - found.low > 1.8 * (queries.high - queries.low)


def test_clusters_of_one_query_are_queries() -> None:
    values = np.random.default_rng(2).random(40)
    assert bootstrap(values, clusters=[f"s{i:02}" for i in range(40)]) == bootstrap(values)


@given(st.lists(st.booleans(), min_size=1, max_size=60))
@settings(max_examples=25, deadline=None)
def test_the_value_is_inside_and_the_seed_is_fixed(verdicts: list[bool]) -> None:
    found = bootstrap(verdicts)
    assert bootstrap(verdicts) == found
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_a_constant_has_no_spread() -> None:
    assert bootstrap([1, 1, 1]) == Interval(1, 1, 1)


@pytest.mark.parametrize(
    ("parts", "wholes", "clusters", "fault"),
    [
        ([], None, None, "two or more observations"),
        ([1, 2], [1], None, "same shape"),
        ([1, 2], None, ["s"], "same length"),
    ],
)
def test_what_does_not_fit_is_refused(
    parts: list[float], wholes: list[float] | None, clusters: list[str] | None, fault: str
) -> None:
    with pytest.raises(ValueError, match=fault):
        bootstrap(parts, wholes, clusters=clusters)


# ---- tests


def test_the_p_of_a_difference_is_near_that_of_a_paired_t_test() -> None:
    random = np.random.default_rng(11)
    differences = random.normal(0.12, 1.0, size=400)
    expected = stats.ttest_1samp(differences, 0).pvalue
    assert bootstrap_p(differences) == pytest.approx(expected, abs=0.01)


def test_the_p_of_no_difference_is_1_and_of_a_sure_one_the_least() -> None:
    assert bootstrap_p(np.zeros(30)) == 1.0
    assert bootstrap_p(np.ones(30)) == bootstrap_p(-np.ones(30)) == pytest.approx(2 / (SAMPLES + 1))
    assert [type(p) for p in holm([bootstrap_p(np.ones(30)), 0.5])] == [UpperBound, float]


def test_the_p_is_that_of_clusters() -> None:
    differences = np.repeat([1, 1, 0, 1, -1, 1, 0, 1], 10)
    skills = [f"s{i // 10}" for i in range(80)]
    assert bootstrap_p(differences) < 0.001
    assert bootstrap_p(differences, clusters=skills) > 0.02


def test_holms_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


# ---- the paper's numbers


def test_the_papers_numbers_fit_its_text() -> None:
    assert sum(count for count, _ in paper.NODE_TYPES.values()) == paper.NODES
    assert all(
        100 * count / paper.NODES == pytest.approx(share, abs=0.06)
        for count, share in paper.NODE_TYPES.values()
    )
    assert paper.MAIN.skills == paper.GROUND_TRUTH_SKILLS + POOL_SKILLS
    assert all(row.low < row.sufficiency < row.high for _, row in PUBLISHED)
