"""The strategy that runs a cross-encoder of others: on a stand-in, and on a tiny real one if torch is installed."""

import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from index_builder import unit_rows
from messages import raises
from skillpager.errors import MissingExtraError, StrategyError
from skillpager.sections import embedded_text
from skillpager.strategies.baselines.reranker import Reranker
from skillpager.types import Query
from strategy_cases import assert_sound, index_with, ordinals, run
from tiny_models import WINDOW, save_bert

MODEL = "someone/model"
needs_models = pytest.mark.skipif(
    not (find_spec("torch") and find_spec("sentence_transformers")), reason="the extra [st] is not installed"
)


class Packages:
    """Stand-ins for sentence_transformers and the progress bars of transformers."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.bars = True
        self.loads = 0
        self.fault: Exception | None = None
        self.answer: object = (
            None  # an error, or the scores; None for the share of the query's words in a text
        )
        bars = SimpleNamespace(
            is_progress_bar_enabled=lambda: self.bars,
            disable_progress_bar=lambda: self.show_bars(False),
            enable_progress_bar=lambda: self.show_bars(True),
        )
        patch.setitem(sys.modules, "transformers.utils.logging", bars)
        patch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(CrossEncoder=self.load))

    def show_bars(self, shown: bool) -> None:
        self.bars = shown

    def load(self, name: str) -> "Packages":
        assert name == MODEL
        self.loads += 1
        if self.fault:
            raise self.fault
        return self

    def predict(self, pairs: Sequence[tuple[str, str]], *, show_progress_bar: bool | None = None) -> Any:
        # None shows a bar where the application logs at level INFO
        assert (show_progress_bar, self.bars) == (False, False)
        assert "".join(text for pair in pairs for text in pair).encode()
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is not None:
            return self.answer
        return np.array([np.mean([word in text.split() for word in query.split()]) for query, text in pairs])


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> Packages:
    return Packages(monkeypatch)


def test_it_reads_the_query_with_each_node_under_its_headings(packages: Packages) -> None:
    index = index_with(texts=["back up", "restore 1", "restore one table", *["?"] * 5, "\udcff table"])
    selection = run(Reranker(MODEL), index, text="restore one table 1 \udcff", max_nodes=9)
    marginals = {pick.node.ordinal: pick.marginal for pick in selection.picks}
    expected = {0: 0, 1: 0.4, 2: 0.6, **dict.fromkeys(range(3, 8), 0.2), 8: 0.6}
    assert marginals == pytest.approx(expected)
    assert run(Reranker(MODEL), index_with(count=0)).picks == ()


def test_nodes_come_by_falling_score_and_near_equals_in_document_order(packages: Packages) -> None:
    index, query = index_with(count=4), unit_rows(1, 8, seed=5)[0]
    strategy = Reranker(MODEL)
    packages.answer = [0.5, 0.25, 0.5000004, 0.75]
    for _ in range(2):
        selection = run(strategy, index, query, max_nodes=3)
        assert ordinals(selection) == [3, 0, 2]
        assert selection.strategy == "reranker"
        assert [pick.marginal for pick in selection.picks] == [0.75, 0.5, 0.5]
        assert_sound(selection, index, query)
    assert ordinals(run(strategy, index, query, max_tokens=index.nodes[3].tokens)) == [3]
    assert (packages.loads, packages.bars) == (1, True)
    assert strategy.scores(index, Query("what to do", query)).dtype == np.float32
    packages.answer = [0.5, 0.500002]  # six digits, not fewer
    assert ordinals(run(strategy, index_with(count=2))) == [1, 0]


@pytest.mark.parametrize(
    "answer",
    [
        [1, 2],
        [[1], [2], [3]],
        [1, 2, float("nan")],
        RuntimeError("out of memory\nat the second line"),
        RuntimeError(),
    ],
    ids=repr,
)
def test_numbers_that_are_no_scores_are_explained(packages: Packages, answer: object) -> None:
    packages.answer = answer
    with raises(StrategyError) as caught:
        run(Reranker(MODEL), index_with(count=3))
    assert isinstance(caught.value.__cause__, Exception)
    assert packages.bars


def test_a_model_that_cannot_be_loaded_is_explained_and_asked_for_again(packages: Packages) -> None:
    strategy = Reranker(MODEL)
    packages.fault = OSError("no such folder")
    with raises(StrategyError):
        run(strategy, index_with(count=1))
    packages.fault = None
    assert ordinals(run(strategy, index_with(count=1))) == [0]


def test_a_missing_package_is_named_with_strategy_and_model(
    packages: Packages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with raises(MissingExtraError):
        run(Reranker(MODEL), index_with(count=2))


@needs_models
def test_a_real_model_is_loaded_once_and_prints_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    texts = ["restore the table from a dump", "", "half \udcff check", "the database " * 200, "restore"]
    folder, index, query = tmp_path / "model", index_with(texts=texts), "restore one table"
    save_bert(folder, "BertForSequenceClassification")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    scores = []
    with torch.no_grad():
        for node in index.nodes:
            text = embedded_text(node, "heading").replace("\udcff", "?")
            pair = tokenizer(query, text, truncation=True, max_length=WINDOW, return_tensors="pt")
            scores.append(torch.sigmoid(model(**pair).logits)[0, 0].item())
    strategy = Reranker(str(folder))
    capfd.readouterr()
    selection = run(strategy, index, text=query)
    shutil.rmtree(folder)
    assert [pick.marginal for pick in selection.picks] == pytest.approx(
        sorted(scores, reverse=True), abs=2e-6
    )
    assert len(set(scores)) == len(scores)
    assert ordinals(run(strategy, index, text="check the backup")) != ordinals(selection)
    assert capfd.readouterr() == ("", "")


@needs_models
def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StrategyError, match=r"cannot be loaded .*name of a model on the Hugging Face hub"):
        run(Reranker(str(tmp_path / "nothing")), index_with(count=1))
