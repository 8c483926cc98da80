"""SkillPager end to end with the shipped parts: index once, page, expand, notice changes."""

import gc
import os
import shutil
import sqlite3
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import skillpager
import skillpager.indexing
from conftest import SAMPLES
from messages import raises
from plain_parts import NoStore
from skillpager import SkillPager
from skillpager.encoders.hashing import HashingEncoder
from skillpager.errors import NodeNotFoundError, SettingsError, StoreError
from skillpager.parsing.skill import read_skill
from skillpager.settings import Settings
from skillpager.stores.sqlite import VERSION
from skillpager.types import Budget, FloatArray, Page, SkipReason, Style

BACKUP = SAMPLES / "postgres-backup"
QUERY = "Restore a single table from last night's dump."


class CountingEncoder:
    """The hashing encoder, counting how often it is called."""

    def __init__(self) -> None:
        self._encoder = HashingEncoder()
        self.id, self.dim = self._encoder.id, self._encoder.dim
        self.documents = self.queries = 0

    def encode_documents(self, texts: list[str]) -> FloatArray:
        self.documents += 1
        time.sleep(0.02)  # long enough for threads to meet
        return self._encoder.encode_documents(texts)

    def encode_query(self, text: str) -> FloatArray:
        self.queries += 1
        return self._encoder.encode_query(text)


def test_the_public_names_are_sorted_and_there() -> None:
    assert skillpager.__all__ == sorted(skillpager.__all__)
    assert all(hasattr(skillpager, name) for name in skillpager.__all__)


def test_a_page_of_a_real_skill_holds_what_the_query_needs(pager: SkillPager) -> None:
    for strategy in (None, "mmr"):
        context = pager.page(BACKUP, "restore one dropped table", strategy=strategy)
        assert "pg_restore" in context.text
        assert "## Restore one table" in context.text
        assert context.tokens < 0.7 * context.full_tokens
        assert not context.complete
        assert context.selection is not None
        ordinals = [node.ordinal for node in context.nodes]
        assert ordinals == sorted(ordinals)
        assert set(ordinals) >= {pick.node.ordinal for pick in context.selection.picks}


def test_without_limits_the_default_ends_by_itself_and_mmr_at_the_papers_number(pager: SkillPager) -> None:
    by_itself, mmr = pager.page(BACKUP, QUERY).selection, pager.page(BACKUP, QUERY, strategy="mmr").selection
    assert by_itself is not None
    assert {skip.reason for skip in by_itself.skipped} == {SkipReason.BELOW_THRESHOLD}
    assert by_itself.budget == Budget(len(pager.index(BACKUP).nodes), None, None)
    assert mmr is not None
    assert len(mmr.picks) == 20
    assert {skip.reason for skip in mmr.skipped} == {SkipReason.MAX_NODES}


@pytest.mark.parametrize("style", [Style.MARKED, Style.XML])
@pytest.mark.parametrize("strategy", ["navigator", "mmr"])
@pytest.mark.parametrize("name", ["postgres-backup", "kubernetes-debugging", "git-bisect"])
def test_a_skill_is_whole_exactly_when_the_whole_is_within_the_ceiling(
    pager: SkillPager, name: str, strategy: str, style: Style
) -> None:
    skill, many = SAMPLES / name, {"strategy": strategy, "style": style, "max_nodes": 1000, "fill": True}
    whole = pager.page(skill, QUERY, **many, max_tokens=10**6)
    assert whole.complete
    exact = pager.page(skill, QUERY, **many, max_tokens=max(whole.tokens, whole.full_tokens))
    assert exact.text == whole.text
    assert exact.selection is not None
    assert exact.selection.strategy == "full"
    assert exact.selection.budget == Budget(len(whole.nodes), max(whole.tokens, whole.full_tokens), fill=True)
    assert exact.sufficiency == (1.0 if strategy == "navigator" else None)
    less = pager.page(skill, QUERY, **many, max_tokens=whole.tokens - 1)
    assert less.tokens < whole.tokens
    assert not less.complete
    assert less.selection is not None
    assert less.selection.strategy == strategy
    assert (less.sufficiency or 0) < 1
    assert less.sufficiency is None if strategy == "mmr" else less.sufficiency == _last_chance(less)


