"""The local encoders: what rows they give, and that nothing but the text decides them."""

import hashlib
import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import ROOT, SAMPLES
from messages import raises
from processor_time import assert_within
from skillpager import SkillPager
from skillpager.encoders import builtin
from skillpager.encoders.builtin import BuiltinEncoder
from skillpager.encoders.hashing import HashingEncoder
from skillpager.errors import EncoderError
from skillpager.factories import make_encoder
from skillpager.sections import embedded_text
from skillpager.settings import Settings
from skillpager.types import Encoder, FloatArray, Fragment, ListContext, Span, TileKind

TEXTS = [
    "Roll back the deployment when the health check fails.",
    "",
    "Scale the features before you fit the model.",
    "```bash\nmake test\n```",
    "数据库连接失败时请检查密码。",
    "Wenn der Dienst nicht antwortet, starte ihn neu.",
    "Roll back the deployment when the health check fails.",
    "| code | reason |\n|---|---|\n| 404 | not found |",
    "تحقق من الاتصال ثم أعد المحاولة",
    "🚀🚀🚀",
    "word " * 400,
    "\x00\t\n ",
    "half \udcff character",
]


@pytest.fixture(scope="module")
def encoder() -> BuiltinEncoder:
    return BuiltinEncoder()


def assert_unit_rows(rows: np.ndarray, count: int, dim: int) -> None:
    assert rows.shape == (count, dim)
    assert rows.dtype == np.float32
    assert rows.flags.c_contiguous
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


# ---- every encoder


@pytest.mark.parametrize("local", [BuiltinEncoder(), HashingEncoder()], ids=lambda encoder: encoder.id)
def test_rows_are_unit_length_and_do_not_depend_on_the_texts_beside_them(local: Encoder) -> None:
    rows = local.encode_documents(TEXTS)
    assert_unit_rows(rows, len(TEXTS), local.dim)
    assert_unit_rows(local.encode_documents([]), 0, local.dim)
    for text, row in zip(TEXTS, rows, strict=True):
        np.testing.assert_array_equal(local.encode_query(text), row)
    assert rows[0] @ rows[2] < 0.9


# ---- builtin


def test_the_number_of_threads_changes_nothing(
    encoder: BuiltinEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"Step {number}: check the {number % 7} logs" for number in range(300)]
    rows = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(builtin, "usable_processors", lambda threads=threads: threads)
        rows.append(encoder.encode_documents(texts))
    np.testing.assert_array_equal(rows[1], rows[0])
    np.testing.assert_array_equal(rows[2], rows[0])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=60), min_size=1, max_size=8))
def test_any_texts_give_unit_rows_that_depend_on_the_text_alone(texts: list[str]) -> None:
    rows = SHARED.encode_documents(texts)
    assert_unit_rows(rows, len(texts), SHARED.dim)
    np.testing.assert_array_equal(rows[-1], SHARED.encode_query(texts[-1]))


SHARED = BuiltinEncoder()


def test_case_and_surrounding_space_do_not_count(encoder: BuiltinEncoder) -> None:
    rows = encoder.encode_documents(["Check the logs", "  check THE logs\n"])
    np.testing.assert_array_equal(rows[0], rows[1])


def test_pieces_after_the_last_that_counts_change_nothing(encoder: BuiltinEncoder) -> None:
    # [CLS] and [SEP] are pieces as well
    counted = "logs " * (builtin.MAX_PIECES - 2)
    rows = encoder.encode_documents([counted, counted + "never read", counted.removesuffix("logs ")])
    np.testing.assert_array_equal(rows[0], rows[1])
    assert not np.array_equal(rows[0], rows[2])


def test_a_line_of_two_megabytes_costs_no_more_than_its_beginning(encoder: BuiltinEncoder) -> None:
    line = "all work and no play " * 100_000
    encoder.encode_query("warm")
    assert_within(1, lambda: encoder.encode_query(line))
    np.testing.assert_array_equal(
        encoder.encode_query(line), encoder.encode_query(line[: builtin.MAX_CHARACTERS])
    )


def test_parts_of_a_query_are_read_within_it(encoder: BuiltinEncoder) -> None:
    text = "restart the pod, then read its log"
    rows = encoder.encode_query_parts(text, ["restart the pod", "read its log"])
    np.testing.assert_array_equal(rows[0], encoder.encode_query(text))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    alone = encoder.encode_documents(["restart the pod", "read its log"])
    assert not np.array_equal(rows[1:], alone)
    # each is nearer to itself than to the other
    assert (np.argmax(rows[1:] @ alone.T, axis=1) == [0, 1]).all()


