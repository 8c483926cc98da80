"""Limits on the requests of a token: token buckets, in one process and in several."""

import itertools
import multiprocessing
import os
import re
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from http_running import ASKED, child, running
from messages import raises
from skillpager import SkillPager
from skillpager.errors import SettingsError
from skillpager.http.access import make_token
from skillpager.http.options import ServerOptions
from skillpager.http.rates import Bucket, OwnBuckets, Rate, SharedBuckets, parse_rate, take

QUOTA = 5
HOUR = Rate(QUOTA, 3600)


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_requests_above_the_rate_get_429_and_when_to_come_back(pager: SkillPager) -> None:
    with running(pager, ServerOptions(port=0, rate=HOUR)) as service:
        answers = [service.client.get("/v1/strategies") for _ in range(QUOTA + 2)]
        probes = [service.client.get("/livez").status_code for _ in range(QUOTA + 2)]
    assert [answer.status_code for answer in answers] == [200] * QUOTA + [429] * 2
    assert [answer.headers["ratelimit"].partition(";t=")[0] for answer in answers] == [
        *(f'"token";r={left}' for left in reversed(range(QUOTA))),
        *['"token";r=0'] * 2,
    ]
    assert {answer.headers["ratelimit-policy"] for answer in answers} == {f'"token";q={QUOTA};w=3600'}
    assert "retry-after" not in answers[0].headers
    assert 700 < int(answers[-1].headers["retry-after"]) <= 720
    assert answers[-1].json()["title"] == "Too Many Requests"
    assert set(probes) == {200}


def test_each_token_has_its_own_bucket_and_may_have_its_own_rate(pager: SkillPager) -> None:
    few, first = make_token("few", ["read"])
    many, second = make_token("many", ["read"], rate="7/h")
    options = ServerOptions(port=0, tokens_text=f"{first}\n{second}", rate=Rate(2, 3600))
    with running(pager, options) as service:
        passed = {
            secret: [
                service.client.get("/v1/strategies", headers=bearer(secret)).status_code for _ in range(9)
            ]
            for secret in (few, many)
        }
        assert service.client.get("/v1/strategies", headers=bearer("wrong")).status_code == 401
    assert passed[few].count(200) == 2
    assert passed[many].count(200) == 7


def test_the_rate_holds_over_all_processes_of_a_service(tmp_path: Path) -> None:
    with child(tmp_path, "--workers", "2", "--rate-limit", "12/h") as service:
        url = service.client.base_url
        # each on a connection of its own, so that both processes answer
        codes = [httpx.get(f"{url}/v1/strategies", timeout=60).status_code for _ in range(30)]
    assert codes.count(200) == 12
    assert codes.count(429) == 18


def spend(folder: Path, times: int, passed: "multiprocessing.queues.Queue[int]") -> None:
    buckets = SharedBuckets(folder)
    passed.put(sum(buckets.take("a", Rate(100, 3600)).allowed for _ in range(times)))


def test_no_request_is_counted_twice_or_lost_between_processes(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork" if os.name == "posix" else "spawn")
    passed: multiprocessing.queues.Queue[int] = context.Queue()
    started = [context.Process(target=spend, args=(tmp_path, 80, passed)) for _ in range(3)]
    for process in started:
        process.start()
    total = sum(passed.get(timeout=60) for _ in started)
    for process in started:
        process.join()
    # seconds pass meanwhile, in which less than one request comes back
    assert total == 100


@given(
    st.integers(1, 50),
    st.sampled_from([1, 60, 3600]),
    st.lists(st.floats(0, 100, allow_nan=False), min_size=1, max_size=60),
)
def test_never_more_pass_than_quota_and_rate_allow(requests: int, seconds: int, pauses: list[float]) -> None:
    rate, bucket, now = Rate(requests, seconds), None, 1000.0
    times = []
    for pause in pauses:
        now += pause
        bucket, decision = take(bucket, rate, now)
        if decision.allowed:
            times.append(now)
            assert decision.left <= requests - 1
        else:
            # who comes back as told is let in
            assert take(bucket, rate, now + decision.wait)[1].allowed
            assert decision.left == 0
    for (i, begin), (j, end) in itertools.combinations(enumerate(times), 2):
        assert j - i + 1 <= requests + (end - begin) * requests / seconds + 1e-6


def test_a_bucket_is_full_again_after_a_while() -> None:
    assert take(Bucket(0.0, 0.0), Rate(10, 60), 60.0)[1].left == 9
    assert take(Bucket(0.0, 0.0), Rate(10, 60), 6.1)[1].allowed
    assert not take(Bucket(0.0, 0.0), Rate(10, 60), 5.9)[1].allowed
    # a clock that goes back, as no monotonic one does, gives nothing
    assert not take(Bucket(0.0, 100.0), Rate(10, 60), 50.0)[1].allowed


def test_buckets_in_memory_and_in_files_agree(tmp_path: Path) -> None:
    own, shared = OwnBuckets(), SharedBuckets(tmp_path)
    for caller in "aabba" * 3:
        assert own.take(caller, HOUR) == shared.take(caller, HOUR)


@pytest.mark.parametrize("text", ["", "5", "0/s", "5/d", "-1/s", "1.5/s", "5/s/s", "9999999999/s"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with raises(SettingsError):
        parse_rate(text)


@pytest.mark.parametrize(
    ("text", "rate"), [("5/s", Rate(5, 1)), (" 600/m ", Rate(600, 60)), ("1/h", Rate(1, 3600))]
)
def test_rates(text: str, rate: Rate) -> None:
    assert parse_rate(text) == rate


def test_without_a_limit_there_are_no_headers(pager: SkillPager) -> None:
    with running(pager) as service:
        headers = service.client.post("/v1/page", json=ASKED).headers
    assert [name for name in headers if re.match("(?i)ratelimit|retry", name)] == []
