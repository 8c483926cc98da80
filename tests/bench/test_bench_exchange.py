"""Judges that answer through files: what they are given, and what is made of their answers."""

import csv
import io
import json
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat_bench import (
    USAGE,
    chat_model,
    docket_of,
    invoke,
    judge_by_length,
    llm_judge,
    verdict,
    write_run,
)
from conftest import ROOT
from messages import raises
from openai_server import OpenAIServer, completion, openai_server
from skillpager.bench import BenchFolder
from skillpager.bench.data.folder import write_records
from skillpager.bench.judge.exchange import (
    Answers,
    Wanted,
    batch_parts,
    export_batch,
    export_prompts,
    import_answers,
    missing_votes,
    person_id,
    read_answers,
)
from skillpager.bench.judge.judge_prompt import CRITERION, PROMPT_DIGEST, judge_question
from skillpager.bench.judge.judging import Docket, judge_cases
from skillpager.bench.judge.votes import VoteLog, judge_id
from skillpager.errors import BenchError

__all__ = ["openai_server"]

JUDGE = judge_id("api.openai.com/gpt")


@pytest.fixture
def folder(tmp_path: Path) -> BenchFolder:
    return write_run(tmp_path / "bench")


@pytest.fixture
def docket(folder: BenchFolder) -> Docket:
    return docket_of(folder)


def wanted_votes(folder: BenchFolder, docket: Docket, votes: int = 3) -> list[Wanted]:
    return missing_votes(docket, VoteLog(folder, JUDGE), votes=votes)


def output(custom_id: str, sufficient: object = True, **changes: Any) -> dict[str, Any]:
    """Return a line of a batch output."""
    body = verdict(sufficient).body
    line = {"id": "batch_req_1", "custom_id": custom_id, "error": None}
    return {**line, "response": {"status_code": 200, "request_id": "r", "body": body}, **changes}


def write_lines(path: Path, *lines: object) -> Path:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def fault_of(path: Path, docket: Docket) -> str:
    with pytest.raises(BenchError) as caught:
        read_answers([path], docket)
    return str(caught.value)


# ---- batch files


