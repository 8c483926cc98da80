"""Parts of others by name: what is loaded, what is refused, and who may name code at all."""

import sys
from pathlib import Path

import pytest

from chat_bench import invoke
from conftest import SAMPLES
from messages import raises
from own_parts import install_parts, module
from skillpager import SkillPager
from skillpager.errors import SettingsError
from skillpager.factories import ENCODERS, make_classifier, make_encoder, make_strategy
from skillpager.settings import BUILT_IN, PROJECT_STRATEGIES, Settings, load_settings
from skillpager.strategies.mmr import Mmr
from skillpager.strategies.registry import FAMILIES

__all__ = ["module"]

BISECT = SAMPLES / "git-bisect"
QUERY = "which command marks a commit as good"


def strategy_of(name: str, mmr_lambda: float = 0.7) -> object:
    return make_strategy(name, mmr_lambda=mmr_lambda)


@pytest.mark.parametrize("name", ["Last", "first", "every_other", "make", "Space.Inner"])
def test_a_class_an_object_and_a_function_can_be_a_strategy(hashing_pager: SkillPager, name: str) -> None:
    page = hashing_pager.page(BISECT, QUERY, strategy=f"strangers:{name}", style="plain", max_nodes=3)
    assert page.selection
    assert page.selection.strategy == "last"
    picked = [pick.node.ordinal for pick in page.selection.picks]
    last = len(page.selection.picks) + len(page.selection.skipped) - 1
    steps = {"first": [0, 1, 2], "every_other": [last, last - 2, last - 4]}
    assert picked == steps.get(name, [last, last - 1, last - 2])


def test_a_class_gets_the_weight_that_it_asks_for() -> None:
    assert getattr(strategy_of("strangers:Last", 0.2), "weight") == 0.2  # noqa: B009
    assert getattr(strategy_of("strangers:first", 0.2), "weight") == 0.7  # noqa: B009


def test_a_constructors_own_default_holds_unless_a_call_says_otherwise(
    hashing_pager: SkillPager, tmp_path: Path
) -> None:
    text = (
        "from skillpager.strategies.mmr import Mmr\ndef near(mmr_lambda=0.9):\n    return Mmr(mmr_lambda)\n"
    )
    (tmp_path / "near.py").write_text(text)
    for name, given, held in (("near:near", None, 0.9), ("near:near", 0.2, 0.2), ("mmr", None, 0.7)):
        assert hashing_pager.strategy(name, given).mmr_lambda == held  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name",
    [
        "nowhere:Last", "strangers.deep:Last", "strangers:Space.Lost", "strangers:", ":Last",
        "../strangers:Last", "strangers:Last(3)", "strangers:Nothing", "strangers:Needs",
    ],
)  # fmt: skip
def test_what_cannot_be_a_strategy_is_a_clear_error(name: str) -> None:
    with raises(SettingsError):
        strategy_of(name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("syntax", "def select(:\n"),
        ("raising", "\n\nraise RuntimeError('no licence')\n"),
        ("leaving", "import sys\nsys.exit('bye')\n"),
    ],
)
def test_a_module_that_cannot_be_imported_is_named_with_its_line(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / f"{name}.py").write_text(text)
    with raises(SettingsError):
        strategy_of(f"{name}:Last")


def test_encoders_and_classifiers_are_named_alike(tmp_path: Path) -> None:
    settings = Settings(cache_dir=tmp_path / "cache")
    with_names = SkillPager(
        encoder="strangers:MyEncoder", classifier="strangers:MyClassifier", settings=settings
    )
    assert (with_names.recipe.encoder, with_names.recipe.classifier) == ("mine", "mine")
    assert with_names.page(BISECT, QUERY, strategy="topk").nodes
    with_names.close()
    for make in (make_encoder, make_classifier):
        with raises(SettingsError):
            make("strangers:Last", settings)


def test_installed_packages_have_names_and_cannot_take_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_parts(tmp_path / "site", monkeypatch)
    assert type(strategy_of("last")).__module__ == "plugged"
    assert isinstance(strategy_of("mmr"), Mmr)
    assert make_encoder("theirs", Settings()).id == make_classifier("theirs", Settings()).id == "mine"
    for name in ("gone", "theirs"):
        with raises(SettingsError):
            strategy_of(name)


def test_the_command_line_takes_a_strategy_of_the_folder(tmp_path: Path) -> None:
    said = invoke(
        "page", BISECT, QUERY, "--strategy", "strangers:Last", "-k", "2", "--cache-dir", tmp_path / "c"
    )
    assert said.code == 0, said.err
    assert "2 of" in said.err
    said = invoke(
        "page", BISECT, "FAIL", "--strategy", "strangers:Fails", "-k", "3", "--cache-dir", tmp_path / "c"
    )
    assert (said.code, said.out) == (1, "")
    assert "KeyError: 'no such thing' (strangers.py, line 28)" in said.err


def test_a_module_of_the_folder_hides_no_installed_one(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise RuntimeError\n")
    with raises(SettingsError):
        strategy_of("typer:Last")
    strategy_of("strangers:Last")
    assert sys.path.index(str(tmp_path)) == len(sys.path) - 1


# ---- who may name code: loading it runs it


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """Write a module that leaves a file when it is imported, and return that file."""
    mark = tmp_path / "loaded"
    (tmp_path / "trap.py").write_text(f"open({str(mark)!r}, 'w').close()\nfrom strangers import *\n")
    return mark


@pytest.mark.parametrize("setting", ["strategy", "encoder", "classifier"])
def test_neither_a_variable_nor_a_file_can_have_code_loaded(tmp_path: Path, trap: Path, setting: str) -> None:
    user = tmp_path / "config.toml"
    user.write_text(f'{setting} = "trap:Last"\n')
    with raises(SettingsError):
        load_settings(environ={}, project_file=None, user_file=user)
    with raises(SettingsError):
        load_settings(environ={f"SKILLPAGER_{setting.upper()}": "trap:Last"}, user_file=tmp_path / "none")
    assert not trap.exists()


def test_our_own_names_are_told_from_names_of_modules() -> None:
    assert {name.partition(":")[0] for name in ENCODERS} == set(BUILT_IN["encoder"])
    assert set(BUILT_IN["strategy"]) == {*FAMILIES, "chunk_mmr"} == {*PROJECT_STRATEGIES, "chunk_mmr"}
