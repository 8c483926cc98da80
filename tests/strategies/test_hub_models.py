"""What the strategies with a model of others ask of it, and what they make of its answers.

Stand-ins for torch and transformers take the same arguments and give the same shapes, with probabilities that
the words tell; `test_model_strategies.py` runs the real ones, where they are installed.
"""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from index_builder import unit_rows
from messages import raises
from skillpager.errors import MissingExtraError, StrategyError
from skillpager.strategies.baselines.hub_models import HubStrategy, LLMLingua2, OpenProvence, Reranker
from skillpager.types import Query, SkillIndex
from strategy_cases import assert_sound, index_with, ordinals, run

MODEL = "someone/model"
PAD, START, END = "[PAD]", "[CLS]", "[SEP]"


class Bars:
    """`transformers.utils.logging`, as far as progress bars go."""

    def __init__(self) -> None:
        self.shown = True

    def is_progress_bar_enabled(self) -> bool:
        return self.shown

    def disable_progress_bar(self) -> None:
        self.shown = False

    def enable_progress_bar(self) -> None:
        self.shown = True


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> Bars:
    bars = Bars()
    monkeypatch.setitem(sys.modules, "transformers.utils.logging", bars)
    return bars


def marginals(strategy: HubStrategy, index: SkillIndex, text: str = "what to do") -> dict[int, float]:
    """Return the recorded score of each node."""
    selection = run(strategy, index, text=text, max_nodes=len(index.nodes))
    return {pick.node.ordinal: pick.marginal for pick in selection.picks}


# ---- all of them


class Played(HubStrategy):
    """A strategy whose model is a list of numbers."""

    name = "played"

    def __init__(self, answer: object, *, fault: Exception | None = None) -> None:
        super().__init__(MODEL)
        self.answer, self.fault = answer, fault
        self.loads = 0

    def load(self) -> Any:
        self.loads += 1
        if self.fault:
            raise self.fault
        return self

    def score(self, model: Any, index: SkillIndex, query: Query) -> Any:
        assert (model, query.text) == (self, "what to do")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_nodes_come_by_falling_score_and_near_equals_in_document_order(bars: Bars) -> None:
    index, query = index_with(count=4), unit_rows(1, 8, seed=5)[0]
    strategy = Played([0.5, 0.25, 0.5000004, 0.75])
    for _ in range(2):
        selection = run(strategy, index, query, max_nodes=3)
        assert ordinals(selection) == [3, 0, 2]
        assert selection.strategy == "played"
        assert [pick.marginal for pick in selection.picks] == [0.75, 0.5, 0.5]
        assert_sound(selection, index, query)
    assert ordinals(run(strategy, index, query, max_tokens=index.nodes[3].tokens)) == [3]
    assert strategy.loads == 1
    # six digits, not fewer
    assert ordinals(run(Played([0.5, 0.500002]), index_with(count=2))) == [1, 0]
    assert strategy.scores(index, Query("what to do", query)).dtype == np.float32


@pytest.mark.parametrize(
    "answer",
    [
        [1, 2],
        [[1], [2], [3]],
        1.0,
        [1, 2, float("nan")],
        [1, float("inf"), 2],
        RuntimeError("out of memory\nat the second line"),
        RuntimeError(),
    ],
    ids=repr,
)
def test_numbers_that_are_no_scores_are_explained(bars: Bars, answer: object) -> None:
    with raises(StrategyError) as caught:
        run(Played(answer), index_with(count=3))
    assert isinstance(caught.value.__cause__, Exception)
    assert bars.shown


def test_a_model_that_cannot_be_loaded_is_explained_and_asked_for_again(bars: Bars) -> None:
    strategy = Played([1.0], fault=OSError("no such folder"))
    with raises(StrategyError):
        run(strategy, index_with(count=1))
    with raises(MissingExtraError):
        run(Played([1.0], fault=MissingExtraError("it says how to install it")), index_with(count=1))
    strategy.fault = None
    assert ordinals(run(strategy, index_with(count=1))) == [0]


