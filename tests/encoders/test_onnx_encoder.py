"""The encoder of a folder with an ONNX model: the rows that its pooling makes, and folders that hold none."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from messages import raises
from skillpager.encoders.builtin import MODEL_FOLDER, BuiltinEncoder
from skillpager.encoders.onnx import MAX_PIECES, OnnxEncoder
from skillpager.errors import EncoderError, SettingsError
from skillpager.factories import make_encoder
from skillpager.settings import Settings
from skillpager.types import Encoder

RELEASE = "Roll back the release."
TEXTS = [RELEASE, "", "Scale the features.", "数据库", RELEASE, "🚀", "\ud800"]
CLS, MEAN = "pooling_mode_cls_token", "pooling_mode_mean_tokens"


def model_in(folder: Path, pooling: object) -> Path:
    """Return a folder with the shipped model as sentence-transformers lays one out."""
    (folder / "1_Pooling").mkdir(parents=True)
    for name in ("model.onnx", "tokenizer.json"):
        shutil.copy(MODEL_FOLDER / name, folder / name)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def test_the_mean_of_the_shipped_model_is_the_row_of_the_shipped_encoder(tmp_path: Path) -> None:
    encoder: Encoder = OnnxEncoder(
        model_in(tmp_path / "m", {MEAN: True, CLS: False, "word_embedding_dimension": 384})
    )
    rows = encoder.encode_documents(TEXTS)
    assert (rows.shape, rows.dtype) == ((len(TEXTS), encoder.dim), np.float32)
    np.testing.assert_allclose(rows, BuiltinEncoder().encode_documents(TEXTS), atol=1e-3)
    assert np.array_equal(rows[0], rows[4])
    assert np.array_equal(np.stack([encoder.encode_query(text) for text in TEXTS]), rows)
    assert encoder.encode_documents([]).shape == (0, 384)


def test_the_pooling_of_the_folder_is_used(tmp_path: Path) -> None:
    encoder = OnnxEncoder(model_in(tmp_path / "m", {CLS: True}))
    tokenizer, session = encoder._model.loaded
    pieces = np.array([tokenizer.encode(TEXTS[0]).ids], np.int64)
    first = session.run(None, {"input_ids": pieces})[0][0, 0]
    np.testing.assert_allclose(encoder.encode_query(TEXTS[0]), first / np.linalg.norm(first), atol=1e-6)


def test_a_long_text_counts_up_to_the_positions_of_the_model(tmp_path: Path) -> None:
    encoder = OnnxEncoder(model_in(tmp_path / "m", {MEAN: True}))
    tokenizer, _ = encoder._model.loaded
    assert len(tokenizer.encode("word " * 2000).ids) == 384  # as the shipped tokenizer says
    assert np.array_equal(encoder.encode_query("word " * 600), encoder.encode_query("word " * 700))
    file = tmp_path / "m" / "tokenizer.json"
    silent = json.loads(file.read_text(encoding="utf-8")) | {"truncation": None}
    file.write_text(json.dumps(silent), encoding="utf-8")
    tokenizer, _ = OnnxEncoder(tmp_path / "m")._model.loaded
    assert len(tokenizer.encode("word " * 2000).ids) == MAX_PIECES


def test_its_id_is_that_of_its_files(tmp_path: Path) -> None:
    first = model_in(tmp_path / "a", {MEAN: True})
    second = model_in(tmp_path / "b", {CLS: True})
    shutil.copytree(first, tmp_path / "c")
    a, b, c = (OnnxEncoder(folder).id for folder in (first, second, tmp_path / "c"))
    assert a == c != b
    assert a.startswith("onnx:")


@pytest.mark.parametrize(
    "pooling", [{}, {CLS: False}, {CLS: True, MEAN: True}, {"pooling_mode_max_tokens": True}, [], "mean", 7]
)
def test_a_pooling_that_is_not_known_is_a_clear_error(tmp_path: Path, pooling: object) -> None:
    folder = model_in(tmp_path / "m", pooling)
    with raises(EncoderError) as caught:
        OnnxEncoder(folder)
    assert str(folder / "1_Pooling" / "config.json") in str(caught.value)


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json", "1_Pooling/config.json"])
def test_a_folder_without_a_file_is_a_clear_error(tmp_path: Path, missing: str) -> None:
    folder = model_in(tmp_path / "m", {MEAN: True})
    (folder / missing).unlink()
    with raises(EncoderError) as caught:
        make_encoder(f"onnx:{folder}", Settings())
    assert missing in str(caught.value)


@pytest.mark.parametrize(
    ("damaged", "before", "after", "message"),
    [
        ("model.onnx", b"", b"{}", "cannot be loaded from"),
        ("tokenizer.json", b"", b"[]", "cannot be loaded from"),
        ("model.onnx", b"input_ids", b"input_idz", "it must take input_ids"),
    ],
)
def test_damaged_files_are_a_clear_error(
    tmp_path: Path, damaged: str, before: bytes, after: bytes, message: str
) -> None:
    file = model_in(tmp_path / "m", {MEAN: True}) / damaged
    file.write_bytes(file.read_bytes().replace(before, after) if before else after)
    with pytest.raises(EncoderError, match=message):
        OnnxEncoder(file.parent).encode_query("text")


def test_a_name_without_a_folder_is_a_clear_error() -> None:
    with raises(SettingsError):
        make_encoder("onnx:", Settings())
