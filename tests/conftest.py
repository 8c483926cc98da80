"""Shared fixtures: settings and stores in temporary folders, sample skills, no network."""

import os
import shutil
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from importlib.util import find_spec
from multiprocessing.process import BaseProcess
from pathlib import Path

import hypothesis
import pytest

import sample_indexes
from plain_parts import NoStore, TurnsClassifier, plain_pager
from postgres_server import VERSIONS
from skillpager import SkillPager
from skillpager.settings import Settings

if sys.platform == "win32":
    from multiprocessing.context import SpawnContext as Processes
else:
    from multiprocessing.context import ForkServerContext as Processes

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when haystack is imported

# a shell starts background jobs with SIGINT ignored, and children inherit that: tests must be able to interrupt
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# the fixture `browser`, the options `--write-messages` and `--torture`, the fixtures of the stores
pytest_plugins = ["chromium", "messages", "torture_scale", "store_fixtures"]

# how long one example takes tells of the machine, on which other tests run; pytest-timeout bounds the whole
hypothesis.settings.register_profile("skillpager", deadline=None)
hypothesis.settings.load_profile("skillpager")

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "examples" / "skills"
TRAPS = ROOT / "tests" / "fixtures" / "markdown"
# tests that need what only an extra brings, or exact token counts: `make test-core` leaves them out, `make test` none
NEEDED = {
    "tests/bench/*": ("matplotlib", "sklearn"),
    "tests/bulk/*": ("haystack", "llama_index", "psycopg", "ray", "rs_bpe"),
    "tests/cli/*": ("fastapi", "matplotlib", "mcp_types", "rs_bpe"),
    "tests/docs/*": ("mkdocs", "rs_bpe", "sklearn"),
    "tests/docs/test_deploy.py": (
        "check_jsonschema",
        "fastapi",
        "helm_python",
        "kubernetes_validate",
        "yamllint",
    ),
    "tests/http/*": ("fastapi", "httpx", "playwright"),
    "tests/http/test_http_telemetry.py": ("opentelemetry.distro", "opentelemetry.exporter.otlp"),
    "tests/install/*": ("mcp_types", "rs_bpe"),
    "tests/integrations/*": ("agents", "haystack", "langchain_core", "llama_index", "pydantic_ai"),
    "tests/mcp/*": ("mcp_types",),
    "tests/torture/*": ("fastapi", "httpx", "mcp_types", "psycopg", "psycopg_pool", "rs_bpe"),
    "tests/release/*": ("hatchling", "pip_audit", "twine", "uv"),
    "tests/classifiers/test_llm_classifier.py": ("openai",),
    "tests/encoders/test_openai_encoder.py": ("openai",),
    "tests/pages/test_golden.py": ("rs_bpe",),
    "tests/pages/test_known_nodes.py": ("rs_bpe",),
    "tests/stores/test_postgres*.py": ("psycopg", "psycopg_pool"),
    "tests/stores/test_postgres_service.py": ("fastapi", "httpx", "mcp_types", "rs_bpe"),
    "tests/integrations/test_integrations_published.py": ("psycopg", "psycopg_pool"),
    "tests/strategies/test_diverse_strategies.py": ("pyversity",),
    "tests/strategies/test_mmr.py": ("langchain_core", "pyversity"),
    "tests/strategies/test_paper_strategies.py": ("bm25s", "pyversity"),
    "tests/strategies/test_word_strategies.py": ("bm25s",),
    "tests/test_json.py": ("pydantic",),
    "tests/test_nothing_leaves.py": ("fastapi", "httpx", "mcp_types"),
    "tests/test_own_parts.py": ("pydantic",),
    "tests/test_remote_pager.py": ("openai",),
    "tests/test_tokens.py": ("rs_bpe",),
}

# tests that `make test` leaves out, by file or fixture: `make check` runs those of documents, builds and what is made for
# readers, `make nightly` those of browsers, clusters, kills, hostile input and time; single tests have the marks themselves
CHECK = (
    "tests/docs/*",
    "tests/release/*",
    "tests/training/*",
    "tests/bench/test_agent_tasks.py",
    "tests/bench/test_bench_cli.py",
    "tests/bench/test_bench_report.py",
    "tests/integrations/test_integrations.py",
)
NIGHTLY = (
    "tests/torture/*",
    "tests/bulk/test_ray.py",
    "tests/bulk/test_workers.py",
    "tests/stores/test_postgres_service.py",
    "tests/http/test_explorer*.py",
    "tests/http/test_http_workers.py",
    "tests/test_nothing_leaves.py",
)
NIGHTLY_FIXTURES = {"browser", "own_server"}


