"""Settings: keyword over environment over project file over user file over default."""

import os
import re
import tempfile
from pathlib import Path

import pytest

from messages import raises
from skillpager import SkillPager
from skillpager.errors import SettingsError
from skillpager.files import read_bounded
from skillpager.settings import Settings, hide_secrets, load_settings


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
    plain = load(tmp_path)
    assert (plain.mmr_lambda, plain.strategy, plain.sufficiency) == (0.7, None, None)


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


@pytest.mark.parametrize(
    ("name", "taken"),
    [("head", True), *((name, False) for name in ("own:Strategy", "nosuch", "MMR", "density:0.3"))],
)
def test_a_project_file_names_no_strategy_with_a_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, taken: bool
) -> None:
    settings = load(tmp_path, project=f'strategy = "{name}"\nmax_nodes = 3')
    assert (settings.strategy, settings.max_nodes) == (name if taken else None, 3)
    told = f"strategy {name!r} is ignored, a project may only name one of navigator, lean, mmr, topk"
    assert (told in caplog.text) is not taken


def test_the_users_own_settings_can_name_any_strategy(tmp_path: Path) -> None:
    assert load(tmp_path, user='strategy = "of-a-package"').strategy == "of-a-package"
    own = load(tmp_path, user='strategy = "full"', SKILLPAGER_STRATEGY="density:0.3")
    assert own.strategy == "density:0.3"


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


@pytest.mark.parametrize(
    "content",
    [
        "encoder = ", 'encodr = "x"', "max_nodes = -1", "max_nodes = true", 'mmr_lambda = "high"',
        'sufficiency = "sure"', "llm_batch_size = 0", "llm_concurrency = 1001", "llm_timeout = nan",
        'fill = "perhaps"', 'style = "gold"', "sufficiency = 0", "encoder = 5",
    ],
)  # fmt: skip
def test_a_wrong_file_names_the_place_and_the_value(tmp_path: Path, content: str) -> None:
    with raises(SettingsError):
        load(tmp_path, user=content)


def test_a_wrong_variable_names_itself(tmp_path: Path) -> None:
    with raises(SettingsError):
        load(tmp_path, SKILLPAGER_MAX_TOKENS="many")


BAD_PROJECT_FILES = {
    "not TOML": b"encoder = ",
    "not UTF-8": b"style = '\xff'",
    "deep": b"style = " + b"[" * 30_000,
    "long": b"#" * 10_000_000,
    "long number": b"max_nodes = 0x" + b"f" * 60_000,
    "wrong types": b"max_nodes = [1]\nstyle = {a = 1}\nscope = 5\nmmr_lambda = 'x'\nsufficiency = true",
    "out of range": b"mmr_lambda = nan\nsufficiency = 0\nmax_tokens = 99999999999999999999\nstyle = 'gold'",
    "unknown names": b"colour = 'red'\n" + b"x" * 10_000 + b" = 1",
    "bad arguments": b"strategy = 'density:many'",
    "an argument too many": b"strategy = 'mmr:0.5'",
}


@pytest.mark.parametrize("what", BAD_PROJECT_FILES)
def test_a_bad_project_file_is_a_warning_and_the_users_own_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    bad = tmp_path / "skillpager.toml"
    bad.write_bytes(BAD_PROJECT_FILES[what])
    settings = load_settings(environ={}, project_file=bad, user_file=tmp_path / "none.toml")
    assert settings == Settings(cache_dir=settings.cache_dir)
    warned = [record.getMessage() for record in caplog.records]
    assert warned
    assert all(str(bad) in text and len(text) < 1_000 for text in warned)
    if "argument" not in what:  # these are only noticed when a page is made
        with pytest.raises(SettingsError, match=re.escape(str(bad))):
            load_settings(environ={}, project_file=None, user_file=bad)


def test_the_good_settings_of_a_bad_project_file_are_used(tmp_path: Path) -> None:
    settings = load(tmp_path, project="max_tokens = 9\ncolour = 1\nstyle = 'gold'\nmmr_lambda = 0.5")
    assert (settings.max_tokens, settings.style, settings.mmr_lambda) == (9, "marked", 0.5)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such files on this system")
@pytest.mark.parametrize("what", ["pipe", "device", "loop", "folder", "link to nothing"])
@pytest.mark.timeout(20)
def test_a_project_file_that_is_no_file_holds_nothing_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    path = tmp_path / "skillpager.toml"
    match what:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "loop":
            path.symlink_to(path)
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to(tmp_path / "nowhere")
    missing = tmp_path / "none.toml"
    assert load_settings(environ={}, project_file=path, user_file=missing).style == "marked"
    if what != "link to nothing":
        assert f"{path} cannot be read" in caplog.text
        with pytest.raises(SettingsError, match="cannot be read"):
            load_settings(environ={}, project_file=None, user_file=path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs to become another user")
def test_a_file_without_permission_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        file = Path(folder) / "config.toml"
        file.write_text("max_tokens = 9", encoding="utf-8")
        file.chmod(0)
        os.seteuid(65534)
        try:
            assert load_settings(environ={}, project_file=None, user_file=file).max_tokens is None
        finally:
            os.seteuid(0)
        assert f"{file} cannot be read (Permission denied)" in caplog.text


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host:8000/v1", "https://host:8000/v1"),
        ("https://user:secret@host/v1?key=secret&x=1", "https://…@host/v1?key=…&x=…"),
        ("https://user:se/cret@host/v1?secret", "https://…@host/v1?…"),
        ("https://user:se?cr#et@host", "https://…@host"),
        ("user:secret@host/v1#secret", "…@host/v1"),
    ],
)
def test_passwords_in_addresses_never_show(tmp_path: Path, url: str, shown: str) -> None:
    assert hide_secrets(url) == shown
    settings = load(
        tmp_path, SKILLPAGER_LLM_BASE_URL=url, OPENAI_BASE_URL=url, SKILLPAGER_LLM_API_KEY="a secret"
    )
    assert "secret" not in repr(settings)
    assert repr(settings).count(repr(shown)) == 2
    assert settings.embed_base_url == url


def test_only_regular_files_are_read_and_no_more_than_allowed(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 200_000)
    assert read_bounded(file, 1_000_000) == file.read_bytes()
    assert len(read_bounded(file, 100_000)) == 100_001
    with pytest.raises(OSError, match="not a regular file"):
        read_bounded(tmp_path, 10)
