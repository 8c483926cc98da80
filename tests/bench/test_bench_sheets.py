"""Sheets that people label, and judges that answer through them."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat_bench import docket_of, invoke, write_run
from conftest import ROOT
from messages import raises
from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.data.records import QueryRecord, SkillRecord
from skillpager.bench.judge.judges import Case, Docket, judge_cases
from skillpager.bench.judge.sheets import COLUMNS, export_cases, read_answers
from skillpager.bench.judge.votes import PROMPT_DIGEST, Imported, VotedJudge, import_votes, person_id
from skillpager.errors import BenchError, SettingsError

HOSTILE = '=HYPERLINK("http://x")\n- a; b, "c"\t\'d\'\n<b onclick=alert(1)>é 速率 🚀</b>'
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
RISKY_TEXTS = st.text(st.sampled_from("=+-@'\t\n\r ＝\0ab,;\""), max_size=6)


@pytest.fixture
def folder(tmp_path: Path) -> BenchFolder:
    return write_run(tmp_path / "bench")


@pytest.fixture
def docket(folder: BenchFolder) -> Docket:
    return docket_of(folder)


def answer_csv(sheet: Path, labels: dict[str, str], **format: Any) -> Path:
    """Label a sheet as a spreadsheet would save it."""
    rows = list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"), newline="")))
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, list(rows[0]), **format)
    writer.writeheader()
    for row in rows:
        label = labels.get(row["case"], "")
        writer.writerow({**row, "label": label, "note": f'says "{label}",\nwith a break' if label else ""})
    sheet.write_bytes(stream.getvalue().encode("utf-8-sig"))
    return sheet


def case_of(text: str = "") -> Case:
    """Return a case of which every text is the same."""
    return Case(SkillRecord("s", text, text, ()), QueryRecord("q", "s", text, "people"), text)


# ---- files


@given(TEXTS | RISKY_TEXTS)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_becomes_a_formula_and_cases_are_read_back(tmp_path: Path, text: str) -> None:
    path = tmp_path / "sheet.csv"
    path.unlink(missing_ok=True)
    export_cases({"c1": case_of(text)}, path)
    header, row = csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=""))
    assert header == ["case", *COLUMNS, "label", "note"]
    cell = row[1]
    assert cell in (text, f"'{text}")
    assert cell[:1] not in [*"\t\r\n\0"]
    assert cell.strip()[:1] not in [*"=+-@＝＋－＠"]
    assert read_answers(path).empty


def test_a_sheet_is_what_spreadsheets_open(tmp_path: Path) -> None:
    cases = {f"c{n}": case_of(HOSTILE) for n in range(3)}
    export_cases(cases, tmp_path / "sheet.csv")
    assert (tmp_path / "sheet.csv").read_bytes().startswith(b"\xef\xbb\xbfcase,skill,")
    with raises(BenchError):
        export_cases(cases, tmp_path / "sheet.csv")


@pytest.mark.parametrize("delimiter", [";", "\t", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("names", ["mine,Label", "label,vote"])
def test_sheet_that_a_program_saved(tmp_path: Path, delimiter: str, encoding: str, names: str) -> None:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=delimiter)
    writer.writerow(["Case", "skill", "description", "query", "context", *names.split(","), "note"])
    writer.writerow(["c1", "s", "", "q", "long " * 100_000 + "\n", "odd", " Insufficient ", "'tis; odd"])
    writer.writerow([""] * 8)
    writer.writerow(["c2", "NA", "", "q", "'-2", "odd"])
    path = tmp_path / "sheet.csv"
    path.write_bytes(stream.getvalue().encode(encoding))
    assert read_answers(path)[["case", "label", "note"]].values.tolist() == [
        ["c1", "insufficient", "'tis; odd"]
    ]


DAMAGED = {
    "header.csv": b"a,b\r\n1,2\r\n",
    "empty.csv": b"",
    "latin.csv": b"case,label,note\nc1,s,f\xfcr",
    "open-quote.csv": b'case,label\nc1,"s',
    "twice.csv": b"case,label\nc1,s\nc1,s",
    "unknown.csv": b"case,label\nc1,perhaps",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_sheets_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(DAMAGED[name])
    with raises(BenchError):
        read_answers(tmp_path / name)


# ---- judges that answer through sheets


def take(folder: BenchFolder, docket: Docket, *sheets: Path, judge: str = "people:anna") -> Imported:
    """Import sheets as votes."""
    return import_votes(VotedJudge(folder, judge), docket.cases, sheets)


def judge_by(folder: BenchFolder, docket: Docket, judge: str) -> dict[str, bool]:
    """Return the verdicts by the votes that were imported."""
    judging = judge_cases(folder, docket, VotedJudge(folder, judge))
    return {case: verdict.sufficient for case, verdict in judging.verdicts.items()}


def test_an_export_is_blind_and_has_identical_contexts_once(
    folder: BenchFolder, docket: Docket, tmp_path: Path
) -> None:
    export_cases(docket.cases, tmp_path / "sheet.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "sheet.csv").read_text("utf-8-sig"), newline="")))
    order = [row["case"] for row in rows]
    assert sorted(order) == sorted(docket.cases)
    assert order != list(docket.cases)
    assert set(rows[0]) == {"case", "skill", "description", "query", "context", "label", "note"}
    for row in rows:
        case = docket.cases[row["case"]]
        assert (row["skill"], row["query"]) == (case.skill.name, case.query.query)
        assert row["context"].removeprefix("'") == case.context
    export_cases(dict(reversed(docket.cases.items())), tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "sheet.csv").read_bytes()


def test_labels_become_judgments_and_cases_without_one_stay_unjudged(
    folder: BenchFolder, docket: Docket, tmp_path: Path
) -> None:
    export_cases(docket.cases, tmp_path / "sheet.csv")
    labels = dict(zip(docket.cases, ["sufficient", "i", "S"], strict=False))
    sheet = answer_csv(tmp_path / "sheet.csv", labels, delimiter=";")
    imported = take(folder, docket, sheet, sheet)
    assert (imported.votes, imported.new, imported.elsewhere) == (6, 3, 0)
    assert judge_by(folder, docket, "people:anna") == dict(zip(labels, [True, False, True], strict=True))
    records = [record for method in docket.selections for record in folder.judgments("people:anna", method)]
    assert {record.reason.partition(",")[0] for record in records} == {f'says "{x}"' for x in labels.values()}
    before = {file: file.read_bytes() for file in folder.path.rglob("*.json*")}
    assert take(folder, docket, sheet).new == 0
    judge_by(folder, docket, "people:anna")
    assert {file: file.read_bytes() for file in folder.path.rglob("*.json*")} == before


def test_a_contradiction_is_refused_and_nothing_is_stored(
    folder: BenchFolder, docket: Docket, tmp_path: Path
) -> None:
    case = next(iter(docket.cases))
    yes, no = tmp_path / "yes.csv", tmp_path / "no.csv"
    yes.write_text(f"case,vote,reason\n{case},sufficient,\n")
    no.write_text(f"case,vote,reason\n{case},insufficient,\n")
    with raises(BenchError):
        take(folder, docket, yes, no)
    assert not (folder.path / "votes").exists()
    take(folder, docket, yes)
    with raises(BenchError):
        take(folder, docket, no)
    assert judge_by(folder, docket, "people:anna") == {case: True}


@pytest.mark.parametrize("name", ["", " ", "llm:", "llm: "])
def test_a_judge_has_a_name(name: str) -> None:
    with raises(SettingsError):
        person_id(name)


def test_the_published_votes_can_be_imported_as_far_as_the_contexts_are_the_same(
    folder: BenchFolder, docket: Docket, tmp_path: Path
) -> None:
    published = ROOT / "benchmarks" / "intraskill" / "dev" / "judgments" / "reader.csv"
    rows = published.read_text(encoding="utf-8").splitlines()
    here = tmp_path / "reader.csv"
    here.write_text("\n".join([*rows, *(f"{case},sufficient," for case in list(docket.cases)[:3])]) + "\n")
    said = invoke("bench", "judge", folder.path, "--import", here, "--name", "llm:reader")
    assert said.code == 0, said.err
    assert f"{len(rows) - 1} cases are left out" in said.err
    assert f"3 of 3 votes are new, by llm:reader#{PROMPT_DIGEST}; 3 of {len(docket.cases)} cases" in said.err
    said = invoke("bench", "judge", folder.path, "--import", published, "--name", "llm:reader")
    assert said.code == 1
    assert f"Nothing was imported: none of the {len(rows) - 1} cases" in said.err