def write_skill(
    folder: Path, body: str = "Text.\n", *, name: str = "", description: str = "d", more: str = ""
) -> Path:
    """Write a small skill, by default of its folder's name, with `more` front matter; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    front = f"name: {name or folder.name}\ndescription: {description}\n{more}"
    (folder / "SKILL.md").write_text(f"---\n{front}---\n{body}", encoding="utf-8")
    return folder


def is_installed(module: str) -> bool:
    """Return whether a module can be imported, which is not done."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it is part of
        return False


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--all-extras`."""
    parser.addoption(
        "--all-extras", action="store_true", help="refuse to leave out tests for want of a package"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to run without the packages of `NEEDED` where all are wanted."""
    needed = {package for each in NEEDED.values() for package in each}
    missing = sorted(package for package in needed if not is_installed(package))
    if missing and config.getoption("--all-extras"):
        raise pytest.UsageError(f"not installed: {', '.join(missing)}; run `make test`, which installs all")


def missing_packages(path: str) -> list[str]:
    """Return which packages the tests of a file need and this environment lacks."""
    needed = {package for pattern, each in NEEDED.items() if fnmatch(path, pattern) for package in each}
    return sorted(package for package in needed if not is_installed(package))


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out files whose tests cannot be imported or run here."""
    is_test = collection_path.suffix == ".py"
    return True if is_test and missing_packages(collection_path.relative_to(ROOT).as_posix()) else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which tests were left out, and why."""
    for pattern, needed in NEEDED.items():
        if missing := [package for package in needed if not is_installed(package)]:
            terminalreporter.write_line(f"{pattern} left out: no {', '.join(missing)}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test` leaves out."""
    for item in items:
        path = item.path.relative_to(ROOT).as_posix()
        fixtures = NIGHTLY_FIXTURES.intersection(getattr(item, "fixturenames", ()))
        if (
            fixtures
            or f"postgres-{min(VERSIONS)}" in item.name
            or "_kill" in item.name
            or any(fnmatch(path, each) for each in NIGHTLY)
        ):
            item.add_marker("nightly")
        elif any(fnmatch(path, each) for each in CHECK):
            item.add_marker("check")


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


@pytest.fixture(scope="session", autouse=True)
def _sample_indexes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let all workers of xdist share the indexes of the samples."""
    base = tmp_path_factory.getbasetemp()
    sample_indexes.share((base.parent if hasattr(request.config, "workerinput") else base) / "indexes")


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


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust the stamps of files at once."""
    monkeypatch.setattr("skillpager.files.SETTLED_NS", -1)


@pytest.fixture(scope="session")
def pager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SkillPager]:
    """The default parts: shipped encoder and classifier, a real SQLite store."""
    folder = sample_indexes.fill(tmp_path_factory.mktemp("pager"))
    made = SkillPager(settings=Settings(cache_dir=folder))
    yield made
    made.close()


@pytest.fixture(scope="session")
def warm_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds every sample skill, for commands."""
    return sample_indexes.fill(tmp_path_factory.mktemp("commands") / "cache")


@pytest.fixture(scope="session")
def quick_pager(tmp_path_factory: pytest.TempPathFactory) -> SkillPager:
    """A pager without models and store, for tests in which neither meaning nor node types matter."""
    return plain_pager(tmp_path_factory.mktemp("quick"), NoStore())


@pytest.fixture(scope="session")
def sample_pager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SkillPager]:
    """The hashing encoder and the shipped classifier: for golden files of single stages."""
    folder = sample_indexes.fill(tmp_path_factory.mktemp("samples"), "hashing")
    made = SkillPager(encoder="hashing", settings=Settings(cache_dir=folder))
    yield made
    made.close()


@pytest.fixture(scope="module")
def fast_pager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SkillPager]:
    """The same with a store for all tests of a module; it indexes thousands of nodes within seconds."""
    settings = Settings(cache_dir=tmp_path_factory.mktemp("cache"))
    made = SkillPager(encoder="hashing", classifier=TurnsClassifier(), settings=settings)
    yield made
    made.close()


@pytest.fixture
def hashing_pager(tmp_path: Path) -> Iterator[SkillPager]:
    """The hashing encoder and types in turn, for tests in which neither meaning nor types matter."""
    settings = Settings(cache_dir=tmp_path / "cache")
    made = SkillPager(encoder="hashing", classifier=TurnsClassifier(), settings=settings)
    yield made
    made.close()


def run_all(children: Sequence[BaseProcess]) -> None:
    """Run processes, all of which must end well."""
    for child in children:
        child.start()
    for child in children:
        child.join(240)
    assert [child.exitcode for child in children] == [0] * len(children)


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    """Processes that share nothing with this one and start fast."""
    context = Processes()
    context.set_forkserver_preload(["store_workers", "torture_workers"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        yield context
