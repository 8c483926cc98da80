"""Haystack: the retriever in real pipelines, the store in a real SkillToolset."""

import asyncio
import copy
import pickle
import re
from pathlib import Path

import pytest
from haystack import Pipeline
from haystack.components.builders import PromptBuilder
from haystack.core.errors import PipelineRuntimeError
from haystack.core.serialization import allow_deserialization_module
from haystack.tools import SkillToolset
from haystack.tools.errors import ToolInvocationError

from adapter_cases import (
    NAME,
    NAMES,
    QUERY,
    SKILL,
    TEXT,
    waiting_pager,
)
from conftest import SAMPLES
from messages import raises
from skillpager import SkillPager
from skillpager.errors import NodeNotFoundError, SettingsError, SkillError, UnknownSkillError
from skillpager.integrations.haystack import SkillPagerRetriever, SkillPagerStore

LONG = "kubernetes-debugging"


def pipeline_of(retriever: SkillPagerRetriever) -> Pipeline:
    """Return a pipeline that puts documents into a prompt."""
    pipeline = Pipeline()
    pipeline.add_component("pager", retriever)
    template = "{% for document in documents %}{{ document.content }}\n{% endfor %}Task: {{ query }}"
    pipeline.add_component("prompt", PromptBuilder(template, required_variables="*"))
    pipeline.connect("pager.documents", "prompt.documents")
    return pipeline


def inputs(**options: int) -> dict[str, dict[str, object]]:
    """Return what the pipeline is run with."""
    return {"pager": {"query": QUERY, **options}, "prompt": {"query": QUERY}}


# ---- retriever


def test_it_runs_in_a_pipeline_with_a_budget_of_the_call(pager: SkillPager) -> None:
    pipeline = pipeline_of(SkillPagerRetriever(SKILL, pager=pager, as_page=True, max_tokens=800))
    assert pager.page(SKILL, QUERY, max_tokens=800).text in pipeline.run(inputs())["prompt"]["prompt"]
    smaller = pipeline.run(inputs(max_tokens=300))["prompt"]["prompt"]
    assert smaller.startswith(pager.page(SKILL, QUERY, max_tokens=300).text)
    fewer = pipeline.run(inputs(max_nodes=2))["prompt"]["prompt"]
    assert fewer.startswith(pager.page(SKILL, QUERY, max_tokens=800, max_nodes=2).text)


def test_a_pipeline_run_in_async_leaves_the_event_loop_free(tmp_path: Path) -> None:
    pager, encoder = waiting_pager(tmp_path)
    pipeline = pipeline_of(SkillPagerRetriever(SKILL, pager=pager))

    async def run() -> None:
        running = asyncio.create_task(pipeline.run_async(inputs()))
        await asyncio.sleep(0.05)
        encoder.free.set()
        assert (await running)["prompt"]["prompt"]

    asyncio.run(run())


def test_a_pipeline_is_written_and_read() -> None:
    pipeline = pipeline_of(SkillPagerRetriever(SKILL, as_page=True, max_tokens=300, strategy="mmr"))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["skillpager.*"])
    assert again == pipeline
    assert again.get_component("pager").options == pipeline.get_component("pager").options


def test_with_a_pager_of_its_own_it_says_why_it_cannot_be_written(hashing_pager: SkillPager) -> None:
    with raises(SettingsError):
        pipeline_of(SkillPagerRetriever(SKILL, pager=hashing_pager)).dumps()
    with raises(SettingsError):
        SkillPagerStore([SAMPLES], pager=hashing_pager).to_dict()


def test_errors_of_the_library_are_the_cause_of_the_pipelines(pager: SkillPager, tmp_path: Path) -> None:
    missing = SkillPagerRetriever(tmp_path / "missing", pager=pager)
    with raises(SkillError):
        missing.run(QUERY)
    with pytest.raises(PipelineRuntimeError, match="missing") as raised:
        pipeline_of(missing).run(inputs())
    assert isinstance(raised.value.__cause__, SkillError)


# ---- store


