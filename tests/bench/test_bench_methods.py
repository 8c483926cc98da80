"""Labels of methods, and the suites made of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from messages import raises
from skillpager.bench.run.methods import (
    ALL_NODES,
    ESTIMATING,
    METHOD_STRATEGIES,
    OFFLINE,
    SUITES,
    Method,
    parse_method,
    read_labels,
)
from skillpager.bench.run.windows import ENTRY, SECTION_BM25
from skillpager.errors import SettingsError
from skillpager.factories import make_strategy
from skillpager.pages.assemble import estimates
from skillpager.settings import PROJECT_STRATEGIES

_NAMES = st.sampled_from(["builtin", "hashing", "openai:bge-m3", "sentence-transformers:org/model-1.5"])


@st.composite
def _methods(draw: st.DrawFn) -> Method:
    share, tokens = draw(st.sampled_from([(None, None), (0.4, None), (None, 1500), (0.125, None)]))
    nodes = draw(st.sampled_from([None, 0, 20, ALL_NODES]))
    if nodes is None and (share is not None or tokens is not None):
        nodes = ALL_NODES
    strategy = draw(st.sampled_from(["mmr", "density:0.3", "own:Strategy", "navigator"]))
    chances = st.sampled_from([None, 0.05, 0.9, 1.0] if strategy in ESTIMATING else [None])
    return Method(
        strategy=strategy,
        mmr_lambda=draw(st.sampled_from([None, 0.0, 0.3, 0.9, 1.0])),
        max_nodes=nodes,
        boundary=draw(st.sampled_from([None, 80])),
        share=share,
        max_tokens=tokens,
        sufficiency=draw(chances),
        encoder=draw(st.none() | _NAMES),
        classifier=draw(st.sampled_from([None, "labels", "llm"])),
        notes=draw(st.sampled_from([None, "a/asks"] if strategy in ESTIMATING else [None])),
    )


@given(_methods())
def test_a_label_names_its_method(method: Method) -> None:
    assert parse_method(method.label) == method


@given(st.lists(_methods(), max_size=5))
def test_a_list_of_labels_is_divided_where_labels_end(methods: list[Method]) -> None:
    labels = [method.label for method in methods]
    assert read_labels(", ".join(labels)) == list(dict.fromkeys(labels))


@pytest.mark.parametrize(
    ("label", "same"),
    [
        *(("mmr@k=20,lambda=0.90", "mmr@lambda=0.9,k=20"), ("mmr@tokens=40.0%", "mmr@tokens=40%")),
        *(("mmr@k=all,tokens=40%", "mmr@tokens=40%"), (" topk ", "topk")),
        ("navigator@notes=asks,sufficiency=0.90,k=3", "navigator@k=3,sufficiency=0.9,notes=asks"),
    ],
)
def test_one_method_has_one_label(label: str, same: str) -> None:
    assert parse_method(label).label == same


@pytest.mark.parametrize(
    ("label", "told"),
    [
        *(("@k=3", "names no strategy"), ("mmr@size=3", "unknown option 'size'")),
        *(("mmr@lambda=2", "between 0 and 1"), ("mmr@lambda=x", "lambda cannot be 'x'")),
        *(("mmr@k=-1", "whole number"), ("mmr@k=³", "whole number"), ("mmr@tokens=140%", "between 0 and 1")),
        *(("mmr@encoder=", "must be a name"), ("navigator@sufficiency=90", "between 0 and 1")),
        *(("navigator@sufficiency=nan", "between 0 and 1"), ("navigator@sufficiency=0", "above 0")),
        ("navigator@sufficiency=high", "sufficiency cannot be 'high'"),
        ("mmr@sufficiency=0.9", "mmr does not estimate sufficiency or read notes, only navigator and lean"),
        ("mmr@notes=asks", "mmr does not estimate sufficiency or read notes, only navigator and lean do"),
    ],
)
def test_a_wrong_label_is_explained(label: str, told: str) -> None:
    with raises(SettingsError) as raised:
        parse_method(label)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("label", "nodes", "budget"),
    [
        *(("mmr", 150, (None, None)), ("mmr@boundary=80", 80, (20, None))),
        *(("mmr@boundary=80", 81, (60, None)), ("mmr@boundary=80,k=5", 81, (5, None))),
        *(("mmr@tokens=40%", 50, (ALL_NODES, 400)), ("mmr@k=10,tokens=1500", 50, (10, 1500))),
        ("navigator@sufficiency=0.9", 50, (None, None)),
    ],
)
def test_the_budget_of_a_method(label: str, nodes: int, budget: tuple[int | None, int | None]) -> None:
    assert parse_method(label).budget(nodes, 1000) == budget


@pytest.mark.parametrize("name", SUITES)
def test_suites_hold_proper_labels_once_each(name: str) -> None:
    labels = SUITES[name]
    assert [parse_method(label).label for label in labels] == list(labels)
    assert len(set(labels)) == len(labels)


def test_every_strategy_without_a_model_is_compared() -> None:
    elsewhere = {label.partition(":")[0] for label in SUITES["concept"]}
    # within a budget lean pages are those of the navigator
    assert set(METHOD_STRATEGIES) - {"lean", ENTRY, SECTION_BM25} == set(OFFLINE) | elsewhere


def test_sufficiency_is_for_the_strategies_that_estimate_it() -> None:
    made = {name: make_strategy(name, mmr_lambda=0.7) for name in PROJECT_STRATEGIES}
    assert {name for name, strategy in made.items() if estimates(strategy)} == set(ESTIMATING)
    assert parse_method("navigator@sufficiency=0.9").sufficiency == 0.9
    assert parse_method("navigator").sufficiency is None