def test_a_batch_asks_what_the_endpoint_would_be_asked(
    folder: BenchFolder, docket: Docket, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    openai_server.respond = judge_by_length
    judge_cases(folder, docket, llm_judge(folder, chat_model(openai_server, model="gpt")))
    (path,) = export_batch(wanted_votes(folder, docket), tmp_path / "out", model="gpt")
    requests = [json.loads(line) for line in path.read_text().splitlines()]
    assert {tuple(request) for request in requests} == {("custom_id", "method", "url", "body")}
    assert {(request["method"], request["url"]) for request in requests} == {("POST", "/v1/chat/completions")}
    online = sorted(json.dumps(asked.body, sort_keys=True) for asked in openai_server.asked)
    assert sorted(json.dumps(request["body"], sort_keys=True) for request in requests) == online


def test_a_batch_is_blind_and_asks_identical_contexts_once(
    folder: BenchFolder, docket: Docket, tmp_path: Path
) -> None:
    wanted = wanted_votes(folder, docket)
    names = [vote.custom_id for vote in wanted]
    assert len(set(names)) == len(names) == 3 * len(docket.cases)
    assert all(len(name) <= 64 for name in names)
    (path,) = export_batch(wanted, tmp_path / "out", model="gpt")
    assert [json.loads(line)["custom_id"] for line in path.read_text().splitlines()] == names
    for method in docket.appearances:
        assert f'"{method}"' not in path.read_text()
    order = [vote.case.digest for vote in wanted[::3]]
    assert sorted(order) == sorted(docket.cases)
    assert order != list(docket.cases)
    backwards = Docket(dict(reversed(docket.cases.items())), docket.appearances)
    assert [vote.case.digest for vote in wanted_votes(folder, backwards)[::3]] == order


@given(
    sizes=st.lists(st.integers(1, 40), max_size=60),
    max_requests=st.integers(1, 10),
    max_bytes=st.integers(1, 200),
)
@settings(deadline=None)
def test_parts_keep_both_limits(sizes: list[int], max_requests: int, max_bytes: int) -> None:
    lines = ["é" * size for size in sizes]
    parts = list(batch_parts(lines, max_requests, max_bytes))
    assert [line for part in parts for line in part] == lines
    for part in parts:
        assert 1 <= len(part) <= max_requests
        assert len(part) == 1 or sum(len(line.encode()) for line in part) <= max_bytes
    for part, following in pairwise(parts):
        full = len(part) == max_requests
        assert full or sum(len(line.encode()) for line in [*part, following[0]]) > max_bytes


def test_a_large_batch_is_split(folder: BenchFolder, docket: Docket, tmp_path: Path) -> None:
    wanted = wanted_votes(folder, docket)
    paths = export_batch(wanted, tmp_path / "out", model="gpt", max_requests=10)
    assert [path.name for path in paths] == [f"batch-{n:03}.jsonl" for n in range(1, len(paths) + 1)]
    assert [len(path.read_text().splitlines()) for path in paths[:-1]] == [10] * (len(paths) - 1)
    assert sum(len(path.read_text().splitlines()) for path in paths) == len(wanted)


def test_votes_that_are_there_are_not_exported(folder: BenchFolder, docket: Docket, tmp_path: Path) -> None:
    wanted = wanted_votes(folder, docket)
    path = write_lines(tmp_path / "o.jsonl", *(output(vote.custom_id) for vote in wanted[:5]))
    import_answers(folder, docket, read_answers([path], docket), judge=JUDGE, votes=3)
    assert wanted_votes(folder, docket) == wanted[5:]


def test_an_output_in_any_order_becomes_judgments(
    folder: BenchFolder, docket: Docket, tmp_path: Path
) -> None:
    wanted = wanted_votes(folder, docket)
    answers = [output(vote.custom_id, vote.number != 2) for vote in wanted]
    random.Random(42).shuffle(answers)
    read = read_answers([write_lines(tmp_path / "o.jsonl", *answers)], docket)
    assert (read.batch, read.unanswered, read.models) == (True, (), frozenset({"m"}))
    new, judging = import_answers(folder, docket, read, judge=JUDGE, votes=3)
    assert new == len(wanted)
    for method in docket.appearances:
        records = folder.judgments(JUDGE, method)
        assert [record.query for record in records] == [query.id for query in folder.queries()]
        assert {(record.votes, record.pattern) for record in records} == {((True, False, True), "2-1")}
    assert judging.unjudged == []
    kept = VoteLog(folder, JUDGE).on_case(wanted[0].case.digest)[0]
    assert (kept.tokens_in, kept.model) == (USAGE["prompt_tokens"], "m")


def test_importing_twice_changes_nothing(folder: BenchFolder, docket: Docket, tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "o.jsonl", *(output(vote.custom_id) for vote in wanted_votes(folder, docket))
    )
    read = read_answers([path, path], docket)
    import_answers(folder, docket, read, judge=JUDGE, votes=3)
    before = {file: file.read_bytes() for file in folder.path.rglob("*.json*")}
    assert import_answers(folder, docket, read, judge=JUDGE, votes=3)[0] == 0
    assert {file: file.read_bytes() for file in folder.path.rglob("*.json*")} == before


UNANSWERED: dict[str, dict[str, Any]] = {
    "expired": {
        "response": None,
        "error": {"code": "batch_expired", "message": "This request could not be executed"},
    },
    "status 500": {"response": {"status_code": 500, "request_id": "r", "body": {"error": {"message": "x"}}}},
    "refusal": {"response": {"status_code": 200, "body": completion(None, refusal="no").body}},
    "prose": {"response": {"status_code": 200, "body": completion("Sufficient.").body}},
    "no choices": {"response": {"status_code": 200, "body": {"choices": []}}},
    "cut": {"response": {"status_code": 200, "body": completion("{", finish_reason="length").body}},
}


@pytest.mark.parametrize("name", UNANSWERED)
def test_what_the_model_left_unanswered_is_told_and_stays_unjudged(
    folder: BenchFolder, docket: Docket, tmp_path: Path, name: str
) -> None:
    wanted = wanted_votes(folder, docket)
    lines = [output(vote.custom_id) for vote in wanted]
    lines[1] |= UNANSWERED[name]
    path = write_lines(tmp_path / "o.jsonl", *lines)
    read = read_answers([path], docket)
    assert [place.startswith(f"{path}:2: ") for place in read.unanswered] == [True]
    _, judging = import_answers(folder, docket, read, judge=JUDGE, votes=3)
    assert judging.unjudged == [(wanted[1].case.query.id, "1 of 3 votes are there")]
    assert len(judging.verdicts) == len(docket.cases) - 1


def test_the_endpoint_completes_what_a_batch_left_open(
    folder: BenchFolder, docket: Docket, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.respond = judge_by_length
    judge = judge_id(chat_model(openai_server).id)
    wanted = missing_votes(docket, VoteLog(folder, judge), votes=3)
    path = write_lines(tmp_path / "o.jsonl", *(output(vote.custom_id) for vote in wanted[4:]))
    import_answers(folder, docket, read_answers([path], docket), judge=judge, votes=3)
    judging = judge_cases(folder, docket, llm_judge(folder, chat_model(openai_server)))
    assert len(openai_server.asked) == 4
    assert len(judging.verdicts) == len(docket.cases)


def test_wrong_lines_of_an_output_name_file_and_line(
    folder: BenchFolder, docket: Docket, tmp_path: Path
) -> None:
    wanted = wanted_votes(folder, docket)
    good, other = (output(vote.custom_id) for vote in wanted[:2])
    requests = export_batch(wanted[:1], tmp_path / "out", model="gpt")[0].read_text().strip()
    mistakes = {
        "{": "Expecting property name",
        "[1]": "Input should be an object",
        json.dumps(output("request-1")): "unknown custom_id 'request-1'",
        json.dumps(output(f"{'0' * 12}-{wanted[0].case.digest}-v1")): "asked with the prompt 000000000000",
        json.dumps(
            output(wanted[0].custom_id, False)
        ): f"contradicts the answer on the same case at {tmp_path}",
        requests: "this is a request, not an answer",
        '{"case": "x", "vote": "yes"}': "'x' is no case: it must be c and 24 hexadecimal digits",
    }
    for line, words in mistakes.items():
        path = write_lines(tmp_path / "o.jsonl", good, other, line)
        message = fault_of(path, docket)
        assert f"{path}:3: " in message
        assert words in message
    assert not (folder.path / "votes").exists()


# ---- prompts for people and agents


def fill(sheet: Path, answers: dict[str, tuple[str, str]], **format: Any) -> Path:
    """Fill a sheet as a spreadsheet would, and return it."""
    rows = list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"))))
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, ["case", "vote", "reason"], **format)
    writer.writeheader()
    for row in rows:
        vote, reason = answers.get(row["case"], ("", ""))
        writer.writerow({"case": row["case"], "vote": vote, "reason": reason})
    sheet.write_bytes(stream.getvalue().encode("utf-8-sig"))
    return sheet


def test_each_case_is_one_blind_file_and_one_row(folder: BenchFolder, docket: Docket, tmp_path: Path) -> None:
    sheet = export_prompts(docket, tmp_path / "out")
    rows = list(csv.DictReader(io.StringIO(sheet.read_text())))
    assert {tuple(row) for row in rows} == {("case", "vote", "reason")}
    assert sorted(row["case"] for row in rows) == sorted(docket.cases)
    assert [row["case"] for row in rows] != list(docket.cases)
    files = sorted((tmp_path / "out" / "cases").iterdir())
    assert [file.stem for file in files] == sorted(docket.cases)
    for file in files:
        text = file.read_text()
        case = docket.cases[file.stem]
        assert CRITERION in text
        assert judge_question(case).user in text
        assert "answers.csv" in text
        assert case.skill.id not in text.replace(case.skill.name, "")
    assert str(folder.path) not in sheet.read_text()


@pytest.mark.parametrize("kind", ["batch", "prompts"])
def test_an_export_never_mixes_with_what_is_there(
    folder: BenchFolder, docket: Docket, tmp_path: Path, kind: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "old").write_text("")
    exports = {
        "batch": lambda: export_batch(wanted_votes(folder, docket), out, model="gpt"),
        "prompts": lambda: export_prompts(docket, out),
    }
    with raises(BenchError):
        exports[kind]()
    assert [path.name for path in out.iterdir()] == ["old"]


@pytest.mark.parametrize("format", [{}, {"delimiter": ";"}, {"delimiter": "\t", "lineterminator": "\n"}])
def test_a_filled_sheet_becomes_judgments(
    folder: BenchFolder, docket: Docket, tmp_path: Path, format: dict[str, Any]
) -> None:
    words = ["sufficient", "INSUFFICIENT ", "yes", "n", "1", "0", "True", "i"]
    answers = {
        case: (words[number % 8], f'says "{number}",\nwith a break')
        for number, case in enumerate(docket.cases)
    }
    sheet = fill(export_prompts(docket, tmp_path / "out"), answers, **format)
    read = read_answers([sheet], docket)
    assert not read.batch
    new, judging = import_answers(folder, docket, read, judge=person_id("anna"))
    assert new == len(docket.cases)
    assert judging.judge == "people:anna"
    for number, case in enumerate(docket.cases):
        assert judging.verdicts[case].votes == (number % 2 == 0,)
        assert judging.verdicts[case].reason.startswith(f'says "{number}"')
    assert len(folder.judgments("people:anna", "mmr")) == len(folder.queries())


def test_rows_without_an_answer_stay_unjudged(folder: BenchFolder, docket: Docket, tmp_path: Path) -> None:
    first, second, *_ = docket.cases
    sheet = fill(export_prompts(docket, tmp_path / "out"), {first: ("yes", ""), second: ("no", "")})
    _, judging = import_answers(folder, docket, read_answers([sheet], docket), judge="people:anna")
    assert set(judging.verdicts) == {first, second}
    assert len(judging.unjudged) == len(docket.cases) - 2
    third = list(docket.cases)[2]
    fill(sheet, {first: ("yes", ""), second: ("no", ""), third: ("no", "")})
    new, judging = import_answers(folder, docket, read_answers([sheet], docket), judge="people:anna")
    assert (new, len(judging.verdicts)) == (1, 3)


def test_answers_may_be_json_lines_with_several_votes(
    folder: BenchFolder, docket: Docket, tmp_path: Path
) -> None:
    first, second, third, fourth, *_ = docket.cases
    path = write_lines(
        tmp_path / "a.jsonl",
        {"case": first, "votes": [True, False, True], "reason": "ok"},
        {"case": second, "votes": "no, no; yes"},
        {"case": third, "vote": False},
        {"case": fourth, "vote": None},
        "",
    )
    read = read_answers([path], docket)
    _, judging = import_answers(folder, docket, read, judge=person_id("llm:agent-7"))
    assert judging.judge == f"llm:agent-7#{PROMPT_DIGEST}"
    assert {case: found.votes for case, found in judging.verdicts.items()} == {
        first: (True, False, True),
        second: (False, False, True),
        third: (False,),
    }
    assert not judging.verdicts[second].sufficient


def answer_with(docket: Docket, **fields: object) -> dict[str, object]:
    return {"case": next(iter(docket.cases)), **fields}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"vote": "maybe"}, "unreadable verdict 'maybe': write sufficient or insufficient"),
        ({"votes": ["yes", "perhaps", "no"]}, "unreadable verdict 'perhaps'"),
        ({"votes": "yes no"}, "2 votes have no majority"),
        ({"vote": "no", "votes": "yes yes no"}, "`vote` contradicts `votes`"),
        ({"case": "abc", "vote": "yes"}, "'abc' is no case: it must be c and 24 hexadecimal digits"),
        ({"vote": 1}, "vote"),
        ({"case": 7}, "case"),
        ({"vote": "no", "reason": ["x"]}, "reason"),
    ],
)
def test_a_wrong_answer_names_file_and_line(
    docket: Docket, tmp_path: Path, fields: dict[str, object], words: str
) -> None:
    path = write_lines(tmp_path / "a.jsonl", "", answer_with(docket, **fields))
    message = fault_of(path, docket)
    assert message.startswith(f"Nothing was imported: {path}:2: ")
    assert words in message


