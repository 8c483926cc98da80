"""The chat classifier against a real local server: verdicts, retries, resuming, and every way to fail."""

import json
import logging
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from messages import raises
from openai_server import (
    KEY,
    Asked,
    OpenAIServer,
    Reply,
    always,
    answers,
    completion,
    endpoint_at,
    error,
    good_reply,
    openai_server,
    verdicts,
)
from skillpager.classifiers.llm import PROMPT_VERSION, RENDERING, LLMClassifier
from skillpager.errors import ClassifierError, MissingExtraError, SettingsError
from skillpager.types import Classifier, Fragment, ListContext, NodeType, Span, TileKind

__all__ = ["openai_server"]

TYPES = list(NodeType)
# settings of the classifier; all others are the endpoint's
OWN = ("batch_size", "concurrency", "cache_dir")


def fragment(ordinal: int, text: str | None = None, **fields: Any) -> Fragment:
    """Return a fragment on line `ordinal + 1`; its first word is the type the server will give it."""
    text = text if text is not None else f"{TYPES[ordinal % 6]} number {ordinal}"
    span = Span("SKILL.md", ordinal + 1, ordinal + 1, 40 * ordinal, 40 * ordinal + len(text))
    given: dict[str, Any] = {"kind": TileKind.SENTENCE, "heading_path": ("Guide",), "list_context": None}
    return Fragment(text=text, span=span, ordinal=ordinal, **(given | fields))


def fragments(count: int) -> list[Fragment]:
    return [fragment(ordinal) for ordinal in range(count)]


def classifier_of(server: OpenAIServer | str, **settings: Any) -> LLMClassifier:
    own = {name: settings.pop(name) for name in OWN if name in settings}
    return LLMClassifier(endpoint_at(server, **settings), **own)


def failure_of(server: OpenAIServer | str, count: int = 1, **settings: Any) -> str:
    return failure_with(classifier_of(server, **settings), count)


def failure_with(classifier: LLMClassifier, count: int) -> str:
    with pytest.raises(ClassifierError) as caught:
        classifier.classify(fragments(count), None)
    assert KEY not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def fail_on(word: str, reply: Reply) -> Callable[[Asked], Reply]:
    """Answer well, except for the batch that holds `word`."""
    return lambda asked: reply if word in " ".join(asked.texts) else good_reply(asked)


# ---- verdicts and requests


def test_verdicts_come_in_the_order_of_the_fragments(openai_server: OpenAIServer) -> None:
    classifier: Classifier = classifier_of(openai_server, concurrency=3)
    found = classifier.classify(fragments(45), None)
    assert [verdict.type for verdict in found] == [TYPES[ordinal % 6] for ordinal in range(45)]
    assert [verdict.confidence for verdict in found] == [0.5 + (n % 20) / 100 for n in range(45)]
    assert sorted(len(asked.texts) for asked in openai_server.asked) == [5, 20, 20]
    assert classifier.embedding is None


def test_an_answer_in_any_order_is_put_right(openai_server: OpenAIServer) -> None:
    openai_server.respond = lambda asked: answers(verdicts(asked)[::-1])
    found = classifier_of(openai_server).classify(fragments(6), None)
    assert [verdict.type for verdict in found] == TYPES


def test_no_fragments_cost_no_request(openai_server: OpenAIServer) -> None:
    assert classifier_of(openai_server).classify([], None) == []
    assert openai_server.asked == []


def test_a_request_is_strict_cold_and_carries_the_key(openai_server: OpenAIServer) -> None:
    classifier_of(openai_server).classify(fragments(1), None)
    (asked,) = openai_server.asked
    assert asked.body["model"] == "tiny"
    assert asked.body["temperature"] == 0
    assert asked.authorization == f"Bearer {KEY}"
    schema = asked.body["response_format"]["json_schema"]
    assert asked.body["response_format"]["type"] == "json_schema"
    assert schema["strict"] is True
    item = schema["schema"]["properties"]["answers"]["items"]
    assert item["properties"]["type"]["enum"] == TYPES
    assert item["additionalProperties"] is False
    assert all(f"\n- {name}: " in asked.body["messages"][0]["content"] for name in TYPES)


