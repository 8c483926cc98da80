"""The HTTP service: the application, and how it runs until it is told to stop.

Every concern has its module and, where it answers requests, its router: `http_status`, `http_skills`,
`http_pages`, `http_explorer`.
"""

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
from skillpager.http.explorer import routes as http_explorer
from skillpager.http.gate import Gate
from skillpager.http.limits import WorkerPool
from skillpager.http.metrics import Metrics
from skillpager.http.observing import Observer
from skillpager.http.openapi import describe
from skillpager.http.options import ServerOptions, check_options
from skillpager.http.problems import handle_problems
from skillpager.http.routes import pages as http_pages
from skillpager.http.routes import skills as http_skills
from skillpager.http.routes import status as http_status
from skillpager.http.service import Service, upload_pager
from skillpager.library import Library

# what is still worked on then is dropped
SHUTDOWN_SECONDS = 30
BACKLOG = 2048
# request line and headers: the longest query of a GET, each character of it as twelve
HEAD_BYTES = 128 * 1024


def create_app(library: Library, options: ServerOptions) -> FastAPI:
    """Return the application; a page for people, such as an explorer, is one more router.

    Args:
        library: The skills it offers.
        options: What its owner says.

    Raises:
        SettingsError: It would be open to strangers.
    """
    check_options(options)
    service = _make_service(library, options)
    app = FastAPI(
        title="SkillPager",
        version=service.version,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # FastAPI's pages load their scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=partial(_lifespan, service),
    )
    app.state.service = service
    for module in (http_status, http_skills, http_pages, http_explorer):
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
        options: What its owner says.
        announce: Told the address, once connections are taken.

    Returns:
        Whether all was answered; if not, a worker may still be busy and would hold up an ordinary exit.

    Raises:
        SettingsError: It cannot listen there, or would be open to strangers.
    """
    app = create_app(library, options)
    with listen(options) as listener:
        server = uvicorn.Server(server_config(app))
        announce(f"http://{_shown(options.host)}:{listener.getsockname()[1]}")
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


def _make_service(library: Library, options: ServerOptions) -> Service:
    pool = WorkerPool(options.workers, options.waiting)
    return Service(
        library=library,
        uploads=upload_pager(library.pager),
        options=options,
        pool=pool,
        metrics=Metrics(lambda: pool.taken),
        version=version("skillpager"),
    )


@asynccontextmanager
async def _lifespan(service: Service, _app: FastAPI) -> AsyncIterator[None]:
    yield
    service.pool.close()


def server_config(app: FastAPI) -> uvicorn.Config:
    """Return how uvicorn runs the application."""
    return uvicorn.Config(
        app,
        access_log=False,  # `http_observing` has its own, without the queries
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
    """End well after a signal: uvicorn handles it and then raises it again, which would end the process."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
