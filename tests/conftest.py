"""Shared fixtures: settings and stores in temporary folders, sample skills, no network."""

import os
import shutil
import socket
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import pytest

from skillpager import SkillPager
from skillpager.settings import Settings

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when haystack is imported

pytest_plugins = ["chromium"]  # the fixture `browser`

# how long one example takes tells of the machine, on which other tests run; pytest-timeout bounds the whole
hypothesis.settings.register_profile("skillpager", deadline=None)
hypothesis.settings.load_profile("skillpager")

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "examples" / "skills"
TRAPS = ROOT / "tests" / "fixtures" / "markdown"


# folders whose tests import what only an extra brings
NEEDED = {
    "bench": ("matplotlib", "sklearn"),
    "http": ("fastapi", "httpx", "playwright"),
    "integrations": ("agents", "haystack", "langchain_core", "llama_index", "pydantic_ai"),
    "mcp": ("mcp_types",),
}


def missing_packages(folder: str) -> list[str]:
    """Return which packages the tests of a folder need and this environment lacks."""
    return [package for package in NEEDED.get(folder, ()) if find_spec(package) is None]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the folders whose tests cannot be imported here."""
    is_folder = collection_path.parent == ROOT / "tests"
    return True if is_folder and missing_packages(collection_path.name) else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which folders were left out, and why."""
    for folder in NEEDED:
        if missing := missing_packages(folder):
            terminalreporter.write_line(f"tests/{folder} left out: no {', '.join(missing)}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked `system(PROGRAM, …)` where none of the programs is installed."""
    for mark in item.iter_markers("system"):
        if not any(map(shutil.which, mark.args)):
            pytest.skip(f"{mark.args[0]} is not installed")


@pytest.fixture(autouse=True)
def _own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a developer's own settings, keys and caches out of the tests."""
    for name in list(os.environ):
        if name.startswith(("SKILLPAGER_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SKILLPAGER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections to anything but this machine."""
    connect = socket.socket.connect

    def local_only(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else "unix"
        if host not in ("127.0.0.1", "::1", "localhost", "unix"):
            raise AssertionError(f"a test tried to reach {host}")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", local_only)


@pytest.fixture(scope="session")
def pager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SkillPager]:
    """The default parts: shipped encoder and classifier, a real SQLite store."""
    folder = tmp_path_factory.mktemp("pager")
    made = SkillPager(settings=Settings(cache_dir=folder))
    yield made
    made.close()


@pytest.fixture
def hashing_pager(tmp_path: Path) -> Iterator[SkillPager]:
    """The documented hashing encoder, for tests in which meaning does not matter."""
    made = SkillPager(encoder="hashing", settings=Settings(cache_dir=tmp_path / "cache"))
    yield made
    made.close()
