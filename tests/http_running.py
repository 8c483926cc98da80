"""The HTTP service on a real port: in a thread of the test, or in a process of its own."""

import re
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import httpx
import uvicorn

from cli_process import SAMPLES, command, environment
from skillpager import SkillPager
from skillpager.http.options import ServerOptions
from skillpager.http.server import create_app, listen, server_config
from skillpager.http.service import Service
from skillpager.library import Library

TIME_LIMIT = 240.0  # a process that hangs; a busy machine is no failure
QUERY = "Restore a single table from last night's dump."
ASKED = {"skill": "postgres-backup", "query": QUERY}


@dataclass(frozen=True)
class Running:
    """A service that answers.

    Attributes:
        client: Asks it.
        service: What its routes share.
    """

    client: httpx.Client
    service: Service


@contextmanager
def running(
    pager: SkillPager, options: ServerOptions | None = None, *, folder: Path = SAMPLES
) -> Iterator[Running]:
    """Serve the skills of a folder from a thread."""
    options = options or ServerOptions(port=0)
    app = create_app(Library(pager, [folder]), options)
    with listen(options) as listener:
        server = uvicorn.Server(server_config(app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            with httpx.Client(base_url=url, timeout=TIME_LIMIT) as client:
                yield Running(client, app.state.service)
        finally:
            server.should_exit = True
            thread.join(TIME_LIMIT)


@dataclass
class Child:
    """A service in a process of its own.

    Attributes:
        process: The process.
        client: Asks it.
        said: What it wrote to stderr, line by line, up to now.
    """

    process: subprocess.Popen[str]
    client: httpx.Client
    said: list[str]

    def end(self) -> int:
        """Wait for the end and return the exit code."""
        return self.process.wait(TIME_LIMIT)


@contextmanager
def child(
    folder: Path, *options: str | Path, skills: Path = SAMPLES, launcher: Sequence[str] = (), **changes: str
) -> Iterator[Child]:
    """Run `skillpager serve` on a free port, and kill it if the test does not end it."""
    process = subprocess.Popen(
        [*launcher, *command("serve", skills, "--port", "0", *options)],
        env=environment(folder / "cache", **changes),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    said: list[str] = []
    ready = threading.Event()
    reader = threading.Thread(target=_read, args=(process.stderr, said, ready))
    reader.start()
    try:
        assert ready.wait(TIME_LIMIT), said
        url = re.search(r"http://\S+:\d+", "".join(said))
        assert url is not None, said
        with httpx.Client(base_url=url[0], timeout=TIME_LIMIT) as client:
            yield Child(process, client, said)
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stdout.close()
        process.stderr.close()


def _read(stream: IO[str], said: list[str], ready: threading.Event) -> None:
    for line in stream:
        said.append(line)
        if "serving at" in line:
            ready.set()
    ready.set()
