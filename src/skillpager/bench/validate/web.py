"""A page on which people answer a sheet: a small web server on this machine alone.

Each answer is written into the sheet before it is acknowledged, and the sheet is read anew each time: a page
that is reloaded, a second tab and a spreadsheet all see what is in the file. Text of skills is untrusted: it
travels as JSON, becomes text and never markup, and the page may load nothing but its own files. Requests
that another site sends, or that reach this machine under another name (DNS rebinding), are refused.
"""

import json
import logging
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path

from skillpager.bench.data.records import Record
from skillpager.bench.judge.judge_prompt import CRITERION
from skillpager.bench.validate.sheet import CHOICES, COLUMNS, SheetKind, read_sheet, write_answer
from skillpager.errors import BenchError
from skillpager.output.json import JsonObject

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8642
# an answer is a label and a note
MAX_BODY_BYTES = 64 * 1024
IDLE_SECONDS = 30.0

_PAGE: Mapping[str, tuple[str, str]] = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Answer(Record):
    """What the page sends: the answer to one case, replacing the one before."""

    case: str
    label: str
    note: str


def unwrapped(text: str) -> str:
    """Return a text that was broken into lines with one line for each paragraph and list item."""
    lines: list[str] = []
    for line in text.splitlines():
        last = lines[-1] if lines else ""
        item_ends = last.startswith("- ") and not line.startswith(" ")
        if not line or not last or line.startswith("- ") or item_ends:
            lines.append(line)
        else:
            lines[-1] += f" {line.strip()}"
    return "\n".join(lines)


# people judge by what the judge is told, but for its last paragraph, on how the material is quoted to it
GUIDE = unwrapped(CRITERION.rpartition("\n\n")[0])


class SheetServer(ThreadingHTTPServer):
    """Serves the page of one sheet until it is shut down."""

    daemon_threads = True

    def __init__(self, sheet: Path, *, port: int = DEFAULT_PORT) -> None:
        """Read the sheet once and listen.

        Args:
            sheet: Sheet to answer.
            port: Port on the loopback interface; 0 for any that is free.

        Raises:
            BenchError: The sheet cannot be read, or the port is in use.
        """
        read_sheet(sheet)
        self.sheet = sheet
        self._lock = threading.Lock()
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            raise BenchError(
                f"Port {port} cannot be used ({error.strerror or error}): name another with --port, or 0 "
                "for any."
            ) from error

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    @property
    def own_hosts(self) -> tuple[str, ...]:
        """The names under which this machine itself asks."""
        return f"{LOOPBACK}:{self.server_port}", f"localhost:{self.server_port}"

    def answered(self) -> tuple[int, int]:
        """Return how many cases have a label, and how many there are."""
        cases = read_sheet(self.sheet).cases
        return sum(bool(case.label) for case in cases), len(cases)

    def as_json(self) -> JsonObject:
        """Return what the page shows."""
        with self._lock:
            sheet = read_sheet(self.sheet)
        return {
            "name": self.sheet.name,
            "kind": str(sheet.kind),
            "guide": GUIDE if sheet.kind is SheetKind.SUFFICIENCY else "",
            "columns": list(COLUMNS[sheet.kind]),
            "choices": [
                {"label": choice.label, "keys": list(choice.keys), "meaning": choice.meaning}
                for choice in CHOICES[sheet.kind]
            ],
            "cases": [
                {"id": case.id, "texts": list(case.texts), "label": case.label, "note": case.note}
                for case in sheet.cases
            ],
        }

    def keep(self, answer: Answer) -> None:
        """Write an answer into the sheet.

        Raises:
            BenchError: The sheet cannot be read any more.
            ValueError: It has no such case, or does not take the label.
        """
        with self._lock:
            write_answer(self.sheet, answer.case, label=answer.label, note=answer.note)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log what went wrong with a request; a browser that hangs up is no fault."""
        del request
        fault = not isinstance(sys.exception(), ConnectionError | TimeoutError)
        logger.log(
            logging.ERROR if fault else logging.DEBUG, "request of %s failed", client_address, exc_info=fault
        )


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: SheetServer
    server_version = "skillpager"
    sys_version = ""
    timeout = IDLE_SECONDS

    def do_GET(self) -> None:
        """Send the page, one of its files, or the sheet."""
        if not self._is_own():
            self._refuse(HTTPStatus.FORBIDDEN, "This page is for the browser of this machine alone.")
        elif self.path == "/sheet":
            self._send_sheet()
        elif self.path in _PAGE:
            name, kind = _PAGE[self.path]
            page = files("skillpager.bench.validate") / "page" / name
            self._send(HTTPStatus.OK, page.read_bytes(), kind)
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def do_POST(self) -> None:
        """Keep an answer."""
        # a form of another site cannot send this type without being asked for leave first
        is_json = self.headers.get_content_type() == "application/json"
        length = self.headers.get("Content-Length", "")
        if not self._is_own() or not is_json:
            self._refuse(HTTPStatus.FORBIDDEN, "Answers are taken from the page of this machine alone.")
        elif self.path != "/answer":
            self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")
        elif not length.isascii() or not length.isdigit() or int(length) > MAX_BODY_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The note is too long: shorten it.")
        else:
            self._keep(self.rfile.read(int(length)))

    def log_message(self, format: str, *args: object) -> None:
        """Log requests for those who want to see them."""
        logger.debug(format, *args)

    def _is_own(self) -> bool:
        """Tell whether the request comes from this server's own page, or from no page."""
        host, origin = self.headers.get("Host"), self.headers.get("Origin")
        return host in self.server.own_hosts and origin in (None, f"http://{host}")

    def _send_sheet(self) -> None:
        try:
            shown = self.server.as_json()
        except (BenchError, OSError) as error:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        else:
            self._send_json(HTTPStatus.OK, shown)

    def _keep(self, body: bytes) -> None:
        try:
            self.server.keep(Answer.from_json(body))
        except (BenchError, OSError) as error:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        except ValueError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        else:
            self._send_json(HTTPStatus.OK, {})

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self._send_json(status, {"error": message})

    def _send_json(self, status: HTTPStatus, value: JsonObject) -> None:
        self._send(status, json.dumps(value).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
