"""How sessions of agents with a scripted model are judged, and the table of hosts that they fill."""

import re
import runpy

import pytest

from cli_process import ROOT

BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def say(path: str, text: str, **more: object) -> dict[str, object]:
    """Return a request with one message."""
    messages = [{"role": "user", "content": text}]
    return {("input" if "responses" in path else "messages"): messages, "stream": True, **more}


PAGE = (
    "[Page of a skill.]\n[… L13-102: How it works]\npg_restore --dbname=scratch --table=orders --no-owner\n"
)


def test_session_is_judged_by_what_the_agent_sent() -> None:
    from host_sessions import QUERY, SKILL, follow_script, judge, omitted_lines
    from scripted_model import Call, Request, Say

    lines = "\n".join((SKILL / "SKILL.md").read_text(encoding="utf-8").splitlines()[12:20])
    told = [QUERY, QUERY + PAGE, "summary" + lines, "summary[… L106-122, sent earlier]", "summary" + PAGE]
    requests = [Request("/v1/messages", say("/v1/messages", text)) for text in told]
    assert omitted_lines(requests[1]) == "13-20"
    turns = [follow_script(requests[: number + 1]) for number in range(5)]
    assert [type(turn) for turn in turns] == [Call, Call, Call, Call, Say]
    assert set(judge(requests, requests[:1]).values()) == {True}
    assert judge(requests, [])["the conversation is compacted"] is False
    assert set(judge(requests[:1], []).values()) == {False}
    assert judge([*requests[:2], requests[0]], [])["omitted lines are read, word for word"] is False


def test_tables_of_the_documentation_are_those_of_the_script() -> None:
    hosts = runpy.run_path(str(BENCHMARKS / "hosts.py"), run_name="hosts")
    text = (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8")
    written = text.partition("<!-- hosts -->\n")[2].partition("<!-- /hosts -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in written.splitlines()]
    empty = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in hosts["hosts_table"]([]).splitlines()
    ]
    assert [row[0] for row in rows] == [row[0] for row in empty]
    versions = {program.agent: program.version for program in hosts["PROGRAMS"]}
    titles = {host.title: host.name for host in hosts["HOSTS"]}
    for title, version, asked, *_ in rows[2:]:
        if asked != "not run":
            assert re.match(re.escape(version), versions[titles[title]]), title
