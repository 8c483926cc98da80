"""The HTTP service: makes the application, and runs it until a signal."""

import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib.metadata import version
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI

from skillpager.errors import SettingsError, require_extra
from skillpager.http.access import Tokens
from skillpager.http.audit import AuditLog
from skillpager.http.explorer import routes as explorer
from skillpager.http.gate import Gate
from skillpager.http.observing import Metrics, Observer
from skillpager.http.openapi import describe
from skillpager.http.options import ServerOptions, check_options
from skillpager.http.problems import handle_problems
from skillpager.http.readiness import Readiness
from skillpager.http.routes import library as library_routes
from skillpager.http.routes import pages, skills, status
from skillpager.http.service import Service, WorkerPool
from skillpager.library import Library
from skillpager.pager import SkillPager
from skillpager.serving import uvicorn_config
from skillpager.stores import NoStore

if TYPE_CHECKING:
    from skillpager.http.telemetry import Telemetry

# requests that are still unanswered this long after the signal are dropped
SHUTDOWN_SECONDS = 30
# request line and headers: room for the longest query of a GET, 12 bytes per character
HEAD_BYTES = 128 * 1024


def create_app(library: Library, options: ServerOptions) -> FastAPI:
    """Return the ASGI application that offers the skills of a library.

    Raises:
        SettingsError: As for `check_options`; or tokens or the audit log are wrong.
        MissingExtraError: A package for an option is not installed.
    """
    check_options(options)
    pager, tokens = library.pager, Tokens(options)
    telemetry = _start_telemetry(library) if options.telemetry else None
    metrics = Metrics(options.shared, telemetry)
    audit = None
    if options.audit_log is not None:
        audit = AuditLog(options.audit_log, queries=options.audit_queries, failed=metrics.count_unwritten)
    pool = WorkerPool(options.threads, options.waiting, metrics.set_taken)
    uploads = SkillPager(
        encoder=pager.encoder,
        classifier=pager.classifier,
        store=NoStore(),
        token_counter=pager.token_counter,
        embedded_text=pager.recipe.embedded_text,
        settings=pager.settings,
    )
    service = Service(
        library=library,
        uploads=uploads,
        options=options,
        pool=pool,
        metrics=metrics,
        readiness=Readiness(library, uploads),
        version=version("skillpager"),
    )

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        pool.close()
        service.readiness.close()
        if audit is not None:
            audit.close()
        if telemetry is not None:
            telemetry.close()

    app = FastAPI(
        title="SkillPager",
        version=service.version,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # FastAPI's pages load scripts from other sites
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.service = service
    for module in (status, library_routes, skills, pages, explorer):
        app.include_router(module.router)
    handle_problems(app)
    app.openapi = partial(describe, app, options)  # type: ignore[method-assign]
    # the middleware added last is the outermost
    app.add_middleware(Gate, options=options, tokens=tokens)
    app.add_middleware(Observer, metrics=metrics, audit=audit, telemetry=telemetry)
    return app


def _start_telemetry(library: Library) -> "Telemetry":
    """Return what sends spans and metrics, and have it watch a library.

    Raises:
        MissingExtraError: OpenTelemetry's packages are not installed.
    """
    _require_telemetry()
    from skillpager.http.telemetry import Telemetry

    telemetry = Telemetry(version("skillpager"))
    telemetry.watch(library)
    return telemetry


def _require_telemetry() -> None:
    for module in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"):
        require_extra(module, extra="otel", purpose="--otel")


def check_parts(options: ServerOptions) -> None:
    """Raise an error if an application with these options could not be made.

    Raises:
        SettingsError: As for `create_app`.
        MissingExtraError: As for `create_app`.
    """
    check_options(options)
    Tokens(options)
    if options.audit_log is not None:
        AuditLog(options.audit_log, queries=False, failed=lambda: None).close()
    if options.telemetry:
        _require_telemetry()


def serve(library: Library, options: ServerOptions, *, announce: Callable[[str], None]) -> bool:
    """Answer requests until SIGINT or SIGTERM, and then those in flight; return True if all were answered.

    If not, a thread may still be busy and would delay an ordinary exit.

    Args:
        library: The skills on offer.
        options: The owner's options.
        announce: Called with the URL once the service accepts connections.

    Raises:
        SettingsError: As for `check_options` and `listen`.
    """
    app = create_app(library, options)
    with listen(options) as listener:
        server = uvicorn.Server(server_config(app))
        announce(address_of(options, listener))
        service: Service = app.state.service
        service.readiness.start()
        with _stopped_by_signals(server):
            server.run(sockets=[listener])
    return service.pool.taken == 0 and not service.readiness.busy


def address_of(options: ServerOptions, listener: socket.socket) -> str:
    """Return the URL at which a socket listens."""
    host = f"[{options.host.strip('[]')}]" if ":" in options.host else options.host
    return f"http://{host}:{listener.getsockname()[1]}"


def listen(options: ServerOptions) -> socket.socket:
    """Return a listening socket.

    Raises:
        SettingsError: The address is not one of this machine, or the port is taken or not allowed.
    """
    try:
        kind, flags = socket.SOCK_STREAM, socket.AI_PASSIVE
        family, _, _, _, address = socket.getaddrinfo(options.host, options.port, type=kind, flags=flags)[0]
        listener = socket.create_server(address[:2], family=family)
    except OSError as error:
        reason = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        raise SettingsError(
            f"The service cannot listen at {options.host}, port {options.port} ({reason}): choose another "
            "with --host or --port; port 0 takes a free one."
        ) from error
    # connections inherit it; without it a body waits 40 ms until the client has acknowledged the headers
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def server_config(app: FastAPI | Callable[[], FastAPI]) -> uvicorn.Config:
    """Return uvicorn's configuration for the application, or for what makes it."""
    return uvicorn_config(app, stop_seconds=SHUTDOWN_SECONDS, head_bytes=HEAD_BYTES)


@contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Make signals stop the server only: uvicorn would raise them again, which ends the process."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