def test_contradicting_rows_name_both_places(docket: Docket, tmp_path: Path) -> None:
    case = next(iter(docket.cases))
    path = tmp_path / "a.csv"
    path.write_text(f'case,vote,reason\n{case},yes,"two\nlines"\n{case},yes,\n{case},no,\n')
    message = fault_of(path, docket)
    assert f"{path}:5: contradicts the answer on the same case at {path}:2." in message


def test_many_mistakes_are_reported_at_once_but_not_all(docket: Docket, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", *[answer_with(docket, vote="?")] * 12)
    message = fault_of(path, docket)
    assert [f"{path}:{n}: " in message for n in range(1, 13)] == [True] * 5 + [False] * 7
    assert "; and 7 more. Correct or remove these lines." in message


@pytest.mark.parametrize("header", ["", "case,label", "name;vote"])
def test_a_sheet_without_its_header_is_refused(docket: Docket, tmp_path: Path, header: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n")
    assert f"{path}:1 is not the header of a sheet" in fault_of(path, docket)


def test_files_that_cannot_be_read_are_named(docket: Docket, tmp_path: Path) -> None:
    assert str(tmp_path / "none.csv") in fault_of(tmp_path / "none.csv", docket)
    latin = tmp_path / "latin.csv"
    latin.write_bytes(b"case,vote,reason\nx,yes,f\xfcr\n")
    assert "give answers as UTF-8" in fault_of(latin, docket)


def test_batch_and_people_do_not_mix(folder: BenchFolder, docket: Docket, tmp_path: Path) -> None:
    vote = wanted_votes(folder, docket)[0]
    path = write_lines(
        tmp_path / "a.jsonl", output(vote.custom_id), {"case": vote.case.digest, "vote": "yes"}
    )
    assert "import each alone" in fault_of(path, docket)


def test_a_later_import_cannot_turn_a_vote_round(folder: BenchFolder, docket: Docket, tmp_path: Path) -> None:
    def answers(vote: str) -> Answers:
        return read_answers([write_lines(tmp_path / "a.jsonl", answer_with(docket, vote=vote))], docket)

    import_answers(folder, docket, answers("yes"), judge="people:anna")
    before = {file: file.read_bytes() for file in folder.path.rglob("*.jsonl")}
    with raises(BenchError):
        import_answers(folder, docket, answers("no"), judge="people:anna")
    assert {file: file.read_bytes() for file in folder.path.rglob("*.jsonl")} == before


@pytest.mark.parametrize("name", ["", " ", "llm:", "llm: "])
def test_a_judge_has_a_name(name: str) -> None:
    with raises(BenchError):
        person_id(name)


# ---- answers on contexts that the folder does not have


def change_contexts(folder: BenchFolder, method: str, queries: int) -> None:
    """Change what a method chose for the first queries, as a new model does."""
    records = folder.selections(method)
    changed = [replace(each, context=f"{each.context}.") for each in records[:queries]]
    write_records(folder.selections_file(method), [*changed, *records[queries:]])


@pytest.mark.parametrize("kind", ["sheet", "batch"])
def test_votes_on_contexts_that_are_still_there_are_imported_and_the_others_counted(
    folder: BenchFolder, docket: Docket, tmp_path: Path, kind: str
) -> None:
    if kind == "sheet":
        sheet = export_prompts(docket, tmp_path / "out")
        answers = fill(sheet, dict.fromkeys(docket.cases, ("yes", "")))
    else:
        lines = (output(vote.custom_id) for vote in wanted_votes(folder, docket))
        answers = write_lines(tmp_path / "o.jsonl", *lines)
    change_contexts(folder, "head", 2)
    now = docket_of(folder)
    read = read_answers([answers], now)
    assert read.elsewhere == 2
    _, judging = import_answers(folder, now, read, judge="people:anna", votes=None)
    assert set(judging.verdicts) == set(docket.cases) & set(now.cases)
    assert len(folder.judgments("people:anna", "head")) == len(folder.queries()) - 2
    assert len(folder.judgments("people:anna", "full")) == len(folder.queries())


def test_answers_for_another_folder_are_an_error(docket: Docket, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", *({"case": f"c{n:024x}", "vote": "yes"} for n in range(12)))
    with raises(BenchError):
        read_answers([path], docket)


def test_the_published_votes_can_be_imported_as_far_as_the_contexts_are_the_same(
    folder: BenchFolder, docket: Docket, tmp_path: Path
) -> None:
    published = ROOT / "benchmarks" / "intraskill" / "dev" / "judgments" / "reader.csv"
    rows = published.read_text(encoding="utf-8").splitlines()
    assert len({row.partition(",")[0] for row in rows[1:]}) == len(rows) - 1
    here = tmp_path / "reader.csv"
    here.write_text("\n".join([*rows, *(f"{case},sufficient," for case in list(docket.cases)[:3])]) + "\n")
    said = invoke("bench", "judge", folder.path, "--import", here, "--name", "llm:reader")
    assert said.code == 0, said.err
    assert f"{len(rows) - 1} of {len(rows) + 2} cases are left out" in said.err
    assert f"3 of 3 votes are new, by llm:reader#{PROMPT_DIGEST}; 3 of {len(docket.cases)} cases" in said.err
    said = invoke("bench", "judge", folder.path, "--import", published, "--name", "llm:reader")
    assert said.code == 1
    assert f"Nothing was imported: none of the {len(rows) - 1} cases" in said.err


# ---- the command


def test_the_command_exports_and_imports_a_batch(folder: BenchFolder, tmp_path: Path) -> None:
    model = {"SKILLPAGER_LLM_MODEL": "gpt-4o-mini"}
    said = invoke("bench", "judge", folder.path, "--export", "batch", "--out", tmp_path / "out", **model)
    assert said.code == 0, said.err
    (path,) = map(Path, said.out.split())
    requests = [json.loads(line) for line in path.read_text().splitlines()]
    assert {request["body"]["model"] for request in requests} == {"gpt-4o-mini"}
    done = write_lines(
        tmp_path / "o.jsonl",
        *(output(request["custom_id"]) for request in requests[:-1]),
        {**output(requests[-1]["custom_id"]), **UNANSWERED["expired"]},
    )
    said = invoke("bench", "judge", folder.path, "--import", done, "--json", **model)
    assert said.code == 0, said.err
    told = json.loads(said.out)
    assert told["judge"] == f"llm:api.openai.com/gpt-4o-mini#{PROMPT_DIGEST}"
    assert len(told["unjudged"]) == 1
    assert f"o.jsonl:{len(requests)}: no response" in said.err
    assert "The answers come from m, and are stored as those of gpt-4o-mini" in said.err


def test_the_command_exports_and_imports_a_sheet(folder: BenchFolder, docket: Docket, tmp_path: Path) -> None:
    said = invoke("bench", "judge", folder.path, "--export", "prompts", "--out", tmp_path / "out")
    assert said.code == 0, said.err
    sheet = fill(Path(said.out.strip()), dict.fromkeys(docket.cases, ("yes", "")))
    assert invoke("bench", "judge", folder.path, "--import", sheet).code == 1
    said = invoke("bench", "judge", folder.path, "--import", sheet, "--name", "anna")
    assert said.code == 0, said.err
    count = len(docket.cases)
    assert f"{count} of {count} votes are new, by people:anna" in said.err
    assert said.out.splitlines()[1] == f"full\t{len(folder.queries())}\t100.00"
