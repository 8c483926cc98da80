"""Runs of the benchmark: what they write, that finished methods stay, that they are the pager's own pages."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evidence_folder import write_evidence_folder
from messages import raises
from skillpager.bench import BenchFolder, Results, evidence_coverage
from skillpager.bench.data.records import SelectionRecord, write_records
from skillpager.bench.report.methods import default_methods
from skillpager.bench.run import selecting
from skillpager.bench.run.runs import open_run, run_methods, run_settings
from skillpager.bench.run.selecting import Plan, notes_in_folder
from skillpager.encoders.builtin import ENCODER_ID
from skillpager.enrichment.notes import NodeNotes, digest_of, write_notes
from skillpager.errors import BenchError, SkillPagerError
from skillpager.pager import SkillPager
from skillpager.settings import NOTES_FILE, Settings

NAMES = ("git-bisect", "postgres-backup", "csv-cleaning")
LABELS = (
    "full",
    "navigator",
    "navigator@sufficiency=0.5",
    "navigator@tokens=40%",
    "mmr",
    "mmr@lambda=0.9,k=5",
    "bm25@tokens=40%",
    "chunk_mmr:64",
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_evidence_folder(tmp_path_factory.mktemp("evidence") / "samples", *NAMES)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return Plan(run_settings(Settings(cache_dir=tmp_path_factory.mktemp("cache")), style="plain"))


@pytest.fixture(scope="module")
def done(data: Path, plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> BenchFolder:
    folder = open_run(data, tmp_path_factory.mktemp("run") / "run", plan)
    run_methods(folder, LABELS, plan)
    return folder


def _without_times(folder: BenchFolder) -> dict[str, list[SelectionRecord]]:
    return {label: [replace(record, seconds=0) for record in folder.selections(label)] for label in LABELS}


def test_each_query_has_a_selection_and_a_verdict_in_the_order_of_the_queries(done: BenchFolder) -> None:
    order = [query.id for query in done.queries()]
    assert len(order) == len(set(order)) > 5
    for label in LABELS:
        assert [record.query for record in done.selections(label)] == order
        assert [record.query for record in done.judgments("evidence", label)] == order


def test_a_context_is_the_page_that_the_library_makes(done: BenchFolder, data: Path, plan: Plan) -> None:
    pager = SkillPager(settings=plan.settings)
    queries = {query.id: query for query in done.queries()}
    for label, options in {
        "navigator": {},
        "navigator@sufficiency=0.5": {"sufficiency": 0.5},
        "mmr": {"strategy": "mmr"},
        "mmr@lambda=0.9,k=5": {"mmr_lambda": 0.9, "max_nodes": 5},
    }.items():
        for record in done.selections(label):
            page = pager.page(data / f"{record.skill}.md", queries[record.query].query, **options)
            assert record.context == page.text
            assert (record.tokens, record.full_tokens) == (page.tokens, page.full_tokens)
            assert record.nodes == tuple(node.id for node in page.nodes)
    pager.close()


def test_verdicts_are_the_measure_on_the_contexts(done: BenchFolder, data: Path) -> None:
    queries = {query.id: query for query in done.queries()}
    verdicts = set()
    for label in LABELS:
        for record, judged in zip(done.selections(label), done.judgments("evidence", label), strict=True):
            lines = (data / f"{record.skill}.md").read_text(encoding="utf-8").split("\n")
            expected = evidence_coverage(record.context or "", lines, queries[record.query].critical)
            assert (judged.coverage, judged.sufficient) == expected
            verdicts.add(judged.sufficient)
    assert verdicts == {True, False}
    assert all(record.sufficient for record in done.judgments("evidence", "full"))


def test_processes_change_nothing_but_the_times(
    done: BenchFolder, data: Path, plan: Plan, tmp_path: Path
) -> None:
    folder = open_run(data, tmp_path / "run", plan)
    run_methods(folder, LABELS, plan, jobs=2)
    assert _without_times(folder) == _without_times(done)
    assert (folder.path / "nodes.jsonl").read_bytes() == (done.path / "nodes.jsonl").read_bytes()
    assert folder.manifest() == done.manifest()


def test_what_is_done_is_not_done_again(done: BenchFolder, plan: Plan) -> None:
    before = {path: path.stat().st_mtime_ns for path in done.path.rglob("*.jsonl")}
    assert run_methods(done, LABELS, plan) == 0
    assert {path: path.stat().st_mtime_ns for path in done.path.rglob("*.jsonl")} == before


def test_texts_can_be_left_out(data: Path, plan: Plan, tmp_path: Path) -> None:
    folder = open_run(data, tmp_path / "run", plan)
    slim = replace(plan, keep_contexts=False)
    run_methods(folder, ["mmr"], slim)
    assert {record.context for record in folder.selections("mmr")} == {None}
    assert run_methods(folder, ["mmr"], slim) == 0
    # another judge needs them, so they are made
    assert run_methods(folder, ["mmr"], plan) == len(folder.queries())
    assert None not in {record.context for record in folder.selections("mmr")}


def test_a_folder_holds_one_kind_of_run(done: BenchFolder, data: Path, plan: Plan, tmp_path: Path) -> None:
    marked = replace(plan, settings=replace(plan.settings, style="marked"))
    with raises(BenchError):
        open_run(data, done.path, marked)
    hashing = replace(plan, settings=replace(plan.settings, encoder="hashing"))
    with raises(BenchError):
        open_run(data, done.path, hashing)
    fewer = write_evidence_folder(tmp_path / "fewer", NAMES[0])
    with raises(BenchError):
        open_run(fewer, done.path, plan)


def test_data_without_evidence_is_refused_by_the_evidence_judge(
    data: Path, plan: Plan, tmp_path: Path
) -> None:
    folder = open_run(data, tmp_path / "run", plan)
    bare = [replace(query, critical=()) for query in folder.queries()]
    other = BenchFolder(tmp_path / "bare")
    write_records(other.path / "skills.jsonl", folder.skills())
    write_records(other.path / "queries.jsonl", bare)
    with raises(BenchError):
        open_run(other.path, None, plan)
    open_run(other.path, None, replace(plan, judge_evidence=False))


def test_a_run_that_stops_at_a_skill_has_finished_no_method(
    data: Path, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = open_run(data, tmp_path / "run", plan)
    select = selecting.page_by

    def fail_on_one(*arguments: object) -> object:
        if arguments[1].name == NAMES[1]:  # type: ignore[attr-defined]
            raise SkillPagerError("the model is gone.")
        return select(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(selecting, "page_by", fail_on_one)
    with raises(BenchError):
        run_methods(folder, ["mmr"], plan)
    assert "mmr" not in folder.entry("methods")
    monkeypatch.undo()
    assert run_methods(folder, ["mmr"], plan) == len(folder.queries()) == len(folder.selections("mmr"))


def test_an_arm_with_notes_has_the_pages_of_a_skill_that_comes_with_them(
    data: Path, plan: Plan, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, skill, pager = (
        open_run(data, tmp_path / "run", plan),
        tmp_path / NAMES[0],
        SkillPager(settings=plan.settings),
    )
    labels = ["navigator", f"navigator@notes={tmp_path}"]
    with pytest.raises(BenchError, match="has no notes on these skills"):
        run_methods(folder, labels, plan)
    assert folder.methods() == []
    skill.mkdir()
    shutil.copy(data / f"{NAMES[0]}.md", skill / "SKILL.md")
    asked = {query.id: query.query for query in folder.queries() if query.skill == NAMES[0]}
    *others, last = map(digest_of, pager.index(skill).nodes)
    notes = {each: NodeNotes(("bake bread",), ()) for each in others}
    write_notes(skill / NOTES_FILE, notes | {last: NodeNotes(tuple(asked.values())[:4], ())})
    notes_in_folder.cache_clear()
    assert run_methods(folder, labels, plan) == 2 * len(folder.queries())
    assert "has notes on 1 of 3 skills" in caplog.text
    pairs = list(zip(*map(folder.selections, labels), strict=True))
    assert {noted.skill for plain, noted in pairs if plain.context != noted.context} == {NAMES[0]}
    for _, noted in pairs:
        if noted.skill == NAMES[0]:
            assert noted.context == pager.page(skill, asked[noted.query]).text
    assert default_methods(Results(folder, "evidence")) == tuple(labels)
    pager.close()


def test_a_users_page_defaults_do_not_change_a_run(plan: Plan) -> None:
    pages = {"strategy": "topk", "mmr_lambda": 0.2, "max_nodes": 3, "max_tokens": 9, "sufficiency": 0.5}
    own = replace(plan.settings, scope="body", **pages)
    assert run_settings(own, style="plain") == plan.settings


def test_the_manifest_says_how_a_run_was_made(done: BenchFolder) -> None:
    manifest = json.loads((done.path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["seed"] == 42
    assert list(manifest["methods"]) == list(LABELS)
    assert manifest["methods"]["mmr@lambda=0.9,k=5"] == {"strategy": "mmr", "mmr_lambda": 0.9, "max_nodes": 5}
    assert manifest["methods"]["mmr"] == {"strategy": "mmr", "mmr_lambda": 0.7}
    assert manifest["methods"]["navigator@sufficiency=0.5"] == {"strategy": "navigator", "sufficiency": 0.5}
    assert manifest["run"]["encoder"] == ENCODER_ID
    assert manifest["run"]["style"] == "plain"
    assert manifest["data"]["source"] == "evidence"
    assert (manifest["data"]["subset"], manifest["data"]["skills"]) == ("samples", 3)
