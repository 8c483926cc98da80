"""The first page of a large skill comes before its index, which is built in the background."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cli_process import SAMPLES, environment, invoke, wait_until
from skillpager import SkillPager
from skillpager.encoders.hashing import HashingEncoder
from skillpager.errors import EncoderError
from skillpager.indexing import DRAFT_NODES, LARGE_CHARS, Builder
from skillpager.parsing.skill import skill_from_files
from skillpager.settings import Settings
from skillpager.types import FloatArray, Skill, SkillIndex

QUERY = "rotate the signing key of the gateway"
RIGHT = "Rotate the signing key with `gateway keys rotate`, then restart the gateway.\n"


class Counting(HashingEncoder):
    """Counts the texts that it embeds."""

    embedded = 0

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        self.embedded += len(texts)
        return super().encode_documents(texts)


def large_skill(chars: int) -> Skill:
    part = "## Part {0}\n\nThe sensor {0} measures the level of tank {0}.\n\n"
    filler = "".join(map(part.format, range(chars // 60)))
    files = [
        ("SKILL.md", "# Plant\n\nIt works.\n"),
        ("tanks.md", filler),
        ("z/keys.md", f"# Keys\n\n{RIGHT}"),
    ]
    return skill_from_files(files, name="plant")


def test_a_draft_comes_before_the_index(hashing_pager: SkillPager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillpager.indexing.DRAFT_SECONDS", 0)
    encoder = Counting()
    with_count = SkillPager(
        encoder=encoder, classifier=hashing_pager.classifier, settings=hashing_pager.settings
    )
    skill = large_skill(LARGE_CHARS)
    draft = with_count.index(skill, query=QUERY)
    assert np.flatnonzero(draft.embeddings.any(axis=1)).size == DRAFT_NODES
    assert draft.embeddings[-1].any(), "the section that answers is embedded"
    again = with_count.index(skill, query=f"{QUERY} in the sensor 7")
    assert RIGHT.strip() in with_count.page(draft, QUERY, max_tokens=300).text
    with_count._indexes._background.submit(lambda: None).result()  # after the index
    assert [entry.key for entry in with_count.store.entries()] == [draft.key]
    full = with_count.index(skill, query=QUERY)
    drafted, rows, every = (each.embeddings.any(axis=1) for each in (draft, again, full))
    assert every.all()
    assert (again.embeddings[rows] == full.embeddings[rows]).all()
    new = 0 if again is full else np.count_nonzero(rows & ~drafted)
    assert encoder.embedded == DRAFT_NODES + new + 1 + len(full.nodes), "drafts, the query and the index"
    assert [with_count.for_draft(QUERY, each) for each in ("navigator", "mmr")] == [QUERY, ""]


def test_a_page_is_printed_before_the_index_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build, built = Builder.build, []

    def build_late(self: Builder, *given: object, query: str = "", **others: object) -> SkillIndex:
        if not query:  # the end of the page is flushed before
            wait_until(lambda: b"[Page of" in sys.stdout.buffer.getvalue(), 10)  # type: ignore[attr-defined]
        built.append(query)
        return build(self, *given, query=query, **others)  # type: ignore[arg-type]

    monkeypatch.setattr("skillpager.indexing.LARGE_CHARS", 100)
    monkeypatch.setattr("skillpager.indexing.DRAFT_NODES", 5)
    monkeypatch.setattr(Builder, "build", build_late)
    env = environment(tmp_path / "cache", samples=False)
    done = invoke("page", SAMPLES / "git-bisect", "skip a commit", "-k", "3", "--explain", env=env)
    assert built == ["skip a commit", ""]
    assert "is large and new: its page is made from the nodes" in done.err
    with SkillPager(settings=Settings(cache_dir=tmp_path / "cache")) as pager:
        assert len(pager.store.entries()) == 1


def test_a_map_that_waits_for_the_index_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillpager.indexing.LARGE_CHARS", 100)
    env, skill = environment(tmp_path / "cache", samples=False), SAMPLES / "git-bisect"
    told = [invoke(*each, env=env).err for each in (("page", skill, "", "--or-outline"), ("outline", skill))]
    assert ["is large and new: all of it is indexed first\n" in each for each in told] == [True, False]


def test_a_query_has_one_draft(hashing_pager: SkillPager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillpager.indexing.LARGE_CHARS", 100)
    monkeypatch.setattr("skillpager.indexing.IndexCache._build_later", lambda *_: None)
    first, same = (hashing_pager.index(large_skill(200), query=QUERY) for _ in range(2))
    assert (first is same, hashing_pager.index(large_skill(200), query="tank") is first) == (True, False)


def test_a_small_skill_is_indexed_as_a_whole(hashing_pager: SkillPager) -> None:
    assert hashing_pager.index(large_skill(LARGE_CHARS // 2), query=QUERY).embeddings.any(axis=1).all()


def test_what_fails_in_the_background_is_told(
    hashing_pager: SkillPager, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    skill, build = large_skill(LARGE_CHARS), Builder.build

    def fail(self: Builder, *given: object, query: str = "", **others: object) -> SkillIndex:
        if query:
            return build(self, *given, query=query, **others)  # type: ignore[arg-type]
        raise EncoderError("the model is gone")

    monkeypatch.setattr(Builder, "build", fail)
    monkeypatch.setattr("skillpager.indexing.DRAFT_SECONDS", 0)
    for _ in range(2):  # it is tried again
        hashing_pager.index(skill, query=QUERY)
        hashing_pager._indexes._background.submit(lambda: None).result()  # after what was begun before
    told = [record.message for record in caplog.records if "is not indexed" in record.message]
    assert told == ['"plant" is not indexed: the model is gone'] * 2


def test_of_a_changed_skill_a_changed_file_is_embedded(hashing_pager: SkillPager, tmp_path: Path) -> None:
    encoder = Counting()
    parts = {"encoder": encoder, "classifier": hashing_pager.classifier, "settings": hashing_pager.settings}
    skill = large_skill(LARGE_CHARS)
    before = SkillPager(**parts).index(skill)
    keys = skill_from_files([("z/keys.md", f"# Keys\n\n{RIGHT}\nKeep the old key.\n")], name="plant").files
    changed = replace(skill, files=(*skill.files[:-1], *keys))
    encoder.embedded = 0
    after = SkillPager(**parts).index(changed, query=QUERY)  # an index at once, though it is large
    assert encoder.embedded == len(after.nodes) - len(before.nodes) + 1 == 2
    whole = SkillPager(**parts, store=tmp_path / "elsewhere").index(changed)
    assert (after.embeddings == whole.embeddings).all()
    assert after.nodes == whole.nodes
    fewer = replace(changed, files=changed.files[:-1])
    assert len(SkillPager(**parts).index(fewer).nodes) == len(after.nodes) - 2
    assert encoder.embedded == 2 + len(whole.nodes)
