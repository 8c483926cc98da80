"""What holds for all adapters: options, missing packages, examples, documentation, copies of a pager."""

import copy
import importlib
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

from adapter_cases import MAX_NODES, QUERY, SKILL
from conftest import ROOT
from messages import raises
from skillpager import SkillPager, types
from skillpager.errors import MissingExtraError
from skillpager.integrations.retrieval import PageFields, node_records, shared_pager
from skillpager.settings import Settings

# module, package that it needs, extra that brings it
ADAPTERS = [
    ("langchain", "langchain_core", "langchain"),
    ("llama_index", "llama_index.core", "llama-index"),
    ("haystack", "haystack", "haystack"),
    ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
    ("openai_agents", "agents", "openai-agents"),
]

# what the output of each example must show; the key value is in the nodes that were omitted
READ_ON = "omitted lines; read: read_skill_nodes postgres-backup"
AGENT_SHOWS = [READ_ON, "duplicate key value", "I know what to do."]
EXAMPLES = {
    "langchain_retriever": ["n32 step L106-112 PostgreSQL backup and restore > Restore one table"],
    "llama_index_retriever": ["n32 step"],
    "haystack_pipeline": ["Task: Restore a single table", "it is the same pipeline: True"],
    **dict.fromkeys(("pydantic_ai_agent", "openai_agents_agent"), AGENT_SHOWS),
}

DOCUMENT = (ROOT / "docs" / "python.md").read_text(encoding="utf-8").partition("## Adapters")[2]
BLOCKS = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)


def run_python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python as a user does in a clone, every warning an error."""
    kept = {name: os.environ[name] for name in ("PATH", "HAYSTACK_TELEMETRY_ENABLED")}
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**kept, "SKILLPAGER_CACHE_DIR": str(folder), "HOME": str(folder)},
        encoding="utf-8",
    )


def test_options_are_the_keyword_arguments_of_page() -> None:
    # `known` changes from call to call, and an adapter has no tool that runs what is in the folder
    keywords = set(types.PageOptions.__annotations__) - {"known", "folder", "hint"}
    assert set(PageFields().page_options()) == keywords


@pytest.mark.parametrize(("module", "package", "extra"), ADAPTERS)
def test_a_missing_package_is_told_with_the_command_that_installs_it(
    module: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"skillpager.integrations.{module}", raising=False)
    with raises(MissingExtraError):
        importlib.import_module(f"skillpager.integrations.{module}")


def test_the_shared_pager_is_one_and_has_the_settings_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKILLPAGER_MAX_TOKENS", "321")
    shared_pager.cache_clear()
    try:
        assert shared_pager() is shared_pager()
        assert shared_pager().settings.max_tokens == 321
    finally:
        shared_pager.cache_clear()


def test_a_pickled_pager_pages_alike_with_models_of_its_own(tmp_path: Path) -> None:
    settings = Settings(cache_dir=tmp_path, mmr_lambda=0.4)
    made = SkillPager(encoder="hashing", embedded_text="bare", settings=settings)
    page = made.page(SKILL, QUERY, max_nodes=MAX_NODES)
    again = pickle.loads(pickle.dumps(made))
    assert (again.settings, again.recipe) == (settings, made.recipe)
    assert again.page(SKILL, QUERY, max_nodes=MAX_NODES).text == page.text
    assert copy.deepcopy(made) is made
    made.close()
    again.close()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_runs_and_shows_what_it_says(name: str, tmp_path: Path) -> None:
    done = run_python(tmp_path, f"examples/{name}.py")
    assert done.returncode == 0, done.stderr
    for expected in EXAMPLES[name]:
        assert expected in done.stdout


def test_every_example_is_tested() -> None:
    of_bench = {"own_strategy", "compare_strategies"}  # tests/bench/test_bench_own_parts.py
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == set(EXAMPLES) | of_bench


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_the_documented_example_runs(block: str, tmp_path: Path) -> None:
    done = run_python(tmp_path, "-c", block)
    assert done.returncode == 0, done.stderr
    assert bool(done.stdout) == ("print(" in block)


def test_the_documentation_names_every_key_of_a_nodes_metadata(pager: SkillPager) -> None:
    index = pager.index(SKILL)
    records = node_records(index, pager.page(index, QUERY, max_nodes=1))
    record = next(record for record in records if record.metadata["picked"])
    table = DOCUMENT.partition("| key | |")[2].partition("\n\n")[0]
    assert set(record.metadata) == {
        name
        for row in table.splitlines()
        for name in re.findall(r"`(\w+)`", row.split("|")[1] if "|" in row else "")
    }
