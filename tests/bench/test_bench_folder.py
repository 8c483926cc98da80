"""The benchmark folder: records come back as they were, nothing half-written is believed or lost."""

import json
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from messages import raises
from skillpager.bench.data.folder import BenchFolder, file_name
from skillpager.bench.data.records import (
    JudgmentRecord,
    NodeRecord,
    QueryRecord,
    Record,
    SelectionRecord,
    SkillRecord,
    append_records,
    read_records,
    write_records,
)
from skillpager.errors import BenchError

SHARE = st.floats(0, 1)
COUNTS = st.dictionaries(st.text(), st.integers(0, 99), max_size=3)
RECORDS = st.one_of(
    st.builds(SkillRecord, source=st.dictionaries(st.text(), st.text(), max_size=3)),
    st.builds(QueryRecord),
    st.builds(NodeRecord, confidence=SHARE),
    st.builds(SelectionRecord, types=COUNTS, seconds=st.floats(0, 1e6)),
    st.builds(JudgmentRecord, coverage=st.none() | SHARE),
)


def _query(number: int, text: str = "what now?") -> QueryRecord:
    return QueryRecord(f"q{number}", "s", text, "annotator", critical=((1, 2), (5, 5)))


@given(RECORDS)
def test_any_record_is_one_line_and_comes_back_equal(record: Record) -> None:
    line = record.to_json()
    assert "\n" not in line
    assert type(record).from_json(line) == record
    # a field that a reader does not know is ignored
    assert type(record).from_json(json.dumps({**json.loads(line), "added_later": [1]})) == record


def test_records_are_read_from_where_each_kind_is_written(tmp_path: Path) -> None:
    folder = BenchFolder(tmp_path / "run")
    judge, method = "llm:localhost:1/m#ab", "mmr:0.3@lambda=0.9,k=all"
    judgment = JudgmentRecord("q1", "s", method, judge, True, (True, False, True), None, "", "0" * 64)
    append_records(folder.judgments_file(judge, method), [judgment])
    assert folder.judgments(judge, method) == [judgment]
    assert folder.judgments(judge, "mmr") == folder.selections("mmr") == []
    assert folder.nodes() == folder.queries() == []


def test_a_last_line_that_was_cut_is_dropped_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "queries.jsonl"
    append_records(path, [_query(1), _query(2)])
    path.write_bytes(path.read_bytes()[:-9])
    with caplog.at_level(logging.WARNING):
        assert list(read_records(path, QueryRecord)) == [_query(1)]
    assert f"{path}:2 was cut short" in caplog.text


def test_a_cut_line_is_removed_before_the_next_is_appended(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_bytes(_query(0).to_json().encode()[:-1])
    # longer than the block in which the last line break is looked for
    append_records(path, [_query(1), _query(2, "long " * 40_000)])
    path.write_bytes(path.read_bytes()[:-9])
    append_records(path, [_query(3)])
    assert list(read_records(path, QueryRecord)) == [_query(1), _query(3)]


def test_a_whole_line_without_line_break_counts_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    append_records(path, [_query(1), _query(2)])
    path.write_bytes(path.read_bytes()[:-1])
    assert len(list(read_records(path, QueryRecord))) == 2
    append_records(path, [_query(3)])
    assert list(read_records(path, QueryRecord)) == [_query(1), _query(2), _query(3)]


@pytest.mark.parametrize(
    "line",
    [
        b'{"id": "q2", "skill"',
        b'{"id": "q2"}',
        b'{"id": 7, "skill": "s", "query": "", "origin": ""}',
        b"\xff\xfe",
    ],
)
def test_a_damaged_line_in_the_middle_is_an_error_with_its_place(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_bytes(b"\n".join([_query(1).to_json().encode(), b"", line, _query(3).to_json().encode(), b""]))
    with raises(BenchError):
        list(read_records(path, QueryRecord))


@given(st.text(min_size=1, max_size=40), st.text(min_size=1, max_size=40))
def test_labels_are_plain_visible_file_names_of_their_own(one: str, other: str) -> None:
    name = file_name(one)
    assert "/" not in name
    assert "\0" not in name
    assert not name.startswith(".")
    assert (name == file_name(other)) == (one == other)


def test_manifest_entries_are_merged(tmp_path: Path) -> None:
    folder = BenchFolder(tmp_path / "new")
    assert folder.manifest() == {}
    folder.update_manifest({"seed": 42, "data": {"source": "ä"}})
    folder.update_manifest({"seed": 43})
    assert folder.manifest() == {"seed": 43, "data": {"source": "ä"}}


@pytest.mark.parametrize("text", ["{", "[1]", '"text"'])
def test_a_damaged_manifest_is_an_error_with_its_path(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with raises(BenchError):
        BenchFolder(tmp_path).manifest()


def test_judges_are_found_by_how_their_ids_begin(tmp_path: Path) -> None:
    folder = BenchFolder(tmp_path)
    with raises(BenchError):
        folder.skills()
    with raises(BenchError):
        folder.find_judge("evidence")
    judges = ["evidence", "llm:host:1/a/model#12", "llm:host:1/b#34"]
    for judge in judges:
        write_records(folder.judgments_file(judge, "mmr@k=5"), [])
    assert folder.judges() == judges
    assert folder.judged_methods(judges[1]) == ["mmr@k=5"]
    assert folder.judged_methods("llm") == []
    assert [folder.find_judge(name) for name in ("evidence", "ev", "llm:host:1/b", judges[1])] == [
        "evidence",
        "evidence",
        judges[2],
        judges[1],
    ]
    with raises(BenchError):
        folder.find_judge("llm")
    with raises(BenchError):
        folder.find_judge("ann")
