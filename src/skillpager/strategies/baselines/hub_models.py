"""Strategies that score nodes with a Hugging Face model in this process.

Reference: LLMLingua-2, Pan et al. 2024, its coarse-grained compression of several contexts; Provence,
Chirkova et al. 2025; open_provence, Tateno 2025 (`process` of its models).
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skillpager.errors import SkillPagerError, StrategyError, require_extra
from skillpager.remote.endpoint import sendable
from skillpager.remote.hub import no_progress_bars, reason_of
from skillpager.sections import sections_of, text_under_headings
from skillpager.strategies.picking import PerIndex, select_by_score
from skillpager.types import Budget, FloatArray, Query, ScoreKind, Selection, SkillIndex, TokenMeter

DECIMALS = 6  # scores are compared to a millionth, as cosines are
WINDOW_TOKENS = 512  # the length that the published classifiers of LLMLingua-2 were trained with
BATCH_SIZE = 32
LABELS = 2  # of a token of LLMLingua-2: 0 drop, 1 keep
KEEP = 1

_LOAD_ADVICE = (
    "give the name of a model on the Hugging Face hub, or the path of a folder that holds one; without "
    "network it must have been downloaded before"
)
_SCORE_ADVICE = "choose a model that was made for this strategy"


class HubStrategy(ABC):
    """Nodes by falling score of a model, loaded at first use. Thread-safe, one thread at a time.

    Args:
        model: Name on the Hugging Face hub, or the path of a folder.
    """

    name: ClassVar[str]

    def __init__(self, model: str) -> None:
        self.model = model
        self._label = f"{self.name}:{model}"
        self._loaded: Any = None
        # held while loading and while scoring: fast tokenizers refuse a second thread
        self._lock = threading.RLock()

    @abstractmethod
    def load(self) -> Any:
        """Return the model; any error becomes a `StrategyError`."""

    @abstractmethod
    def score(self, model: Any, index: SkillIndex, query: Query) -> ArrayLike:
        """Return one number for each node; any error becomes a `StrategyError`."""

    def package(self, name: str) -> ModuleType:
        """Return an optional package; raises `MissingExtraError` without it."""
        return require_extra(name, extra="st", purpose=f'The strategy "{self._label}"')

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks, the best score first.

        Raises:
            StrategyError: The model cannot be loaded or run, or is not one that this strategy can use.
            MissingExtraError: A package is not installed.
        """
        scores = self.scores(index, query)
        return select_by_score(
            self.name, index, query, scores, budget=budget, meter=meter, score_kind=ScoreKind.MODEL
        )

    def scores(self, index: SkillIndex, query: Query) -> FloatArray:
        """Return `(n,)` float32: the score of each node, to a millionth; raises as `select` does."""
        count = len(index.nodes)
        with self._lock, no_progress_bars(f'The strategy "{self._label}"'):
            if self._loaded is None:
                with _strategy_errors(f'The model of "{self._label}" cannot be loaded', _LOAD_ADVICE):
                    self._loaded = self.load()
            with _strategy_errors(f'The model of "{self._label}" cannot score {count} nodes', _SCORE_ADVICE):
                numbers = np.asarray(self.score(self._loaded, index, query), dtype=np.float32)
                if numbers.shape != (count,):
                    raise ValueError(f"it gives numbers of shape {numbers.shape} for {count} nodes")
                if not np.isfinite(numbers).all():
                    raise ValueError("it gives something that is not a finite number")
        rounded: FloatArray = np.round(numbers, DECIMALS)
        return rounded


@contextmanager
def _strategy_errors(complaint: str, advice: str) -> Iterator[None]:
    """Turn any error of the body into a `StrategyError`."""
    try:
        yield
    except SkillPagerError:
        raise
    # the type depends on which of four packages, or of the model's own code, finds the fault
    except Exception as error:
        raise StrategyError(f"{complaint} ({reason_of(error)}): {advice}.") from error


class Reranker(HubStrategy):
    """Nodes by falling score of a cross-encoder, such as `BAAI/bge-reranker-v2-m3`.

    It reads the query together with each node under its headings: the usual second stage of retrieval, but
    over all nodes, so that nothing depends on a first stage. Code that comes with a model is not run.
    """

    name = "reranker"

    def load(self) -> Any:
        """Return the cross-encoder."""
        return self.package("sentence_transformers").CrossEncoder(self.model)

    def score(self, model: Any, index: SkillIndex, query: Query) -> ArrayLike:
        """Return the score of each pair of query and node."""
        pairs = [(sendable(query.text), sendable(text_under_headings(node))) for node in index.nodes]
        scores: ArrayLike = model.predict(pairs, show_progress_bar=False) if pairs else []
        return scores


