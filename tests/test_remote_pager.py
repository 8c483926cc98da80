"""SkillPager on remote parts, end to end: an embeddings endpoint and a chat endpoint on a real port."""

from dataclasses import replace
from pathlib import Path

import pytest

from conftest import SAMPLES
from openai_server import Asked, OpenAIServer, Reply, always, answers, good_reply, openai_server
from skillpager import SkillPager
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
    settings = settings_of(openai_server, tmp_path)
    pager = SkillPager(settings=settings)
    first = pager.page(SKILL, QUERY)
    assert {node.type for node in first.nodes} == {NodeType.STEP}
    asked = len(openai_server.asked)
    pager.close()

    again = SkillPager(settings=settings)
    assert again.page(SKILL, QUERY).text == first.text
    assert len(openai_server.asked) == asked + 1  # the query's embedding and nothing else
    again.close()


def test_the_timeout_of_the_settings_is_that_of_a_request(
    openai_server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillpager.classifiers.llm.MAX_RETRIES", 0)
    openai_server.respond = always(Reply(hang=True))
    settings = replace(settings_of(openai_server, tmp_path), encoder="builtin", llm_timeout=0.1)
    classifier = make_classifier("llm", settings)
    with pytest.raises(ClassifierError, match=r"did not answer within 0\.1 s"):
        SkillPager(classifier=classifier, settings=settings).index(SKILL)
