"""What a start of the program imports: each heavy package only where its work is done."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cli_process import SAMPLES, TIME_LIMIT, environment

# prints the modules of a program that is given as its argument, behind its output
PROBE = """
import contextlib, io, json, sys
before = set(sys.modules)
with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
    try:
        exec(sys.argv.pop(1))
    except SystemExit as end:
        assert not end.code, end
print(json.dumps(sorted(set(sys.modules) - before)))
"""
COMMAND = "from skillpager.cli.app import main; main()"
# the parts of the standard library that take more than 5 ms to import
SLOW_STANDARD = {
    *("asyncio", "concurrent.futures", "email.message", "http.client", "importlib.metadata"),
    *("multiprocessing", "unittest", "xml.etree.ElementTree"),
}
COMMAND_LINE = {"skillpager", "typer", "click", "shellingham", "annotated_doc"}
# typer converts values with it
PYDANTIC = {"pydantic", "pydantic_core", "annotated_types", "typing_inspection"}
MODELS_AND_PARSERS = {"onnxruntime", "tokenizers", "markdown_it", "sentencex"}
QUERY = "Restore a single table from last night's dump."


def modules(program: str, *arguments: str | Path, env: dict[str, str]) -> set[str]:
    """Return the modules that a program imports in a fresh process."""
    start = [sys.executable, "-c", PROBE, program, *map(str, arguments)]
    done = subprocess.run(start, env=env, capture_output=True, text=True, check=True, timeout=TIME_LIMIT)
    return set(json.loads(done.stdout))


def packages(loaded: set[str]) -> set[str]:
    """Return the packages among modules that are neither of Python nor parts of another package."""
    names = {name.partition(".")[0] for name in loaded}
    own = {name for name in names if name.startswith("_sysconfigdata") or "cython" in name}
    return names - own - set(sys.stdlib_module_names)


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return environment(tmp_path_factory.mktemp("start") / "cache")


def test_the_package_imports_nothing_until_a_name_is_asked_for(env: dict[str, str]) -> None:
    loaded = modules("import skillpager", env=env)
    assert {name for name in loaded if name.startswith("skillpager")} == {"skillpager"}
    assert packages(loaded) == {"skillpager"}


def test_the_pager_imports_no_model_and_no_parser(env: dict[str, str]) -> None:
    loaded = modules("from skillpager import SkillPager", env=env)
    assert packages(loaded) == {"skillpager", "numpy", "platformdirs", "typing_extensions", "yaml"}
    assert not loaded & SLOW_STANDARD


@pytest.mark.parametrize("words", [["--help"], ["page", "--help"], ["--version"]])
def test_help_imports_no_model_and_no_parser(words: list[str], env: dict[str, str]) -> None:
    loaded = modules(COMMAND, *words, env=env)
    assert not packages(loaded) & (MODELS_AND_PARSERS | {"numpy", "tantivy"})
    assert "skillpager.pager" not in loaded


@pytest.mark.parametrize("options", [[], ["--max-tokens", "800"]])
def test_the_page_of_an_indexed_skill_imports_what_it_needs(options: list[str], env: dict[str, str]) -> None:
    ask = ["page", SAMPLES / "postgres-backup", QUERY, *options]
    modules(COMMAND, *ask, env=env)  # is indexed now, if it was not yet
    loaded = modules(COMMAND, *ask, env=env)
    reading = {"platformdirs", "typing_extensions", "yaml"}
    picking = {"numpy", "onnxruntime", "tokenizers", "rs_bpe"}
    assert packages(loaded) <= COMMAND_LINE | PYDANTIC | reading | picking
    assert packages(loaded) >= {"numpy", "onnxruntime", "tokenizers"}
    # neither the other commands nor the stages of indexing
    assert {name for name in loaded if name.startswith("skillpager.cli.")} == {
        f"skillpager.cli.{name}" for name in ("app", "messages", "options", "page", "session", "views")
    }
    stages = ("parsing.blocks", "parsing.merge_rules", "graph.edges", "classifiers.features")
    assert not loaded & {f"skillpager.{stage}" for stage in stages}


def test_reading_omitted_nodes_imports_no_model(env: dict[str, str]) -> None:
    loaded = modules(COMMAND, "show", SAMPLES / "postgres-backup", "n2", env=env)
    assert not packages(loaded) & (MODELS_AND_PARSERS | {"rich"})


def test_the_mcp_server_loads_no_model_before_it_can_answer(env: dict[str, str]) -> None:
    pytest.importorskip("mcp")
    program = f"import skillpager.mcp.server as server; server.serve_pipe = lambda _: None; {COMMAND}"
    loaded = modules(program, "mcp", SAMPLES, env=env)
    assert "mcp.server" in loaded
    assert not packages(loaded) & (MODELS_AND_PARSERS | {"numpy", "rich"})
