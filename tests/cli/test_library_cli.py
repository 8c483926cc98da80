"""`skillpager library check`: what it prints, where, and with which exit code."""

import json
from pathlib import Path

import pytest

from cli_process import ROOT, environment, invoke
from skillpager.library.skill_checks import Kind

ODD = "examples/skills/odd-markdown/SKILL.md"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return environment(tmp_path / "cache", HOME=str(tmp_path))


def skill(folder: Path, front_matter: str, body: str = "Text.\n") -> Path:
    """Write a skill and return its SKILL.md."""
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\n{front_matter}---\n{body}", encoding="utf-8")
    return folder / "SKILL.md"


def test_findings_are_lines_that_editors_link(env: dict[str, str]) -> None:
    done = invoke("library", "check", "examples/skills", env=env, cwd=ROOT)
    assert done.code == 1
    assert done.out == (
        f"{ODD}:3: error: front-matter: the front matter is not valid YAML (mapping values are not allowed "
        "here): put the value in quotes, or mend the indentation\n"
    )
    assert done.err == "10 skills: 1 error and 0 warnings (1 front-matter)\n"


def test_warnings_alone_are_success(tmp_path: Path, env: dict[str, str]) -> None:
    file = skill(tmp_path / "skills" / "a", "name: a\ndescription: d\n", "word\n" * 600)
    done = invoke("library", "check", tmp_path / "skills", env=env)
    assert done.code == 0
    assert done.out.splitlines() == [
        f"{file}: warning: licence: it is not known under which licence others may use the skill: write "
        "`license:` with an SPDX id such as MIT, or LicenseRef- and a name",
        f"{file}: warning: size: SKILL.md has 604 lines (over 500), and hosts load it whole: move parts that few "
        "tasks need into files of references/, or let agents page it",
    ]
    done = invoke("library", "check", tmp_path / "skills", "--ignore", "licence", "--ignore", "size", env=env)
    assert (done.code, done.out) == (0, "")
    assert done.err == "1 skill: 0 errors and 0 warnings\n"
    done = invoke("library", "check", tmp_path / "skills", "--only", "size", env=env)
    assert ("licence" in done.out, "size" in done.out) == (False, True)
    done = invoke("library", "check", tmp_path / "skills", "--severity", "error", env=env)
    assert (done.code, done.out) == (0, "")


def test_without_folders_the_usual_ones_are_checked(tmp_path: Path, env: dict[str, str]) -> None:
    done = invoke("library", "check", env=env, cwd=tmp_path)
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("no skills in ")
    skill(tmp_path / ".claude" / "skills" / "a", "name: B\ndescription: d\nlicense: MIT\n")
    done = invoke("library", "check", env=env, cwd=tmp_path)
    assert done.code == 1
    assert "error: name: the name 'B' is not" in done.out


def test_what_a_skill_says_stays_on_its_line(tmp_path: Path, env: dict[str, str]) -> None:
    skill(
        tmp_path / "skills" / "a",
        'name: a\ndescription: d\nlicense: "x\\e[31m\\n/etc/passwd:1: error"\n',
        "[x](gone\u202e.md)\n",
    )
    done = invoke("library", "check", tmp_path / "skills", env=env)
    assert done.code == 1
    assert len(done.out.splitlines()) == 2
    assert not {"\x1b", "\u202e"} & set(done.out)
    assert "\x1b" not in invoke("library", "check", tmp_path / "skills", "--json", env=env).out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ["--ignore", "licences"],
            2,
            f"There is no kind 'licences' of findings: the kinds are {', '.join(Kind)}.",
        ),
        (["--severity", "fatal"], 2, "There is no severity 'fatal': choose one of error, warning."),
        (["nowhere"], 1, "nowhere is not a folder"),
    ],
)
def test_mistakes_are_told(words: list[str], code: int, said: str, env: dict[str, str]) -> None:
    done = invoke("library", "check", *words, env=env)
    assert done.code == code
    assert said in " ".join(done.err.replace("│", " ").split())


def test_settings_say_which_skills_are_offered(tmp_path: Path, env: dict[str, str]) -> None:
    skill(tmp_path / "s" / "a", "name: a\ndescription: Dump a table.\nlicense: MIT\n")
    skill(tmp_path / "s" / "b", "name: b\ndescription: Dump a table, too.\nlicense: GPL-3.0\n")

    def offered(**variables: str) -> list[str]:
        done = invoke("route", "dump a table", tmp_path / "s", "--json", env={**env, **variables})
        assert done.code == 0, done.err
        return sorted(each["name"] for each in json.loads(done.out)["skills"])

    assert offered() == ["a", "b"]
    assert offered(SKILLPAGER_LICENCES="mit, Apache-2.0") == ["a"]
    assert offered(SKILLPAGER_TRUSTED=str(tmp_path / "s" / "b")) == ["b"]
    done = invoke("route", "dump", tmp_path / "s", env={**env, "SKILLPAGER_LICENCES": "MITT"})
    assert (done.code, "'MITT' is not a known licence" in done.err) == (2, True)
    done = invoke("route", "dump", tmp_path / "s", env={**env, "SKILLPAGER_TRUSTED": "/nowhere"})
    assert f"no skills that the settings `trusted` and `licences` let pass in {tmp_path / 's'}" in done.err
    # a project cannot widen what its user trusts
    (tmp_path / "skillpager.toml").write_text('trusted = ["/"]\n')
    done = invoke(
        "route", "dump", tmp_path / "s", env={**env, "SKILLPAGER_TRUSTED": "/nowhere"}, cwd=tmp_path
    )
    assert "trusted is ignored" in done.err
    assert done.out == ""
