"""Names to strategies: each is found, and wrong ones are clear errors."""

import re
from typing import get_args

import pytest

from conftest import ROOT
from messages import raises
from skillpager.cli.options import StrategyName
from skillpager.errors import SettingsError
from skillpager.factories import STRATEGIES, make_strategy
from skillpager.strategies.baselines.graph import FITTED_THRESHOLDS
from skillpager.strategies.registry import FAMILIES


def made(name: str, mmr_lambda: float = 0.7) -> object:
    return make_strategy(name, mmr_lambda=mmr_lambda)


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_name_makes_the_strategy_of_that_name(name: str) -> None:
    argument = FAMILIES[name].argument
    full = f"{name}:{argument.sample}" if argument else name
    strategy = made(full)
    assert getattr(strategy, "name") == name  # noqa: B009, a strategy's type is not known here
    if argument:
        assert getattr(strategy, argument.field) == float(argument.sample)
    if FAMILIES[name].weighs:
        assert getattr(made(name, 0.25), "mmr_lambda") == 0.25  # noqa: B009


@pytest.mark.parametrize(
    "name", ["nosuch", "", "density:abc", "density:nan", "greedy_graph:-3", "chunk_mmr:64", "topk:5"]
)
def test_a_wrong_name_or_argument_is_a_clear_error(name: str) -> None:
    with raises(SettingsError):
        made(name)


def test_the_help_and_the_documentation_name_every_strategy() -> None:
    told = get_args(StrategyName)[1].help
    assert set(STRATEGIES) <= set(re.findall(r"\w+", told))
    page = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")
    assert re.findall(r"^### `(\w+)", page, re.MULTILINE) == list(STRATEGIES)


@pytest.mark.parametrize(
    ("name", "field"), [(name, a.field) for name, f in FAMILIES.items() if (a := f.argument)]
)
def test_the_documentation_tells_the_default_of_every_argument(name: str, field: str) -> None:
    page = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")
    section = page.partition(f"### `{name}`\n")[2].partition("\n##")[0]
    assert f"`{name}:" in section
    default = getattr(made(name), field)
    # the threshold of greedy_graph is that of the encoder
    for value in FITTED_THRESHOLDS.values() if default is None else [default]:
        told = f"{value:g}".replace("-", "−")
        assert re.search(rf"(?<![\d.]){re.escape(told)}(?![\d])", section)