class LLMLingua2(HubStrategy):
    """Nodes by falling mean keep probability of their tokens, the same for every query.

    The model is a token classifier, such as `microsoft/llmlingua-2-bert-base-multilingual-cased-meetingbank`.
    This is the context-level filter of LLMLingua-2. Its next step, the deletion of tokens, is not offered: it
    rewrites the source, and a node's text is its source slice.
    """

    name = "llmlingua2"

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._cached: PerIndex[FloatArray] = PerIndex()

    def scores(self, index: SkillIndex, query: Query) -> FloatArray:
        """Return `(n,)` float32: the mean keep probability of each node, cached for later queries."""
        return self._cached.of(index, lambda index: super(LLMLingua2, self).scores(index, query))

    def load(self) -> Any:
        """Return the tokenizer and the token classifier.

        Raises:
            ValueError: The model is not a token classifier of two labels.
        """
        package = self.package("transformers")
        tokenizer = package.AutoTokenizer.from_pretrained(self.model)
        model, found = package.AutoModelForTokenClassification.from_pretrained(
            self.model, output_loading_info=True
        )
        # another kind of model gets a classifier of random weights, with a line in a log at most
        if found["missing_keys"] or model.config.num_labels != LABELS:
            raise ValueError("it is not a token classifier with the labels drop and keep")
        return tokenizer, model.eval()

    def score(self, model: Any, index: SkillIndex, query: Query) -> ArrayLike:  # noqa: ARG002
        """Return the mean keep probability of the tokens of each node, 0 without tokens.

        Longer texts than the model's window are read window by window.
        """
        torch = self.package("torch")
        tokenizer, classifier = model
        texts = [sendable(node.text) for node in index.nodes]
        sums, counts = np.zeros(len(texts)), np.zeros(len(texts))
        for start in range(0, len(texts), BATCH_SIZE):
            windows = tokenizer(
                texts[start : start + BATCH_SIZE],
                truncation=True,
                max_length=min(WINDOW_TOKENS, tokenizer.model_max_length),
                padding=True,
                return_overflowing_tokens=True,
                return_special_tokens_mask=True,
                return_tensors="pt",
            )
            with torch.inference_mode():
                logits = classifier(**{name: windows[name] for name in tokenizer.model_input_names}).logits
                probabilities = torch.softmax(logits.double(), dim=-1)[..., KEEP].numpy()
            of_text = (windows["attention_mask"].bool() & ~windows["special_tokens_mask"].bool()).numpy()
            owners = windows["overflow_to_sample_mapping"].numpy() + start
            np.add.at(sums, owners, (probabilities * of_text).sum(axis=1))
            np.add.at(counts, owners, of_text.sum(axis=1))
        return sums / np.maximum(counts, 1)


class OpenProvence(HubStrategy):
    """Nodes by falling keep probability of a query-conditioned pruner.

    The model, such as `hotchpotch/open-provence-reranker-xsmall-v1`, comes with its own code, which runs in
    this process: only the user can name it, a project file cannot. It reads the skill section by section, as
    it was trained on passages: the heading path, then each node as one sentence, beside its neighbours.
    """

    name = "openprovence"

    def load(self) -> Any:
        """Return the model.

        Raises:
            ValueError: It is not an OpenProvence model.
        """
        model = self.package("transformers").AutoModel.from_pretrained(self.model, trust_remote_code=True)
        if not hasattr(model, "process"):
            raise ValueError("it is not an OpenProvence model: it has no method process")
        return model.eval()

    def score(self, model: Any, index: SkillIndex, query: Query) -> ArrayLike:
        """Return the keep probability of each node.

        Raises:
            ValueError: The model does not give one probability for each sentence.
        """
        if not index.nodes:
            return []
        documents = []
        for section in sections_of(index):
            path = " > ".join(index.nodes[section[0]].heading_path)
            texts = [path, *(index.nodes[ordinal].text for ordinal in section)]
            # one line each: the model's code would cut a longer sentence into several, and drop an empty one
            documents.append([f"{' '.join(sendable(text).split()) or '-'}\n" for text in texts])
        answer = model.process(
            question=sendable(query.text),
            context=documents,
            title=None,
            return_sentence_metrics=True,
            show_progress=False,
        )
        found = answer.get("sentence_probabilities")
        if found is None or [len(group) for group in found] != [len(document) for document in documents]:
            raise ValueError("it does not give one probability for each sentence")
        return [probability for group in found for probability in group[1:]]
