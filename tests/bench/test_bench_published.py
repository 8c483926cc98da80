"""Published rows: every number of a run comes back from them, and they hold no texts and no times."""

import csv
import hashlib
import json
import lzma
import re
import runpy
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from bench_results import SUITES, whole_run, write_results
from conftest import ROOT
from messages import raises
from skillpager.bench.data.records import SkillRecord
from skillpager.bench.report.published import ROWS, SKILL_ROWS, PublishedResults, publish
from skillpager.bench.report.report import PARTS, Part
from skillpager.bench.report.results import Results
from skillpager.bench.report.table import Table
from skillpager.errors import BenchError

# of queries, skills and pages
SECRETS = ("How to do", "A folder is a place", "the text")
TIMES = {"p50 (ms)", "p95 (ms)"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A run of every suite, whose judge was compared with people."""
    folder = write_results(tmp_path_factory.mktemp("run"), whole_run(), suites=SUITES)
    people = {"all": {"cases": 20, "rate": 0.9, "kappa": 0.75}}
    folder.update_manifest({"validation": {"evidence": people}})
    return Results(folder, "evidence")


@pytest.fixture(scope="module")
def published(run: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its published rows."""
    folder = tmp_path_factory.mktemp("published")
    publish(run, folder)
    return folder


@pytest.mark.parametrize("part", [part for part in PARTS if part.from_rows and not part.is_figure])
def test_tables_of_rows_are_the_tables_of_the_run_but_for_times(
    part: Part, run: Results, published: Path
) -> None:
    ours, theirs = part.make(PublishedResults(published)), part.make(run)
    assert isinstance(ours, Table)
    assert isinstance(theirs, Table)
    assert set(theirs.rows) - set(ours.rows) == (TIMES if part.title == "All methods" else set())
    assert ours.to_csv() == replace(theirs, rows=theirs.rows[list(ours.rows)]).to_csv()


def test_rows_can_be_read_without_us(run: Results, published: Path) -> None:
    rows = pd.read_csv(published / ROWS)
    assert len(rows) == len(run.labels) * len(run.queries)
    mine = rows[rows["method"] == "mmr"]
    assert mine["sufficient"].tolist() == run.rows("mmr")["sufficient"].tolist()
    assert rows["query"].drop_duplicates().tolist() == [query.id for query in run.queries]


def test_skills_are_named_by_their_digests(run: Results, published: Path) -> None:
    with (published / SKILL_ROWS).open(encoding="utf-8", newline="") as file:
        skills = list(csv.DictReader(file))
    assert [skill["sha256"] for skill in skills] == [
        hashlib.sha256(skill.text.encode()).hexdigest() for skill in run.skills
    ]
    counts = {
        skill["skill"]: int(skill["concept"]) + int(skill["step"]) + int(skill["param"]) for skill in skills
    }
    assert counts == run.node_counts


def test_no_text_is_published(run: Results, published: Path) -> None:
    everything = "".join(
        (lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()).decode()
        for path in sorted(published.iterdir())
    )
    source = run.queries[0].query + run.skills[0].text + str(run.folder.selections("mmr")[0].context)
    for secret in SECRETS:
        assert secret in source
        assert secret not in everything


def test_the_same_run_gives_the_same_bytes(run: Results, published: Path, tmp_path: Path) -> None:
    publish(Results(run.folder, "evidence"), tmp_path)
    for path in published.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_ids_that_look_like_missing_numbers_are_ids(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "run", {"mmr": [True]})
    records = folder.skills()
    skill = SkillRecord("null", "null", "", records[0].files, "NA")
    with (folder.path / "skills.jsonl").open("a", encoding="utf-8") as file:
        file.write(skill.to_json() + "\n")
    publish(Results(folder, "evidence"), tmp_path / "published")
    read = PublishedResults(tmp_path / "published").skills[-1]
    assert (read.id, read.subset) == ("null", "NA")


def test_votes_of_a_model_stay_votes(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "run", {"mmr": [True]}, judge="llm:x")
    publish(Results(folder, "llm:x"), tmp_path / "published")
    results = PublishedResults(tmp_path / "published")
    assert results.judge == "llm:x"
    assert results.rows("mmr")["unanimous"].isna().all()


def test_a_folder_without_rows_is_refused(tmp_path: Path) -> None:
    with raises(BenchError):
        PublishedResults(tmp_path)


@pytest.mark.parametrize("name", [ROWS, SKILL_ROWS])
def test_damaged_rows_are_named(name: str, published: Path, tmp_path: Path) -> None:
    for path in published.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    whole = (tmp_path / name).read_bytes()
    for damaged in (None, whole[: len(whole) // 2], b"skill,subset\nx,y\n"):
        (tmp_path / name).unlink() if damaged is None else (tmp_path / name).write_bytes(damaged)
        with pytest.raises(BenchError, match=re.escape(name)):
            PublishedResults(tmp_path)


def test_the_manifest_is_the_runs(run: Results, published: Path) -> None:
    manifest = json.loads((published / "manifest.json").read_text(encoding="utf-8"))
    assert manifest == {**run.manifest, "judge": "evidence"}


def test_the_script_publishes_a_folder_and_copies_tables_that_need_texts(
    run: Results, published: Path, tmp_path: Path
) -> None:
    script = runpy.run_path(str(ROOT / "benchmarks" / "publish.py"))
    script["main"].__globals__["TARGET"] = tmp_path
    table = run.folder.path / "report" / "tables" / "preservation.csv"
    table.parent.mkdir(parents=True)
    table.write_text("a,b\n", encoding="utf-8")
    script["main"](run.folder.path, "mine")
    assert (tmp_path / "mine" / ROWS).read_bytes() == (published / ROWS).read_bytes()
    assert (tmp_path / "mine" / "tables" / table.name).read_text(encoding="utf-8") == "a,b\n"
