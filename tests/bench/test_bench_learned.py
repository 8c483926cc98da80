"""Nothing is reported on what was learned from: which methods read which models, and what runs refuse."""

import csv
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench_results import whole_run, write_results
from chat_bench import invoke
from evidence_folder import write_evidence_folder
from messages import raises
from skillpager import SkillPager
from skillpager.bench.data import read_evidence
from skillpager.bench.data.evidence import REPORT_SPLITS, TRAINING_SPLITS, read_published
from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.report import claims, tables
from skillpager.bench.report.results import Results
from skillpager.bench.run import learned
from skillpager.bench.run.learned import (
    LEARNED_FROM,
    READS,
    SHIPPED,
    count_learned,
    learned_from,
    read_learned_from,
    write_learned_from,
)
from skillpager.bench.run.methods import METHOD_STRATEGIES, OFFLINE, parse_method
from skillpager.bench.run.selecting import page_by
from skillpager.classifiers.local import TYPES, LocalClassifier
from skillpager.encoders.builtin import ENCODER_ID
from skillpager.encoders.hashing import HashingEncoder
from skillpager.errors import BenchError
from skillpager.settings import Settings
from skillpager.types import Classification, FloatArray, Fragment

SAMPLES = ("git-bisect", "csv-cleaning")
WITHOUT_MODELS = {"full", "head", "bm25"}


# ---- what the models learned from


def test_every_shipped_model_lists_the_training_documents_and_none_to_report_on() -> None:
    training = {document.sha256 for split in TRAINING_SPLITS for document in read_published(split)}
    reports = {document.sha256 for split in REPORT_SPLITS for document in read_published(split)}
    assert len(training) == 317
    for folder in SHIPPED:
        assert read_learned_from(folder) >= training
        assert read_learned_from(folder).isdisjoint(reports)
        assert len(read_learned_from(folder)) >= 2 * len(training)
        assert list(folder.glob("*.onnx")) or list(folder.glob("*.npz"))


def test_a_list_is_written_sorted_and_read_again(tmp_path: Path) -> None:
    digests = [hashlib.sha256(bytes([number])).hexdigest() for number in range(5)]
    write_learned_from(tmp_path, [*digests, digests[0]])
    assert (tmp_path / LEARNED_FROM).read_text().splitlines() == sorted(digests)
    assert read_learned_from(tmp_path) == set(digests)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (None, "it is missing"),
        (b"", "it is empty"),
        (b"\xff\n", "invalid start byte"),
        (b"a" * 64 + b"\n" + b"b" * 30, "line 2 is 'bbb"),
        (b"<html>\n", "line 1 is '<html>'"),
    ],
)
@pytest.mark.parametrize("name", ["ENCODER", "TYPES", "NAVIGATOR"])
def test_a_shipped_model_without_a_readable_list_is_an_error(
    name: str, content: bytes | None, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learned, name, tmp_path)
    monkeypatch.setattr(learned, "SHIPPED", (tmp_path,))
    if content is not None:
        (tmp_path / LEARNED_FROM).write_bytes(content)
    folder = write_results(tmp_path / "run", {"navigator": [True], "exec_only": [True]})
    folder.update_manifest({"run": {"encoder": "builtin", "classifier": "local"}})
    with pytest.raises(BenchError) as caught:
        Results(folder, "evidence")
    assert str(tmp_path / LEARNED_FROM) in str(caught.value)
    assert fault in str(caught.value)
    assert "restore it: `" in str(caught.value)


def test_a_model_of_others_may_have_no_list_but_no_damaged_one(tmp_path: Path) -> None:
    assert read_learned_from(tmp_path / "none") == frozenset()
    (tmp_path / LEARNED_FROM).write_text("no digest\n")
    with pytest.raises(BenchError, match="write the SHA-256 of each training document"):
        read_learned_from(tmp_path)


# ---- what methods read


class OneType:
    """A classifier that calls each fragment the same."""

    embedding = None

    def __init__(self, place: int) -> None:
        self.id = f"one-type-{place}"
        self._type = TYPES[place]

    def classify(self, fragments: Sequence[Fragment], rows: FloatArray | None) -> list[Classification]:
        return [Classification(self._type, 1.0) for _ in fragments]


class Turned(HashingEncoder):
    """The hashing encoder with its numbers in another order and half of them lost."""

    @property
    def id(self) -> str:
        return "turned"

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        rows = super().encode_documents(texts).copy()
        rows[:, ::2] = np.abs(rows[:, 1::2]) + 0.01
        unit: FloatArray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit


def test_what_each_strategy_reads_is_known() -> None:
    assert set(READS) == set(METHOD_STRATEGIES)


