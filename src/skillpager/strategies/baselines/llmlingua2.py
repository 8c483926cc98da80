"""LLMLingua-2's context-level filter: nodes by how much of their text a trained compressor would keep.

A token classifier gives each token the probability that it is kept; a node's score is the mean over its
tokens. The query has no say. The token-level deletion that the paper goes on with is not offered: it rewrites
the source, and a node's text is its source slice.

Reference: Pan et al. 2024, LLMLingua-2, its coarse-grained compression of several contexts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skillpager.errors import require_extra
from skillpager.remote.endpoint import sendable
from skillpager.strategies.baselines.loading import LoadedModel
from skillpager.strategies.per_index import PerIndex
from skillpager.strategies.scoring import select_by_score
from skillpager.types import Budget, FloatArray, Query, Selection, SkillIndex, TokenMeter

WINDOW_TOKENS = 512  # the length that the published classifiers were trained with
BATCH_SIZE = 32
LABELS = 2  # 0 drop, 1 keep
KEEP = 1


@dataclass(frozen=True, slots=True)
class TokenClassifier:
    """A token classifier with its tokenizer, as transformers has them.

    Attributes:
        tokenizer: Cuts texts into tokens.
        model: Gives each token two logits: drop, keep.
    """

    tokenizer: Any
    model: Any


@dataclass(frozen=True, slots=True)
class LLMLingua2:
    """Nodes by falling mean keep probability, whatever the query.

    Attributes:
        model: Name on the Hugging Face hub, such as
            `microsoft/llmlingua-2-bert-base-multilingual-cased-meetingbank`, or the path of a folder.
        name: `llmlingua2`.
        loaded: The model, loaded at first use.
        kept: Scores of the last skills, kept for the next query.
    """

    model: str
    name: str = "llmlingua2"
    loaded: LoadedModel[TokenClassifier] = field(default_factory=LoadedModel, repr=False, compare=False)
    kept: PerIndex[FloatArray] = field(default_factory=PerIndex, repr=False, compare=False)

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks, the highest mean keep probability first.

        Raises:
            StrategyError: The model cannot be loaded or run, or is no token classifier of two labels.
            MissingExtraError: `torch` or `transformers` is not installed.
        """
        scores = self.kept.of(index, self._scores)
        return select_by_score(self.name, index, query, scores, budget=budget, meter=meter)

    def _scores(self, index: SkillIndex) -> FloatArray:
        texts = [sendable(node.text) for node in index.nodes]
        return self.loaded.scores(
            f"{self.name}:{self.model}",
            len(texts),
            load=self._load,
            score=lambda classifier: mean_keep_probabilities(classifier, texts),
        )

    def _load(self) -> TokenClassifier:
        package = require_extra("transformers", extra="st", purpose="The strategy llmlingua2")
        tokenizer = package.AutoTokenizer.from_pretrained(self.model)
        model, found = package.AutoModelForTokenClassification.from_pretrained(
            self.model, output_loading_info=True
        )
        # another kind of model gets a classifier of random weights, and says so in a log at most
        if found["missing_keys"] or model.config.num_labels != LABELS:
            raise ValueError("it is no token classifier that tells what to drop and what to keep")
        return TokenClassifier(tokenizer, model.eval())


def mean_keep_probabilities(classifier: TokenClassifier, texts: Sequence[str]) -> NDArray[np.float64]:
    """Return `(len(texts),)`: the mean keep probability of the tokens of each text, 0 without tokens.

    Longer texts than the model's window are read window by window.
    """
    sums, counts = np.zeros(len(texts)), np.zeros(len(texts))
    for start in range(0, len(texts), BATCH_SIZE):
        probabilities, real, owners = _keep_probabilities(classifier, texts[start : start + BATCH_SIZE])
        np.add.at(sums, owners + start, (probabilities * real).sum(axis=1))
        np.add.at(counts, owners + start, real.sum(axis=1))
    means: NDArray[np.float64] = sums / np.maximum(counts, 1)
    return means


def _keep_probabilities(
    classifier: TokenClassifier, texts: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.intp]]:
    """Return, for each window: keep probabilities, which tokens are of the text, and the text's place."""
    torch = require_extra("torch", extra="st", purpose="The strategy llmlingua2")
    windows = classifier.tokenizer(
        list(texts),
        truncation=True,
        max_length=min(WINDOW_TOKENS, classifier.tokenizer.model_max_length),
        padding=True,
        return_overflowing_tokens=True,
        return_special_tokens_mask=True,
        return_tensors="pt",
    )
    read = {name: windows[name] for name in classifier.tokenizer.model_input_names}
    with torch.inference_mode():
        logits = classifier.model(**read).logits
        probabilities = torch.softmax(logits.double(), dim=-1)[..., KEEP].numpy()
    real = (windows["attention_mask"].bool() & ~windows["special_tokens_mask"].bool()).numpy()
    return probabilities, real, windows["overflow_to_sample_mapping"].numpy()
