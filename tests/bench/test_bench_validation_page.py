"""The page of an annotation sheet: its server, and the page itself in a real headless Chromium."""

import http.client
import json
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from chromium import contrast, needs_chromium
from cli_process import command, environment
from skillpager.bench.judge.judge_prompt import CRITERION
from skillpager.bench.validate.sheet import Case, Sheet, SheetKind, read_sheet, write_sheet
from skillpager.bench.validate.web import GUIDE, MAX_BODY_BYTES, SheetServer, unwrapped
from skillpager.errors import BenchError
from test_bench_validation import HOSTILE, small_sheet

# ---- the server


@contextmanager
def serving(sheet: Path) -> Iterator[SheetServer]:
    """Serve a sheet for a while."""
    with SheetServer(sheet, port=0) as server:
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            yield server
        finally:
            server.stop()
            thread.join()


def ask(
    server: SheetServer, method: str, path: str, body: object = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    connection.request(method, path, data, sent)
    answer = connection.getresponse()
    result = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    connection.close()
    return result


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SheetServer]:
    write_sheet(tmp_path / "sheet.csv", small_sheet())
    with serving(tmp_path / "sheet.csv") as running:
        yield running


JSON = {"Content_Type": "application/json"}
ANSWER = {"case": "c1-000001", "label": "sufficient", "note": "=1+1\r\nline"}


def test_criterion_is_the_judges() -> None:
    told = CRITERION.split()
    assert told[: len(GUIDE.split())] == GUIDE.split()
    assert " ".join(told[len(GUIDE.split()) :]).startswith(
        "Skill, query and context are quoted between tags."
    )
    assert unwrapped("a\nb\n- c\n  d\n- e\nf\n\n- g\n\nh") == "a b\n- c d\n- e\nf\n\n- g\n\nh"


def test_server_gives_the_sheet_and_keeps_answers(server: SheetServer) -> None:
    status, headers, body = ask(server, "GET", "/sheet")
    assert (status, headers["content-type"]) == (200, "application/json")
    shown = json.loads(body)
    assert shown["cases"][2]["texts"] == [f"{HOSTILE} 2.{i}" for i in range(4)]
    assert ask(server, "POST", "/answer", ANSWER, **JSON)[0] == 200
    kept = read_sheet(server.sheet).cases[1]
    assert (kept.label, kept.note) == ("sufficient", "=1+1\nline")
    assert json.loads(ask(server, "GET", "/sheet")[2])["cases"][1]["label"] == "sufficient"
    assert server.answered() == (1, 3)
    ask(server, "POST", "/answer", {**ANSWER, "label": "", "note": ""}, **JSON)
    assert read_sheet(server.sheet) == small_sheet()


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:{port}"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "localhost:{port}"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
    ],
)
def test_only_this_machines_own_page_is_answered(
    server: SheetServer, headers: dict[str, str], expected: int
) -> None:
    filled = {name: value.format(port=server.port) for name, value in headers.items()}
    for path in ("/", "/sheet"):
        assert ask(server, "GET", path, **filled)[0] == expected
    assert ask(server, "POST", "/answer", ANSWER, **JSON, **filled)[0] == expected
    assert bool(read_sheet(server.sheet).cases[1].label) is (expected == 200)


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (ANSWER, {"Content_Type": "text/plain"}, 415),
        ({**ANSWER, "case": "c9"}, JSON, 400),
        ({**ANSWER, "label": "maybe"}, JSON, 400),
        ({"case": "c1-000001"}, JSON, 400),
        ([1], JSON, 400),
        (b"{", JSON, 400),
        (b"", {**JSON, "Content_Length": str(MAX_BODY_BYTES + 1)}, 413),
    ],
)
def test_what_is_no_answer_changes_nothing(
    server: SheetServer, body: object, headers: dict[str, str], status: int
) -> None:
    before = server.sheet.read_bytes()
    told, _, answer = ask(server, "POST", "/answer", body, **headers)
    assert told == status
    assert json.loads(answer)["detail"]
    assert server.sheet.read_bytes() == before


@pytest.mark.parametrize("length", ["-1", "²"])
def test_a_length_that_is_none_never_reaches_the_application(server: SheetServer, length: str) -> None:
    before = server.sheet.read_bytes()
    assert ask(server, "POST", "/answer", b"", **JSON, Content_Length=length)[0] == 400
    assert server.sheet.read_bytes() == before


