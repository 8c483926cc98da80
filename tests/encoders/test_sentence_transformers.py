"""Encoders of the package sentence-transformers: on a tiny real model, if torch is installed."""

import sys
from pathlib import Path

import numpy as np
import pytest

from messages import raises
from skillpager.encoders import builtin
from skillpager.encoders.sentence_transformers import SentenceTransformersEncoder
from skillpager.errors import EncoderError, MissingExtraError
from test_encoders import TEXTS, assert_unit_rows


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real model of 16 dimensions that takes milliseconds and puts a prompt before queries."""
    library = pytest.importorskip("sentence_transformers", reason="the st extra is not installed")
    import torch
    from tokenizers import Tokenizer

    try:
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    except ImportError:  # before version 6
        from sentence_transformers.models import StaticEmbedding

    tokenizer = Tokenizer.from_file(str(builtin.MODEL_FOLDER / "tokenizer.json"))
    weights = torch.randn(tokenizer.get_vocab_size(), 16, generator=torch.Generator().manual_seed(0))
    module = StaticEmbedding(tokenizer, embedding_weights=weights.numpy())
    model = library.SentenceTransformer(modules=[module], device="cpu", prompts={"query": "question: "})
    folder = tmp_path_factory.mktemp("tiny")
    model.save_pretrained(str(folder), create_model_card=False)
    return folder


def test_a_sentence_transformers_model_gives_unit_rows_in_order(tiny_model: Path) -> None:
    encoder = SentenceTransformersEncoder(str(tiny_model))
    assert encoder.id == f"sentence-transformers:{tiny_model}"
    assert encoder.dim == 16
    texts = TEXTS[:-1]  # tokenizers of others refuse half a character
    rows = encoder.encode_documents(texts)
    assert_unit_rows(rows, len(texts), 16)
    np.testing.assert_allclose(encoder.encode_documents(texts[::-1]), rows[::-1], atol=1e-6)
    assert_unit_rows(encoder.encode_documents([]), 0, 16)
    np.testing.assert_array_equal(rows[1], np.eye(16)[0])


def test_the_prompt_for_queries_is_used(tiny_model: Path) -> None:
    encoder = SentenceTransformersEncoder(str(tiny_model))
    query = encoder.encode_query("check the logs")
    assert query.shape == (16,)
    plain, prompted = encoder.encode_documents(["check the logs", "question: check the logs"])
    np.testing.assert_allclose(query, prompted, atol=1e-6)
    assert query @ plain < 0.99


def test_a_model_that_gives_no_numbers_is_reported(tiny_model: Path) -> None:
    encoder = SentenceTransformersEncoder(str(tiny_model))
    for weight in encoder._loaded().parameters():
        weight.data.fill_(float("nan"))
    with pytest.raises(EncoderError, match=r"cannot embed 1 texts .*not a number"):
        encoder.encode_documents(["x"])


@pytest.mark.parametrize("make", [True, False], ids=["empty folder", "no folder"])
def test_a_model_that_cannot_be_loaded_is_named_with_the_way_out(tmp_path: Path, make: bool) -> None:
    pytest.importorskip("sentence_transformers", reason="the st extra is not installed")
    folder = tmp_path / "absent"
    if make:
        folder.mkdir()
    encoder = SentenceTransformersEncoder(str(folder))
    with pytest.raises(EncoderError, match="give the name of a model on the Hugging Face hub") as caught:
        encoder.encode_query("x")
    assert str(folder) in str(caught.value)


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    encoder = SentenceTransformersEncoder("BAAI/bge-m3")
    assert encoder.id == "sentence-transformers:BAAI/bge-m3"
    with raises(MissingExtraError):
        encoder.encode_documents(["x"])
