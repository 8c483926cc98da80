"""SkillPager on remote parts, end to end: an embeddings endpoint and a chat endpoint on a real port."""

from dataclasses import replace
from pathlib import Path

import pytest

from conftest import SAMPLES
from openai_server import Asked, OpenAIServer, Reply, always, answers, completion, good_reply, openai_server
from skillpager import SkillPager
from skillpager.classifiers.llm import FALLBACK_CONFIDENCE
from skillpager.errors import ClassifierError
from skillpager.factories import make_classifier
from skillpager.settings import Settings
from skillpager.types import NodeType

__all__ = ["openai_server"]

SKILL = SAMPLES / "postgres-backup"
QUERY = "Restore a single table from last night's dump."


def settings_of(server: OpenAIServer, folder: Path) -> Settings:
    """Return settings that name the server for both purposes."""
    return Settings(
        cache_dir=folder,
        encoder="openai:embedder",
        classifier="llm",
        embed_base_url=server.base_url,
        llm_base_url=server.base_url,
        llm_model="typer",
    )


def all_steps(asked: Asked) -> Reply:
    """Answer like a chat model that takes everything for a step, and embed as the server does."""
    if not asked.path.endswith("/chat/completions"):
        return good_reply(asked)
    return answers([{"index": n, "type": "step", "confidence": 0.9} for n in range(len(asked.texts))])


def test_a_skill_is_embedded_and_typed_remotely_once(openai_server: OpenAIServer, tmp_path: Path) -> None:
    openai_server.respond = all_steps
    told: list[tuple[int, int]] = []
    settings = settings_of(openai_server, tmp_path)
    pager = SkillPager(settings=settings, progress=lambda done, total: told.append((done, total)))
    first = pager.page(SKILL, QUERY)
    assert {node.type for node in first.nodes} == {NodeType.STEP}
    batches = -(-len(pager.index(SKILL).nodes) // 20)
    assert told == [(done, batches) for done in range(batches + 1)]
    asked = len(openai_server.asked)
    pager.close()

    again = SkillPager(settings=settings)
    assert again.page(SKILL, QUERY).text == first.text
    assert len(openai_server.asked) == asked + 1  # the query's embedding and nothing else
    again.close()


def test_the_shipped_classifier_types_what_the_model_cannot(
    openai_server: OpenAIServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("skillpager.remote.endpoint.FIRST_DELAY", 0.0)
    local = [
        node.type for node in SkillPager(settings=Settings(cache_dir=tmp_path / "local")).index(SKILL).nodes
    ]
    openai_server.respond = lambda asked: (
        # the last of the batches, and whatever is left of it
        completion("no idea") if asked.message["after"] is None else all_steps(asked)
    )
    settings = Settings(
        cache_dir=tmp_path / "remote",
        classifier="llm",
        llm_base_url=openai_server.base_url,
        llm_model="typer",
        llm_batch_size=5,
        llm_concurrency=1,
    )
    classifier = make_classifier("llm", settings)
    index = SkillPager(classifier=classifier, settings=settings).index(SKILL)
    start = (len(index.nodes) - 1) // 5 * 5
    assert {(node.type, node.type_confidence) for node in index.nodes[:start]} == {(NodeType.STEP, 0.9)}
    assert [node.type for node in index.nodes[start:]] == local[start:]
    assert {node.type_confidence for node in index.nodes[start:]} == {FALLBACK_CONFIDENCE}
    assert "have the types of another classifier" in caplog.text
    assert max(len(asked.texts) for asked in openai_server.asked) == 5
    assert openai_server.most_at_once == 1


def test_the_timeout_of_the_settings_is_that_of_a_request(
    openai_server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillpager.remote.endpoint.FIRST_DELAY", 0.0)
    openai_server.respond = always(Reply(hang=True))
    settings = replace(settings_of(openai_server, tmp_path), encoder="builtin", llm_timeout=0.1)
    classifier = make_classifier("llm", settings)
    with pytest.raises(ClassifierError, match=r"did not answer within 0\.1 s"):
        SkillPager(classifier=classifier, settings=settings).index(SKILL)