@pytest.mark.parametrize("strategy", OFFLINE)
def test_a_page_depends_on_no_model_that_its_method_is_not_said_to_read(
    strategy: str, tmp_path: Path
) -> None:
    method = parse_method(f"{strategy}@tokens=40%")
    folder = write_evidence_folder(tmp_path / "samples", *SAMPLES)
    settings = Settings(cache_dir=tmp_path)
    pages = {}
    for encoder in (HashingEncoder(), Turned()):
        for place in (0, 5):
            store = tmp_path / f"{encoder.id}-{place}"
            pager = SkillPager(encoder=encoder, classifier=OneType(place), store=store, settings=settings)
            pages[encoder.id, place] = [
                page_by(pager, pager.index(folder / f"{query.skill}.md").skill, query.query, method)[0].text
                for query in read_evidence(folder)[1]
            ]
            pager.close()
    rows = len({str(texts) for (_, place), texts in pages.items() if place == 0}) > 1
    types = len({str(texts) for (encoder, _), texts in pages.items() if encoder == "turned"}) > 1
    assert rows == ("embeddings" in READS[strategy])
    assert not types or "types" in READS[strategy]


@pytest.mark.parametrize("label", OFFLINE)
def test_a_method_has_learned_from_what_its_models_did_whatever_the_encoder_of_the_run(label: str) -> None:
    shipped = learned_from(parse_method(label), encoder="builtin", classifier="local")
    assert bool(shipped) == (label not in WITHOUT_MODELS)
    by_id = learned_from(parse_method(label), encoder=ENCODER_ID, classifier=LocalClassifier().id)
    assert by_id == shipped
    hashing = learned_from(parse_method(label), encoder="hashing", classifier="local")
    assert bool(hashing) == bool({"types", "navigator"} & set(READS[label]))
    untyped = learned_from(parse_method(label), encoder="hashing", classifier="llm")
    assert bool(untyped) == (label in ("navigator", "lean"))


def test_the_encoder_and_classifier_of_a_method_come_before_those_of_the_run(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"one").hexdigest()
    write_learned_from(tmp_path / "tuned", [digest])
    parts = {"encoder": f"builtin:{tmp_path / 'tuned'}", "classifier": "llm"}
    assert learned_from(parse_method("mmr"), **parts) == {digest}
    assert learned_from(parse_method("mmr@encoder=hashing"), **parts) == frozenset()
    for shipped in ("builtin", "builtin:"):
        method = parse_method(f"mmr@encoder={shipped}")
        assert learned_from(method, **parts) == read_learned_from(SHIPPED[0])
    assert learned_from(parse_method(f"mmr@encoder=builtin:{tmp_path}"), **parts) == frozenset()
    assert learned_from(parse_method("exec_only@classifier=local"), **parts) > {digest}
    assert learned_from(parse_method("exec_only@classifier=llm"), **parts) == {digest}


