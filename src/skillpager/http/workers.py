"""Several processes behind one port, under uvicorn's supervisor, which replaces one that ends."""

import logging
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from fastapi import FastAPI
from prometheus_client.multiprocess import mark_process_dead
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from skillpager.errors import SettingsError, SkillPagerError
from skillpager.http.options import ServerOptions
from skillpager.http.server import address_of, check_parts, create_app, listen, server_config
from skillpager.library import Library

logger = logging.getLogger(__name__)

# read by prometheus_client when it is imported: counts are then in files of this folder
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
# a process that does not answer its supervisor for so long is ended; on a busy machine starting takes seconds
ANSWER_SECONDS = 30


@dataclass(frozen=True, slots=True)
class WorkerStart:
    """Makes the application of one process; it is sent to a fresh process, which calls it.

    Attributes:
        open_library: Opens the skills on offer; a function that another process can import.
        options: The owner's options.
    """

    open_library: Callable[[], Library]
    options: ServerOptions

    def __call__(self) -> FastAPI:
        """Return the application; a mistake ends the process, and the service with it."""
        threading.Thread(target=_end_with_parent, name="skillpager-parent", daemon=True).start()
        try:
            app = create_app(self.open_library(), self.options)
        except SkillPagerError as error:
            logger.error("A process of the service cannot start: %s", error)
            sys.exit(STARTUP_FAILURE)
        app.state.service.readiness.start()
        return app


class _Supervisor(Multiprocess):
    """Starts the processes, and forgets the gauges of those that have ended."""

    _known: frozenset[int | None] = frozenset()

    def keep_subprocess_alive(self) -> None:
        """Start another process in the place of one that has ended."""
        super().keep_subprocess_alive()
        running = frozenset(process.pid for process in self.processes)
        for pid in self._known - running:
            if pid is not None:
                mark_process_dead(pid)  # type: ignore[no-untyped-call]
        self._known = running


def serve_workers(
    open_library: Callable[[], Library], options: ServerOptions, *, announce: Callable[[str], None]
) -> None:
    """Answer requests with `options.workers` processes until SIGINT or SIGTERM, and then those in flight.

    Args:
        open_library: Opens the skills on offer, in each process; a function that a process can import.
        options: The owner's options.
        announce: Called with the URL once the service accepts connections.

    Raises:
        SettingsError: As for `create_app` and `listen`; or a process cannot start.
        MissingExtraError: As for `create_app`.
    """
    if sys.platform == "win32":
        raise SettingsError(
            "Windows has no --workers above 1: start several services behind a reverse proxy."
        )
    check_parts(options)
    with tempfile.TemporaryDirectory(prefix="skillpager-serve-") as folder, listen(options) as listener:
        os.environ[METRICS_FOLDER] = folder
        shared = replace(options, shared=Path(folder))
        config = server_config(WorkerStart(open_library, shared))
        config.workers, config.factory = options.workers, True
        config.timeout_worker_healthcheck = ANSWER_SECONDS
        supervisor = _Supervisor(config, [listener])
        announce(address_of(options, listener))
        supervisor.run()
        del os.environ[METRICS_FOLDER]
    if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
        raise SettingsError("The service has ended because a process of it cannot start: its error is above.")


def _end_with_parent() -> None:
    """End this process when its supervisor was killed: nobody else would, and the port would stay taken."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
