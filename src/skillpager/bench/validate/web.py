"""A web page on which people answer a sheet, served to this machine only.

Each answer is written into the sheet before it is acknowledged, and the sheet is read again each time, so
that a reloaded page, a second tab and a spreadsheet all see what is in the file. Text of skills is untrusted:
it travels as JSON, becomes text and never markup, and the page may load nothing but its own files. The gate
of the HTTP service refuses requests from other sites, and other names than this machine's (DNS rebinding).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import Self

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.middleware.base import RequestResponseEndpoint

from skillpager.bench.data.records import Record
from skillpager.bench.judge.judge_prompt import CRITERION
from skillpager.bench.validate.sheet import CHOICES, COLUMNS, SheetKind, read_sheet, write_answer
from skillpager.errors import BenchError, SettingsError
from skillpager.http.middleware import AuthMiddleware
from skillpager.http.options import ServerOptions
from skillpager.http.problems import handle_problems, problem
from skillpager.http.server import listen, server_config

DEFAULT_PORT = 8642
# an answer is a label and a note
MAX_BODY_BYTES = 64 * 1024

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
    """The answer to one case, as the page sends it; it replaces the one before."""

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


# people judge by the same criterion as the judge, without its last paragraph, on how the material is quoted
GUIDE = unwrapped(CRITERION.rpartition("\n\n")[0])


class SheetServer:
    """A server of the page of one sheet, on a port of the loopback interface; 0 for any that is free.

    Raises:
        BenchError: The sheet cannot be read, or the port cannot be used.
    """

    def __init__(self, sheet: Path, *, port: int = DEFAULT_PORT) -> None:
        read_sheet(sheet)
        self.sheet = sheet
        options = ServerOptions(port=port, max_request_bytes=MAX_BODY_BYTES)
        try:
            self._listener = listen(options)
        except SettingsError as error:
            raise BenchError(
                f"Port {port} cannot be used ({error.__cause__}): name another with --port, or 0 for any."
            ) from error
        self._server = uvicorn.Server(server_config(_make_app(sheet, options)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._listener.close()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"http://127.0.0.1:{self.port}/"

    def serve(self) -> None:
        """Answer requests until `stop`, or until a signal, which is raised again at the end."""
        self._server.run(sockets=[self._listener])

    def stop(self) -> None:
        """Make `serve` return soon."""
        self._server.should_exit = True

    def answered(self) -> tuple[int, int]:
        """Return how many cases have a label, and how many there are."""
        cases = read_sheet(self.sheet).cases
        return sum(bool(case.label) for case in cases), len(cases)


def _make_app(path: Path, options: ServerOptions) -> FastAPI:
    """Return the application. Its routes run on the event loop: one answer is written after the other."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)

    @app.post("/answer")
    async def save(request: Request) -> Response:
        try:
            answer = Answer.from_json(await request.body())
            write_answer(path, answer.case, label=answer.label, note=answer.note)
        except ValueError as error:
            return problem(HTTPStatus.BAD_REQUEST, str(error))
        return JSONResponse({})

    @app.get("/{name:path}")
    async def show(request: Request) -> Response:
        name = request.scope["path"]
        if request.url.query or name not in (*_PAGE, "/sheet"):
            return problem(HTTPStatus.NOT_FOUND, "There is nothing here.")
        if name != "/sheet":
            file, kind = _PAGE[name]
            content = (files("skillpager.bench.validate") / "page" / file).read_bytes()
            return Response(content, headers={"Content-Type": kind})
        sheet = read_sheet(path)
        shown = {
            "name": path.name,
            "guide": GUIDE if sheet.kind is SheetKind.SUFFICIENCY else "",
            "columns": COLUMNS[sheet.kind],
            "choices": [asdict(choice) for choice in CHOICES[sheet.kind]],
        }
        return JSONResponse({**shown, **asdict(sheet)})

    async def unreadable(_request: Request, error: Exception) -> Response:
        return problem(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))

    handle_problems(app)
    app.add_exception_handler(BenchError, unreadable)
    app.add_exception_handler(OSError, unreadable)
    app.add_middleware(AuthMiddleware, options=options)

    # the one that is added last is the outermost: refusals have these headers too
    @app.middleware("http")
    async def secure(request: Request, call_next: RequestResponseEndpoint) -> Response:
        response = await call_next(request)
        response.headers.update(_HEADERS)
        return response

    return app
