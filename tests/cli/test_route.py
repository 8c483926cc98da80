"""`skillpager route`, and what `skillpager index` prepares for it."""

from pathlib import Path

import pytest

from cli_process import SAMPLES, environment, invoke
from conftest import write_skill
from skillpager.library.routing.word_index import WordIndex

QUERY = "which commit broke the tests"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return environment(tmp_path / "cache")


def test_the_skills_are_listed_best_first(env: dict[str, str]) -> None:
    done = invoke("route", QUERY, SAMPLES, "-k", "2", env=env)
    head, *rows = [line.split("\t") for line in done.out.splitlines()]
    assert head == ["skill", "chance", "terms", "description", "path"]
    assert (rows[0][0], rows[0][4]) == ("git-bisect", str(SAMPLES / "git-bisect"))
    assert set(rows[0][2].split()) == {"test", "commit", "which"}
    assert len(rows) == 2
    assert (done.code, done.err) == (0, "")


def test_json_has_chances(env: dict[str, str]) -> None:
    form = invoke("route", "-", SAMPLES, "-k", "1", "--json", env=env, stdin=QUERY.encode()).json
    (skill,) = form["skills"]
    assert (form["query"], form["searched"], form["has_fit"], skill["name"]) == (
        QUERY,
        10,
        True,
        "git-bisect",
    )
    assert 0 < skill["chance"] < 1


def test_it_says_that_no_skill_fits(env: dict[str, str]) -> None:
    done = invoke("route", "bake a sourdough bread with rye flour", SAMPLES, env=env)
    assert done.code == 0
    said = "Perhaps none of 10 skills fits the query: the chance that one does is under 1 %."
    assert (done.out, done.err) == ("", f"{said}\n")
    assert invoke("route", "bake bread", SAMPLES, "--json", env=env).json["has_fit"] is False


def test_mistakes_are_explained(env: dict[str, str], tmp_path: Path) -> None:
    assert (
        "is not a folder: name folders that contain skills" in invoke("route", "find", "commit", env=env).err
    )
    assert "The query is empty" in invoke("route", " ", SAMPLES, env=env).err
    empty = invoke("route", QUERY, tmp_path, env=env)
    assert (empty.code, empty.out) == (invoke("ask", QUERY, tmp_path, env=env).code, "") == (1, "")
    assert "There are no skills in" in empty.err
    near = str(SAMPLES).replace("skills", "skils")
    assert f"{near} is not a folder: did you mean '{SAMPLES}'?" in invoke("route", QUERY, near, env=env).err


def test_indexing_prepares_routes(env: dict[str, str], tmp_path: Path) -> None:
    skills = tmp_path / "skills"
    for number in range(70):
        write_skill(skills / f"skill-{number}", description=f"Topic number {number}.")
    done = invoke("index", skills, "--encoder", "hashing", env=env)
    assert (done.code, len(done.out.splitlines())) == (0, 71)
    (words,) = (tmp_path / "cache" / "indexes" / "words").iterdir()
    assert WordIndex(words).search([]).holders("description", ["topic"]).tolist() == [70]


def test_clearing_the_cache_clears_the_catalog(env: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "indexes"
    invoke("route", QUERY, SAMPLES, env=env)
    assert {path.name for path in folder.iterdir()} >= {"catalog.json", "words"}
    assert invoke("cache", "clear", "--yes", env=env).code == 0
    assert {path.name for path in folder.iterdir()} == {"index.db"}
