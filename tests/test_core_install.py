"""The command line in an environment without extras: it pages offline, and what needs an extra says so."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from cli_process import SAMPLES, environment, run
from skillpager import SkillPager
from skillpager.errors import SettingsError

SAMPLE = SAMPLES / "postgres-backup"
QUERY = "Restore a single table from last night's dump."

# a command and the package that it needs beyond the core
NEED_AN_EXTRA = {
    "mcp": (["mcp", str(SAMPLES)], "mcp_types"),
    "server": (["serve", str(SAMPLES)], "fastapi"),
    "strategies": (["page", str(SAMPLE), QUERY, "--strategy", "dpp"], "pyversity"),
}


def test_pages_offline_whatever_is_installed(tmp_path: Path) -> None:
    env = environment(tmp_path / "cache")
    page = run("page", SAMPLE, QUERY, env=env)
    assert page.code == 0
    assert "pg_restore --list shop-2025-03-01.dump | grep ' orders' > orders.list" in page.out
    assert ("about" in page.err) == (find_spec("rs_bpe") is None)
    assert run("show", SAMPLE, "n0-n2", env=env).out
    assert run("outline", SAMPLE, env=env).code == 0
    assert len(run("list", SAMPLES, "--json", env=env).json["skills"]) == len(list(SAMPLES.iterdir()))
    assert run("doctor", env=env).code == 0


@pytest.mark.parametrize("extra", NEED_AN_EXTRA)
def test_a_command_without_its_extra_names_it(tmp_path: Path, extra: str) -> None:
    arguments, package = NEED_AN_EXTRA[extra]
    if find_spec(package):
        pytest.skip(f"the extra [{extra}] is installed")
    done = run(*arguments, env=environment(tmp_path / "cache"), cwd=tmp_path)
    assert done.code == 1
    assert extra in done.err
    assert "pip install" in done.err
    assert "Traceback" not in done.err


def test_a_folder_that_is_given_as_text_asks_for_no_extra(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"for a folder its pathlib\.Path"):
        SkillPager(store=str(tmp_path)).page(SAMPLE, QUERY)
