"""The HTTP service: makes the application, and runs it until a signal."""

import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version

import uvicorn
from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.staticfiles import StaticFiles

from skillpager.errors import SkillPagerError
from skillpager.http import routes
from skillpager.http.middleware import FILES, RequestGuard
from skillpager.http.options import ServerOptions, check_options
from skillpager.http.problems import PROBLEM, handle_problems
from skillpager.http.service import Service
from skillpager.library import Library

DESCRIPTION = (
    "Pages of agent skills: the smallest part of a skill that suffices for a query. Fields are the keyword "
    "arguments of the library; an unknown field is refused."
)

# requests that are still unanswered this long after the signal are dropped
SHUTDOWN_SECONDS = 30
# open connections; requests on further ones get 503
MAX_CONNECTIONS = 512


def create_app(library: Library, options: ServerOptions) -> FastAPI:
    """Return the ASGI application that offers the skills of a library; raises as `check_options` does."""
    check_options(options)
    service = Service(library, options)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        service.look()
        yield

    app = FastAPI(
        title="SkillPager",
        version=version("skillpager"),
        description=DESCRIPTION,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # FastAPI's pages load scripts from other sites
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        responses=PROBLEM,
    )
    app.state.service = service
    app.include_router(routes.public)
    # the token is checked by the middleware; this describes it
    described = [] if options.token is None else [Depends(HTTPBearer(auto_error=False))]
    app.include_router(routes.router, dependencies=described)
    app.mount(FILES, StaticFiles(directory=routes.WEB))
    handle_problems(app)
    # the middleware added last is the outermost
    service.metrics.instrument(app)
    app.add_middleware(RequestGuard, options=options)
    return app


def serve(library: Library, options: ServerOptions, *, announce: Callable[[str], None]) -> bool:
    """Answer requests until SIGINT or SIGTERM, and then those in flight; return True if all were answered.

    If not, a thread may still be busy, and would delay an ordinary exit. `announce` is called with the URL
    once the service accepts connections. Raises as `create_app` and `listen` do.
    """
    app = create_app(library, options)
    service: Service = app.state.service
    with listen(options) as listener:
        server = uvicorn.Server(server_config(app))

        def stop(*_: object) -> None:
            server.should_exit = True

        # uvicorn raises signals again when it has ended, which would otherwise end the process
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        announce(address_of(options, listener))
        server.run(sockets=[listener])
    return not service.taken


def address_of(options: ServerOptions, listener: socket.socket) -> str:
    """Return the URL at which a socket listens."""
    host = f"[{options.host.strip('[]')}]" if ":" in options.host else options.host
    return f"http://{host}:{listener.getsockname()[1]}"


def listen(options: ServerOptions) -> socket.socket:
    """Return a listening socket; a `SkillPagerError` says why it cannot listen."""
    try:
        kind, flags = socket.SOCK_STREAM, socket.AI_PASSIVE
        family, _, _, _, address = socket.getaddrinfo(options.host, options.port, type=kind, flags=flags)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        reason = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        raise SkillPagerError(
            f"The service cannot listen at {options.host}, port {options.port} ({reason}): choose another "
            "with --host or --port; port 0 takes a free one."
        ) from error


def server_config(app: FastAPI) -> uvicorn.Config:
    """Return uvicorn's configuration for the application."""
    return uvicorn.Config(
        app,
        access_log=False,
        lifespan="on",
        limit_concurrency=MAX_CONNECTIONS,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        ws="none",
    )