def _last_chance(context: Page) -> float | None:
    """Return the chance of the last pick that a page shows."""
    assert context.selection is not None
    shown = {node.ordinal for node in context.nodes}
    return [pick.sufficiency for pick in context.selection.picks if pick.node.ordinal in shown][-1]


def test_embeddings_are_unit_rows_in_the_order_of_nodes(pager: SkillPager) -> None:
    index = pager.index(BACKUP)
    assert index.embeddings.shape == (len(index.nodes), pager.encoder.dim)
    assert index.embeddings.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(index.embeddings, axis=1), 1, atol=1e-5)
    assert [node.id for node in index.nodes] == [f"n{number}" for number in range(len(index.nodes))]
    assert {edge.kind for edge in index.edges} >= {"sequence"}
    assert all(0 < node.type_confidence <= 1 for node in index.nodes)


def test_a_page_without_room_for_marks_names_all_that_it_leaves_out(hashing_pager: SkillPager) -> None:
    page = hashing_pager.page("Stop the server.\n\nStart it again.\n", "stop it", max_tokens=0)
    assert (page.text, page.nodes, page.complete) == ("", (), False)
    assert [omission.nodes for omission in page.omitted] == [("n0", "n1")]
    assert not hashing_pager.page("# Only\n\n## Headings\n", "stop it", max_tokens=0).complete


def test_a_page_is_its_text_and_says_in_short_what_it_holds_or_why_not(hashing_pager: SkillPager) -> None:
    with hashing_pager as pager:
        page = pager.page(BACKUP, QUERY, max_nodes=4)
        few = pager.page(BACKUP, QUERY, max_tokens=9)
        made = skillpager.Library(pager, str(SAMPLES)).page(QUERY, max_tokens=500)
    assert (str(page), page.problem, str(made)) == (page.text, "", made.text)
    assert repr(page) == f"Page({len(page.nodes)} of 53 nodes, {page.tokens} of {page.full_tokens:,} tokens)"
    assert repr(few) == f"Page({few.problem})"
    assert few.problem.endswith(f" Raise max_tokens to {few.least_tokens}.")


def test_text_paths_skills_and_indexes_are_all_skills(pager: SkillPager) -> None:
    text = (BACKUP / "SKILL.md").read_text(encoding="utf-8")
    sources = BACKUP, str(BACKUP), BACKUP / "SKILL.md", text, read_skill(BACKUP), pager.index(BACKUP)
    assert len({pager.page(source, QUERY).text for source in sources}) == 1


def test_expand_is_a_page_fault(pager: SkillPager) -> None:
    omission = max(pager.page(BACKUP, QUERY).omitted, key=lambda omission: omission.tokens)
    fault = pager.expand(BACKUP, f"{omission.nodes[0]}-{omission.nodes[-1]}")
    assert tuple(node.id for node in fault.nodes) == omission.nodes
    lines = pager.expand(BACKUP, [f"L{omission.start_line}-{omission.end_line}"])
    assert set(omission.nodes) <= {node.id for node in lines.nodes}
    with raises(NodeNotFoundError):
        pager.expand(BACKUP, "n999")


def test_an_index_is_built_once_and_loaded_by_the_next_process(tmp_path: Path) -> None:
    encoder = CountingEncoder()
    first = SkillPager(encoder=encoder, store=tmp_path)
    index = first.index(BACKUP)
    for _ in range(2):
        first.page(BACKUP, QUERY)
    first.close()
    second = SkillPager(encoder=encoder, store=tmp_path)
    again = second.index(BACKUP)
    second.close()
    assert (encoder.documents, encoder.queries) == (1, 1)
    assert again.nodes == index.nodes
    assert again.edges == index.edges
    np.testing.assert_array_equal(again.embeddings, index.embeddings)


