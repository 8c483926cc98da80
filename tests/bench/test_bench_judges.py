"""Judges: the evidence measure against a restatement of it, and the model's votes over a real local server."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat_bench import (
    chat_model,
    docket_of,
    invoke,
    judge_by_length,
    judge_by_model,
    quoted_part,
    sample_queries,
    sample_skills,
    selection,
    verdict,
    without_contexts,
    write_run,
)
from messages import raises
from openai_server import Asked, OpenAIServer, Reply, completion, error, openai_server
from skillpager.bench import BenchFolder, evidence_coverage
from skillpager.bench.data.folder import QUERIES
from skillpager.bench.data.records import QueryRecord, write_records
from skillpager.bench.judge.evidence_measure import rank_measures
from skillpager.bench.judge.judges import Case, EvidenceJudge, choose_methods, judge_cases, judge_evidence
from skillpager.bench.judge.votes import PROMPT_DIGEST, VotedJudge, VoteRecord, judge_id
from skillpager.errors import BenchError, SettingsError

__all__ = ["openai_server"]


@pytest.fixture
def server(openai_server: OpenAIServer) -> OpenAIServer:
    openai_server.respond = judge_by_length
    return openai_server


@pytest.fixture
def folder(tmp_path: Path) -> BenchFolder:
    return write_run(tmp_path / "bench")


# ---- the evidence measure


def restated(context: str, lines: Sequence[str], ranges: Sequence[tuple[int, int]]) -> tuple[float, bool]:
    """Say the measure again, letter by letter and without regular expressions over whole texts."""

    def letters(text: str) -> str:
        return "".join(letter for letter in text.lower() if re.match(r"\w", letter) and letter != "_")

    def sentences(line: str) -> list[str]:
        line = re.sub(r"^\s*([-*+]|\d+[.)])\s+", "", line)
        parts, start = [], 0
        for end in range(1, len(line)):
            gap = len(line[end:]) - len(line[end:].lstrip())
            behind = line[end + gap : end + gap + 1]
            begins = behind != "" and behind in 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789`*"[('
            if line[end - 1] in ".!?。！？" and gap and begins and end >= start:
                parts.append(line[start:end])
                start = end + gap
        return [*parts, line[start:]]

    page = letters(context)
    shares: list[tuple[int, int]] = []
    for first, last in ranges:
        evidence = [line for line in lines[first - 1 : last] if line.strip()[:1] != "#"]
        pieces = [letters(piece) for line in evidence for piece in sentences(line)]
        pieces = [piece for piece in pieces if len(piece) > 2]
        if pieces:
            held = sum(len(piece) for piece in pieces if piece in page)
            shares.append((held, sum(map(len, pieces))))
    if not shares:
        return 1.0, True
    coverage = sum(held for held, _ in shares) / sum(total for _, total in shares)
    return coverage, coverage >= 0.9 and min(held / total for held, total in shares) >= 0.8


SKILLS = {skill.id: skill for skill in sample_skills()}
ANNOTATED = sample_queries(list(SKILLS.values()))


def lines_of(query: QueryRecord) -> list[str]:
    return SKILLS[query.skill].text.split("\n")


@given(query=st.sampled_from(ANNOTATED), data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_measure_is_its_restatement(query: QueryRecord, data: st.DataObject) -> None:
    lines = lines_of(query)
    shown = data.draw(st.lists(st.booleans(), min_size=len(lines), max_size=len(lines)))
    context = "\n".join(line for line, there in zip(lines, shown, strict=True) if there)
    assert evidence_coverage(context, lines, query.critical) == restated(context, lines, query.critical)


TEXTS = st.text(alphabet="aB1 .!?`#-*_\nü。", max_size=60)


@given(text=TEXTS, context=TEXTS, data=st.data())
@settings(max_examples=200, deadline=None)
def test_the_measure_is_its_restatement_on_odd_texts(text: str, context: str, data: st.DataObject) -> None:
    lines = text.split("\n")
    line = st.integers(1, len(lines))
    ranges = data.draw(st.lists(st.tuples(line, line), max_size=3))
    assert evidence_coverage(context, lines, ranges) == restated(context, lines, ranges)


@pytest.mark.parametrize("query", ANNOTATED, ids=lambda query: query.id)
def test_the_whole_document_is_sufficient_and_nothing_is_not(query: QueryRecord) -> None:
    skill = SKILLS[query.skill]
    assert judge_evidence(skill, query, skill.text) == (1.0, True)
    assert judge_evidence(skill, query, "") == (0.0, False)


def test_headings_do_not_count_also_when_they_are_indented() -> None:
    lines = ["# Title", "  ## Indented", "Some text."]
    assert evidence_coverage("some text", lines, [(1, 3)]) == (1.0, True)
    assert evidence_coverage("title indented", lines, [(1, 3)]) == (0.0, False)
    assert evidence_coverage("", lines, [(1, 2)]) == (1.0, True)  # no evidence


def test_each_letter_counts_once_whatever_its_case() -> None:
    lines = ["Größe ẞß", "Einheit"]  # ß has two letters in upper case
    assert evidence_coverage("GRÖßE ßẞ", lines, [(1, 2)]) == (0.5, False)


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_line_endings_do_not_move_the_lines(ending: str) -> None:
    query = ANNOTATED[0]
    skill = SKILLS[query.skill]
    other = replace(skill, files=(("SKILL.md", skill.text.replace("\n", ending)),))
    evidence = "\n".join(lines_of(query)[query.critical[0][0] - 1 : query.critical[0][1]])
    assert judge_evidence(other, query, evidence) == judge_evidence(skill, query, evidence)
    assert judge_evidence(other, query, evidence)[0] > 0


def test_the_evidence_judge_needs_annotated_data() -> None:
    query = replace(ANNOTATED[0], critical=())
    with raises(BenchError):
        judge_evidence(SKILLS[query.skill], query, "")


# ---- the thresholds of the measure


def measured(*ranges: tuple[int, int]) -> tuple[float, bool]:
    """Return the verdict on ranges of two lines, with so many letters that the context has and lacks."""
    letters = iter("abcdefgh")
    lines = [next(letters) * count for counts in ranges for count in counts]
    context = "\n".join(lines[::2])
    return evidence_coverage(context, lines, [(n, n + 1) for n in range(1, len(lines), 2)])


def test_nine_tenths_of_all_evidence_are_sufficient_and_less_is_not() -> None:
    assert measured((900, 100)) == (0.9, True)
    assert measured((89_999, 10_001)) == (0.89999, False)
    # over all ranges together, weighted by their letters, not the mean of their shares
    assert measured((800, 200), (1000, 0)) == (0.9, True)
    assert measured((850, 150), (949, 51)) == (1799 / 2000, False)
    assert measured((80, 20), (900, 0))[1]


def test_four_fifths_of_each_range_are_sufficient_and_less_is_not() -> None:
    assert measured((5000, 0), (800, 200)) == (5800 / 6000, True)
    assert measured((500_000, 0), (79_999, 20_001)) == (579_999 / 600_000, False)
    assert measured((799, 201), (5000, 0)) == (5799 / 6000, False)
    assert measured((5000, 0), (0, 100), (5000, 0)) == (10000 / 10100, False)


# ---- votes


@pytest.mark.parametrize(
    ("votes", "sufficient", "pattern"),
    [
        *(("yyy", True, "3-0"), ("nyy", True, "2-1"), ("yny", True, "2-1"), ("nny", False, "2-1")),
        *(("nnn", False, "3-0"), ("y", True, "1-0"), ("", None, ""), ("yn", None, ""), ("ynyn", None, "")),
    ],
)
def test_the_verdict_is_what_most_votes_say(
    tmp_path: Path, votes: str, sufficient: bool | None, pattern: str
) -> None:
    case = Case(SKILLS["git-bisect"], ANNOTATED[0], "a")
    judge = VotedJudge(BenchFolder(tmp_path), "j")
    judge.add(*(VoteRecord(case.digest, n, vote == "y", f"reason {n}") for n, vote in enumerate(votes, 1)))
    verdict = judge.judge(case)
    if verdict is None:
        assert sufficient is None
        return
    assert verdict.sufficient is sufficient
    assert verdict.votes == tuple(vote == "y" for vote in votes)
    # the first vote of the majority speaks for it
    assert verdict.reason == f"reason {votes.index('y' if sufficient else 'n') + 1}"
    assert verdict.on(selection(ANNOTATED[0], "mmr", "a"), "j").pattern == pattern
    # as many votes as are asked for decide
    assert VotedJudge(BenchFolder(tmp_path), "j", votes=1).judge(case).votes == verdict.votes[:1]
    assert VotedJudge(BenchFolder(tmp_path), "j", votes=5).judge(case) is None


def test_the_same_context_is_one_case_under_all_methods(folder: BenchFolder) -> None:
    docket = docket_of(folder)
    queries = len(folder.queries())
    assert len(docket.cases) == 2 * queries
    assert list(docket.selections) == ["full", "head", "mmr"]
    digests = {method: [digest for digest, _ in chosen] for method, chosen in docket.selections.items()}
    assert digests["full"] == digests["mmr"]
    assert [chosen.query for _, chosen in docket.selections["head"]] == [q.id for q in folder.queries()]


def test_a_case_is_named_by_all_that_a_judge_may_see() -> None:
    query = ANNOTATED[0]
    skill = SKILLS[query.skill]
    case = Case(skill, query, "a")
    others = [
        Case(replace(skill, name="n"), query, "a"),
        Case(replace(skill, description="d"), query, "a"),
        Case(skill, replace(query, query="q"), "a"),
        Case(skill, replace(query, id="i"), "a"),
        Case(skill, query, "b"),
    ]
    assert len({case.digest, *(other.digest for other in others)}) == 6
    assert Case(replace(skill, id="x", files=()), replace(query, critical=()), "a").digest == case.digest


def test_methods_are_chosen_by_label_and_suite(folder: BenchFolder) -> None:
    folder.selections_file("mmr").rename(folder.selections_file("mmr@lambda=0.9,k=20"))
    assert choose_methods(folder) == ["full", "head", "mmr@lambda=0.9,k=20"]
    assert choose_methods(folder, "mmr@k=20,lambda=0.9,full") == ["mmr@lambda=0.9,k=20", "full"]
    with raises(BenchError):
        choose_methods(folder, "main")
    with raises(BenchError):
        choose_methods(folder, "best")


def test_selections_without_contexts_cannot_be_judged(folder: BenchFolder, tmp_path: Path) -> None:
    with raises(BenchError):
        choose_methods(BenchFolder(tmp_path / "none"))
    without_contexts(folder, "head")
    assert choose_methods(folder) == ["full", "mmr"]
    with raises(BenchError):
        docket_of(folder, "head")
    without_contexts(folder, "full")
    without_contexts(folder, "mmr")
    with raises(BenchError):
        choose_methods(folder)


def test_a_selection_of_an_unknown_query_is_explained(folder: BenchFolder) -> None:
    write_records(folder.path / QUERIES, folder.queries()[1:])
    with raises(BenchError):
        docket_of(folder)


def test_the_evidence_judge_over_a_folder(folder: BenchFolder) -> None:
    judging = judge_cases(folder, docket_of(folder), EvidenceJudge())
    texts = {skill.id: skill for skill in folder.skills()}
    queries = {query.id: query for query in folder.queries()}
    for method in ("full", "head", "mmr"):
        found = folder.judgments("evidence", method)
        assert found == judging.judgments[method]
        assert [record.query for record in found] == list(queries)
        for record, chosen in zip(found, folder.selections(method), strict=True):
            measured = judge_evidence(texts[record.skill], queries[record.query], chosen.context or "")
            assert (record.coverage, record.sufficient) == measured
            assert (record.votes, record.pattern) == ((record.sufficient,), "1-0")
            assert record.context_sha256 == chosen.context_sha256
    assert {record.sufficient for record in folder.judgments("evidence", "head")} == {True, False}
    count = len(queries)
    assert folder.manifest()["judges"] == {"evidence": {"cases": 2 * count, "judged": 2 * count}}


# ---- the model's votes


def test_the_judge_sees_query_context_and_what_the_skill_is_and_no_more(
    folder: BenchFolder, server: OpenAIServer
) -> None:
    judge_by_model(folder, docket_of(folder, "head"), chat_model(server))
    query = folder.queries()[0]
    skill = next(skill for skill in folder.skills() if skill.id == query.skill)
    asked = next(asked for asked in server.asked if quoted_part(asked, "query") == query.query)
    assert quoted_part(asked, "context") == folder.selections("head")[0].context
    assert quoted_part(asked, "skill") == f"name: {skill.name}\ndescription: {skill.description}"
    assert skill.text[len(skill.text) // 2 :] not in asked.prompt
    assert asked.body["temperature"] == 0
    assert "seed" not in asked.body
    assert not any(method in asked.prompt.split("<context")[0] for method in ("head", "mmr"))
    assert [said["role"] for said in asked.body["messages"]] == ["system", "user"]


def test_the_judge_is_named_by_endpoint_model_and_prompt(folder: BenchFolder, server: OpenAIServer) -> None:
    judge_by_model(folder, docket_of(folder, "head"), chat_model(server, model="Pro"))
    assert list(folder.manifest()["judges"]) == [f"llm:{server.base_url.split('/')[2]}/Pro#{PROMPT_DIGEST}"]
    with raises(SettingsError):
        VotedJudge(folder, "j", votes=2)


def test_only_votes_that_are_missing_are_asked_for(folder: BenchFolder, server: OpenAIServer) -> None:
    docket = docket_of(folder, "full,head")
    first, _ = judge_by_model(folder, docket, chat_model(server), jobs=4)
    assert len(server.asked) == 3 * len(docket.cases)
    before = {path: path.read_bytes() for path in folder.path.rglob("*.json*")}
    server.asked.clear()
    second, _ = judge_by_model(folder, docket, chat_model(server), jobs=4)
    assert second.judgments == first.judgments
    assert {path: path.read_bytes() for path in folder.path.rglob("*.json*")} == before
    # the same context under another method
    same, _ = judge_by_model(folder, docket_of(folder, "mmr"), chat_model(server))
    assert [r.votes for r in same.judgments["mmr"]] == [r.votes for r in first.judgments["full"]]
    assert server.asked == []
    # another context, and more votes
    changed = selection(folder.queries()[0], "head", "something else")
    write_records(folder.selections_file("head"), [changed, *folder.selections("head")[1:]])
    judge_by_model(folder, docket_of(folder, "full,head"), chat_model(server))
    assert len(server.asked) == 3
    anew, *_ = folder.judgments(judge_id(chat_model(server).id), "head")
    assert anew.context_sha256 == changed.context_sha256
    more, _ = judge_by_model(folder, docket_of(folder, "full,head"), chat_model(server), votes=5)
    assert len(server.asked) == 3 + 2 * len(docket.cases)
    assert {len(found.votes) for found in more.verdicts.values()} == {5}


def test_a_bad_answer_is_asked_again_then_left_unjudged(tmp_path: Path, server: OpenAIServer) -> None:
    folder = write_run(tmp_path, skills=6, queries=3)
    docket = docket_of(folder, "full")
    victim = folder.queries()[1]

    def respond(asked: Asked) -> Reply:
        bad = completion('{"reason": "…", "sufficient": "yes"}')
        return bad if quoted_part(asked, "query") == victim.query else judge_by_length(asked)

    server.respond = respond
    _, outcome = judge_by_model(folder, docket, chat_model(server, max_retries=2))
    assert len(server.asked) == 3 + 3 + 3
    [(case, _)] = outcome.failures
    assert case.query == victim
    assert outcome.stopped == ""
    judged = folder.judgments(judge_id(chat_model(server).id), "full")
    assert [r.query for r in judged] == [query.id for query in folder.queries() if query != victim]
    server.respond = judge_by_length
    again, _ = judge_by_model(folder, docket, chat_model(server))
    assert len(server.asked) == 9 + 3
    assert [r.query for r in again.judgments["full"]] == [query.id for query in folder.queries()]


def test_a_good_vote_survives_when_a_later_one_fails(tmp_path: Path, server: OpenAIServer) -> None:
    folder = write_run(tmp_path, skills=6, queries=1)
    docket = docket_of(folder, "full")
    server.script(verdict(True, " a\nb\t" + "c" * 3000), *[completion("no")] * 2)
    _, outcome = judge_by_model(folder, docket, chat_model(server, max_retries=1))
    assert len(outcome.failures) == 1
    assert folder.judgments(judge_id(chat_model(server).id), "full") == []
    server.script(completion("no"), verdict(True), verdict(False))
    again, _ = judge_by_model(folder, docket, chat_model(server))
    assert again.judgments["full"][0].votes == (True, True, False)
    assert again.judgments["full"][0].reason == f"a b {'c' * 1996}"
    # a correction is no part of the next vote
    assert [len(asked.body["messages"]) for asked in server.asked] == [2, 2, 4, 2, 4, 2]


def test_a_run_that_stops_loses_no_judgment_and_goes_on(folder: BenchFolder, server: OpenAIServer) -> None:
    judge_by_model(folder, docket_of(folder, "head"), chat_model(server))
    before = folder.judgments(judge_id(chat_model(server).id), "head")
    server.respond = lambda _: error(401)
    docket = docket_of(folder, "full,head")
    _, outcome = judge_by_model(folder, docket, chat_model(server))
    assert "refused the API key" in outcome.stopped
    assert folder.judgments(judge_id(chat_model(server).id), "head") == before
    assert folder.judgments(judge_id(chat_model(server).id), "full") == []
    server.respond = judge_by_length
    again, _ = judge_by_model(folder, docket, chat_model(server))
    assert len(again.verdicts) == len(docket.cases)


def test_each_vote_is_kept_once_and_a_contradiction_is_refused(tmp_path: Path) -> None:
    folder = BenchFolder(tmp_path)
    judge = VotedJudge(folder, "people:anna")
    assert judge.add(VoteRecord("c", 1, True), VoteRecord("c", 2, False)) == 2
    assert judge.add(VoteRecord("c", 1, True), VoteRecord("c", 3, True)) == 1
    with raises(BenchError):
        judge.add(VoteRecord("c", 4, True), VoteRecord("c", 1, False))
    lines = judge.path.read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines] == [1, 2, 3]
    judge.path.write_text("\n".join([*lines, lines[0].replace("true", "false"), ""]))
    with raises(BenchError):
        VotedJudge(folder, "people:anna")


# ---- the command


def test_unjudged_cases_make_exit_code_1_and_the_others_stay(
    folder: BenchFolder, server: OpenAIServer
) -> None:
    victim = folder.queries()[0]
    server.respond = lambda asked: (
        error(422, "not this one") if quoted_part(asked, "query") == victim.query else judge_by_length(asked)
    )
    model = {"SKILLPAGER_LLM_MODEL": "tiny", "SKILLPAGER_LLM_BASE_URL": server.base_url}
    said = invoke("bench", "judge", folder.path, "--judge", "llm", "--methods", "full", **model)
    assert said.code == 1
    count = len(folder.queries())
    assert said.out.splitlines()[1] == f"full\t{count - 1}\t100.00"
    message = " ".join(said.err.split())
    assert f"1 of {count} cases are not judged: {victim.id}: the endpoint" in message
    assert "What is done is saved: repeat the command to go on." in message


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--judge", "me"), 2, "'me' is not one of 'evidence', 'llm'"),
        (("--judge", "llm"), 2, "bench judge needs a model"),
        (("--export", "y", "--import", "x"), 2, "two commands"),
        (("--import", "x", "--methods", "mmr"), 2, "leave --methods out"),
        (("--import", "x"), 2, "add --name, such as --name anna"),
        (("--methods", "bm25"), 1, "has no selections of bm25"),
    ],
)
def test_wrong_options_are_explained(
    folder: BenchFolder, arguments: tuple[str, ...], code: int, words: str
) -> None:
    said = invoke("bench", "judge", folder.path, *arguments)
    assert said.code == code
    assert words in " ".join(said.err.split())


# ---- picks against the nodes that hold needed lines


def test_recall_precision_and_gain_of_picks() -> None:
    recall, average, gain = rank_measures(["n4", "n1", "n7", "n2"], {"n1", "n2", "n9"})
    assert recall == pytest.approx(2 / 3)
    assert average == pytest.approx((1 / 2 + 2 / 4) / 3)
    ideal = 1 + 1 / math.log2(3) + 1 / 2
    assert gain == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / ideal)
    assert rank_measures(["n1"], {"n1"}) == rank_measures(["n1"], set()) == (1, 1, 1)
    assert rank_measures([], {"n1"}) == (0, 0, 0)
    assert all(map(math.isnan, rank_measures(["n1"], None)))
