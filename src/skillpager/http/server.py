"""The HTTP service: the application, and how it runs until it is told to stop."""

import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib.metadata import version
from types import FrameType

import uvicorn
from fastapi import FastAPI

from skillpager.errors import SettingsError
from skillpager.http.explorer import routes as explorer
from skillpager.http.gate import Gate
from skillpager.http.limits import WorkerPool
from skillpager.http.observing import Metrics, Observer
from skillpager.http.openapi import describe
from skillpager.http.options import ServerOptions, check_options
from skillpager.http.problems import handle_problems
from skillpager.http.routes import pages, skills, status
from skillpager.http.service import Service, upload_pager
from skillpager.library import Library

# requests that are not answered by then are dropped
SHUTDOWN_SECONDS = 30
BACKLOG = 2048
# request line and headers: the longest query of a GET, each character of it as twelve
HEAD_BYTES = 128 * 1024


def create_app(library: Library, options: ServerOptions) -> FastAPI:
    """Return the application.

    Args:
        library: The skills it offers.
        options: Its owner's options.

    Raises:
        SettingsError: It would be open to strangers.
    """
    check_options(options)
    pool = WorkerPool(options.workers, options.waiting)
    service = Service(
        library=library,
        uploads=upload_pager(library.pager),
        options=options,
        pool=pool,
        metrics=Metrics(lambda: pool.taken),
        version=version("skillpager"),
    )

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        pool.close()

    app = FastAPI(
        title="SkillPager",
        version=service.version,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # FastAPI's pages load their scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.service = service
    for module in (status, skills, pages, explorer):
        app.include_router(module.router)
    handle_problems(app)
    app.openapi = partial(describe, app, options)  # type: ignore[method-assign]
    # the one that is added last is the outermost
    app.add_middleware(Gate, options=options)
    app.add_middleware(Observer, metrics=service.metrics)
    return app


def serve(library: Library, options: ServerOptions, *, announce: Callable[[str], None]) -> bool:
    """Answer requests until SIGINT or SIGTERM; requests in flight are answered first.

    Args:
        library: The skills it offers.
        options: Its owner's options.
        announce: Called with the address, once connections are taken.

    Returns:
        Whether all was answered; if not, a worker may still be busy and would hold up an ordinary exit.

    Raises:
        SettingsError: It cannot listen there, or would be open to strangers.
    """
    app = create_app(library, options)
    with listen(options) as listener:
        server = uvicorn.Server(server_config(app))
        host = f"[{options.host.strip('[]')}]" if ":" in options.host else options.host
        announce(f"http://{host}:{listener.getsockname()[1]}")
        with _stopped_by_signals(server):
            server.run(sockets=[listener])
    service: Service = app.state.service
    return service.pool.taken == 0


def listen(options: ServerOptions) -> socket.socket:
    """Return a socket that takes connections.

    Raises:
        SettingsError: The address is not one of this machine, or the port is taken or not allowed.
    """
    try:
        found = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = found[0]
        listener = socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        reason = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        raise SettingsError(
            f"The service cannot listen at {options.host}, port {options.port} ({reason}): choose another "
            "with --host or --port; port 0 takes a free one."
        ) from error
    # connections inherit it; without, an answer's body waits 40 ms for the client to confirm its head
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def server_config(app: FastAPI) -> uvicorn.Config:
    """Return the configuration of uvicorn for the application."""
    return uvicorn.Config(
        app,
        access_log=False,  # the one of `observing` leaves out the queries
        h11_max_incomplete_event_size=HEAD_BYTES,
        http="h11",  # other parsers do not heed the line above
        lifespan="on",
        log_config=None,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        ws="none",
    )


@contextmanager
def _stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Let a signal end the server alone: uvicorn would raise it again, which ends the process."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
