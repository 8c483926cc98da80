"""Agents on tasks: arms, the loop over an endpoint, tools, checks, runs that are stopped, answers of others."""

import csv
import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bench import (
    SAMPLE_TASKS,
    SAMPLES,
    WORD,
    call,
    end,
    play,
    results,
    tool_names,
    turn,
    write_answer,
    write_task,
)
from chat_bench import chat_model, invoke, wait_until
from cli_process import command, environment
from messages import raises
from openai_server import OpenAIServer, Reply, completion, error, openai_server
from skillpager import SkillPager
from skillpager.bench.agent.arms import FIRST_TOKENS, Arm, first_lines, make_context, parse_arms
from skillpager.bench.agent.exchange import export_prompts, import_answers
from skillpager.bench.agent.loop import Limits
from skillpager.bench.agent.processes import MOST_BYTES, clean_environment, run_bounded
from skillpager.bench.agent.records import AgentRow
from skillpager.bench.agent.runs import AgentRun
from skillpager.bench.agent.scratch import check_copy
from skillpager.bench.agent.table import arms_table, differences_table, write_tables
from skillpager.bench.agent.tasks import Task, load_tasks
from skillpager.bench.agent.tools import MOST_CHARS, FileTools, answer_call
from skillpager.bench.cli.agent import ARMS, DEFAULT_SECONDS, DEFAULT_TURNS
from skillpager.bench.data.chat import ChatModel
from skillpager.bench.data.spending import Prices, Spending
from skillpager.bench.report.statistics import Interval
from skillpager.errors import BenchError, SkillError
from skillpager.remote.tool_calls import ToolCall
from skillpager.tokens import default_counter

Row = AgentRow

__all__ = ["openai_server"]

# what an agent that has read the skill would leave
SOLUTIONS = {
    "sample-clean-orders": {
        "orders.clean.csv": "order,customer,country,date,amount,note\n"
        "1001,René Fabre,FR,2024-04-04,1300.00,corrected\n0002,Müller & Sohn,DE,2024-03-17,99.00,\n"
        "1003,Tangeni,NA,2024-04-05,0.00,\n1004,Bakker; Zn,NL,,12.50,\n"
    },
    "sample-restore-table": {
        "orders.list": "\n".join(
            f"{number}; of orders" for number in (215, 216, 3350, 3210, 3340, 3351, 3215, 3221, 3230, 3231)
        ),
        "command.txt": "pg_restore --use-list=orders.list --single-transaction --dbname=shop "
        "shop-2025-03-01.dump\n",
    },
    "sample-retry-plan": {
        "answer.json": json.dumps(
            {
                "a": {"action": "retry", "wait": 7},
                "b": {"action": "stop", "wait": None},
                "c": {"action": "retry", "wait": None},
                "d": {"action": "retry", "wait": 30},
                "e": {"action": "slow down", "wait": 600},
                "f": {"action": "stop", "wait": 3600},
                "g": {"action": "stop", "wait": None},
                "h": {"action": "go on", "wait": None},
            }
        )
    },
    "sample-version-number": {
        "answer.json": '{"spring": "2.3.2", "summer": "3.0.0", "autumn": "2.4.0", "winter": "3.0.0"}'
    },
}


def run_of(path: Path, pager: SkillPager, **limits: object) -> AgentRun:
    return AgentRun(path, pager, Limits(**limits))  # type: ignore[arg-type]


def solve(run: AgentRun, model: ChatModel, tasks: list[Task], *arms: Arm, repeats: int = 1) -> list[Row]:
    """Make the missing attempts, which must all succeed, and return the rows."""
    asked = run.solve_all(run.missing(tasks, arms, repeats), model, jobs=2)
    assert (asked.failures, asked.stopped) == ([], "")
    return list(run.rows(tasks).values())


# ---- tasks


def test_the_checks_of_the_sample_tasks_tell_solutions_from_others(tmp_path: Path) -> None:
    tasks = [task for task in load_tasks(SAMPLE_TASKS, [SAMPLES]) if task.id.startswith("sample-")]
    assert {task.id for task in tasks} == set(SOLUTIONS)
    for task in tasks:
        answer = tmp_path / task.id
        answer.mkdir()
        if task.files:
            for path in task.files.iterdir():
                (answer / path.name).write_bytes(path.read_bytes())
        assert check_copy(task, answer).solved is False
        for name, text in SOLUTIONS[task.id].items():
            (answer / name).write_text(text, encoding="utf-8")
        verdict = check_copy(task, answer)
        assert verdict.solved is True, (task.id, verdict)
        for name in SOLUTIONS[task.id]:
            (answer / name).write_text("[]", encoding="utf-8")
        assert check_copy(task, answer).solved is False


