"""Names to strategies: each is found, wrong ones are clear errors, and a project file names no model."""

import re
from pathlib import Path
from typing import get_args

import pytest

from conftest import ROOT
from messages import raises
from skillpager.cli.options import StrategyName
from skillpager.errors import SettingsError
from skillpager.factories import STRATEGIES, make_strategy
from skillpager.settings import Settings, load_settings
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
        assert getattr(strategy, argument.field) == argument.read(argument.sample)
    if FAMILIES[name].weighs:
        assert getattr(made(name, 0.25), "mmr_lambda") == 0.25  # noqa: B009


@pytest.mark.parametrize(
    "name", ["nosuch", "", "density:abc", "density:nan", "greedy_graph:-3", "chunk_mmr:64", "topk:5"]
)
def test_a_wrong_name_or_argument_is_a_clear_error(name: str) -> None:
    with raises(SettingsError):
        made(name)


def project(tmp_path: Path, strategy: str) -> Settings:
    """Load settings from a project file that names a strategy."""
    file = tmp_path / "skillpager.toml"
    file.write_text(f'strategy = "{strategy}"\nmax_nodes = 3\n', encoding="utf-8")
    return load_settings(environ={}, project_file=file, user_file=tmp_path / "none.toml")


@pytest.mark.parametrize("name", ["own:Strategy", "nosuch", "MMR", "density:0.3"])
def test_a_project_file_cannot_name_a_strategy_with_a_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    settings = project(tmp_path, name)
    assert (settings.strategy, settings.max_nodes) == (None, 3)  # the default
    assert (
        f"strategy {name!r} is ignored, a project may only name one of navigator, lean, mmr, topk"
        in caplog.text
    )


def test_the_users_own_settings_can_name_any_strategy(tmp_path: Path) -> None:
    user = tmp_path / "config.toml"
    user.write_text('strategy = "of-a-package"\n', encoding="utf-8")
    assert load_settings(environ={}, project_file=None, user_file=user).strategy == "of-a-package"
    environ = {"SKILLPAGER_STRATEGY": "density:0.3"}
    assert load_settings(environ=environ, project_file=None, user_file=user).strategy == "density:0.3"


def test_a_project_file_can_name_a_strategy_without_a_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert project(tmp_path, "head").strategy == "head"
    assert caplog.text == ""


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