def test_paths_and_headers(server: SheetServer) -> None:
    for path in ("/", "/page.css", "/page.js"):
        status, headers, body = ask(server, "GET", path)
        assert (status, int(headers["content-length"])) == (200, len(body))
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")
    for path in ("/../sheet.py", "/page.html", "/sheet.csv", "/sheet?x", "//evil.example/"):
        assert ask(server, "GET", path)[0] == 404
    assert ask(server, "POST", "/", ANSWER, **JSON)[0] == 405
    assert ask(server, "DELETE", "/sheet")[0] == 405


def test_sheet_that_is_gone_or_damaged_is_told(server: SheetServer) -> None:
    server.sheet.write_text("something else")
    for answer in (ask(server, "GET", "/sheet"), ask(server, "POST", "/answer", ANSWER, **JSON)):
        assert answer[0] == 500
        assert "is not the header of a sheet" in json.loads(answer[2])["detail"]
    server.sheet.unlink()
    assert b"There is no sheet" in ask(server, "POST", "/answer", ANSWER, **JSON)[2]


def test_answers_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    write_sheet(tmp_path / "sheet.csv", small_sheet(cases=10))
    with serving(tmp_path / "sheet.csv") as server:
        bodies = [{"case": f"c{n}-00000{n}", "label": "i", "note": str(n)} for n in range(10)]
        threads = [
            threading.Thread(target=ask, args=(server, "POST", "/answer", body), kwargs=JSON)
            for body in bodies
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [case.note for case in read_sheet(tmp_path / "sheet.csv").cases] == [str(n) for n in range(10)]


def test_port_in_use_is_told(server: SheetServer) -> None:
    assert server.url.startswith("http://127.0.0.1:")
    with pytest.raises(BenchError, match=f"Port {server.port} cannot be used .*--port"):
        SheetServer(server.sheet, port=server.port)


def test_serve_ends_cleanly(tmp_path: Path) -> None:
    write_sheet(tmp_path / "sheet.csv", small_sheet())
    line = command("bench", "validate", "serve", tmp_path / "sheet.csv", "--port", "0", "--annotator", "anna")
    env = environment(tmp_path / "cache")
    with subprocess.Popen(
        line, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        port = int(url.removeprefix("http://127.0.0.1:").removesuffix("/"))
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("POST", "/answer", json.dumps(ANSWER), {"Content-Type": "application/json"})
        assert connection.getresponse().read() == b"{}"
        connection.close()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 0
    assert said.splitlines()[-1] == f"1 of 3 cases are labelled in {tmp_path / 'sheet.anna.csv'}"
    assert "Traceback" not in said


# ---- the page


@contextmanager
def opened(
    browser: Browser,
    sheet: Path,
    *,
    width: int = 1200,
    height: int = 800,
    scheme: str = "light",
    tolerated: str = "nothing",
) -> Iterator[tuple[Page, SheetServer]]:
    """Open the page of a sheet; fail on anything that its console says, but for what is `tolerated`."""
    said: list[str] = []
    with serving(sheet) as server:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.goto(server.url)
        expect(page.locator("#place")).to_contain_text("Case")
        yield page, server
        context.close()
    assert [line for line in said if tolerated not in line] == []


def saved(page: Page, count: str) -> None:
    """Wait until the page says that what was done is in the sheet."""
    expect(page.locator("#count")).to_have_text(count)
    expect(page.locator("#saved")).to_have_text(re.compile("^(saved|all done)$"))


def labels(path: Path) -> list[str]:
    return [case.label for case in read_sheet(path).cases]


@needs_chromium
def test_keys_label_and_the_sheet_follows(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, small_sheet(cases=4))
    with opened(browser, path) as (page, _):
        # a beginner is told the labels first; keys do nothing until that is read
        expect(page.locator("#help")).to_be_visible()
        expect(page.locator("#guide")).to_contain_text("The criterion is strict and binary.")
        page.keyboard.press("i")
        page.keyboard.press("Enter")
        expect(page.locator("#help")).to_be_hidden()
        page.keyboard.press("s")
        page.keyboard.press("N")
        saved(page, "2 of 4")
        assert labels(path) == ["sufficient", "insufficient", "", ""]
        expect(page.locator("#place")).to_have_text(f"Case 3 of 4 · {HOSTILE} 2.0")

        page.keyboard.press("u")
        saved(page, "1 of 4")
        assert labels(path) == ["sufficient", "", "", ""]
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("y")
        expect(page.locator("#place")).to_contain_text("Case 2 of 4")
        page.keyboard.press("ArrowLeft")
        expect(page.get_by_role("button", name="insufficient")).to_have_attribute("aria-pressed", "false")
        expect(page.locator("[data-label=sufficient]")).to_have_attribute("aria-pressed", "true")
        page.keyboard.press("Backspace")
        saved(page, "1 of 4")
        assert labels(path) == ["", "", "", "sufficient"]
        for _ in range(3):
            page.keyboard.press("i")
        saved(page, "4 of 4")
        expect(page.locator("#saved")).to_have_text("all done")
        assert labels(path) == ["insufficient", "insufficient", "insufficient", "sufficient"]


@needs_chromium
def test_types_and_notes(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "typed.csv"
    write_sheet(path, small_sheet(SheetKind.TYPES, cases=7))
    with opened(browser, path) as (page, _):
        page.keyboard.press("Escape")
        for key in "123456":
            page.keyboard.press(key)
        saved(page, "6 of 7")
        assert labels(path) == ["step", "example", "param", "precondition", "error_handling", "concept", ""]
        page.keyboard.press("/")
        page.keyboard.type("s1u? =1+1")
        page.keyboard.press("Escape")
        saved(page, "6 of 7")
        assert read_sheet(path).cases[6].note == "s1u? =1+1"
        # a key with the label on a button, and the next page sees what this one did
        page.get_by_role("button", name="error handling").click()
        saved(page, "7 of 7")
        page.reload()
        saved(page, "7 of 7")
        page.keyboard.press("/")
        page.keyboard.type("first ")
        page.locator("#next").click()
        saved(page, "7 of 7")
        assert [case.note for case in read_sheet(path).cases[:2]] == ["first ", ""]
        expect(page.locator("#note")).to_have_value("")


@needs_chromium
def test_text_of_skills_is_never_markup(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    texts = [
        "<img src=x onerror=alert(1)>",
        "<svg onload=alert(0)>",
        "<script>alert(2)</script><style>*{display:none}</style>&lt;",
        "</pre><iframe src='javascript:alert(3)'></iframe>\u202e\0",
    ]
    write_sheet(path, Sheet(SheetKind.SUFFICIENCY, (Case("<b>c1</b>", tuple(texts), note="</textarea><b>"),)))
    with opened(browser, path) as (page, _):
        page.keyboard.press("Escape")
        expect(page.locator("#place")).to_have_text(f"Case 1 of 1 · {texts[0]}")
        assert page.locator("[data-column=query] pre").text_content() == texts[2]
        assert page.locator("[data-column=context] pre").text_content() == texts[3]
        assert page.locator("#note").input_value() == "</textarea><b>"
        assert page.locator("img, iframe, style, svg, b").count() == 0
        assert page.evaluate("document.scripts.length") == 1
        page.keyboard.press("s")
        saved(page, "1 of 1")
    assert read_sheet(path).cases[0].texts == tuple(texts)


@needs_chromium
def test_answers_outlast_a_server_that_fails(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, small_sheet())
    with opened(browser, path, tolerated="status of 500") as (page, server):
        page.keyboard.press("Escape")
        good = path.read_bytes()
        path.write_text("damaged")
        page.keyboard.press("s")
        expect(page.locator("#problem")).to_contain_text("is not the header of a sheet")
        page.keyboard.press("i")
        expect(page.locator("#saved")).to_have_text("not saved")
        path.write_bytes(good)
        page.locator("#retry").click()
        saved(page, "2 of 3")
        expect(page.locator("#problem")).to_be_hidden()
        assert labels(server.sheet) == ["sufficient", "insufficient", ""]


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1200, 800), (640, 900), (360, 640)])
def test_page_fits_and_is_legible(
    browser: Browser, tmp_path: Path, width: int, height: int, scheme: str
) -> None:
    path = tmp_path / "a-sheet-with-a-rather-long-name-for-a-phone.csv"
    sheet = small_sheet(SheetKind.TYPES)
    long = Case("c9", ("skill", "Heading › " * 9, "before\n" * 60, "n" * 500, "after\n" * 60), "param")
    write_sheet(path, replace(sheet, cases=(*sheet.cases, long)))
    with opened(browser, path, width=width, height=height, scheme=scheme) as (page, _):
        page.locator("#next").click()
        page.locator("#next").click()
        page.locator("#next").click()
        expect(page.locator("[data-column=node]")).to_be_in_viewport()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate("document.querySelector('main').clientHeight > innerHeight * 0.4")
        for button in page.locator("footer button").all():
            box = button.bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
            assert box["y"] + box["height"] <= height
            assert button.evaluate("(button) => button.scrollWidth <= button.clientWidth")
        for selector in (
            "#place",
            "[data-column=node] pre",
            "[data-column=before] pre",
            "[aria-pressed=true]",
        ):
            assert contrast(page, selector) >= 4.5, selector  # WCAG 2.2, level AA