def test_another_part_makes_another_index(tmp_path: Path) -> None:
    keys, nodes = set(), list[int]()
    for form, splitter in ("heading", "default"), ("bare", "default"), ("bare", "paper"):
        settings = Settings(cache_dir=tmp_path, embedded_text=form, splitter=splitter)
        with SkillPager(encoder="hashing", settings=settings) as pager:
            # one file alone: the same index
            keys |= {pager.index(BACKUP, scope=scope).key for scope in ("skill", "body")}
            nodes.append(len(pager.index(BACKUP).nodes))
    assert len(keys) == 3
    assert nodes[0] == nodes[1] < nodes[2]


def test_a_changed_file_is_noticed_and_an_unchanged_one_is_not_read_again(tmp_path: Path) -> None:
    encoder = CountingEncoder()
    pager = SkillPager(encoder=encoder, store=tmp_path / "cache")
    path = tmp_path / "notes.md"
    for words in ("one", "two", "one"):
        path.write_text(f"# Notes\n\nSay {words}.\n", encoding="utf-8")
        assert f"Say {words}." in pager.page(path, "say").text
    assert encoder.documents == 2
    pager.close()


def test_every_change_in_the_folder_of_a_skill_is_noticed(
    tmp_path: Path, hashing_pager: SkillPager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def files() -> list[str]:
        return [file.path for file in hashing_pager.index(tmp_path).skill.files]

    monkeypatch.setattr("skillpager.files.SETTLED_NS", -1)  # all times are old enough
    (tmp_path / "SKILL.md").write_text("# S\n\nText.\n")
    (tmp_path / "data" / "deep").mkdir(parents=True)
    assert files() == ["SKILL.md"]
    (tmp_path / "data" / "deep" / "a.md").write_bytes(b"\xff")  # in a folder from which nothing was read
    assert files() == ["SKILL.md"]
    (tmp_path / "data" / "deep" / "a.md").write_bytes(b"The first version.\n")
    assert files() == ["SKILL.md", "data/deep/a.md"]
    first = hashing_pager.index(tmp_path)
    assert hashing_pager.index(tmp_path) is first
    (tmp_path / "data" / "deep" / "a.md").write_bytes(b"The other version.\n")
    assert "The other version." in hashing_pager.whole(tmp_path).text
    (tmp_path / "data" / "deep" / "a.md").unlink()
    assert files() == ["SKILL.md"]


def test_threads_share_one_build(tmp_path: Path) -> None:
    encoder = CountingEncoder()
    pager = SkillPager(encoder=encoder, store=tmp_path)
    barrier = threading.Barrier(8)

    def work(number: int) -> str:
        barrier.wait()
        return pager.page(BACKUP, QUERY if number % 2 else "encrypt a dump").text

    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(work, range(8)))
    assert encoder.documents == 1
    assert len(set(texts)) == 2
    pager.close()


def test_front_matter_alone_is_an_empty_page(hashing_pager: SkillPager) -> None:
    context = hashing_pager.page("---\nname: a\ndescription: b\n---\n", "anything")
    assert context.complete
    assert context.nodes == ()


@pytest.mark.parametrize(
    "arguments",
    [
        {"strategy": "best"},
        {"style": "html"},
        {"scope": "all"},
        {"mmr_lambda": 1.5},
        {"max_nodes": -1},
        {"max_tokens": "many"},
        {"query": None},
        {"strategy": "navigator", "sufficiency": 1.5},
        {"sufficiency": 0.9},  # the default with another encoder
        {"query": "  "},
        {"strategy": 3},
    ],
)
def test_a_wrong_argument_is_a_clear_error(hashing_pager: SkillPager, arguments: dict[str, object]) -> None:
    call = {"query": QUERY, **arguments}
    with raises(SettingsError):
        hashing_pager.page(BACKUP, call.pop("query"), **call)  # type: ignore[arg-type]


