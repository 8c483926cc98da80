"""Haystack: the retriever in real pipelines."""

import asyncio
from pathlib import Path

import pytest
from haystack import Pipeline
from haystack.components.builders import PromptBuilder
from haystack.core.errors import PipelineRuntimeError

from adapter_cases import QUERY, SKILL, waiting_pager
from messages import raises
from skillpager import SkillPager
from skillpager.errors import SettingsError, SkillError
from skillpager.integrations.haystack import SkillPagerRetriever


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


def test_with_a_pager_of_its_own_it_says_why_it_cannot_be_written(hashing_pager: SkillPager) -> None:
    with raises(SettingsError):
        pipeline_of(SkillPagerRetriever(SKILL, pager=hashing_pager)).dumps()


def test_errors_of_the_library_are_the_cause_of_the_pipelines(pager: SkillPager, tmp_path: Path) -> None:
    missing = SkillPagerRetriever(tmp_path / "missing", pager=pager)
    with raises(SkillError):
        missing.run(QUERY)
    with pytest.raises(PipelineRuntimeError, match="missing") as raised:
        pipeline_of(missing).run(inputs())
    assert isinstance(raised.value.__cause__, SkillError)