def test_a_task_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with raises(BenchError):
        load_tasks(tmp_path, [SAMPLES])
    write_task(tmp_path)
    with raises(BenchError):
        load_tasks(tmp_path, [SAMPLES], only=["two"])
    with raises(SkillError):
        write_task(tmp_path, "three", skill="git-bisekt")
    assert [task.id for task in load_tasks(tmp_path, [SAMPLES])] == ["one"]
    with raises(SkillError):
        load_tasks(tmp_path, [tmp_path])
    (tmp_path / "three" / "task.json").write_text('{"skill": "git-bisect"}')
    with raises(BenchError):
        load_tasks(tmp_path, [SAMPLES])
    (tmp_path / "three" / "task.json").write_text('{"skill": "git-bisect", "prompt": " "}')
    with raises(BenchError):
        load_tasks(tmp_path, [SAMPLES])
    (tmp_path / "three" / "task.json").write_text('{"skill": "git-bisect", "prompt": "Do it."}')
    (tmp_path / "three" / "check.py").unlink()
    with raises(BenchError):
        load_tasks(tmp_path, [SAMPLES])


def test_a_skill_is_found_by_path_by_file_and_by_name(tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "alone.md").write_text("# Alone\n\nDo it.\n")
    (tmp_path / "skills" / "folder").symlink_to(SAMPLES / "git-bisect")
    for name, expected in {"alone": "alone.md", "folder": "folder", "git-bisect": "folder"}.items():
        told = {"skill": name, "prompt": "Do it."}
        (tmp_path / "tasks" / name).mkdir(parents=True)
        (tmp_path / "tasks" / name / "task.json").write_text(json.dumps(told))
        (tmp_path / "tasks" / name / "check.py").write_text("")
        (task,) = load_tasks(tmp_path / "tasks", [tmp_path / "skills"], only=[name])
        assert task.skill == tmp_path / "skills" / expected
    assert load_tasks(tmp_path / "tasks", [tmp_path / "skills"], only=["alone"])[0].skill_name == "alone"


# ---- arms


def test_arms_are_parsed_in_their_order_and_once() -> None:
    assert parse_arms("page, none,page") == [Arm.PAGE, Arm.NONE]
    with raises(BenchError):
        parse_arms("page,half")
    with raises(BenchError):
        parse_arms(" , ")


def test_each_arm_gives_its_part_of_the_skill(tmp_path: Path, pager: SkillPager) -> None:
    task = write_task(tmp_path, skill="kubernetes-debugging", prompt="A pod is OOMKilled. What is its limit?")
    given = {arm: make_context(task, arm, pager, show="read_skill_lines") for arm in Arm}
    whole = given[Arm.WHOLE]
    assert given[Arm.NONE].text == given[Arm.MCP].text == ""
    assert whole.tokens == whole.full_tokens
    assert whole.text.startswith(given[Arm.FIRST].text)
    assert FIRST_TOKENS * 0.9 < given[Arm.FIRST].tokens <= FIRST_TOKENS < whole.tokens
    assert given[Arm.MMR].tokens <= given[Arm.PAGE].tokens < whole.tokens / 2
    assert "read_skill_lines" in given[Arm.FAULTS].text
    assert "read_skill_lines" not in given[Arm.PAGE].text
    assert given[Arm.PAGE].tokens < given[Arm.FAULTS].tokens < given[Arm.PAGE].tokens + 60
    assert {context.full_tokens for context in given.values()} == {whole.tokens}


@given(st.text(alphabet="ab \n", max_size=400), st.integers(0, 100))
def test_the_first_lines_are_the_longest_beginning_that_fits(text: str, limit: int) -> None:
    counter = default_counter()
    first = first_lines(text, limit, counter)
    assert text.startswith(first)
    assert counter.count(first) <= limit
    following = text[len(first) :].splitlines(keepends=True)[:1]
    assert not following or counter.count(first + following[0]) > limit


# ---- the loop


def test_an_agent_reads_writes_and_is_checked(
    openai_server: OpenAIServer, tmp_path: Path, quick_pager: SkillPager
) -> None:
    task = write_task(tmp_path / "tasks", files={"notes/log.txt": "first\nsecond\n"})
    openai_server.respond = play(turn(call("read_file", {"path": "notes/log.txt"})), write_answer(), end())
    run = run_of(tmp_path / "run", quick_pager)
    (row,) = solve(run, chat_model(openai_server), [task], Arm.WHOLE)
    assert (row.solved, row.reason) == (True, f"the answer is '{WORD}'")
    assert (row.turns, row.calls, row.mistakes, row.stopped) == (3, 2, 0, "")
    assert (row.tokens_in, row.tokens_out, row.counted) == (3000, 300, True)
    assert row.skill_tokens == row.full_tokens > 100
    first, second, _ = openai_server.asked
    assert tool_names(first) == ["read_file", "write_file"]
    prompt = first.body["messages"][1]["content"]
    assert task.prompt in prompt
    assert "- notes/log.txt" in prompt
    assert "git bisect start" in prompt
    assert results(second) == ["first\nsecond\n"]
    transcript = json.loads((tmp_path / "run/transcripts/whole/one.1.json").read_text())
    assert [said["role"] for said in transcript] == [
        *("system", "user", "assistant", "tool", "assistant", "tool", "assistant")
    ]
    assert (tmp_path / "run/answers/1/whole/one/answer.txt").read_text() == WORD
    assert (tmp_path / "run/answers/1/whole/one/notes/log.txt").is_file()
    assert openai_server.asked[0].body["temperature"] == 0


