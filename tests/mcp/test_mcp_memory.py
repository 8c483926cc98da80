"""What a session was sent is named instead of sent again, until the skill changes or it is asked for."""

import os
from pathlib import Path

import anyio
import pytest

from conftest import SAMPLES
from mcp import Client
from mcp_clients import ERAS, answer, answers, form_of, server_of, text_of
from skillpager import SkillPager
from skillpager.mcp.options import MAX_SESSIONS, MAX_SKILLS, Memory, Sessions

PAGE = ("load_skill", {"name": "postgres-backup", "query": "Restore a single table from last night's dump."})
OTHER = ("load_skill", {"name": "postgres-backup", "query": "Restore a whole database on a new server."})
AGAIN = ("load_skill", {**PAGE[1], "resend": "true"})  # models write flags as text, too
KNOWN = "sent earlier"
LOG = "Then look at the log for a minute, line by line, and write down what it says.\n\n"


def ids(form: dict[str, object]) -> set[str]:
    """Return the ids of the nodes that a reply holds."""
    nodes = form["nodes"]
    assert isinstance(nodes, list)
    return {node["id"] for node in nodes}


def spread(nodes: str) -> set[str]:
    """Return the ids of a range such as `n3-n5`."""
    first, *last = (int(each.removeprefix("n")) for each in nodes.split("-"))
    return {f"n{number}" for number in range(first, (last or [first])[0] + 1)}


@pytest.mark.parametrize("era", ERAS)
def test_a_page_names_what_the_session_was_sent(pager: SkillPager, era: str) -> None:
    first, second, other = answers(server_of(pager, SAMPLES), PAGE, PAGE, OTHER, era=era)
    assert KNOWN not in text_of(first)
    assert ids(form_of(second)) == set()
    known = [spread(gap["nodes"]) for gap in form_of(second)["omitted"] if gap["known"]]
    assert set().union(*known) == ids(form_of(first))
    assert len(known) > 1
    for gap in form_of(second)["omitted"]:
        first_line, last_line = gap["start_line"], gap["end_line"]
        lines = f"L{first_line}" if first_line == last_line else f"L{first_line}-{last_line}"
        assert f"[… {lines}, {KNOWN}]" in text_of(second) or not gap["known"]
    # what to do when the host has dropped it
    assert "[…] = omitted lines; read: read_skill_nodes(" in text_of(second)
    assert ids(form_of(other)).isdisjoint(ids(form_of(first)))
    assert form_of(second)["tokens"] < form_of(first)["tokens"] / 2
    assert form_of(second)["sufficiency"] == form_of(first)["sufficiency"]


def test_it_is_sent_again_when_asked_for(pager: SkillPager) -> None:
    first, again = answers(server_of(pager, SAMPLES), PAGE, AGAIN)
    assert text_of(again) == text_of(first)
    always, also = answers(server_of(pager, SAMPLES, resend=True), PAGE, PAGE)
    assert text_of(always) == text_of(also) == text_of(first)


def test_reading_nodes_always_sends_them_and_counts_as_sent(pager: SkillPager) -> None:
    read = ("read_skill_nodes", {"name": "postgres-backup", "ids": "n30-n40"})
    alone = ids(form_of(answer(server_of(pager, SAMPLES), PAGE[0], **PAGE[1])))
    one, two, page = answers(server_of(pager, SAMPLES), read, read, PAGE)
    assert text_of(one) == text_of(two)
    assert KNOWN not in text_of(two)
    assert alone & spread("n30-n40")
    assert alone - spread("n30-n40")
    assert ids(form_of(page)) == alone - spread("n30-n40")


def test_a_whole_skill_is_named_once_it_was_sent(pager: SkillPager) -> None:
    full = ("load_skill", {"name": "git-bisect"})
    first, second, full_mode = answers(
        server_of(pager, SAMPLES), full, full, ("load_skill", {"name": "git-bisect", "mode": "full"})
    )
    assert form_of(first)["complete"]
    assert "[… L9-49, sent earlier]" in text_of(second)
    assert (form_of(second)["kind"], form_of(second)["complete"]) == ("full", False)
    assert text_of(full_mode) == text_of(second)


def test_a_changed_file_is_indexed_anew_and_counts_as_not_sent(pager: SkillPager, tmp_path: Path) -> None:
    file = tmp_path / "restart" / "SKILL.md"
    file.parent.mkdir()

    def write(step: str) -> None:
        head = "---\nname: restart\ndescription: d\n---\n# Restart\n\n"
        file.write_text(f"{head}{step}\n\n{LOG * 8}", encoding="utf-8")
        os.utime(file, (1_700_000_000, 1_700_000_000))  # the same age: size and digest tell

    write("Stop the old service.")
    server = server_of(pager, tmp_path)
    texts: list[str] = []

    async def run() -> None:
        async with Client(server, mode="legacy") as client:
            for step in ("", "", "Stop the new service at once."):
                if step:
                    write(step)
                texts.append(text_of(await client.call_tool("load_skill", {"name": "restart"})))

    anyio.run(run)
    assert "Stop the old service." in texts[0]
    assert KNOWN in texts[1]
    assert "Stop the new service at once." in texts[2]
    assert KNOWN not in texts[2]


@pytest.mark.parametrize("era", ERAS)
def test_two_clients_have_sessions_of_their_own(pager: SkillPager, era: str) -> None:
    server = server_of(pager, SAMPLES)
    texts: list[str] = []

    async def run() -> None:
        async with Client(server, mode=era) as one, Client(server, mode=era) as other:
            results = [await client.call_tool(*PAGE) for client in (one, other, one, other)]
            texts.extend(map(text_of, results))

    anyio.run(run)
    assert texts[0] == texts[1]
    assert [KNOWN in text for text in texts] == [False, False, True, True]


def test_memories_are_bounded() -> None:
    memory = Memory()
    for number in range(MAX_SKILLS + 1):
        memory.add(str(number), ["n0"])
    assert (memory.sent("0"), memory.sent("1")) == (frozenset(), frozenset({"n0"}))
    sessions = Sessions()
    sessions.named("first").add("key", ["n0"])
    for number in range(MAX_SESSIONS):
        sessions.named(str(number))
    assert sessions.named("first").sent("key") == frozenset()
    assert sessions.named("9") is sessions.named("9")
