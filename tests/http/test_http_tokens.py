"""Tokens with names and scopes: from a file or text, what each may do, and how they come and go."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from cli_process import SAMPLES, environment, run
from http_running import ASKED, child, running
from messages import raises
from skillpager import SkillPager
from skillpager.errors import SettingsError
from skillpager.http import access
from skillpager.http.access import Tokens, make_token, parse_tokens, read_tokens
from skillpager.http.options import ServerOptions

UPLOAD = {"markdown": "# Fixes\n\n1. Stop the server.\n2. Start it again.\n", "query": "stop it"}
DEADLINE = 20.0


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@pytest.fixture(scope="module")
def secrets() -> tuple[dict[str, str], str]:
    """The secrets of three tokens by name, and the file of them."""
    made = {name: make_token(name, scopes) for name, scopes in SCOPES_OF.items()}
    return {name: secret for name, (secret, _) in made.items()}, "\n".join(text for _, text in made.values())


SCOPES_OF = {"reader": ["read"], "author": ["read", "upload"], "prometheus": ["admin"]}


@pytest.fixture(scope="module")
def client(pager: SkillPager, secrets: tuple[dict[str, str], str]) -> Iterator[httpx.Client]:
    options = ServerOptions(port=0, token="only", tokens_text=secrets[1], allow_uploads=True)
    with running(pager, options) as service:
        yield service.client


@pytest.mark.parametrize(
    ("name", "page", "upload", "metrics"),
    [
        ("reader", 200, 403, 403),
        ("author", 200, 200, 403),
        ("prometheus", 403, 403, 200),
        ("only", 200, 200, 200),
        ("nobody", 401, 401, 401),
    ],
)
def test_a_token_may_do_what_its_scopes_say(
    client: httpx.Client,
    secrets: tuple[dict[str, str], str],
    name: str,
    page: int,
    upload: int,
    metrics: int,
) -> None:
    headers = bearer(secrets[0].get(name, name))
    assert client.post("/v1/page", json=ASKED, headers=headers).status_code == page
    assert client.post("/v1/page", json=UPLOAD, headers=headers).status_code == upload
    assert client.get("/metrics", headers=headers).status_code == metrics
    expanded = {"markdown": UPLOAD["markdown"], "nodes": "n0"}
    assert client.post("/v1/expand", json=expanded, headers=headers).status_code == upload


def test_a_refusal_names_the_scope_that_is_missing(
    client: httpx.Client, secrets: tuple[dict[str, str], str]
) -> None:
    answer = client.get("/metrics", headers=bearer(secrets[0]["reader"]))
    assert answer.headers["www-authenticate"].endswith('error="insufficient_scope", scope="admin"')
    assert "'reader' lacks the scope 'admin'" in answer.json()["detail"]


def test_the_file_holds_no_secret_and_the_hash_is_no_token(
    client: httpx.Client, secrets: tuple[dict[str, str], str]
) -> None:
    by_name, text = secrets
    for secret in by_name.values():
        assert secret not in text
    for token in parse_tokens(text, "text"):
        for form in (token.digest.hex(), f"sha256:{token.digest.hex()}"):
            assert client.get("/v1/skills", headers=bearer(form)).status_code == 401


def test_an_ended_token_is_unknown(pager: SkillPager) -> None:
    old, first = make_token("old", ["read"], expires="2020-01-01")
    new, second = make_token("new", ["read"], expires="2999-12-31T23:00:00Z")
    with running(pager, ServerOptions(port=0, tokens_text=f"{first}\n{second}")) as service:
        assert service.client.get("/v1/skills", headers=bearer(old)).status_code == 401
        assert service.client.get("/v1/skills", headers=bearer(new)).status_code == 200


def test_a_changed_file_counts_and_a_broken_one_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(access, "LOOK_SECONDS", 0.0)
    file = tmp_path / "tokens.toml"
    first, entry = make_token("first", ["read"])
    file.write_text(entry)
    tokens = Tokens(ServerOptions(tokens_file=file))
    assert tokens.find(first) is not None
    second, other = make_token("second", ["read"])
    file.write_text(f"{entry}\n{other}")
    assert tokens.find(second) is not None
    file.write_text("[[token]\n")
    assert tokens.find(first) is not None
    assert "The tokens stay as they were" in caplog.text
    caplog.clear()
    file.unlink()
    assert tokens.find(first) is not None
    assert "cannot be read" in caplog.text
    file.write_text(other)
    assert tokens.find(first) is None
    assert tokens.find(second) is not None


def test_a_token_is_withdrawn_from_every_process_of_a_running_service(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    env = environment(tmp_path / "cache")
    made = run("token", "ci", "--scope", "read", "--scope", "admin", "--file", file, env=env)
    assert made.code == 0
    secret = made.out.strip()
    assert secret.startswith("skp_")
    assert secret not in made.err + file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    with child(tmp_path, "--host", "0.0.0.0", "--tokens", file, "--workers", "2") as service:
        with httpx.Client(base_url=f"http://127.0.0.1:{service.client.base_url.port}", timeout=60) as client:
            assert client.get("/v1/skills", headers=bearer(secret)).is_success
            assert run("token", "other", "--file", file, env=env).code == 0
            _, _, rest = file.read_text().partition("\n\n")
            changed = tmp_path / "changed"
            changed.write_text(rest)
            changed.replace(file)
            refused, deadline = 0, time.monotonic() + DEADLINE
            # connections of their own reach both processes
            while refused < 20 and time.monotonic() < deadline:
                code = httpx.get(
                    f"{client.base_url}/v1/skills", headers=bearer(secret), timeout=60
                ).status_code
                refused = refused + 1 if code == 401 else 0
        assert refused == 20
    assert secret not in "".join(service.said)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[[token]",
        "tokens = 1",
        "token = 1",
        '[[token]]\nname = "a b"',
        '[[token]]\nname = "a"\nhash = "secret"\nscopes = ["read"]',
        f'[[token]]\nname = "a"\nhash = "{"0" * 64}"\nscopes = ["write"]',
        f'[[token]]\nname = "a"\nhash = "{"0" * 64}"\nscopes = "read"',
        f'[[token]]\nname = "a"\nhash = "{"0" * 64}"\nscopes = ["read"]\nrate = 5',
        f'[[token]]\nname = "a"\nhash = "{"0" * 64}"\nscopes = ["read"]\nrate = "5/d"',
        f'[[token]]\nname = "a"\nhash = "{"0" * 64}"\nscopes = ["read"]\nexpires = "2030"',
        f'[[token]]\nname = "a"\nhash = "{"0" * 64}"\nscopes = ["read"]\nsecret = "x"',
        f'[[token]]\nname = "a"\nhash = "{"0" * 64}"\nscopes = ["read"]\n' * 2,
    ],
)
def test_a_mistake_in_the_tokens_has_a_place_and_a_remedy(text: str) -> None:
    with raises(SettingsError):
        parse_tokens(text, "tokens.toml")


def test_a_file_that_everybody_may_write_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(make_token("a", ["read"])[1])
    file.chmod(0o666)
    with pytest.raises(SettingsError, match="chmod o-w"):
        read_tokens(file)
    with pytest.raises(SettingsError, match=r"cannot be read: No such file"):
        read_tokens(tmp_path / "missing")
    os.truncate(file, access.MAX_FILE_BYTES + 1)
    file.chmod(0o600)
    with pytest.raises(SettingsError, match="over 1,048,576 bytes"):
        read_tokens(file)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (['a"\n[[token]]'], "letters, digits"),
        (["a", "--scope", "write"], "one or more of read, upload, admin"),
        (["a", "--rate", "5"], "is no rate"),
        (["a", "--expires", "soon"], "is no date"),
        (["a", "--expires", "2030-13-01"], "not TOML"),
    ],
)
def test_a_mistake_of_the_command_is_one_error(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = run("token", *arguments, "--file", tmp_path / "tokens.toml", env=environment(tmp_path / "cache"))
    assert (done.code, done.out) == (1, "")
    assert message in done.err
    assert not (tmp_path / "tokens.toml").exists()


def test_a_name_is_given_once_and_the_entry_can_be_printed(tmp_path: Path) -> None:
    env, file = environment(tmp_path / "cache"), tmp_path / "tokens.toml"
    assert run("token", "a", "--file", file, env=env).code == 0
    again = run("token", "a", "--file", file, env=env)
    assert again.code == 1
    assert "has a token named 'a'" in again.err
    printed = run("token", "b", "--rate", "9/s", "--expires", "2030-01-31", env=env)
    entry = printed.err.partition("\n")[2].replace("    ", "")
    (token,) = parse_tokens(entry, "stderr")
    assert token.digest == access.digest_of(printed.out.strip())
    assert token.expires is not None
    assert token.expires.isoformat() == "2030-01-31T00:00:00+00:00"


def test_tokens_can_stand_in_the_environment(tmp_path: Path) -> None:
    secret, entry = make_token("a", ["read"])
    with child(tmp_path, SKILLPAGER_SERVER_TOKENS=entry) as service:
        assert service.client.get("/v1/skills").status_code == 401
        assert service.client.get("/v1/skills", headers=bearer(secret)).is_success
    done = run("serve", SAMPLES, env=environment(tmp_path / "cache", SKILLPAGER_SERVER_TOKENS="x"))
    assert done.code == 1
    assert "SKILLPAGER_SERVER_TOKENS: not TOML" in done.err