def test_a_wrong_answer_is_not_solved(
    openai_server: OpenAIServer, tmp_path: Path, quick_pager: SkillPager
) -> None:
    openai_server.respond = play(write_answer("blame"), end())
    task = write_task(tmp_path / "tasks")
    (row,) = solve(run_of(tmp_path / "run", quick_pager), chat_model(openai_server), [task], Arm.NONE)
    assert (row.solved, row.reason) == (False, "the answer is 'blame'")
    assert row.skill_tokens == 0
    assert "git bisect start" not in openai_server.asked[0].prompt


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (call("write_file", '{"path": "answer.txt", '), "no JSON"),
        (call("write_file", "[1]"), "no JSON object"),
        (call("write_file", {"path": "answer.txt"}), "the argument text must be a text"),
        (call("write_file", {"path": "../out.txt", "text": "x"}), "outside of the scratch folder"),
        (call("read_file", {"path": "absent.txt"}), "cannot be read"),
        (call("read_file", {"path": "answer.txt", "line": 0}), "whole number"),
        (call("delete_file", {"path": "x"}), "there are read_file, write_file"),
        (call("run_shell", {"command": "id"}), "there is no tool 'run_shell'"),
    ],
)
def test_a_wrong_call_is_told_to_the_model(
    openai_server: OpenAIServer,
    tmp_path: Path,
    quick_pager: SkillPager,
    wrong: dict[str, object],
    told: str,
) -> None:
    openai_server.respond = play(turn(wrong), write_answer(), end())
    task = write_task(tmp_path / "tasks")
    (row,) = solve(run_of(tmp_path / "run", quick_pager), chat_model(openai_server), [task], Arm.NONE)
    assert (row.solved, row.calls, row.mistakes) == (True, 2, 1)
    (said,) = results(openai_server.asked[1])
    assert said.startswith("Error: ")
    assert told in said


def test_failures_of_the_endpoint_are_repeated(
    openai_server: OpenAIServer, tmp_path: Path, quick_pager: SkillPager
) -> None:
    bare = {"function": {"name": "write_file", "arguments": {"path": "answer.txt", "text": WORD}}}
    openai_server.script(
        error(500), Reply(hang=True), Reply(body=b"<html>"), completion(None), turn(bare), error(429), end()
    )
    task = write_task(tmp_path / "tasks")
    model = chat_model(openai_server, timeout=0.5, max_retries=4)
    (row,) = solve(run_of(tmp_path / "run", quick_pager), model, [task], Arm.NONE)
    assert (row.solved, row.turns) == (True, 2)
    assert len(openai_server.asked) == 7
    # an id was made up where the endpoint gave none
    assert openai_server.asked[-1].body["messages"][-1]["tool_call_id"] == "call_0"


def test_half_characters_of_a_model_are_replaced(
    openai_server: OpenAIServer, tmp_path: Path, quick_pager: SkillPager
) -> None:
    half = call("write_file", '{"path": "answer.txt", "text": "\\ud800"}')
    openai_server.respond = play(turn(half, text="\ud800"), turn(call("read_file\ud800", "\ud800")), end())
    task = write_task(tmp_path / "tasks")
    (row,) = solve(run_of(tmp_path / "run", quick_pager), chat_model(openai_server), [task], Arm.NONE)
    assert (row.solved, row.reason, row.calls, row.mistakes) == (False, "the answer is '?'", 2, 1)


def test_an_endpoint_that_refuses_the_temperature_is_asked_without_it(
    openai_server: OpenAIServer, tmp_path: Path, quick_pager: SkillPager
) -> None:
    openai_server.script(error(400, "Unsupported value: temperature"), write_answer(), end())
    task = write_task(tmp_path / "tasks")
    (row,) = solve(run_of(tmp_path / "run", quick_pager), chat_model(openai_server), [task], Arm.NONE)
    assert row.solved
    assert ["temperature" in asked.body for asked in openai_server.asked] == [True, False, False]