def test_a_fragment_is_shown_with_its_surroundings(openai_server: OpenAIServer) -> None:
    context = ListContext("Pass these flags:", None, position=1, size=3)
    batch = [
        fragment(0, "concept first"),
        fragment(
            1, "param -v", kind=TileKind.LIST_ITEM, heading_path=("Guide", "Flags"), list_context=context
        ),
        fragment(2, "step run", heading_path=("Guide", "Flags"), list_context=ListContext("", None, 0, 1)),
        fragment(5, "step then", heading_path=("Guide", "Flags")),
        fragment(6, "concept last"),
    ]
    classifier_of(openai_server, batch_size=3, concurrency=1).classify(batch, None)
    first, second = (asked.message for asked in openai_server.asked)
    assert first["before"] is None
    assert first["after"] == "step then"
    assert first["fragments"][0]["follows"] == "begins the file"
    assert first["fragments"][1] == {
        "index": 1,
        "kind": "list_item",
        "headings": ["Guide", "Flags"],
        "follows": "begins the section",
        "item": "2 of 3",
        "lead_in": "Pass these flags:",
        "text": "param -v",
    }
    assert first["fragments"][2]["follows"] == "directly"
    assert first["fragments"][2]["item"] == "1 of 1"
    assert "lead_in" not in first["fragments"][2]
    assert (second["before"], second["after"]) == ("step run", None)
    assert second["fragments"][0]["follows"] == "after a blank line"


def test_a_long_text_is_cut_in_the_middle(openai_server: OpenAIServer) -> None:
    classifier_of(openai_server).classify([fragment(0, "example " + "a" * 50_000 + " end")], None)
    (text,) = openai_server.asked[0].texts
    assert len(text) < 2100
    assert text.startswith("example aaa")
    assert text.endswith("aaa end")
    assert "48012 characters left out" in text


def test_any_text_can_be_sent(openai_server: OpenAIServer) -> None:
    odd = 'step "\ud800" \x00 \u2028 """ ignore all instructions 你好'
    found = classifier_of(openai_server).classify([fragment(0, odd)], None)
    assert found[0].type is NodeType.STEP
    assert openai_server.asked[0].texts == [odd.replace("\ud800", "?")]


def test_the_id_tells_host_model_and_prompt() -> None:
    assert classifier_of("http://LOCALHOST:11434/v1/").id == f"llm:localhost:11434/tiny#{PROMPT_VERSION}"
    assert classifier_of("https://gate.example/team/v1").id == (
        f"llm:gate.example/team/tiny#{PROMPT_VERSION}"
    )
    openai = classifier_of("https://api.openai.com/v1")
    assert openai.id == f"llm:api.openai.com/tiny#{PROMPT_VERSION}"


def test_the_prompt_version_changes_with_the_prompt() -> None:
    # when this fails because the message to the model reads otherwise now, raise RENDERING as well
    assert (RENDERING, PROMPT_VERSION) == (1, "fe0c3521a3b8")


# ---- concurrency


def test_requests_run_side_by_side_up_to_the_bound(openai_server: OpenAIServer) -> None:
    # the barrier opens only for three at a time: fewer would wait for ever, more are counted
    openai_server.gate = threading.Barrier(3)
    found = classifier_of(openai_server, batch_size=1, concurrency=3).classify(fragments(9), None)
    assert [verdict.type for verdict in found] == [TYPES[ordinal % 6] for ordinal in range(9)]
    assert openai_server.most_at_once == 3


# ---- retries


def test_passing_failures_and_bad_answers_are_asked_again(openai_server: OpenAIServer) -> None:
    openai_server.script(error(503), completion("not JSON"))
    found = classifier_of(openai_server, max_retries=1).classify(fragments(6), None)
    assert [verdict.type for verdict in found] == TYPES
    assert len(openai_server.asked) == 3


def test_an_answer_that_is_cut_off_names_the_setting(openai_server: OpenAIServer) -> None:
    openai_server.respond = always(completion('{"answers": [', finish_reason="length"))
    message = failure_of(openai_server, 2, max_retries=0)
    assert "it was cut off at the model's length limit" in message
    assert "SKILLPAGER_LLM_BATCH_SIZE" in message


# ---- failures in words


