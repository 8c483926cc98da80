"""Who may ask the HTTP service: names, origins, the token, and where it listens."""

import re
from collections.abc import Iterator

import httpx
import pytest

from http_running import ASKED, running
from skillpager import SkillPager
from skillpager.errors import SettingsError
from skillpager.http.options import ServerOptions, check_options, is_loopback
from skillpager.http.server import create_app
from skillpager.library import Library

TOKEN = "correct-horse"
NEED_TOKEN = [
    ("GET", "/v1/skills"),
    ("POST", "/v1/page"),
    ("GET", "/metrics"),
    ("GET", "/v1/openapi.json"),
    ("GET", "/nothing"),
]


@pytest.fixture(scope="module")
def client(pager: SkillPager) -> Iterator[httpx.Client]:
    with running(pager, ServerOptions(port=0, allowed_hosts=["skills.example"])) as service:
        yield service.client


@pytest.fixture(scope="module")
def closed_client(pager: SkillPager) -> Iterator[httpx.Client]:
    with running(pager, ServerOptions(port=0, token=TOKEN)) as service:
        yield service.client


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8765",
        "127.0.0.1",
        "192.168.7.7:80",
        "[::1]:8765",
        "skills.example",
        "skills.example.:443",
    ],
)
def test_the_service_answers_to_its_names_and_to_addresses(client: httpx.Client, host: str) -> None:
    assert client.get("/livez", headers={"Host": host}).is_success


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "skills.example.evil", ""]
)
def test_a_name_that_was_rebound_is_refused(client: httpx.Client, host: str) -> None:
    for path in ("/livez", "/v1/skills"):
        answer = client.get(path, headers={"Host": host})
        assert answer.status_code == 421
        assert "--allowed-host" in answer.json()["detail"]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "http://[", "evil"])
def test_pages_of_another_origin_are_refused(client: httpx.Client, origin: str) -> None:
    answer = client.post("/v1/page", json=ASKED, headers={"Origin": origin, "Host": "localhost:8765"})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_pages_of_the_service_itself_may_ask(client: httpx.Client, scheme: str) -> None:
    headers = {"Origin": f"{scheme}://skills.example", "Host": "skills.example"}
    assert client.post("/v1/page", json=ASKED, headers=headers).is_success


@pytest.mark.parametrize("path", ["/livez", "/v1/skills", "/nothing", "/metrics"])
def test_every_answer_has_the_headers_that_keep_browsers_from_harm(client: httpx.Client, path: str) -> None:
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


@pytest.mark.parametrize(("method", "path"), NEED_TOKEN)
@pytest.mark.parametrize(
    "given",
    [None, "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN} x", TOKEN],
)
def test_without_the_token_nothing_is_told(
    closed_client: httpx.Client, method: str, path: str, given: str | None
) -> None:
    headers = {} if given is None else {"Authorization": given}
    answer = closed_client.request(method, path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json()["error"] == "RefusedError"


def test_with_the_token_all_is_told(closed_client: httpx.Client) -> None:
    for scheme in ("Bearer", "bearer"):
        headers = {"Authorization": f"{scheme} {TOKEN}"}
        assert closed_client.post("/v1/page", json=ASKED, headers=headers).is_success


def test_health_needs_no_token_and_the_description_says_so(closed_client: httpx.Client) -> None:
    assert closed_client.get("/livez").json() == {"status": "ok"}
    told = closed_client.get("/v1/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"}).json()
    assert "security" not in told["paths"]["/livez"]["get"]
    assert told["paths"]["/v1/page"]["post"]["security"] == [{"HTTPBearer": []}]


def test_a_token_is_never_shown() -> None:
    assert TOKEN not in repr(ServerOptions(token=TOKEN))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "LocalHost", "::1", "[::1]"])
def test_loopback_needs_no_token(host: str) -> None:
    assert is_loopback(host)
    check_options(ServerOptions(host=host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "skills.example", "", "localhost.evil"])
def test_beyond_loopback_it_does_not_start_without_a_token(pager: SkillPager, host: str) -> None:
    with pytest.raises(SettingsError, match=f"everyone who reaches {re.escape(host)}: set a secret"):
        create_app(Library(pager, []), ServerOptions(host=host))
    check_options(ServerOptions(host=host, token=TOKEN))


@pytest.mark.parametrize("token", ["", " ", "two words", "line\n", "schlüssel", "\x00"])
def test_a_token_that_no_header_can_hold_is_refused(token: str) -> None:
    with pytest.raises(SettingsError, match="The token is empty or holds spaces"):
        check_options(ServerOptions(token=token))


OUTLINE = f"/v1/skills/{ASKED['skill']}/outline"
FOLLOWED = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", [OUTLINE, "/v1/skills", "/livez", "/", "/v1/explorer/words"])
def test_foreign_web_pages_cannot_make_a_browser_ask(client: httpx.Client, site: str, path: str) -> None:
    for further in ({}, {**FOLLOWED, "Sec-Fetch-Dest": "iframe"}):
        answer = client.get(path, headers={"Sec-Fetch-Site": site, **further})
        assert (answer.status_code, answer.json()["error"]) == (403, "RefusedError")


def test_a_link_elsewhere_may_open_the_explorer_and_nothing_else(client: httpx.Client) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", **FOLLOWED}
    assert client.get("/", headers=headers).headers["content-type"].startswith("text/html")
    assert client.get(OUTLINE, headers=headers).status_code == 403


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_the_explorer_and_the_address_bar_may_ask(client: httpx.Client, site: str) -> None:
    assert client.get(OUTLINE, headers={"Sec-Fetch-Site": site}).is_success