@pytest.fixture
def store(pager: SkillPager) -> SkillPagerStore:
    """A store of the sample skills."""
    return SkillPagerStore([SAMPLES], max_tokens=900, pager=pager)


def test_a_toolset_tells_the_model_every_skill(store: SkillPagerStore) -> None:
    toolset = SkillToolset(store)
    toolset.warm_up()
    for name, info in store.list_skills().items():
        assert f"- {name}: {info.description}" in toolset[0].description
    assert sorted(store.list_skills()) == NAMES


def test_a_skill_that_fits_is_loaded_whole_without_front_matter(pager: SkillPager) -> None:
    body, files = SkillPagerStore([SAMPLES], pager=pager).load_skill(NAME)
    assert body.strip() == TEXT.split("---\n", 2)[2].strip()
    assert files == []


def test_a_long_skill_is_loaded_as_a_page_whose_marks_name_the_toolsets_own_tool(
    store: SkillPagerStore,
) -> None:
    load, read = SkillToolset(store)
    text = load.invoke(name=LONG)
    page, files = store.load_skill(LONG)
    assert text.startswith(page)
    pager = store.options.chosen_pager
    assert pager.token_counter.count(page) <= 900
    assert f"read: {read.name} {LONG} L2-9]" in page
    storage = "references/storage.md"
    assert read.invoke(name=LONG, path=storage) == (SAMPLES / LONG / storage).read_text(encoding="utf-8")
    address = re.findall(r"^\[… (L\d+-\d+)", page, re.MULTILINE)[0]
    expanded = pager.expand(SAMPLES / LONG, address, scope="body")
    assert read.invoke(name=LONG, path=address) == expanded.text
    assert files == sorted(f"references/{path.name}" for path in (SAMPLES / LONG / "references").iterdir())


def test_bytes_that_are_no_text_are_refused(pager: SkillPager, tmp_path: Path) -> None:
    skill = tmp_path / "s"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: s\ndescription: d\n---\ntext\n", encoding="utf-8")
    (skill / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with raises(SkillError):
        SkillPagerStore([tmp_path], pager=pager).read_skill_file("s", "a.png")


@pytest.mark.parametrize(
    "path", ["../git-bisect/SKILL.md", "/etc/passwd", "link.md", "missing.md", "n900", ""]
)
def test_nothing_outside_a_skill_is_read(path: str, pager: SkillPager, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    skill = tmp_path / "skills" / "s"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: s\ndescription: d\n---\ntext\n", encoding="utf-8")
    (skill / "link.md").symlink_to(tmp_path / "secret.md")
    store = SkillPagerStore([tmp_path / "skills"], pager=pager)
    with pytest.raises(FileNotFoundError) as raised:
        store.read_skill_file("s", path)
    assert isinstance(raised.value, NodeNotFoundError)
    assert store.load_skill("s")[1] == []


def test_an_unknown_skill_is_a_key_error_with_close_names(store: SkillPagerStore) -> None:
    with pytest.raises(KeyError) as raised:
        store.load_skill("postgres")
    assert isinstance(raised.value, UnknownSkillError)
    assert str(raised.value) == "There is no skill named 'postgres' among 10: did you mean 'postgres-backup'?"
    with pytest.raises(ToolInvocationError, match="did you mean 'postgres-backup'"):
        SkillToolset(store)[0].invoke(name="postgres")


def test_a_toolset_is_written_and_read() -> None:
    allow_deserialization_module("skillpager.integrations.haystack")
    toolset = SkillToolset(SkillPagerStore([SAMPLES], max_tokens=700))
    again = SkillToolset.from_dict(toolset.to_dict())
    assert again.to_dict() == toolset.to_dict()
    assert sorted(again.skills) == NAMES


def test_a_store_in_use_can_be_copied_and_pickled(hashing_pager: SkillPager) -> None:
    store = SkillPagerStore([SAMPLES], pager=hashing_pager)
    names = list(store.list_skills())
    assert list(copy.deepcopy(store).list_skills()) == names
    assert list(pickle.loads(pickle.dumps(store)).list_skills()) == names