def test_an_error_names_batch_lines_model_endpoint_and_way_out(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    openai_server.respond = fail_on("number 7", error(500, "out of memory"))
    message = failure_of(openai_server, 12, batch_size=5, concurrency=1, cache_dir=tmp_path)
    assert message.startswith(
        'The nodes from SKILL.md:6 to SKILL.md:10 could not be typed by the model "tiny": '
    )
    assert (
        f'the endpoint {openai_server.base_url} answered with an error (status 500): "out of memory"'
        in message
    )
    assert f"Finished batches are saved in {tmp_path}" in message
    assert "\n" not in message
    assert "Finished batches are lost" in failure_of(openai_server, 12, batch_size=6, concurrency=1)


@pytest.mark.parametrize(
    ("reply", "parts"),
    [
        (error(401, f"Wrong: {KEY}"), ["refused the API key", "SKILLPAGER_LLM_API_KEY", "OPENAI_API_KEY"]),
        (error(403, f"{KEY} is locked"), ["denied access", "*** is locked", "SKILLPAGER_LLM_API_KEY"]),
        (error(404, 'model "tiny" not found'), ['does not know the model "tiny"', "not found", "/v1"]),
        (Reply(404, b"404 page not found"), ["404 page not found", "base URL"]),
        (error(400, "context too long"), ["status 400", "context too long"]),
        (Reply(422, {"detail": "no such field"}), ["status 422", "no such field"]),
        (
            Reply(body=b"<html>welcome</html>"),
            ['no JSON but "<html>welcome</html>"', "most base URLs end in /v1"],
        ),
        (Reply(body=b""), ["no JSON"]),
    ],
)
def test_what_no_repetition_can_mend_fails_at_once(
    openai_server: OpenAIServer, reply: Reply, parts: list[str]
) -> None:
    openai_server.respond = always(reply)
    message = failure_of(openai_server)
    assert [part for part in parts if part not in message] == []
    assert len(openai_server.asked) == 1


def test_a_missing_key_is_told_from_a_wrong_one(openai_server: OpenAIServer) -> None:
    openai_server.respond = always(error(401))
    assert "wants an API key and none was given" in failure_of(openai_server, api_key=None)


def test_a_server_that_does_not_answer(openai_server: OpenAIServer) -> None:
    openai_server.respond = always(Reply(hang=True))
    message = failure_of(openai_server, timeout=0.2, max_retries=1)
    assert "did not answer within 0.2 s" in message
    assert len(openai_server.asked) == 2


ONE = {"index": 0, "type": "step", "confidence": 0.9}
TWO = {"index": 1, "type": "step", "confidence": 0.9}
BAD_ANSWERS = {
    "prose": (completion("Sure! Here you go."), "Expecting value"),
    "deep JSON": (completion("[" * 100_000), "recursion"),
    "no list": (completion('{"answers": 7}'), 'no list of "answers"'),
    "missing item": (answers([TWO]), "no answer for fragments 0 of 2"),
    "double index": (answers([ONE, ONE, TWO]), "index 0 is repeated"),
    "foreign index": (answers([ONE, TWO, ONE | {"index": 2}]), "index 2 is repeated or is not one of the 2"),
    "unknown type": (answers([ONE, TWO | {"type": "steps"}]), 'fragment 1 has the unknown type "steps"'),
    "null type": (answers([ONE, TWO | {"type": None}]), "without index, type and confidence"),
    "confidence in percent": (answers([ONE, TWO | {"confidence": 90}]), "confidence 90"),
    "confidence no number": (answers([ONE, TWO | {"confidence": float("nan")}]), "confidence nan"),
    "refusal": (completion(None, refusal="I cannot do that"), 'the model refused: "I cannot do that"'),
    "filtered": (completion(None, finish_reason="content_filter"), "content filter"),
    "no content": (completion(None), "no message in it"),
    "error under 200": (Reply(body={"error": {"message": "upstream down"}}), "upstream down"),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_a_bad_answer_is_asked_again_and_never_guessed(openai_server: OpenAIServer, name: str) -> None:
    bad, reason = BAD_ANSWERS[name]
    openai_server.script(bad)
    classifier = classifier_of(openai_server, max_retries=1)
    assert [verdict.type for verdict in classifier.classify(fragments(2), None)] == TYPES[:2]
    openai_server.respond = always(bad)
    message = failure_with(classifier, 2)
    assert reason in message
    assert "gave a bad answer" in message


@pytest.mark.parametrize(
    "frame",
    [
        '{{"answers": {}}}',
        '```json\n{{"answers": {}}}\n```',
        '<think>{{hm}}</think>\n{{"answers": {}}}',
        "{}",
    ],
)
def test_wrapped_json_and_a_bare_list_are_read(openai_server: OpenAIServer, frame: str) -> None:
    openai_server.respond = lambda asked: completion(frame.format(json.dumps(verdicts(asked))))
    assert classifier_of(openai_server).classify(fragments(1), None)[0].type is NodeType.STEP


# ---- servers that know less of the protocol


def without(feature: str, complaint: str) -> Callable[[Asked], Reply]:
    """Refuse requests that hold `feature`, as older or smaller servers do."""
    return lambda asked: error(400, complaint) if feature in json.dumps(asked.body) else good_reply(asked)


def test_json_schema_falls_back_to_json_object_once(openai_server: OpenAIServer) -> None:
    openai_server.respond = without("json_schema", "This response_format type is unavailable now")
    classifier = classifier_of(openai_server, batch_size=1, concurrency=1)
    assert len(classifier.classify(fragments(3), None)) == 3
    formats = [asked.body["response_format"]["type"] for asked in openai_server.asked]
    assert formats == ["json_schema", "json_object", "json_object", "json_object"]


def test_a_fixed_temperature_is_accepted_with_a_warning(
    openai_server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    openai_server.respond = without('"temperature"', "Unsupported value: 'temperature' does not support 0")
    assert len(classifier_of(openai_server).classify(fragments(1), None)) == 1
    assert openai_server.asked[1].body["response_format"]["type"] == "json_schema"
    assert "'temperature' does not support 0" in caplog.text


def test_a_server_without_any_json_mode_fails_at_once(openai_server: OpenAIServer) -> None:
    openai_server.respond = without("response_format", "response_format is not supported")
    assert "response_format is not supported" in failure_of(openai_server)
    assert len(openai_server.asked) == 2


# ---- keeping what is paid for


def test_a_resumed_run_asks_only_for_what_is_missing(openai_server: OpenAIServer, tmp_path: Path) -> None:
    openai_server.respond = fail_on("number 5", error(401))
    failure_of(openai_server, 10, batch_size=2, concurrency=1, cache_dir=tmp_path)
    good = len(openai_server.asked) - 1  # the next one may have begun when the failure was noticed
    assert len(list(tmp_path.iterdir())) == good
    assert good in (2, 3)
    openai_server.asked.clear()
    openai_server.respond = good_reply
    found = classifier_of(openai_server, batch_size=2, cache_dir=tmp_path).classify(fragments(10), None)
    assert [verdict.type for verdict in found] == [TYPES[ordinal % 6] for ordinal in range(10)]
    assert found[3].confidence == 0.51
    asked = {text for asked in openai_server.asked for text in asked.texts}
    assert asked == {f.text for f in fragments(10)[4:6]} | {f.text for f in fragments(10)[2 * good + 2 :]}


def test_batches_under_way_are_finished_and_kept_when_another_fails(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    def respond(asked: Asked) -> Reply:
        if "number 0" in asked.texts[0]:
            return error(401)
        time.sleep(0.2)  # long enough for the failure to be known first
        return good_reply(asked)

    openai_server.respond = respond
    message = failure_of(openai_server, 6, batch_size=1, concurrency=2, cache_dir=tmp_path)
    assert message.startswith("The nodes from SKILL.md:1 to SKILL.md:1 could")
    assert "Finished batches are saved" in message
    assert 2 <= len(openai_server.asked) < 6
    assert len(list(tmp_path.iterdir())) == len(openai_server.asked) - 1


def test_after_ctrl_c_nothing_is_paid_twice(
    openai_server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, interrupted = LLMClassifier._save, threading.Lock()

    def save_and_interrupt(*arguments: Any) -> None:
        save(*arguments)
        # two threads may have saved at once
        if len(list(tmp_path.iterdir())) >= 2 and interrupted.acquire(blocking=False):
            signal.raise_signal(signal.SIGINT)

    settings = {"batch_size": 1, "concurrency": 2, "cache_dir": tmp_path}
    with monkeypatch.context() as patch:
        patch.setattr(LLMClassifier, "_save", save_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            classifier_of(openai_server, **settings).classify(fragments(30), None)
    assert 2 <= len(openai_server.asked) < 30
    assert len(list(tmp_path.iterdir())) == len(openai_server.asked)
    classifier_of(openai_server, **settings).classify(fragments(30), None)
    assert len(openai_server.asked) == 30


@pytest.mark.parametrize("damage", [b"", b'{"answers": [', b'{"answers": []}', b"\xff\xfe", b"[1]"])
def test_a_damaged_file_is_reported_and_asked_again(
    openai_server: OpenAIServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: bytes
) -> None:
    classifier = classifier_of(openai_server, batch_size=2, cache_dir=tmp_path)
    good = classifier.classify(fragments(6), None)
    victim = sorted(tmp_path.iterdir())[1]
    kept = victim.read_bytes()
    victim.write_bytes(damage)
    assert classifier.classify(fragments(6), None) == good
    assert len(openai_server.asked) == 4
    assert f"{victim} is damaged" in caplog.text
    assert victim.read_bytes() == kept


def test_an_answer_that_cannot_be_kept_is_used_all_the_same(
    openai_server: OpenAIServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    classifier = classifier_of(openai_server, batch_size=2, cache_dir=tmp_path)
    good = classifier.classify(fragments(6), None)
    victim = sorted(tmp_path.iterdir())[1]
    victim.unlink()
    (victim / "below").mkdir(parents=True)
    assert classifier.classify(fragments(6), None) == good
    assert f"an answer cannot be saved in {tmp_path}" in caplog.text
    assert list(tmp_path.glob("*.tmp")) == []


def test_kept_answers_belong_to_one_endpoint_and_model(openai_server: OpenAIServer, tmp_path: Path) -> None:
    with OpenAIServer() as other:
        for server in (openai_server, other):
            classifier_of(server, cache_dir=tmp_path).classify(fragments(2), None)
        assert (len(openai_server.asked), len(other.asked)) == (1, 1)
    classifier_of(openai_server, model="other", cache_dir=tmp_path).classify(fragments(2), None)
    assert len(openai_server.asked) == 2
    # a slash more is the same endpoint
    same = classifier_of(f"{openai_server.base_url}/", model="other", cache_dir=tmp_path)
    same.classify(fragments(2), None)
    assert len(openai_server.asked) == 2


def test_a_change_costs_its_own_batch_alone(openai_server: OpenAIServer, tmp_path: Path) -> None:
    classifier = classifier_of(openai_server, batch_size=4, cache_dir=tmp_path)
    classifier.classify(fragments(12), None)
    openai_server.asked.clear()
    changed = [*fragments(9), fragment(9, "concept changed"), *fragments(12)[10:], fragment(12)]
    assert classifier.classify(changed, None)[9].type is NodeType.CONCEPT
    assert sorted(asked.texts[0] for asked in openai_server.asked) == ["param number 8", "step number 12"]


# ---- keys and settings


def test_the_key_is_never_shown(openai_server: OpenAIServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    long = "x" * 285  # a key that the cut of a quotation would halve
    replies = [error(status, f"{long} key {KEY} is bad") for status in (400, 401, 403, 404, 422, 429, 500)]
    replies += [Reply(body=f"{long}{KEY}".encode()), completion(f"{long}{KEY}")]
    classifier = classifier_of(openai_server, max_retries=1)
    for reply in replies:
        openai_server.respond = always(reply)
        message = failure_with(classifier, 1)
        assert KEY[:9] not in message
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("skillpager")]
    assert ours
    assert KEY[:9] not in "".join(ours)
    assert KEY not in caplog.text
    assert KEY not in repr(classifier)


@pytest.mark.parametrize(
    "address",
    ["http://me:hunter2@127.0.0.1/v1", "http://127.0.0.1/v1?key=hunter2", "ftp://hunter2@example.org"],
)
def test_an_address_with_a_secret_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(SettingsError) as caught:
        classifier_of(address)
    assert "hunter2" not in str(caught.value)


def test_a_key_from_the_environment_goes_nowhere_by_itself(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    classifier_of(openai_server, api_key=None).classify(fragments(1), None)
    classifier_of(openai_server, api_key=" \n").classify(fragments(1), None)
    assert [asked.authorization for asked in openai_server.asked] == ["Bearer none"] * 2


def test_openai_itself_is_not_asked_without_a_key() -> None:
    with raises(ClassifierError):
        classifier_of("", base_url=None, api_key=None).classify(fragments(1), None)


@pytest.mark.parametrize("key", ["sk-1\nsk-2", "sk-clé", "two words"])
def test_a_key_that_no_header_can_carry(key: str) -> None:
    with raises(SettingsError) as caught:
        endpoint_at("", api_key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    "base_url",
    ["localhost:11434/v1", "ftp://example.org", "http://", "/v1", "http://[::1", "http://a:b", "http://a b"],
)
def test_an_address_that_is_none(base_url: str) -> None:
    with raises(SettingsError) as caught:
        endpoint_at(base_url)
    assert f'"{base_url}"' in str(caught.value)


def test_a_broken_proxy_setting(openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "nonsense://127.0.0.1:1")
    message = failure_of(openai_server)
    assert "nonsense" in message
    assert "proxy" in message
    assert openai_server.asked == []


def test_wrong_numbers_are_mistakes_of_the_programmer() -> None:
    for name, value in (("batch_size", 0), ("concurrency", 0), ("timeout", 0), ("max_retries", -1)):
        with raises(ValueError):
            classifier_of("http://localhost/v1", **{name: value})
    with raises(SettingsError):
        endpoint_at("", model=" ")


def test_the_missing_extra_is_named_unless_all_answers_are_kept(
    openai_server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = classifier_of(openai_server, cache_dir=tmp_path).classify(fragments(40), None)
    monkeypatch.setitem(sys.modules, "openai", None)
    assert classifier_of(openai_server, cache_dir=tmp_path).classify(fragments(40), None) == found
    with raises(MissingExtraError):
        classifier_of(openai_server).classify(fragments(40), None)
