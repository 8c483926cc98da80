"""Settings: keyword over environment over project file over user file over default."""

import os
from pathlib import Path

import pytest

from messages import raises
from skillpager import SkillPager
from skillpager.errors import SettingsError
from skillpager.settings import Settings, load_settings


def load(tmp_path: Path, *, user: str = "", project: str = "", **environ: str) -> Settings:
    """Load settings from two files and an environment made here."""
    user_file, project_file = tmp_path / "config.toml", tmp_path / "skillpager.toml"
    user_file.write_text(user, encoding="utf-8")
    project_file.write_text(project, encoding="utf-8")
    return load_settings(environ=environ, project_file=project_file, user_file=user_file)


def test_the_nearest_place_wins(tmp_path: Path) -> None:
    user = 'strategy = "full"\nmax_nodes = 5\nmmr_lambda = 0.5\nencoder = "hashing"'
    settings = load(
        tmp_path, user=user, project="max_nodes = 7\nmmr_lambda = 0.6", SKILLPAGER_MMR_LAMBDA="0.9"
    )
    assert (settings.strategy, settings.max_nodes, settings.mmr_lambda) == ("full", 7, 0.9)
    assert settings.encoder == "hashing"
    assert load(tmp_path).mmr_lambda == 0.7


def test_without_a_word_the_pager_chooses_the_strategy_and_when_a_page_ends(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert (settings.strategy, settings.sufficiency) == (None, None)
    assert settings.embedded_text == "context"


def test_sufficiency_can_be_set_everywhere(tmp_path: Path) -> None:
    assert load(tmp_path, user="sufficiency = 0.5").sufficiency == 0.5
    assert load(tmp_path, user="sufficiency = 0.5", project="sufficiency = 0.8").sufficiency == 0.8
    assert load(tmp_path, project="sufficiency = 0.8", SKILLPAGER_SUFFICIENCY="0.9").sufficiency == 0.9


def test_a_keyword_wins_over_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SKILLPAGER_ENCODER", "openai:from-environment")
    pager = SkillPager(encoder="hashing", store=tmp_path)
    assert pager.encoder.id.startswith("hashing")


def test_a_project_file_cannot_redirect_or_load_anything(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    project = 'encoder = "sentence-transformers:evil"\nllm_base_url = "http://evil"\ncache_dir = "/evil"\nmax_tokens = 9'
    settings = load(tmp_path, project=project)
    assert settings.encoder == "builtin"
    assert settings.llm_base_url is None
    assert settings.cache_dir == Settings().cache_dir
    assert settings.max_tokens == 9
    assert caplog.text.count("is ignored, a project may only set") == 3


def test_openai_variables_are_the_fallback(tmp_path: Path) -> None:
    environ = {
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": "http://localhost:1/v1",
        "SKILLPAGER_LLM_API_KEY": "own",
    }
    settings = load(tmp_path, **environ)
    assert (settings.llm_api_key, settings.embed_api_key) == ("own", "k")
    assert settings.embed_base_url == settings.llm_base_url == "http://localhost:1/v1"


def test_the_openai_key_is_not_sent_to_another_host(tmp_path: Path) -> None:
    settings = load(tmp_path, OPENAI_API_KEY="k", SKILLPAGER_LLM_BASE_URL="http://elsewhere/v1")
    assert settings.llm_api_key is None
    assert settings.embed_api_key == "k"


def test_lists_of_folders_and_home(tmp_path: Path) -> None:
    settings = load(
        tmp_path, SKILLPAGER_SKILLS_DIR=os.pathsep.join(["~/a", "/b"]), SKILLPAGER_CACHE_DIR="~/c"
    )
    assert settings.skills_dir == (Path.home() / "a", Path("/b"))
    assert settings.cache_dir == Path.home() / "c"


def test_keys_never_show(tmp_path: Path) -> None:
    shown = repr(load(tmp_path, SKILLPAGER_LLM_API_KEY="sk-secret", SKILLPAGER_EMBED_API_KEY="sk-other"))
    assert "sk-" not in shown


@pytest.mark.parametrize(
    "content",
    [
        "encoder = ",
        'encodr = "x"',
        "max_nodes = -1",
        "max_nodes = true",
        'mmr_lambda = "high"',
        'sufficiency = "sure"',
    ],
)
def test_a_wrong_file_names_the_place_and_the_value(tmp_path: Path, content: str) -> None:
    with raises(SettingsError):
        load(tmp_path, user=content)


def test_a_wrong_variable_names_itself(tmp_path: Path) -> None:
    with raises(SettingsError):
        load(tmp_path, SKILLPAGER_MAX_TOKENS="many")
