"""Shared fixtures: settings and stores in temporary folders, sample skills, no network."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from skillpager import SkillPager
from skillpager.settings import Settings

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when haystack is imported

# a shell starts background jobs with SIGINT ignored, and children inherit that: tests must be able to interrupt
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["chromium"]  # the fixture `browser`

# how long one example takes tells of the machine, on which other tests run; pytest-timeout bounds the whole
hypothesis.settings.register_profile("skillpager", deadline=None)
hypothesis.settings.load_profile("skillpager")

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "examples" / "skills"
TRAPS = ROOT / "tests" / "fixtures" / "markdown"


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
