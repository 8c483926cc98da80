"""The paper's baselines and ablations against their definitions, and what holds for every local strategy."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import SAMPLES
from golden import check, selections_text
from index_builder import build_index, unit_rows
from messages import raises
from skillpager import SkillPager
from skillpager.encoders.builtin import ENCODER_ID
from skillpager.factories import make_strategy
from skillpager.pages.assemble import NodeMeter, make_page
from skillpager.pages.render import PageRenderer
from skillpager.settings import PROJECT_STRATEGIES, Settings
from skillpager.strategies import Mmr, TopK
from skillpager.strategies.baselines.graph import FITTED_THRESHOLDS, GreedyGraph, MmrGraph, TopKDependency
from skillpager.strategies.mmr import ConceptOnly, Density, ExecOnly
from skillpager.strategies.navigator.strategy import Navigator
from skillpager.types import (
    Budget,
    Edge,
    EdgeKind,
    FloatArray,
    NodeType,
    Query,
    Selection,
    SkillIndex,
    SkipReason,
    Strategy,
    Style,
)
from strategy_cases import indifferent, near, ordinals, reasons

DIM = 8
Links = Sequence[tuple[int, int]]


def query_of(seed: int) -> Query:
    return Query("q", unit_rows(1, DIM, seed=10_000 + seed)[0])


def index_with(links: Links, *, n_nodes: int = 12, seed: int = 0) -> SkillIndex:
    """Return an index with certain edges alone."""
    kinds = list(EdgeKind)
    edges = [Edge(a, b, kinds[(a + b) % len(kinds)], 1.0) for a, b in links if a < n_nodes and b < n_nodes]
    return replace(build_index(n_nodes, dim=DIM, seed=seed), edges=tuple(edges))


def index_of_types(types: Sequence[NodeType], *, seed: int = 0) -> SkillIndex:
    """Return an index whose nodes have certain types."""
    index = build_index(len(types), dim=DIM, seed=seed)
    nodes = tuple(replace(node, type=kind) for node, kind in zip(index.nodes, types, strict=True))
    return replace(index, nodes=nodes)


def select(strategy: Strategy, index: SkillIndex, query: Query, **limits: int | None) -> Selection:
    return strategy.select(index, query, budget=Budget(**limits), meter=NodeMeter(index.nodes))


def relevance_of(index: SkillIndex, query: Query) -> FloatArray:
    cosines: FloatArray = np.round(index.embeddings @ query.embedding, 6).astype(np.float32)
    return cosines


LINKS = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 11)).filter(lambda link: link[0] != link[1]), max_size=40
)
SEEDS = st.integers(0, 500)


# ---- greedy_graph


@settings(max_examples=100, deadline=None)
@given(links=LINKS, seed=SEEDS, threshold=st.sampled_from([-1.0, -0.2, 0.0, 0.2]), k=st.integers(0, 14))
def test_the_walk_takes_the_best_of_the_frontier(links: Links, seed: int, threshold: float, k: int) -> None:
    index, query = index_with(links, seed=seed), query_of(seed)
    gain = relevance_of(index, query)
    expected: list[int] = [0][:k]
    while expected and len(expected) < k:
        frontier = sorted({b for a, b in links if a in expected} - set(expected))
        best = max(frontier, key=lambda node: (gain[node], -node), default=None)
        if best is None or gain[best] < threshold:
            break
        expected.append(best)
    selection = select(GreedyGraph(threshold), index, query, max_nodes=k)
    assert ordinals(selection) == expected
    assert [pick.marginal for pick in selection.picks] == [pytest.approx(float(gain[n])) for n in expected]


def test_a_walk_tells_why_each_node_was_left_out() -> None:
    index, query = index_with([(0, 1), (1, 2), (3, 4)], n_nodes=5), query_of(0)
    rows = np.tile(query.embedding, (5, 1))
    rows[2] *= -1
    index = replace(index, embeddings=rows)
    walked = select(GreedyGraph(0.5), index, query)
    assert ordinals(walked) == [0, 1]
    missed = SkipReason.NOT_REACHED
    assert reasons(walked) == {2: SkipReason.BELOW_THRESHOLD, 3: missed, 4: missed}
    assert reasons(select(GreedyGraph(-1.0), index, query)) == {3: missed, 4: missed}
    limited = reasons(select(GreedyGraph(0.5), index, query, max_nodes=1))
    assert set(limited.values()) == {SkipReason.MAX_NODES}


def test_the_entry_node_needs_no_gain_and_is_walked_through_when_it_does_not_fit() -> None:
    index, query = index_with([(0, 1), (1, 2)], n_nodes=3), query_of(0)
    rows = np.tile(query.embedding, (3, 1))
    rows[0] *= -1
    index = replace(index, embeddings=rows)
    assert ordinals(select(GreedyGraph(0.9), index, query)) == [0, 1, 2]
    nodes = tuple(replace(node, tokens=size) for node, size in zip(index.nodes, [100, 5, 5], strict=True))
    selection = select(GreedyGraph(0.9), replace(index, nodes=nodes), query, max_tokens=20)
    assert ordinals(selection) == [1, 2]
    assert reasons(selection) == {0: SkipReason.MAX_TOKENS}


def test_a_walk_that_finds_no_more_nodes_has_not_used_up_its_number() -> None:
    index, query = index_with([(0, 1)], n_nodes=4), query_of(0)
    index = replace(index, embeddings=np.tile(query.embedding, (4, 1)))
    missed, ended = SkipReason.NOT_REACHED, SkipReason.MAX_NODES
    assert reasons(select(GreedyGraph(), index, query, max_nodes=3)) == {2: missed, 3: missed}
    assert reasons(select(GreedyGraph(), index, query, max_nodes=2)) == {2: ended, 3: ended}


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 1.0, -1.001, 1.001, float("nan")])
def test_the_threshold_of_a_walk_is_a_cosine(threshold: float) -> None:
    if abs(threshold) <= 1:
        assert GreedyGraph(threshold).threshold == threshold
    else:
        with raises(ValueError):
            GreedyGraph(threshold)


@pytest.mark.parametrize(("recipe", "threshold"), FITTED_THRESHOLDS.items())
def test_a_walk_ends_at_the_threshold_of_its_encoder(recipe: tuple[str, str, str], threshold: float) -> None:
    rows, query = near(0.5, threshold + 0.001, threshold - 0.001, -0.9)
    index = replace(index_with([(0, 1), (0, 2), (0, 3)], n_nodes=4), embeddings=rows)
    encoder, embedded_text, profile = recipe
    splitter = f"3-{profile}" if profile else "3"
    made = replace(index.recipe, encoder=encoder, embedded_text=embedded_text, splitter=splitter)
    index = replace(index, recipe=made)
    selection = select(GreedyGraph(), index, Query("q", query))
    assert ordinals(selection) == [0, 1]
    assert reasons(selection) == {2: SkipReason.BELOW_THRESHOLD, 3: SkipReason.BELOW_THRESHOLD}
    assert ordinals(select(GreedyGraph(threshold - 0.01), index, Query("q", query))) == [0, 1, 2]


def test_with_another_encoder_the_walk_has_no_threshold_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    rows, query = near(0.5, -0.9, -1.0, 0.9)
    index = replace(index_with([(0, 1), (1, 2)], n_nodes=4), embeddings=rows)
    index = replace(index, recipe=replace(index.recipe, encoder="somebody's", embedded_text="heading"))
    for _ in range(2):
        assert ordinals(select(GreedyGraph(), index, Query("q", query))) == [0, 1, 2]
    (record,) = caplog.records
    assert "no threshold for the encoder somebody's (text heading)" in record.message


# ---- topk_dependency and mmr_graph


def test_by_default_nine_nodes_are_completed() -> None:
    rows, query = near(*(0.9 - place / 100 for place in range(40)))
    index = replace(index_with([(39, 8), (38, 9)], n_nodes=40), embeddings=rows)
    assert ordinals(select(TopKDependency(), index, Query("q", query))) == [*range(9), 39]


def completed(seeds: Sequence[int], links: Links, gain: FloatArray) -> list[int]:
    """Return seeds, each followed by the sources of the edges into it, the most relevant first."""
    order: list[int] = []
    for seed in seeds:
        sources = sorted({a for a, b in links if b == seed}, key=lambda node: (-gain[node], node))
        order += [node for node in (seed, *sources) if node not in order]
    return order


@settings(max_examples=100, deadline=None)
@given(
    links=LINKS, seed=SEEDS, k=st.integers(0, 14), seeds=st.sampled_from([TopKDependency(), MmrGraph(0.8)])
)
def test_each_seed_is_followed_by_its_predecessors(
    links: Links, seed: int, k: int, seeds: TopKDependency | MmrGraph
) -> None:
    index, query = index_with(links, seed=seed), query_of(seed)
    plain = TopK() if isinstance(seeds, TopKDependency) else Mmr(0.8)
    found = ordinals(select(plain, index, query, max_nodes=k))
    selection = select(seeds, index, query, max_nodes=k)
    assert ordinals(selection) == completed(found, links, relevance_of(index, query))
    assert selection.budget.max_nodes == min(k, 12)


@settings(max_examples=100, deadline=None)
@given(
    links=LINKS,
    seed=SEEDS,
    limit=st.integers(0, 160),
    seeds=st.sampled_from([TopKDependency(), MmrGraph(1.0)]),
)
def test_a_token_budget_is_filled_by_seeds_and_their_predecessors_in_turn(
    links: Links, seed: int, limit: int, seeds: TopKDependency | MmrGraph
) -> None:
    index, query = index_with(links, seed=seed), query_of(seed)
    gain, sizes = relevance_of(index, query), [node.tokens for node in index.nodes]
    expected: list[int] = []
    for node in sorted(range(12), key=lambda node: (-gain[node], node)):
        if isinstance(seeds, MmrGraph) and gain[node] < 0:
            break
        for candidate in completed([node], links, gain):
            if candidate not in expected and sizes[candidate] + sum(sizes[n] for n in expected) <= limit:
                expected.append(candidate)
            elif candidate == node and node not in expected:
                break
    assert ordinals(select(seeds, index, query, max_tokens=limit, max_nodes=12)) == expected


def test_a_predecessor_is_a_pick_with_its_numbers() -> None:
    index, query = index_with([(7, n) for n in range(12)], seed=3), query_of(3)
    selection = select(MmrGraph(1.0), index, query, max_nodes=2)
    first, predecessor, second = selection.picks
    assert (predecessor.node.ordinal, [pick.rank for pick in selection.picks]) == (7, [0, 1, 2])
    cosine = float(index.embeddings[first.node.ordinal] @ index.embeddings[7])
    assert predecessor.redundancy == pytest.approx(cosine, abs=1e-6)
    assert predecessor.relevance == pytest.approx(float(index.embeddings[7] @ query.embedding), abs=1e-6)
    # what follows differs from the seeds alone
    between = float(index.embeddings[first.node.ordinal] @ index.embeddings[second.node.ordinal])
    assert second.redundancy == pytest.approx(between, abs=1e-6)


def test_a_predecessor_that_is_picked_later_counts_from_then_on() -> None:
    rows = np.array([[1, 0], [0.9, 0.435889894], [0.8, 0.6], [0.7, 0.714142843]], dtype=np.float32)
    index = replace(index_with([(1, 0)], n_nodes=4), embeddings=rows)
    query = Query("q", np.array([1, 0], dtype=np.float32))
    assert ordinals(select(TopKDependency(), index, query, max_nodes=2)) == [0, 1]
    assert ordinals(select(TopKDependency(), index, query, max_nodes=3)) == [0, 1, 2]
    assert ordinals(select(MmrGraph(1.0), index, query, max_nodes=2)) == [0, 1]


# ---- concepts

TYPES = st.lists(st.sampled_from(NodeType), min_size=1, max_size=30)


@settings(max_examples=80, deadline=None)
@given(types=TYPES, seed=SEEDS, k=st.integers(0, 20), kind=st.sampled_from([ExecOnly, ConceptOnly]))
def test_a_reduced_pool_is_mmr_over_the_nodes_that_are_left(
    types: list[NodeType], seed: int, k: int, kind: type[ExecOnly | ConceptOnly]
) -> None:
    index, query = index_of_types(types, seed=seed), query_of(seed)
    kept = [n for n, of in enumerate(types) if (of is NodeType.CONCEPT) == (kind is ConceptOnly)]
    smaller = replace(build_index(len(kept), dim=DIM), embeddings=index.embeddings[kept])
    expected = [kept[place] for place in ordinals(select(Mmr(0.8), smaller, query, max_nodes=k))]
    selection = select(kind(0.8), index, query, max_nodes=k)
    assert ordinals(selection) == expected
    outside = {n for n, reason in reasons(selection).items() if reason is SkipReason.NOT_IN_POOL}
    assert outside == set(range(len(types))) - set(kept)


@pytest.mark.parametrize(
    ("concepts", "threshold", "excluded"), [(4, 0.4, False), (5, 0.4, True), (5, 0.5, False), (3, 0.3, False)]
)
def test_concepts_are_excluded_above_the_threshold(concepts: int, threshold: float, excluded: bool) -> None:
    types = [NodeType.CONCEPT] * concepts + [NodeType.STEP] * (10 - concepts)
    index, query = index_of_types(types), query_of(2)
    other = ExecOnly() if excluded else Mmr()
    selection = select(Density(threshold=threshold), index, query, max_nodes=4)
    assert ordinals(selection) == ordinals(select(other, index, query, max_nodes=4))
    assert (SkipReason.NOT_IN_POOL in reasons(selection).values()) is excluded


@pytest.mark.parametrize(("concepts", "excluded"), [(0, False), (1, True), (9, True)])
def test_at_threshold_0_one_concept_is_too_many_and_at_1_none_is(concepts: int, excluded: bool) -> None:
    index = index_of_types([NodeType.CONCEPT] * concepts + [NodeType.STEP] * (9 - concepts))
    found = reasons(select(Density(threshold=0.0), index, query_of(2), max_nodes=9))
    assert (SkipReason.NOT_IN_POOL in found.values()) is excluded
    found = reasons(select(Density(threshold=1.0), index, query_of(2), max_nodes=9))
    assert SkipReason.NOT_IN_POOL not in found.values()


@pytest.mark.parametrize(
    ("threshold", "mmr_lambda"), [(-0.001, 0.7), (1.001, 0.7), (float("nan"), 0.7), (0.4, 1.1)]
)
def test_a_share_or_weight_outside_zero_to_one_is_refused(threshold: float, mmr_lambda: float) -> None:
    with raises(ValueError):
        Density(mmr_lambda, threshold=threshold)


def test_the_dynamic_budget_follows_all_nodes() -> None:
    types = [NodeType.CONCEPT] * 50 + [NodeType.STEP] * 51
    index, query = index_of_types(types), query_of(4)
    index = replace(index, embeddings=np.tile(query.embedding, (101, 1)))
    assert len(select(ExecOnly(1.0), index, query).picks) == 51
    assert len(select(ConceptOnly(1.0), index, query).picks) == 50
    assert len(select(Density(1.0), index, query).picks) == 51


@pytest.mark.parametrize("style", Style)
def test_an_empty_pool_is_an_empty_page_that_says_so(pager: SkillPager, style: Style) -> None:
    index = pager.index(SAMPLES / "postgres-backup")
    steps = replace(index, nodes=tuple(replace(node, type=NodeType.STEP) for node in index.nodes))
    page = PageRenderer(steps, pager.token_counter, style=style, show="skillpager show x")
    query = Query("q", pager.embed_query("restore one table"))
    context = make_page(page, ConceptOnly(), query, Budget())
    assert context.nodes == ()
    assert context.selection is not None
    assert {skip.reason for skip in context.selection.skipped} == {SkipReason.NOT_IN_POOL}
    assert [omission.nodes for omission in context.omitted] == [tuple(node.id for node in index.nodes)]
    mark = f"[… L{index.nodes[0].span.start_line}-{index.nodes[-1].span.end_line}: "
    assert context.text == "" if style is Style.PLAIN else mark in context.text


# ---- every local strategy


PAGED = [SAMPLES / name for name in ("kubernetes-debugging", "postgres-backup", "git-bisect")]
QUERIES = ["restore one table", "404", "Deployment stuck in Pending", "周五 发布", "???"]


@pytest.mark.parametrize("name", PROJECT_STRATEGIES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_what_holds_for_every_strategy(sample_pager: SkillPager, name: str, data: st.DataObject) -> None:
    skill = sample_pager.index(data.draw(st.sampled_from(PAGED)))
    limit = data.draw(st.none() | st.integers(0, 2500))
    call = {
        "query": data.draw(st.sampled_from(QUERIES)),
        "strategy": name,
        "max_nodes": data.draw(st.none() | st.integers(0, 40)),
        "max_tokens": limit,
        "style": data.draw(st.sampled_from(list(Style))),
        "mmr_lambda": data.draw(st.sampled_from([0.0, 0.7, 1.0])),
        "show": "skillpager show x",
    }
    context = sample_pager.page(skill, **call)
    selection = context.selection
    assert selection is not None
    assert limit is None or context.tokens <= limit
    assert context.tokens == sample_pager.token_counter.count(context.text)
    pool = sample_pager.pool(skill, name)
    picked = ordinals(selection)
    assert sorted([*picked, *reasons(selection)]) == list(range(len(pool.nodes)))
    assert [pick.rank for pick in selection.picks] == list(range(len(picked)))
    assert all(pick.node is pool.nodes[pick.node.ordinal] for pick in selection.picks)
    again = SkillPager(encoder=sample_pager.encoder, store=sample_pager.store).page(skill, **call)
    assert (again.text, again.selection) == (context.text, selection)


@pytest.mark.parametrize("name", PROJECT_STRATEGIES)
def test_ties_go_to_the_earlier_node(name: str) -> None:
    index = build_index(40, dim=DIM, seed=1)
    nodes = tuple(replace(node, type=NodeType.STEP, text="same", tokens=3) for node in index.nodes)
    if name == "concept_only":
        nodes = tuple(replace(node, type=NodeType.CONCEPT) for node in nodes)
    heading = replace(index.headings[0], span=replace(index.headings[0].span, start=0, end=1))
    rows = np.tile(index.embeddings[:1], (40, 1))
    index = replace(index, nodes=nodes, headings=(heading,), embeddings=rows)
    strategy = make_strategy(name, mmr_lambda=0.9)
    if isinstance(strategy, Navigator):
        # where a node stands counts too, so that nodes of one text are no tie yet: equal needs are
        strategy = replace(strategy, model=indifferent())
    selection = select(strategy, index, Query("same", index.embeddings[0]), max_nodes=6)
    assert sorted(ordinals(selection)) == list(range(len(selection.picks)))
    assert len(selection.picks) >= 6


@pytest.mark.parametrize("name", PROJECT_STRATEGIES)
def test_a_skill_without_nodes_gives_an_empty_selection(name: str) -> None:
    strategy = make_strategy(name, mmr_lambda=0.7)
    empty = replace(build_index(0, dim=DIM), embeddings=np.zeros((0, DIM), dtype=np.float32))
    selection = select(strategy, empty, query_of(0))
    assert (selection.picks, tuple(selection.skipped), selection.strategy) == ((), (), name)


def test_the_selections_from_the_samples_are_what_they_were(sample_pager: SkillPager) -> None:
    check("selections.txt", selections_text(sample_pager))


def test_the_shipped_encoder_has_a_threshold() -> None:
    assert (ENCODER_ID, Settings().embedded_text, "") in FITTED_THRESHOLDS