def test_a_missing_package_is_named_with_strategy_and_model(
    bars: Bars, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("sentence_transformers", "transformers"):
        monkeypatch.setitem(sys.modules, package, None)
    for kind in (Reranker, LLMLingua2, OpenProvence):
        with raises(MissingExtraError):
            run(kind(MODEL), index_with(count=2))


# ---- reranker


class CrossEncoder:
    """Scores a pair by the share of the query's words that are in the text."""

    def __init__(self, name: str) -> None:
        assert name == MODEL

    def predict(self, pairs: Sequence[tuple[str, str]], *, show_progress_bar: bool | None = None) -> Any:
        # None shows a bar where the application logs at level INFO
        assert show_progress_bar is False
        assert "".join(text for pair in pairs for text in pair).encode()
        return np.array([np.mean([word in text.split() for word in query.split()]) for query, text in pairs])


def test_the_reranker_reads_the_query_with_each_node_under_its_headings(
    bars: Bars, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(CrossEncoder=CrossEncoder))
    index = index_with(texts=["back up", "restore 1", "restore one table", *["?"] * 5, "\udcff table"])
    query = "restore one table 1 \udcff"
    assert marginals(Reranker(MODEL), index, query) == pytest.approx(
        {0: 0, 1: 0.4, 2: 0.6, **dict.fromkeys(range(3, 8), 0.2), 8: 0.6}
    )
    assert run(Reranker(MODEL), index_with(count=0)).picks == ()


# ---- llmlingua2

# chance to be kept, of each word
KEPT = {"restore": 0.9, "table": 0.8, "the": 0.1, "?": 0.5}
IDS = {word: number for number, word in enumerate([PAD, START, END, *KEPT])}


class Tensor(np.ndarray[Any, Any]):
    """The few methods of a tensor that are needed."""

    def double(self) -> "Tensor":
        return self.astype(np.float64)

    def bool(self) -> "Tensor":
        return self.astype(bool)

    def numpy(self) -> np.ndarray[Any, Any]:
        assert not Torch.gradients or self.dtype.kind != "f"
        return np.asarray(self)


def tensor(values: object) -> Tensor:
    return np.array(values).view(Tensor)


class Torch:
    """`torch`, as far as it is needed; `gradients` are kept unless it is told otherwise."""

    gradients = True

    @classmethod
    @contextlib.contextmanager
    def inference_mode(cls) -> Iterator[None]:
        cls.gradients = False
        try:
            yield
        finally:
            cls.gradients = True

    @staticmethod
    def softmax(logits: Tensor, dim: int) -> Tensor:
        assert (logits.dtype, dim % logits.ndim) == (np.float64, logits.ndim - 1)
        powers = np.exp(logits)
        return tensor(powers / powers.sum(axis=dim, keepdims=True))


class Tokenizer:
    """A tokenizer of words, whose windows overlap by nothing."""

    model_input_names = ("input_ids", "attention_mask")

    def __init__(self, model_max_length: int) -> None:
        self.model_max_length = model_max_length
        self.batches: list[int] = []

    def __call__(
        self,
        texts: list[str],
        *,
        truncation: bool = False,
        max_length: int | None = None,
        padding: bool = False,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_tensors: str | None = None,
    ) -> dict[str, Any]:
        self.batches.append(len(texts))
        room = max_length - 2 if truncation and max_length else sys.maxsize
        windows, owners = [], []
        for owner, words in enumerate(text.split() for text in texts):
            starts = range(0, max(1, len(words)), room) if return_overflowing_tokens else range(1)
            windows += [[START, *words[start : start + room], END] for start in starts]
            owners += [owner] * len(starts)
        longest = max(map(len, windows)) if padding else 0
        windows = [window + [PAD] * (longest - len(window)) for window in windows]
        found = {
            "input_ids": [[IDS[word] for word in window] for window in windows],
            "attention_mask": [[int(word != PAD) for word in window] for window in windows],
            "overflow_to_sample_mapping": owners,
        }
        if return_special_tokens_mask:
            special = (PAD, START, END)
            found["special_tokens_mask"] = [[int(word in special) for word in window] for window in windows]
        return {name: tensor(rows) if return_tensors == "pt" else rows for name, rows in found.items()}


class Classifier:
    """Knows the chance of each word; keeps all others for certain."""

    def __init__(self, labels: int, window: int) -> None:
        self.config = SimpleNamespace(num_labels=labels)
        self.window, self.training = window, True

    def eval(self) -> "Classifier":
        self.training = False
        return self

    def __call__(self, *, input_ids: Tensor, attention_mask: Tensor) -> Any:
        assert not self.training
        assert not Torch.gradients
        assert input_ids.shape == attention_mask.shape
        assert input_ids.shape[1] <= self.window
        chances = np.array([0.999, 0.999, 0.999, *KEPT.values()])[input_ids]
        logits = np.stack([np.zeros_like(chances), np.log(chances / (1 - chances))], axis=-1)
        return SimpleNamespace(logits=tensor(logits.astype(np.float32)))


def play_llmlingua2(
    patch: pytest.MonkeyPatch,
    *,
    labels: int = 2,
    missing: Sequence[str] = (),
    window: int = 512,
    longest: int = 512,
) -> Tokenizer:
    """Let `MODEL` be a token classifier with a window; return its tokenizer, which says that it is `longest`."""
    made = Tokenizer(longest)

    def tokenizer(name: str) -> Tokenizer:
        assert name == MODEL
        return made

    def classifier(name: str, *, output_loading_info: bool = False) -> Any:
        assert (name, output_loading_info) == (MODEL, True)
        return Classifier(labels, window), {"missing_keys": list(missing), "unexpected_keys": []}

    package = SimpleNamespace(
        AutoTokenizer=SimpleNamespace(from_pretrained=tokenizer),
        AutoModelForTokenClassification=SimpleNamespace(from_pretrained=classifier),
    )
    patch.setitem(sys.modules, "transformers", package)
    patch.setitem(sys.modules, "torch", Torch)
    return made


def mean_chance(text: str) -> float:
    chances = [KEPT[word] for word in text.replace("\udcff", "?").split()]
    return sum(chances) / max(1, len(chances))


@pytest.mark.parametrize(("window", "longest"), [(512, 10**30), (512, 512), (9, 9)])
def test_llmlingua2_is_the_mean_chance_of_the_tokens_window_by_window(
    bars: Bars, monkeypatch: pytest.MonkeyPatch, window: int, longest: int
) -> None:
    tokenizer = play_llmlingua2(monkeypatch, window=window, longest=longest)
    texts = ["", "restore", "the table", "\udcff the", "restore the table " * 300, "the " * 1021 + "restore"]
    texts += [f"{'the ' * (n % 7)}table" for n in range(64)]
    found = marginals(LLMLingua2(MODEL), index_with(texts=texts))
    assert found == pytest.approx({n: mean_chance(text) for n, text in enumerate(texts)}, abs=2e-6)
    assert tokenizer.batches == [32, 32, 6]


def test_llmlingua2_reads_a_skill_once_whatever_is_asked(bars: Bars, monkeypatch: pytest.MonkeyPatch) -> None:
    play_llmlingua2(monkeypatch)
    strategy = LLMLingua2(MODEL)
    index, other = index_with(texts=["the", "table"]), index_with(texts=["restore", "the", "table"])
    expected = {0: 0.1, 1: 0.8}
    assert marginals(strategy, index, "one") == pytest.approx(expected)
    assert run(strategy, index_with(count=0)).picks == ()
    assert marginals(strategy, other, "one") == pytest.approx({0: 0.9, 1: 0.1, 2: 0.8})
    monkeypatch.setitem(sys.modules, "torch", None)
    assert marginals(strategy, index, "two") == pytest.approx(expected)


@pytest.mark.parametrize(("labels", "missing"), [(3, []), (1, []), (2, ["classifier.weight"])])
def test_llmlingua2_wants_two_labels_that_were_trained(
    bars: Bars, monkeypatch: pytest.MonkeyPatch, labels: int, missing: list[str]
) -> None:
    play_llmlingua2(monkeypatch, labels=labels, missing=missing)
    with raises(StrategyError):
        run(LLMLingua2(MODEL), index_with(count=2))


# ---- openprovence


class Provence:
    """Gives the sentence `s` of the document `d` the probability 0.ds."""

    def __init__(self) -> None:
        self.training = True
        self.asked: list[tuple[str, list[list[str]]]] = []

    def eval(self) -> "Provence":
        self.training = False
        return self

    def process(
        self,
        question: str,
        context: list[list[str]],
        title: str | None = "first_sentence",
        *,
        show_progress: bool = True,
        return_sentence_metrics: bool = False,
    ) -> dict[str, Any]:
        assert (title, show_progress, self.training) == (None, False, False)
        self.asked.append((question, context))
        found = [[d / 10 + s / 100 for s in range(len(document))] for d, document in enumerate(context)]
        return {"sentence_probabilities": found} if return_sentence_metrics else {}


def play_provence(patch: pytest.MonkeyPatch, model: object) -> None:
    def load(name: str, *, trust_remote_code: bool = False) -> object:
        assert (name, trust_remote_code) == (MODEL, True)
        return model

    auto = SimpleNamespace(from_pretrained=load)
    patch.setitem(sys.modules, "transformers", SimpleNamespace(AutoModel=auto))


def test_openprovence_reads_each_section_as_its_headings_and_a_line_for_each_node(
    bars: Bars, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Provence()
    play_provence(monkeypatch, model)
    index = index_with(texts=["run\n\n\tit \udcff", "", *"abcdef", "g\n"])
    first = [replace(node, heading_path=()) for node in index.nodes[:8]]
    second = [replace(node, heading_path=("Two\n", "Deep")) for node in index.nodes[8:]]
    found = marginals(OpenProvence(MODEL), replace(index, nodes=(*first, *second)), "which\n \udcff")
    assert model.asked == [
        (
            "which\n ?",
            [
                ["-\n", "run it ?\n", "-\n", *(f"{letter}\n" for letter in "abcdef")],
                ["Two > Deep\n", "g\n"],
            ],
        )
    ]
    assert found == pytest.approx({**{n: (n + 1) / 100 for n in range(8)}, 8: 0.11})
    assert run(OpenProvence(MODEL), index_with(count=0)).picks == ()
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    "answer", [{}, {"sentence_probabilities": None}, {"sentence_probabilities": [[1, 2]]}]
)
def test_openprovence_wants_a_probability_for_each_sentence(
    bars: Bars, monkeypatch: pytest.MonkeyPatch, answer: dict[str, object]
) -> None:
    model = Provence()
    monkeypatch.setattr(model, "process", lambda **_: answer)
    play_provence(monkeypatch, model)
    with raises(StrategyError):
        run(OpenProvence(MODEL), index_with(count=2))


def test_a_model_that_cannot_prune_is_not_openprovences(bars: Bars, monkeypatch: pytest.MonkeyPatch) -> None:
    play_provence(monkeypatch, SimpleNamespace(eval=lambda: None))
    with raises(StrategyError):
        run(OpenProvence(MODEL), index_with(count=2))