def test_a_part_behind_the_last_piece_that_counts_has_the_row_of_the_query(encoder: BuiltinEncoder) -> None:
    text = "logs " * builtin.MAX_PIECES + "read the manual"
    rows = encoder.encode_query_parts(text, ["read the manual"])
    np.testing.assert_array_equal(rows[1], rows[0])


def test_a_node_is_read_under_its_headings_and_pooled_over_its_own_text(encoder: BuiltinEncoder) -> None:
    nodes = [fragment("Run it again."), fragment("Run it again.", "Deploy"), fragment("Wait.", "Deploy")]
    rows = encoder.encode_in_context(nodes)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert not np.array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(encoder.encode_in_context(nodes[1:2])[0], rows[1])
    assert encoder.encode_in_context([]).shape == (0, encoder.dim)


@pytest.mark.parametrize("text", [" ", "\u200b", "word " * 1000, "🙂"])
def test_any_text_has_a_row_in_context(encoder: BuiltinEncoder, text: str) -> None:
    titles = ["Title " * 300] * 6
    rows = encoder.encode_in_context([fragment(text), fragment(text, *titles)])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_many_threads_load_and_use_one_encoder() -> None:
    fresh = BuiltinEncoder()
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(fresh.encode_query, TEXTS * 5))
    np.testing.assert_array_equal(np.stack(rows), SHARED.encode_documents(TEXTS * 5))


def test_identity_and_length_are_known_before_the_model_is_loaded(tmp_path: Path) -> None:
    assert BuiltinEncoder().id == "builtin:skills-MiniLM-L6-int8-3"
    unloaded = BuiltinEncoder(folder=tmp_path, id="builtin:mine")
    assert unloaded.id == "builtin:mine"
    assert unloaded.dim == 384
    assert unloaded.encode_documents([]).shape == (0, 384)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
@pytest.mark.parametrize("content", [None, b"version https://git-lfs.github.com/spec/v1"])
@pytest.mark.parametrize("shipped", [True, False])
def test_damaged_files_are_named_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes | None, shipped: bool
) -> None:
    folder = shutil.copytree(builtin.MODEL_FOLDER, tmp_path / "encoder")
    (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
    if shipped:
        monkeypatch.setattr(builtin, "MODEL_FOLDER", folder)
    with pytest.raises(EncoderError) as caught:
        BuiltinEncoder(folder=folder).encode_query("x")
    assert str(folder) in str(caught.value)
    assert ("force-reinstall" in str(caught.value)) is shipped
    assert ("training/train.py makes one" in str(caught.value)) is not shipped


# ---- the shipped model


def test_the_model_card_describes_the_shipped_bytes() -> None:
    digest = hashlib.sha256((builtin.MODEL_FOLDER / "model.onnx").read_bytes()).hexdigest()
    card = (builtin.MODEL_FOLDER / "README.md").read_text(encoding="utf-8")
    assert digest in card
    assert "Apache-2.0" in card
    export = json.loads((builtin.MODEL_FOLDER / "training.json").read_text(encoding="utf-8"))["export"]
    assert export["sha256"] == digest
    assert export["mean_cosine"] > 0.995
    assert export["least_cosine"] > 0.98
    assert f"cosine mean {export['mean_cosine']}, least {export['least_cosine']}" in card


def ranking(pager: SkillPager, encoder: Encoder, form: str) -> FloatArray:
    """Return for each query of the samples how often a needed node is nearer than another, 0 to 1."""
    shares = []
    rows: dict[str, FloatArray] = {}  # by skill
    for line in (ROOT / "examples" / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        asked = json.loads(line)
        nodes = pager.index(SAMPLES / asked["skill"]).nodes
        if asked["skill"] not in rows:
            rows[asked["skill"]] = encoder.encode_documents([embedded_text(node, form) for node in nodes])
        cosines = rows[asked["skill"]] @ encoder.encode_query(asked["query"])
        critical = {number for first, last in asked["critical"] for number in range(first, last + 1)}
        needed = np.array(
            [
                node.span.file == "SKILL.md"
                and not critical.isdisjoint(range(node.span.start_line, node.span.end_line + 1))
                for node in nodes
            ]
        )
        shares.append((cosines[needed][:, None] > cosines[~needed]).mean())
    return np.array(shares)


def test_a_query_is_nearer_to_the_nodes_that_it_needs(pager: SkillPager, encoder: BuiltinEncoder) -> None:
    shares = ranking(pager, encoder, pager.recipe.embedded_text)
    assert len(shares) == 40
    assert shares.mean() > 0.8
    assert (shares > 0.5).mean() > 0.9
    assert shares.mean() > ranking(pager, HashingEncoder(), "context").mean() + 0.05


# ---- builtin:<folder>


def test_a_model_of_a_folder_is_named_by_what_its_files_hold(tmp_path: Path) -> None:
    one, two = (shutil.copytree(builtin.MODEL_FOLDER, tmp_path / name) for name in ("one", "two"))
    made = make_encoder(f"builtin:{one}", Settings())
    assert re.fullmatch(r"builtin:[0-9a-f]{16}", made.id)
    assert made.id == BuiltinEncoder(folder=one).id == BuiltinEncoder(folder=two).id
    np.testing.assert_array_equal(made.encode_documents(TEXTS), SHARED.encode_documents(TEXTS))
    ids = {made.id}
    for name in builtin.FILES:
        (two / name).write_bytes((two / name).read_bytes() + b" ")
        ids.add(BuiltinEncoder(folder=two).id)
    assert len(ids) == 3


def test_a_folder_below_the_users_own_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    shutil.copytree(builtin.MODEL_FOLDER, tmp_path / "mine")
    assert make_encoder("builtin:~/mine", Settings()).id == BuiltinEncoder(folder=tmp_path / "mine").id


@pytest.mark.parametrize("missing", builtin.FILES)
def test_a_folder_without_a_model_is_told_before_anything_is_embedded(tmp_path: Path, missing: str) -> None:
    folder = shutil.copytree(builtin.MODEL_FOLDER, tmp_path / "encoder")
    (folder / missing).unlink()
    for place in (folder, tmp_path / "nowhere"):
        with raises(EncoderError) as caught:
            make_encoder(f"builtin:{place}", Settings())
        assert str(place) in str(caught.value)


# ---- hashing


def test_shared_words_bring_hashed_rows_nearer() -> None:
    query = HashingEncoder().encode_query("deploy the staging server")
    near, part, far = HashingEncoder().encode_documents(
        ["deploy to the production server", "deployments and servers", "bake a chocolate cake"]
    )
    assert query @ near > query @ part > query @ far + 0.1
    assert abs(query @ far) < 0.25


def test_hashing_needs_no_spaces_between_words() -> None:
    query = HashingEncoder().encode_query("数据库密码")
    near, far = HashingEncoder().encode_documents(["请检查数据库的密码", "今天天气很好"])
    assert query @ near > query @ far + 0.3


def test_hashing_ignores_case_and_width() -> None:
    rows = HashingEncoder().encode_documents(["Retry ABC", "retry ＡＢＣ"])
    np.testing.assert_array_equal(rows[0], rows[1])


def test_a_text_without_words_has_the_first_unit_row() -> None:
    rows = HashingEncoder().encode_documents(["", " --- "])
    np.testing.assert_array_equal(rows, np.eye(1, 256).repeat(2, axis=0))


def test_hashed_rows_stay_the_same_for_ever() -> None:
    row = HashingEncoder().encode_query("a")
    expected = np.zeros(256)
    for feature, weight in (("a", 2), ("<a>", 1)):
        number = int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=8).digest(), "little")
        expected[number % 256] += weight if number >= 2**63 else -weight
    np.testing.assert_allclose(row, expected / np.linalg.norm(expected), atol=1e-7)