# ---- runs and reports


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Evidence data of two skills; the shipped encoder and types have learned from the first."""
    folder = write_evidence_folder(tmp_path / "seen", *SAMPLES)
    digest = hashlib.sha256((folder / f"{SAMPLES[0]}.md").read_bytes()).hexdigest()
    for name in ("ENCODER", "TYPES", "NAVIGATOR"):
        write_learned_from(tmp_path / name, [digest])
        monkeypatch.setattr(learned, name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKILLPAGER_CACHE_DIR", str(tmp_path / "cache"))
    return folder


def test_a_run_leaves_out_the_methods_that_learned_from_its_skills(seen: Path) -> None:
    run = ("bench", "run", "--data", seen.name, "--out", "results", "--jobs", "1")
    said = invoke(*run, "--methods", "mmr,bm25,navigator,mmr@encoder=hashing")
    assert said.code == 0
    assert [line.split("\t")[0] for line in said.out.splitlines()[1:]] == ["bm25", "mmr@encoder=hashing"]
    assert "mmr, navigator have learned from 1 of these 2 skills" in said.err
    assert "--allow-trained" in said.err
    assert BenchFolder(Path("results")).methods() == ["bm25", "mmr@encoder=hashing"]
    alone = invoke(*run, "--methods", "sections")
    assert alone.code == 1
    assert "sections has learned from 1 of these 2 skills" in alone.err
    assert "Traceback" not in alone.err


def test_allowed_methods_run_and_every_table_and_picture_says_so(seen: Path) -> None:
    run = ("bench", "run", "--data", seen.name, "--out", "results", "--jobs", "1", "--allow-trained")
    said = invoke(*run, "--methods", "main,bm25,mmr@lambda=0.3,mmr@lambda=0.9")
    assert said.code == 0
    assert said.out.count("\nmmr\t") == 1
    note = "learned from 1 of these 2 skills, so that numbers of theirs are too good."
    assert note in said.err
    assert note in invoke("bench", "judge", "results").err
    assert invoke("bench", "report", "results", "--allow-trained").code == 0
    text = Path("results/report/report.html").read_text(encoding="utf-8")
    shown = [*Path("results/report/tables").iterdir(), *Path("results/report/figures").iterdir()]
    assert len(shown) == 11
    assert text.count(note) == len(shown) + 1  # the facts
    for path in Path("results/report/tables").iterdir():
        with path.open(encoding="utf-8", newline="") as file:
            assert all(row["Note"].endswith(note) for row in csv.DictReader(file))
    refused = invoke("bench", "report", "results", "--out", "honest")
    assert refused.code == 0
    honest = Path("honest/report.html").read_text(encoding="utf-8")
    assert "have learned from 1 of these 2 skills" in honest.partition('id="absent"')[2]
    assert "mmr@lambda=0.9 left out: learned from these skills" in honest
    assert not Path("honest/tables/claims.csv").exists()
    assert not Path("honest/tables/parser-quality.csv").exists()


def test_nothing_is_reproduced_on_learned_documents(seen: Path) -> None:
    said = invoke("bench", "reproduce", "--data", seen.name, "--out", "results", "--jobs", "1")
    assert (said.code, "have learned from 1 of these 2 skills" in said.err) == (1, True)
    assert BenchFolder(Path("results")).methods() == []


def test_a_method_that_has_learned_is_in_no_table_test_or_claim(tmp_path: Path) -> None:
    folder = write_results(tmp_path, whole_run())
    folder.update_manifest({"learned": {"mmr": 3, "sections": 3}})
    results, allowed = (Results(folder, "evidence", allow_trained=each) for each in (False, True))
    assert not results.has("mmr")
    assert allowed.has("mmr")
    table = tables.all_methods(results)
    assert table is not None
    assert {"mmr", "sections"}.isdisjoint(table.rows["Method"])
    assert tables.pairwise(results) is None  # without the baseline there is nothing to compare with
    assert len(claims.check_claims(results)) < len(claims.check_claims(allowed))
    assert "mmr" not in set(claims.check_claims(results)["first"])
    assert results.trained_note == allowed.refused_note == ""
    assert "mmr, sections have learned from 3 of these 4 skills" in allowed.trained_note
    assert "mmr, sections have learned from 3 of these 4 skills" in results.refused_note


def test_a_folder_of_trained_methods_alone_is_refused(tmp_path: Path) -> None:
    folder = write_results(tmp_path, {"mmr": [True]})
    folder.update_manifest({"learned": {"mmr": 4}})
    with raises(BenchError):
        Results(folder, "evidence")
    assert Results(folder, "evidence", allow_trained=True).has("mmr")


def test_shipped_models_are_known_in_folders_that_note_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_results(tmp_path / "run", {"mmr": [True], "bm25": [False], "navigator": [True]})
    digest = hashlib.sha256(folder.skills()[0].text.encode()).hexdigest()
    write_learned_from(tmp_path / "model", [digest])
    for name in ("ENCODER", "NAVIGATOR"):
        monkeypatch.setattr(learned, name, tmp_path / "model")
    assert Results(folder, "evidence").learned == {"navigator": 1}  # the encoder of the run is another
    folder.update_manifest({"run": {"encoder": ENCODER_ID, "classifier": "llm"}})
    assert Results(folder, "evidence").learned == {"mmr": 1, "navigator": 1}


def test_documents_are_recognised_by_their_words(tmp_path: Path) -> None:
    skills, _ = read_evidence(write_evidence_folder(tmp_path / "samples", *SAMPLES))
    write_learned_from(tmp_path / "tuned", skills[0].digests)
    text = skills[0].text
    body = text.split("---\n", 2)[2]
    copies = (text, f"{text}\n", body, text.replace("\n", "\r\n"), text.replace("a", "e"))
    documents = [replace(skills[0], files=(("SKILL.md", copy),)).digests for copy in copies]
    for encoder, found in (("builtin", {}), (f"builtin:{tmp_path / 'tuned'}", {"mmr": 4})):
        assert count_learned(["mmr", "bm25"], documents, encoder=encoder, classifier="local") == found


def test_near_copies_of_the_manifest_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = write_evidence_folder(tmp_path / "samples", *SAMPLES)
    entries = [
        {"id": name, "sha256": hashlib.sha256((folder / f"{name}.md").read_bytes()).hexdigest()}
        for name in SAMPLES
    ]
    (folder / "manifest.json").write_text(json.dumps([entries[0], {**entries[1], "near_copy_of": "dev/x"}]))
    skills, queries = read_evidence(folder)
    assert [skill.id for skill in skills] == [SAMPLES[0]]
    assert {query.skill for query in queries} == {SAMPLES[0]}
    assert f"{SAMPLES[1]} is left out: it is a near copy of dev/x" in caplog.text
