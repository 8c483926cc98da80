"""`skillpager serve` as a process: what it says, how it starts and how it ends."""

import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from cli_process import SAMPLES, environment, hide, invoke, run
from http_running import ASKED, TIME_LIMIT, child
from skillpager import SkillPager
from skillpager.errors import install_command

# long enough to be at work on when the signal comes, short enough for a test
PARAGRAPHS = 400


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_well(tmp_path: Path, number: signal.Signals) -> None:
    with child(tmp_path) as service:
        assert service.client.get("/livez").is_success
        service.process.send_signal(number)
        assert service.end() == 0
        with pytest.raises(httpx.TransportError):
            service.client.get("/livez")
    assert len(service.said) == 1


def test_requests_in_flight_are_answered_before_the_end(tmp_path: Path) -> None:
    text = "\n\n".join(f"Step {number}: run command {number} and look." for number in range(PARAGRAPHS))
    (skill := tmp_path / "skills" / "long").mkdir(parents=True)
    (skill / "SKILL.md").write_text(text)
    asked = {"skill": "long", "query": "run command 7", "max_nodes": 2}
    with child(tmp_path, skills=skill.parent) as service, ThreadPoolExecutor(1) as clients:
        answer = clients.submit(service.client.post, "/v1/page", json=asked)
        time.sleep(1)  # the work takes longer
        service.process.send_signal(signal.SIGTERM)
        assert answer.result().status_code == 200
        assert service.end() == 0


def test_the_token_comes_from_the_environment(tmp_path: Path) -> None:
    with child(tmp_path, "--host", "0.0.0.0", SKILLPAGER_SERVER_TOKEN="s3cret") as service:
        port = service.client.base_url.port
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=TIME_LIMIT) as client:
            assert client.get("/v1/skills").status_code == 401
            assert client.get("/v1/skills", headers={"Authorization": "Bearer s3cret"}).is_success
    assert "s3cret" not in "".join(service.said)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--host", "0.0.0.0"], 2, "set a secret with SKILLPAGER_SERVER_TOKEN"),
        (["--host", "::"], 2, "set a secret with SKILLPAGER_SERVER_TOKEN"),
        (["--token", ""], 2, "The token is empty"),
        (["--host", "no.such.host.invalid", "--token", "x"], 1, "cannot listen at no.such.host.invalid"),
        (["missing-folder"], 1, "missing-folder is not a folder"),
    ],
)
def test_what_cannot_be_served_is_told(tmp_path: Path, options: list[str], code: int, message: str) -> None:
    done = invoke("serve", SAMPLES, *options, "--port", "0", env=environment(tmp_path / "cache"))
    assert done.code == code
    assert done.err.startswith("error: ")
    assert message in done.err
    assert len(done.err.splitlines()) == 1


def test_a_port_that_is_taken_is_one_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = invoke("serve", SAMPLES, "--port", str(port), env=environment(tmp_path / "cache"))
    assert done.code == 1
    assert f"cannot listen at 127.0.0.1, port {port} (Address already in use)" in done.err
    assert "--port" in done.err


@pytest.mark.parametrize("option", ["--port=70000", "--threads=0", "--max-tokens=0"])
def test_options_out_of_range_are_wrong_usage(tmp_path: Path, option: str) -> None:
    assert invoke("serve", option, env=environment(tmp_path / "cache")).code == 2


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    env = environment(tmp_path / "cache", PYTHONPATH=hide(tmp_path / "hidden", "fastapi"))
    done = run("serve", env=env)
    assert done.code == 1
    assert install_command("server") in done.err


def test_an_ipv6_address_can_be_served(tmp_path: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with child(tmp_path, "--host", "::1") as service:
        assert service.client.get("/livez").is_success


def test_many_clients_at_once_get_their_own_pages(tmp_path: Path, pager: SkillPager) -> None:
    names = ["git-bisect", "postgres-backup", "csv-cleaning", "odd-markdown"]
    expected = {name: pager.page(SAMPLES / name, ASKED["query"]).text for name in names}
    barrier = threading.Barrier(8)
    with child(tmp_path) as service, ThreadPoolExecutor(8) as clients:

        def ask(number: int) -> list[bool]:
            barrier.wait(TIME_LIMIT)
            chosen = [names[(number + turn) % len(names)] for turn in range(8)]
            pages = [service.client.post("/v1/page", json={**ASKED, "skill": name}).json() for name in chosen]
            return [page["text"] == expected[name] for page, name in zip(pages, chosen, strict=True)]

        assert all(all(same) for same in clients.map(ask, range(8)))