def test_an_attempt_ends_at_its_limits(
    openai_server: OpenAIServer, tmp_path: Path, quick_pager: SkillPager
) -> None:
    task = write_task(tmp_path / "tasks")
    openai_server.respond = lambda _: turn(call("read_file", {"path": "answer.txt"}))
    run = run_of(tmp_path / "turns", quick_pager, turns=5)
    (row,) = solve(run, chat_model(openai_server), [task], Arm.NONE)
    assert (row.solved, row.turns, row.stopped) == (False, 5, "turns")
    assert len(openai_server.asked) == 5
    run = run_of(tmp_path / "time", quick_pager, seconds=0.0)
    (row,) = solve(run, chat_model(openai_server), [task], Arm.NONE)
    assert (row.turns, row.stopped) == (0, "time")
    openai_server.respond = lambda _: turn(write_call(), finish_reason="length")
    (row,) = solve(run_of(tmp_path / "cut", quick_pager), chat_model(openai_server), [task], Arm.NONE)
    assert (row.solved, row.turns, row.stopped) == (True, 1, "length")


def write_call() -> dict[str, object]:
    return call("write_file", {"path": "answer.txt", "text": WORD})


def test_a_conversation_that_the_endpoint_refuses_ends_the_attempt_a_prompt_is_an_error(
    openai_server: OpenAIServer, tmp_path: Path, quick_pager: SkillPager
) -> None:
    task, too_long = write_task(tmp_path / "tasks"), error(400, "context length exceeded")
    openai_server.script(write_answer(), too_long)
    run = run_of(tmp_path / "run", quick_pager)
    (row,) = solve(run, chat_model(openai_server), [task], Arm.NONE)
    assert (row.solved, row.turns) == (True, 1)
    assert "context length exceeded" in row.stopped
    openai_server.script(too_long)
    asked = run.solve_all(run.missing([task], [Arm.WHOLE], 1), chat_model(openai_server), jobs=1)
    ((attempt, reason),) = asked.failures
    assert attempt.arm is Arm.WHOLE
    assert "context length exceeded" in reason
    assert len(run.rows([task])) == 1


def test_tokens_are_counted_here_where_the_endpoint_does_not(
    openai_server: OpenAIServer, tmp_path: Path, quick_pager: SkillPager
) -> None:
    openai_server.script(completion("I do not know."))
    task = write_task(tmp_path / "tasks")
    (row,) = solve(run_of(tmp_path / "run", quick_pager), chat_model(openai_server), [task], Arm.WHOLE)
    assert not row.counted
    assert row.tokens_in > row.skill_tokens
    assert row.tokens_out == default_counter().count("I do not know.")


# ---- tools that read the skill


def test_page_faults_are_answered_and_counted(
    openai_server: OpenAIServer, tmp_path: Path, pager: SkillPager
) -> None:
    task = write_task(tmp_path / "tasks", skill="postgres-backup", prompt="How is one table restored?")
    lines = [
        call("read_skill_lines", {"lines": "Nightly backups"}),
        call("read_skill_lines", {"lines": "L999"}),
    ]
    openai_server.respond = play(turn(*lines), write_answer(), end())
    (row,) = solve(run_of(tmp_path / "run", pager), chat_model(openai_server), [task], Arm.FAULTS)
    assert (row.faults, row.calls, row.mistakes) == (1, 3, 1)
    good, bad = results(openai_server.asked[1])
    assert "pg-nightly" in good
    assert bad.startswith("Error: ")
    count = pager.token_counter.count
    page = make_context(task, Arm.FAULTS, pager, show="read_skill_lines")
    assert row.skill_tokens == page.tokens + count(good) + count(bad)
    assert tool_names(openai_server.asked[0])[-1] == "read_skill_lines"


@pytest.mark.parametrize("single", [False, True])
def test_the_mcp_server_is_a_real_one_and_offers_the_skill_of_the_task(
    openai_server: OpenAIServer, tmp_path: Path, pager: SkillPager, single: bool
) -> None:
    skills = tmp_path / "skills"
    skills.mkdir()
    if single:
        (skills / "bisecting.md").write_text((SAMPLES / "git-bisect" / "SKILL.md").read_text())
    skill = str(skills / "bisecting.md") if single else "git-bisect"
    task = write_task(tmp_path / "tasks", skill=skill)
    asked = [call("list_skills", {}, "a"), call("load_skill", {"name": "git-bisect", "query": "start"}, "b")]
    wrong = call("load_skill", {"name": "csv-cleaning", "query": "start"}, "c")
    openai_server.respond = play(turn(*asked, wrong), write_answer(), end())
    (row,) = solve(run_of(tmp_path / "run", pager), chat_model(openai_server), [task], Arm.MCP)
    assert (row.solved, row.calls, row.mistakes) == (True, 4, 1)
    assert {"list_skills", "load_skill", "read_skill_nodes"} < set(tool_names(openai_server.asked[0]))
    listed, page, refused = results(openai_server.asked[1])
    assert "git-bisect" in listed
    assert "git bisect start" in page
    assert "no skill named 'csv-cleaning'" in refused
    assert row.skill_tokens == sum(map(pager.token_counter.count, (listed, page, refused)))
    assert "git bisect start" not in openai_server.asked[0].prompt


