"""The wording of errors: `raises` compares it with tests/golden/errors.txt, which `make golden` writes anew.

The file holds type and text of each error under the id of its test, in the order in which they are raised.
This module is a plugin of pytest.
"""

import difflib
import json
import os
import re
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from skillpager.errors import install_command, reinstall_command

E = TypeVar("E", bound=BaseException)
Errors = dict[str, list[str]]

ROOT = Path(__file__).parent.parent
ERRORS = ROOT / "tests" / "golden" / "errors.txt"
REVIEW = "review the wording, then run `make golden`"

# the golden file (nothing while it is written anew), and what this run raised; by test
expected: Errors = {}
raised: Errors = defaultdict(list)

# parts of a text that differ between runs, machines, and versions of Python and packages
varying = {
    re.escape(str(ROOT)): "{root}",
    r"(?<=127\.0\.0\.1:)\d+|(?<=\bport )\d+": "{port}",
    r"\btest_\d+\b": "{database}",
    r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,64}\b": "{digest}",
    r"(?<=Invalid JSON: )[\w ]+ at line \d+ column \d+": "{pydantic}",
    r"(?:This file contains|Cannot load file containing) pickled .*(?=\):)": "{numpy}",
    r"(?<=not JSON compliant): nan": "",
    r"(\w)\1{99,}": r"\1…",
}


@contextmanager
def raises(kind: type[E] | tuple[type[E], ...]) -> Iterator[pytest.ExceptionInfo[E]]:
    """Expect an error with the wording of the golden file; otherwise like `pytest.raises`.

    Where Hypothesis, the operating system or a parser of Python brings a part of the text, which then
    differs between runs or versions, use `pytest.raises` with `match` on the part that is ours.
    """
    __tracebackhide__ = True
    with pytest.raises(kind) as caught:
        yield caught
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    text = normalize(caught.value)
    raised[test].append(text)
    if not expected:
        return
    known = expected.get(test, [])
    number = len(raised[test])
    if number > len(known):
        pytest.fail(f"error {number} of this test is not in {ERRORS.name}; {REVIEW}:\n{text}", pytrace=False)
    if text != known[number - 1]:
        diff = "\n".join(difflib.ndiff([known[number - 1]], [text]))
        pytest.fail(f"not as in {ERRORS.name}; {REVIEW}:\n{diff}", pytrace=False)


def normalize(error: BaseException) -> str:
    """Return type and text of an error, with names in place of what varies."""
    text = str(error).encode("utf-8", "backslashreplace").decode()
    parser = error.__cause__
    if isinstance(parser, (json.JSONDecodeError, tomllib.TOMLDecodeError)):
        text = text.replace(str(parser), f"{{{type(parser).__name__}}}")
    text = text.replace(reinstall_command(), "pip install --force-reinstall --no-deps skillpager")
    for extra in set(re.findall(r"\[([\w-]+)\]", text)):
        text = text.replace(install_command(extra), f'pip install "skillpager[{extra}]"')
    for pattern, name in varying.items():
        text = re.sub(pattern, name, text)
    public = next(kind for kind in type(error).__mro__ if not kind.__name__.startswith("_"))
    return f"{public.__name__}: " + re.sub(r"\n\s*\n", "\n", text).strip()


def read_errors() -> Errors:
    """Return the errors of the golden file, by test."""
    blocks = ERRORS.read_bytes().decode().removeprefix("# ").removesuffix("\n").split("\n\n# ")
    return {test: texts.split("\n\n") for test, _, texts in (block.partition("\n") for block in blocks)}


def write_errors(errors: Errors) -> None:
    """Write the golden file, sorted by test."""
    blocks = (f"# {test}\n" + "\n\n".join(texts) + "\n" for test, texts in sorted(errors.items()))
    ERRORS.write_bytes("\n".join(blocks).encode())


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--write-messages`."""
    parser.addoption(
        "--write-messages",
        action="store_true",
        help="write the errors of the tests that pass to the golden file",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read the golden file, before tests give up privileges; or write it at the end."""
    if not config.getoption("--write-messages"):
        expected.update(read_errors())
    elif config.getoption("numprocesses", None):
        raise pytest.UsageError("--write-messages works in one process: add -n0")
    else:
        config.pluginmanager.register(Writer(config))


@pytest.fixture(scope="session", autouse=True)
def _temporary_folders(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Name the folders that tests make for themselves."""
    for folder in (str(tmp_path_factory.getbasetemp()), tempfile.gettempdir()):
        varying[re.escape(folder) + r"/\w+"] = "{tmp}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Forget the errors of an earlier run of the same test."""
    raised.pop(item.nodeid, None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Let a test fail that raised fewer errors than the golden file has."""
    result = yield
    if raised[item.nodeid] and not calls_raises(item):
        pytest.fail("call `raises` in the test itself, where `make golden` looks for it")
    if len(raised[item.nodeid]) < len(expected.get(item.nodeid, [])):
        pytest.fail(f"{ERRORS.name} has errors that this test does not raise; {REVIEW}", pytrace=False)
    return result


def calls_raises(item: pytest.Item) -> bool:
    """Return whether the function of a test names `raises`."""
    if not isinstance(item, pytest.Function) or getattr(item.module, "raises", None) is not raises:
        return False
    return "raises" in item.function.__code__.co_names


class Writer:
    """A plugin that runs the tests that call `raises`, and writes their errors to the golden file.

    The errors of a test that does not pass, or is not among those asked for, stay as they are.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.whole_files = not any("::" in argument for argument in config.args)
        self.files: set[str] = set()
        self.tests: set[str] = set()
        self.passed: set[str] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the tests that do not call `raises`."""
        self.files.update(file_of(item.nodeid) for item in items)
        items[:] = filter(calls_raises, items)
        self.tests.update(item.nodeid for item in items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the tests that pass."""
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write the golden file."""
        before = read_errors() if ERRORS.exists() else {}
        stay = {test: texts for test, texts in before.items() if not self.is_gone(test)}
        write_errors(stay | {test: raised[test] for test in self.passed if raised[test]})

    def is_gone(self, test: str) -> bool:
        """Return whether a test of the golden file is no more, or raises no more."""
        file = file_of(test)
        looked_through = self.whole_files and file in self.files
        removed = looked_through and test not in self.tests
        return removed or test in self.passed or not (ROOT / file).exists()


def file_of(test: str) -> str:
    """Return the file of a test, relative to the root."""
    return test.partition("::")[0]
