"""The wording of errors that users meet: `raises` compares it with tests/golden/errors.txt.

The file holds type and text of each error under the id of its test, in the order in which they are raised. The errors
of a test that it does not name may have any words. `make golden` writes the texts of the tests that it names.
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

# the golden file, and what this run raised; by test
expected: Errors = {}
raised: Errors = defaultdict(list)
writing = False

# parts of a text that differ between runs, machines, and versions of Python and packages
varying = {
    re.escape(str(ROOT)): "{root}",
    r"(?<=127\.0\.0\.1:)\d+|(?<=\bport )\d+": "{port}",
    r"\btest_\d+\b": "{database}",
    r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,64}\b": "{digest}",
    r"(?:This file contains|Cannot load file containing) pickled .*(?=\):)": "{numpy}",
    r"(\w)\1{99,}": r"\1…",
}


@contextmanager
def raises(kind: type[E] | tuple[type[E], ...]) -> Iterator[pytest.ExceptionInfo[E]]:
    """Expect an error, with the wording of the golden file if that names the test; else like `pytest.raises`."""
    __tracebackhide__ = True
    with pytest.raises(kind) as caught:
        yield caught
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    assert str(caught.value) != "None", "an error needs words"
    text = normalize(caught.value)
    raised[test].append(text)
    if test not in expected or writing:
        return
    number = len(raised[test]) - 1
    known = expected[test][number] if number < len(expected[test]) else ""
    if text != known:
        diff = "\n".join(difflib.ndiff([known], [text]))
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
    """Read the golden file, before tests give up privileges."""
    global writing
    expected.update(read_errors())
    writing = config.getoption("--write-messages")
    if writing and config.getoption("numprocesses", None):
        raise pytest.UsageError("--write-messages works in one process: add -n0")


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
    if not writing and len(raised[item.nodeid]) < len(expected.get(item.nodeid, [])):
        pytest.fail(f"{ERRORS.name} has errors that this test does not raise; {REVIEW}", pytrace=False)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests that the golden file names, and no other, while it is written."""
    if writing:
        items[:] = [item for item in items if item.nodeid in expected]


def pytest_sessionfinish() -> None:
    """Write what the tests raised; the errors of those that did not run stay as they are."""
    if writing:
        write_errors(expected | {test: texts for test, texts in raised.items() if test in expected and texts})