# ---- files and the shell


def test_file_tools_never_leave_the_scratch_folder(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (scratch / "link").symlink_to(tmp_path)
    tools = FileTools(scratch)
    for path in ("../secret.txt", str(tmp_path / "secret.txt"), "link/secret.txt", "a\0b"):
        for name, more in (("read_file", {}), ("write_file", {"text": "x"})):
            answered = answer_call(ToolCall("c", name, json.dumps({"path": path, **more})), [tools])
            assert not answered.right
            assert "secret\n" not in answered.text
    assert (tmp_path / "secret.txt").read_text() == "secret"


def test_a_long_file_is_read_in_parts(tmp_path: Path) -> None:
    lines = [f"line {number}\n" for number in range(1, 5001)]
    (tmp_path / "long.txt").write_text("".join(lines))
    tools, read, line = FileTools(tmp_path), "", 1
    while True:
        answered = answer_call(
            ToolCall("c", "read_file", json.dumps({"path": "long.txt", "line": line})), [tools]
        )
        text, mark, following = answered.text.partition("\n[… 5,000 lines in all; read on with line=")
        assert len(text) <= MOST_CHARS
        read += text + ("\n" if mark else "")
        if not mark:
            break
        line = int(following.rstrip("]"))
    assert read == "".join(lines)


def test_the_shell_is_offered_only_with_leave_and_bounded(
    openai_server: OpenAIServer, tmp_path: Path, quick_pager: SkillPager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKILLPAGER_LLM_API_KEY", "sk-secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sk-secret")
    task = write_task(tmp_path / "tasks", seconds=4.0, files={"in.txt": "data\n"})
    commands = [
        "cat in.txt; pwd; exit 3",
        "env",
        "yes | head -c 100000",
        "sleep 30",
        f"printf {WORD} > answer.txt",
    ]
    calls = [call("run_shell", {"command": text}, f"c{number}") for number, text in enumerate(commands)]
    openai_server.respond = play(turn(*calls), end())
    run = run_of(tmp_path / "run", quick_pager, shell=True)
    started = time.monotonic()
    (row,) = solve(run, chat_model(openai_server), [task], Arm.NONE)
    assert time.monotonic() - started < 29
    assert (row.solved, row.calls, row.mistakes) == (True, 5, 0)
    first, variables, long, slow, _ = results(openai_server.asked[1])
    assert first.startswith("exit code 3\ndata\n/")
    assert "secret" not in variables
    assert f"HOME={Path(first.splitlines()[2]).parent}" in variables
    assert len(long) < 2 * MOST_BYTES + 200
    assert "85,000 bytes" in long
    assert slow.startswith("killed after 4 s")
    assert not Path(first.splitlines()[2]).exists()


def test_what_a_command_leaves_behind_is_killed(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    text = "sleep 60 & echo $! > pid; (sleep 60; echo late) & echo done"
    started = time.monotonic()
    done = run_bounded(
        ["/bin/sh", "-c", text], tmp_path / "scratch", seconds=20, env=clean_environment(tmp_path)
    )
    assert time.monotonic() - started < 10
    assert (done.code, done.output, done.timed_out) == (0, "done\n", False)
    number = int((tmp_path / "scratch" / "pid").read_text())
    wait_until(lambda: not _is_alive(number))


def _is_alive(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().split()[2]
    except FileNotFoundError:
        return False
    return state != "Z"


# ---- checks


def test_a_check_that_fails_itself_is_no_verdict_and_is_run_again(
    openai_server: OpenAIServer, tmp_path: Path, quick_pager: SkillPager
) -> None:
    openai_server.respond = play(write_answer(), end())
    task = write_task(tmp_path / "tasks", check="import no_such_module")
    run = run_of(tmp_path / "run", quick_pager)
    (row,) = solve(run, chat_model(openai_server), [task], Arm.NONE)
    # though Python's own exit code after an exception is 1, as of a task that is not solved
    assert row.solved is None
    assert "ModuleNotFoundError" in row.reason
    mended = write_task(tmp_path / "tasks")
    assert run.missing([mended], [Arm.NONE], 1) == []
    assert run.recheck([mended]) == 1
    (row,) = run.rows([mended]).values()
    assert row.solved is True
    assert run.recheck([mended]) == 0
    assert len(openai_server.asked) == 2


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        ("import sys; print('odd'); sys.exit(3)", "the check failed with exit code 3: odd"),
        ("import time; time.sleep(30)", "the check did not end within 0.5 s"),
        ("import os; os.kill(os.getpid(), 9)", "the check failed with exit code -9: "),
    ],
)
def test_every_other_end_of_a_check_is_its_failure(tmp_path: Path, check: str, reason: str) -> None:
    # a busy machine starts Python slowly
    task = write_task(tmp_path / "tasks", check=check, seconds=0.5 if "sleep" in check else 30.0)
    (tmp_path / "answer").mkdir()
    verdict = check_copy(task, tmp_path / "answer")
    assert (verdict.solved, verdict.reason) == (None, reason)


def test_a_check_may_turn_exceptions_into_its_verdict(tmp_path: Path) -> None:
    hook = "import sys\nsys.excepthook = lambda kind, error, trace: print('another form:', error)\n"
    task = write_task(tmp_path / "tasks", check=f"{hook}int('x')")
    (tmp_path / "answer").mkdir()
    verdict = check_copy(task, tmp_path / "answer")
    assert (verdict.solved, verdict.reason[:13]) == (False, "another form:")


def test_a_check_imports_nothing_from_the_answer(tmp_path: Path) -> None:
    task = write_task(tmp_path / "tasks")
    (tmp_path / "answer").mkdir()
    (tmp_path / "answer" / "pathlib.py").write_text("import sys; sys.exit(0)")
    assert check_copy(task, tmp_path / "answer").solved is False


# ---- runs


def test_a_run_goes_on_where_it_stopped_and_pays_for_nothing_twice(
    openai_server: OpenAIServer, tmp_path: Path, quick_pager: SkillPager
) -> None:
    tasks = [write_task(tmp_path / "tasks", name) for name in ("one", "two")]
    openai_server.respond = play(write_answer(), end())
    # a request is expected to cost more than its turn of 1.2 does in the end
    spending = Spending(Prices(1000.0, 2000.0), max_cost=5.0)
    model = chat_model(openai_server, spending=spending)
    run = run_of(tmp_path / "run", quick_pager)
    asked = run.solve_all(run.missing(tasks, [Arm.NONE, Arm.WHOLE], 1), model, jobs=1)
    assert "the limit of 5 is reached" in asked.stopped
    assert 0 < asked.done < 4
    paid = len(openai_server.asked)
    assert model.spending.bill.cost == pytest.approx(1.2 * paid)
    assert model.spending.bill.cost <= 5.0
    rows = solve(run, chat_model(openai_server), tasks, Arm.NONE, Arm.WHOLE)
    assert len(rows) == 4
    assert len(openai_server.asked) - paid == 2 * (4 - asked.done)
    rows = solve(run, chat_model(openai_server), tasks, Arm.NONE, Arm.WHOLE, repeats=2)
    assert sorted({row.repeat for row in rows}) == [1, 2]
    assert len(rows) == 8


def test_a_task_that_has_changed_is_solved_anew(
    openai_server: OpenAIServer, tmp_path: Path, quick_pager: SkillPager
) -> None:
    openai_server.respond = play(write_answer(), end())
    task = write_task(tmp_path / "tasks")
    run = run_of(tmp_path / "run", quick_pager)
    solve(run, chat_model(openai_server), [task], Arm.NONE)
    changed = write_task(tmp_path / "tasks", prompt="Another prompt.")
    assert len(run.missing([changed], [Arm.NONE], 1)) == 1
    changed = write_task(tmp_path / "tasks", files={"more.txt": "x"})
    assert len(run.missing([changed], [Arm.NONE], 1)) == 1


def test_a_run_that_is_killed_loses_only_what_was_under_way(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    for number in range(6):
        write_task(tmp_path / "tasks", f"task-{number}")
    openai_server.respond = play(write_answer(), end())
    words = ["bench", "agent", tmp_path / "tasks", "--skills", SAMPLES, "--out", tmp_path / "run"]
    words += ["--arms", "none", "--model", "m", "--base-url", openai_server.base_url, "--jobs", "2"]
    env = environment(tmp_path / "cache")
    rows = tmp_path / "run" / "rows.jsonl"
    process = subprocess.Popen(command(*words), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: rows.is_file() and rows.read_bytes().count(b"\n") >= 2, 60)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with rows.open("ab") as file:
        file.write(b'{"task": "task-5", "ar')
    before = len(openai_server.asked)
    done = sum(line.endswith(b"\n") for line in rows.read_bytes().splitlines(keepends=True))
    said = subprocess.run(command(*words), env=env, capture_output=True, text=True, timeout=120)
    assert said.returncode == 0, said.stderr
    assert len({json.loads(line)["task"] for line in rows.read_text().splitlines()}) == 6
    assert len(openai_server.asked) - before <= 2 * (6 - done)
    assert said.stdout.splitlines()[1].split("\t")[:3] == ["none", "6", "6"]


# ---- answers of others


def test_prompts_go_out_and_answers_come_back(tmp_path: Path, pager: SkillPager) -> None:
    task = write_task(tmp_path / "tasks", skill="postgres-backup", prompt="How is one table restored?")
    files = write_task(tmp_path / "tasks", "two", files={"a.txt": "x"})
    rows = export_prompts([task, files], list(Arm), pager, tmp_path / "out")
    with (tmp_path / "out" / "manifest.csv").open(newline="") as file:
        told = {(row["arm"], row["task"]): row for row in csv.DictReader(file)}
    assert len(told) == len(rows) == 2 * len(Arm)
    for (arm, name), row in told.items():
        folder = tmp_path / "out" / arm / name
        context = (folder / "context.md").read_text(encoding="utf-8")
        assert pager.token_counter.count(context) == int(row["context_tokens"])
        assert (folder / "files" / "a.txt").is_file() == (name == "two")
        assert pager.token_counter.count((folder / "prompt.md").read_text()) == int(row["prompt_tokens"])
    assert "skillpager show" in (tmp_path / "out/page+faults/one/context.md").read_text()
    with raises(BenchError):
        export_prompts([task], [Arm.NONE], pager, tmp_path / "out")

    answers = tmp_path / "answers"
    for arm, word in {"whole": WORD, "page+faults": WORD, "page": "blame"}.items():
        (answers / arm / "one").mkdir(parents=True)
        (answers / arm / "one" / "answer.txt").write_text(word)
    (answers / "page+faults" / "one" / "faults.txt").write_text("Nightly backups\n\nL20-24\nL999\n")
    (answers / "page" / "one" / "usage.json").write_text('{"tokens_in": 9, "tokens_out": 5, "seconds": 2.5}')
    imported = import_answers([task, files], list(Arm), pager, answers)
    by_arm = {row.arm: row for row in imported.rows}
    assert {arm: row.solved for arm, row in by_arm.items()} == {
        Arm.WHOLE: True,
        Arm.PAGE: False,
        Arm.FAULTS: True,
    }
    assert len(imported.missing) == 2 * len(Arm) - 3
    fault, page = by_arm[Arm.FAULTS], by_arm[Arm.PAGE]
    read = sum(pager.expand(task.skill, each).tokens for each in ("Nightly backups", "L20-24"))
    given_tokens = int(told["page+faults", "one"]["context_tokens"])
    assert (fault.faults, fault.mistakes, fault.skill_tokens) == (2, 1, given_tokens + read)
    assert fault.tokens_in > fault.skill_tokens
    assert (page.tokens_in, page.tokens_out, page.seconds, page.turns) == (9, 5, 2.5, None)


def test_answers_that_cannot_be_used_are_named(tmp_path: Path, pager: SkillPager) -> None:
    task = write_task(tmp_path / "tasks")
    with raises(BenchError):
        import_answers([task], [Arm.PAGE], pager, tmp_path / "answers")
    answer = tmp_path / "answers" / "page" / "one"
    answer.mkdir(parents=True)
    (answer / "usage.json").write_text('{"tokens_in": "many"}')
    with raises(BenchError):
        import_answers([task], [Arm.PAGE], pager, tmp_path / "answers")
    (answer / "usage.json").unlink()
    (answer / "faults.txt").write_bytes(b"\xff")
    with raises(BenchError):
        import_answers([task], [Arm.PAGE], pager, tmp_path / "answers")


# ---- tables


def row(task: str, arm: Arm, solved: bool | None, tokens: int, *, repeat: int = 1, **more: object) -> Row:
    fields = {"reason": "", "full_tokens": 1000, "tokens_in": tokens + 100, **more}
    return Row(task, arm, repeat, "d", "c", f"skill of {task}", solved, skill_tokens=tokens, **fields)  # type: ignore[arg-type]


def test_tables_have_shares_tokens_and_differences(tmp_path: Path) -> None:
    rows = [row(f"t{number}", Arm.WHOLE, number < 3, 1000, tokens_out=50) for number in range(4)]
    rows += [row(f"t{number}", Arm.PAGE, number < 2, 400, tokens_out=50) for number in range(4)]
    rows += [row("t0", Arm.PAGE, None, 400), row("t9", Arm.MMR, None, 1)]
    table = arms_table(rows, Prices(1.0, 2.0))
    lines = {str(line["arm"]): line for line in table.rows}
    assert list(lines) == ["whole", "page", "mmr"]
    solved = lines["whole"]["solved (%)"]
    assert isinstance(solved, Interval)
    assert (solved.value, solved.low, solved.high) == (75.0, 25.0, 100.0)
    assert [lines[arm]["not checked"] for arm in lines] == [0, 1, 1]
    assert lines["mmr"]["solved (%)"] is None
    cost = lines["page"]["cost"]
    assert isinstance(cost, Interval)
    assert cost.value == pytest.approx((500 + 2 * 50) / 1e6)
    assert lines["whole"]["turns"] is None

    against = differences_table(rows)
    assert against is not None
    (page,) = against.rows
    difference, saved = page["solved (points)"], page["skill tokens saved (%)"]
    assert isinstance(difference, Interval)
    assert isinstance(saved, Interval)
    assert (difference.value, saved.value) == (-25.0, 60.0)
    assert (page["better on"], page["worse on"], page["tasks"]) == (0, 1, 4)
    assert differences_table([one for one in rows if one.arm is Arm.WHOLE]) is None
    paths = write_tables([table, against], tmp_path)
    assert [path.name for path in paths] == ["arms.csv", "differences.csv", "report.md"]
    with paths[0].open(newline="") as file:
        assert next(csv.DictReader(file))["solved (%) low"] == "25"


def test_attempts_at_one_task_are_one_task_in_comparisons() -> None:
    rows = [row("t", Arm.WHOLE, True, 1000, repeat=number) for number in (1, 2)]
    rows += [row("t", Arm.PAGE, number == 1, 500, repeat=number) for number in (1, 2)]
    against = differences_table(rows)
    assert against is not None
    assert against.texts[0][:4] == ["page", "1", "−50.0 [−50.0, −50.0]", "1.000"]


# ---- the command


def test_the_command_has_the_defaults_of_the_loop_and_all_arms() -> None:
    assert Limits(DEFAULT_TURNS, DEFAULT_SECONDS) == Limits()
    assert parse_arms(ARMS) == list(Arm)


def test_the_command_runs_reports_and_names_what_is_left(openai_server: OpenAIServer, tmp_path: Path) -> None:
    write_task(tmp_path / "tasks")
    openai_server.respond = play(write_answer(), end())
    words = ["bench", "agent", tmp_path / "tasks", "--skills", SAMPLES, "--arms", "none,whole"]
    model = ["--model", "m", "--base-url", openai_server.base_url]
    dry = invoke(*words, *model, "--dry-run")
    assert dry.code == 0
    assert dry.out.startswith("16 requests, about ")
    assert openai_server.asked == []
    ran = invoke(*words, *model, "--out", tmp_path / "run", "--price-in", "1000", "--price-out", "2000")
    assert ran.code == 0, ran.err
    assert [line.split("\t")[0] for line in ran.out.splitlines()] == ["arm", "none", "whole", "arm", "none"]
    assert "no shell: --allow-shell" in ran.err
    assert "2,400" not in ran.out
    assert "2.4000" in ran.out
    # nothing is left: no model is needed
    again = invoke(*words, "--out", tmp_path / "run", "--json")
    assert again.code == 0
    assert [one["solved"] for one in json.loads(again.out)["rows"]] == [True, True]
    assert len(openai_server.asked) == 4

    other = invoke(*words, *model, "--out", tmp_path / "run", "--repeats", "2", "--turns", "3")
    assert other.code == 1
    assert "was made with turns = 30, now it is 3" in other.err
    openai_server.respond = lambda _: error(401)
    left = invoke(*words, *model, "--out", tmp_path / "run", "--repeats", "2")
    assert left.code == 1
    assert "2 of 4 attempts are not made: the run was stopped" in left.err
    assert invoke(*words, *model).code == 2
    both = invoke(*words, "--export", tmp_path / "x", "--import-answers", tmp_path / "y")
    assert both.code == 2
    # rows that were paid for are not replaced
    kept = tmp_path / "run" / "answers" / "1"
    into = invoke(*words, "--import-answers", kept, "--out", tmp_path / "run")
    assert into.code == 2
    assert "holds the rows of a run" in into.err
    assert invoke(*words, "--import-answers", kept, "--out", tmp_path / "other").code == 0


def test_the_command_exports_and_imports(tmp_path: Path) -> None:
    words = ["bench", "agent", SAMPLE_TASKS, "--skills", SAMPLES, "--only", "sample-version-number"]
    words += ["--arms", "none,whole"]
    out = invoke(*words, "--export", tmp_path / "out", "--json")
    assert out.code == 0
    assert [one["arm"] for one in json.loads(out.out)["prompts"]] == ["none", "whole"]
    answer = tmp_path / "answers" / "whole" / "sample-version-number"
    answer.mkdir(parents=True)
    (answer / "answer.json").write_text(SOLUTIONS["sample-version-number"]["answer.json"])
    checked = invoke(*words, "--import-answers", tmp_path / "answers", "--out", tmp_path / "run")
    assert checked.code == 0, checked.err
    assert "1 answer not there: none/sample-version-number" in checked.err
    assert checked.out.splitlines()[1].startswith("whole\t1\t1\t100.0 [100.0, 100.0]")
    assert (tmp_path / "run" / "rows.jsonl").read_text().count("\n") == 1


def test_a_check_that_fails_is_warned_of(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", check="import sys; sys.exit(5)")
    (tmp_path / "answers" / "none" / "one").mkdir(parents=True)
    (tmp_path / "answers" / "none" / "one" / "answer.txt").write_text(WORD)
    words = ["bench", "agent", tmp_path / "tasks", "--skills", SAMPLES, "--arms", "none"]
    said = invoke(*words, "--import-answers", tmp_path / "answers")
    assert said.code == 0
    assert "1 attempt not checked, the first none/one: the check failed with exit code 5" in said.err