def test_the_same_text_in_another_place_is_another_skill(hashing_pager: SkillPager, tmp_path: Path) -> None:
    text = "---\nname: same\n---\nDo it.\n"
    assert hashing_pager.index(text).skill.root is None
    for name in ("first", "second", "first"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "SKILL.md").write_text(text, encoding="utf-8")
        assert hashing_pager.index(tmp_path / name).skill.root == (tmp_path / name).resolve()
    assert hashing_pager.index(text).skill.root is None


@pytest.mark.usefixtures("settled")
def test_another_text_of_the_same_size_and_time_is_noticed(hashing_pager: SkillPager, tmp_path: Path) -> None:
    file = tmp_path / "alone" / "skill.md"
    file.parent.mkdir()
    file.write_text("Do it.\n", encoding="utf-8")
    before = file.stat()
    assert hashing_pager.index(file).nodes[0].text == "Do it."
    with file.open("r+b") as opened:
        opened.write(b"Do if.")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = file.stat()
    assert (after.st_mtime_ns, after.st_size, after.st_ino) == (
        *(before.st_mtime_ns, before.st_size, before.st_ino),
    )
    assert hashing_pager.index(file).nodes[0].text == "Do if."


@pytest.mark.usefixtures("settled")
def test_a_link_that_leads_elsewhere_now_is_noticed(
    hashing_pager: SkillPager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        (tmp_path / name / "current").mkdir(parents=True)
        (tmp_path / name / "current" / "SKILL.md").write_text(f"{name}\n", encoding="utf-8")
        monkeypatch.chdir(tmp_path / name)
        assert hashing_pager.index("current").nodes[0].text == name
    link = tmp_path / "link"
    for name in ("first", "second"):
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / name)
        assert hashing_pager.index(link / "current").nodes[0].text == name


STORE_FAULTS = {
    "a file in place of the folder": lambda file: file.parent.write_text("file"),
    "a newer version": lambda file: make_database(file, f"PRAGMA user_version = {VERSION + 1}"),
    "a pipe": lambda file: (file.parent.mkdir(), os.mkfifo(file)),
}


def make_database(file: Path, statement: str) -> None:
    """Make a database that is not ours to change."""
    file.parent.mkdir()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)


def remove(path: Path) -> None:
    """Remove a file, or a folder with what is in it."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("what", STORE_FAULTS)
def test_pages_are_made_without_a_store_and_it_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    folder = tmp_path / "cache"
    STORE_FAULTS[what](folder / "index.db")
    pager = SkillPager(encoder="hashing", store=folder)
    tried = Mock(side_effect=pager.store.load)
    monkeypatch.setattr(pager.store, "load", tried)
    texts = ["# One\n\nDo it.\n", "# Two\n\nDo that.\n", "# Three\n\nDo more.\n"]
    for text in texts * 2:
        assert pager.page(text, QUERY).nodes
    warned = [record.getMessage() for record in caplog.records]
    assert len([text for text in warned if "indexes are not stored" in text]) == len(warned) == 1
    assert tried.call_count == 1
    with pytest.raises(StoreError):
        pager.store.entries()
    remove(folder)
    monkeypatch.setattr(skillpager.indexing, "STORE_PAUSE_SECONDS", 0.0)
    pager._indexes._paused_until = 0.0  # the pause is over
    caplog.clear()
    assert pager.page("# Four\n\nDo it.\n", QUERY).nodes
    assert len(pager.store.entries()) == 1
    # a store that fails while the program runs
    pager.close()
    remove(folder)
    STORE_FAULTS[what](folder / "index.db")
    assert pager.page("# Five\n\nDo it.\n", QUERY).nodes
    assert "indexes are not stored" in caplog.text
    pager.close()


def test_commands_that_clients_choose_do_not_fill_the_memory() -> None:
    pager = SkillPager(encoder=HashingEncoder(), store=NoStore())
    index = pager.index(SAMPLES / "kubernetes-debugging")
    pager.page(index, "why is the pod crashing", max_tokens=800)
    tracemalloc.start()
    for number in range(60):
        pager.page(index, "why is the pod crashing", max_tokens=800, show=f"tool {number}")
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert grown < 1_000_000
