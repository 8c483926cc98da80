"""Liveness and readiness: store, models and library."""

import time
from pathlib import Path

import httpx
import pytest

from http_running import TIME_LIMIT, child, running
from plain_parts import plain_pager
from skillpager import SkillPager
from skillpager.errors import EncoderError, StoreError
from skillpager.http import readiness
from skillpager.http.options import ServerOptions
from skillpager.settings import Settings

OK = {"ready": True, "store": "ok", "library": "ok", "models": "ok"}


def asked(client: httpx.Client) -> tuple[int, dict[str, object]]:
    answer = client.get("/readyz")
    return answer.status_code, answer.json()


def until_asked(client: httpx.Client, expected: dict[str, object]) -> int:
    deadline = time.monotonic() + TIME_LIMIT
    while (told := asked(client))[1] != expected:
        assert time.monotonic() < deadline, told
        time.sleep(0.05)
    return told[0]


def test_a_started_service_becomes_ready_without_a_token(tmp_path: Path) -> None:
    with child(tmp_path, "--token", "x") as service:
        assert service.client.get("/livez").json() == {"status": "ok"}
        assert until_asked(service.client, OK) == 200
        assert service.client.get("/readyz").headers["cache-control"] == "no-store"
        assert "skillpager_pages_total" not in service.client.get(
            "/metrics", headers={"Authorization": "Bearer x"}
        ).text.replace("# HELP skillpager_pages_total", "").replace("# TYPE skillpager_pages_total", "")


class AwayStore:
    """A store that can be taken away."""

    def __init__(self, pager: SkillPager) -> None:
        self._store, self.away, self.slow = pager.store, False, 0.0

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def load(self, key: str, skill: object) -> object:
        time.sleep(self.slow)
        if self.away:
            raise StoreError("it is away: postgresql://host")
        return self._store.load(key, skill)  # type: ignore[arg-type]


def test_a_store_that_is_away_or_slow_makes_it_unready_and_not_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(readiness, "STORE_SECONDS", 0.2)
    made = SkillPager(settings=Settings(cache_dir=tmp_path))
    store = AwayStore(made)
    pager = SkillPager(settings=Settings(cache_dir=tmp_path), store=store)  # type: ignore[arg-type]
    with running(pager) as service:
        assert until_asked(service.client, OK) == 200
        store.away = True
        assert until_asked(service.client, {**OK, "ready": False, "store": "failed"}) == 503
        assert service.client.get("/livez").status_code == 200
        store.away = False
        assert until_asked(service.client, OK) == 200
        store.slow = 1.0
        assert until_asked(service.client, {**OK, "ready": False, "store": "failed"}) == 503
        store.slow = 0.0
        assert until_asked(service.client, OK) == 200
    # clients are not told where the store is
    assert "it is away" in caplog.text


def test_models_that_cannot_be_loaded_are_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pager = plain_pager(tmp_path)
    broken = True
    encode = type(pager.encoder).encode_query

    def encode_or_fail(self: object, text: str) -> object:
        if broken:
            raise EncoderError("no weights")
        return encode(self, text)  # type: ignore[arg-type]

    monkeypatch.setattr(type(pager.encoder), "encode_query", encode_or_fail)
    with running(pager, ServerOptions(port=0)) as service:
        until_asked(service.client, {**OK, "ready": False, "models": "failed"})
        broken = False
        assert until_asked(service.client, OK) == 200