# ---- what is embedded


def fragment(text: str, *headings: str) -> Fragment:
    return Fragment(
        kind=TileKind.SENTENCE,
        span=Span("SKILL.md", 1, 1, 0, len(text)),
        text=text,
        ordinal=0,
        heading_path=headings,
        list_context=None,
    )


@pytest.mark.parametrize(
    ("form", "plain", "without_headings", "listed"),
    [
        ("heading", "Deploy > Rolling back\nRun it.", "Run it.", "Deploy > Rolling back\n- Run it."),
        ("bare", "Run it.", "Run it.", "- Run it."),
        ("context", "Deploy > Rolling back\nRun it.", "Run it.", "Deploy > Rolling back\nIf not:\n- Run it."),
    ],
)
def test_embedded_text(form: str, plain: str, without_headings: str, listed: str) -> None:
    assert embedded_text(fragment("Run it."), form) == without_headings
    node = fragment("Run it.", "Deploy", "Rolling back")
    assert embedded_text(node, form) == plain
    item = replace(node, text="- Run it.", list_context=ListContext("If not:\n", None, 0, 2))
    assert embedded_text(item, form) == listed
    first = replace(item, text="If not:\n- Run it.")  # has its lead-in itself
    assert embedded_text(first, "context") == "Deploy > Rolling back\nIf not:\n- Run it."


def test_an_unknown_form_is_refused() -> None:
    with raises(ValueError):
        embedded_text(fragment("Run it again."), "title")


# ---- processors


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system cannot bind a process")
def test_processors_that_are_forbidden_do_not_count() -> None:
    allowed = os.sched_getaffinity(0)
    assert builtin.usable_processors() == len(allowed)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert builtin.usable_processors() == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_without_such_limits_all_processors_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert builtin.usable_processors() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert builtin.usable_processors() == 1
