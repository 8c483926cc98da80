"""Strategies, encoders and classifiers of others in the benchmark: runs and reports."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from chat_bench import invoke
from conftest import ROOT
from evidence_folder import write_evidence_folder
from messages import raises
from own_parts import install_parts, module
from skillpager.bench import BenchFolder, Plan, Results, open_run, run_methods, run_settings
from skillpager.bench.report.methods import default_methods, read_curves
from skillpager.bench.run.methods import parse_method
from skillpager.errors import SkillPagerError
from skillpager.settings import Settings

__all__ = ["module"]

NAMES = ("git-bisect", "csv-cleaning")
LAST = "strangers:Last"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_evidence_folder(tmp_path / "samples", *NAMES)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    settings = Settings(cache_dir=tmp_path / "cache", encoder="hashing")
    return Plan(run_settings(settings, style="plain"))


def test_processes_load_what_is_named_and_change_nothing(
    data: Path, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_parts(tmp_path / "site", monkeypatch)
    labels = [LAST, f"{LAST}@k=2", "last", "mmr@encoder=strangers:MyEncoder,classifier=theirs"]
    made = {}
    for jobs in (1, 2):
        folder = open_run(data, tmp_path / f"run{jobs}", plan)
        assert run_methods(folder, labels, plan, jobs=jobs) == len(labels) * len(folder.queries())
        made[jobs] = [replace(each, seconds=0) for label in labels for each in folder.selections(label)]
    assert made[1] == made[2]
    by_label = {label: [each.nodes for each in made[1] if each.method == label] for label in labels}
    assert by_label[LAST] == by_label["last"] != by_label[f"{LAST}@k=2"]
    assert folder.entry("methods")[f"{LAST}@k=2"] == {
        **{"name": "last", "weight": 0.7, "step": -1},
        **{"strategy": LAST, "max_nodes": 2},
    }


@pytest.mark.parametrize("label", ["nosuch", "nosuch@k=3", "nowhere:Last", "strangers:Nothing", "@k=3"])
def test_a_wrong_name_stops_a_run_before_it_begins(
    data: Path, plan: Plan, tmp_path: Path, label: str
) -> None:
    folder = open_run(data, tmp_path / "run", plan)
    with raises(SkillPagerError):
        run_methods(folder, ["topk", label], plan)
    assert folder.methods() == []


def test_what_is_not_ours_is_run_again_because_its_code_may_have_changed(
    data: Path, plan: Plan, tmp_path: Path
) -> None:
    folder = open_run(data, tmp_path / "run", plan)
    for labels in (["topk", LAST], [LAST]):
        assert run_methods(folder, ["topk", LAST], plan) == len(labels) * len(folder.queries())


def test_a_folder_of_others_is_reported_without_their_code(
    data: Path, plan: Plan, tmp_path: Path, module: Path
) -> None:
    folder = open_run(data, tmp_path / "run", plan)
    run_methods(folder, ["mmr", LAST, *(f"{LAST}@tokens={share}%" for share in (30, 60))], plan)
    sys.modules.pop("strangers")
    module.write_text("raise SystemExit('loaded')\n")
    said = invoke("bench", "report", "run")
    assert said.code == 0, said.err
    results = Results(BenchFolder(tmp_path / "run"), "evidence")
    assert default_methods(results) == ("mmr", LAST)
    assert [curve.method for curve in read_curves(results)] == [LAST]
    assert LAST in (tmp_path / "run" / "report" / "report.html").read_text(encoding="utf-8")
    # the same for an entry point of a package that is not here
    assert parse_method("theirs@k=3").label == "theirs@k=3"


# ---- the examples


@pytest.mark.check
def test_the_example_of_the_library_compares_strategies(tmp_path: Path) -> None:
    script = ROOT / "examples" / "compare_strategies.py"
    variables = {**os.environ, "SKILLPAGER_ENCODER": "hashing", "SKILLPAGER_CACHE_DIR": str(tmp_path / "c")}
    done = subprocess.run([sys.executable, script, "run"], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:2]] == ["mmr", "bm25"]
    assert lines[2].startswith("own_strategy:SharedWords: ")
    assert [line.split(" - mmr:")[0] for line in lines[3:]] == ["bm25", "own_strategy:SharedWords"]
    page = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")
    assert (ROOT / "examples" / "own_strategy.py").read_text(encoding="utf-8") in page
