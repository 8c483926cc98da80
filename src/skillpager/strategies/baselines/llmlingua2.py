"""LLMLingua-2's context-level filter: nodes by how much of their text a trained compressor would keep.

A token classifier gives each token the probability that it is kept; a node's score is the mean over its
tokens. The query has no say. The token-level deletion that the paper goes on with is not offered: it rewrites
the source, and a node's text is its source slice.

Reference: Pan et al. 2024, LLMLingua-2, its coarse-grained compression of several contexts.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skillpager.errors import require_extra
from skillpager.remote.endpoint import sendable
from skillpager.strategies.baselines.hub_model import HubStrategy
from skillpager.strategies.picking import PerIndex
from skillpager.types import FloatArray, Query, SkillIndex

WINDOW_TOKENS = 512  # the length that the published classifiers were trained with
BATCH_SIZE = 32
LABELS = 2  # 0 drop, 1 keep
KEEP = 1


@dataclass(frozen=True, slots=True)
class LLMLingua2(HubStrategy):
    """Nodes by falling mean keep probability, whatever the query.

    Attributes:
        model: Name on the Hugging Face hub, such as
            `microsoft/llmlingua-2-bert-base-multilingual-cased-meetingbank`, or the path of a folder.
        name: `llmlingua2`.
        cached: Cache of the scores, which no query changes.
    """

    name: str = "llmlingua2"
    cached: PerIndex[FloatArray] = field(default_factory=PerIndex, repr=False, compare=False)

    def scores(self, index: SkillIndex, query: Query) -> FloatArray:
        """Return `(n,)` float32: the mean keep probability of each node.

        Raises:
            StrategyError: The model cannot be loaded or run, or is no token classifier of two labels.
            MissingExtraError: `torch` or `transformers` is not installed.
        """
        return self.cached.of(index, lambda index: HubStrategy.scores(self, index, query))

    def load(self) -> Any:
        """Return the tokenizer and the token classifier."""
        package = require_extra("transformers", extra="st", purpose="The strategy llmlingua2")
        tokenizer = package.AutoTokenizer.from_pretrained(self.model)
        model, found = package.AutoModelForTokenClassification.from_pretrained(
            self.model, output_loading_info=True
        )
        # another kind of model gets a classifier of random weights, and says so in a log at most
        if found["missing_keys"] or model.config.num_labels != LABELS:
            raise ValueError("it is no token classifier that tells what to drop and what to keep")
        return tokenizer, model.eval()

    def score(self, model: Any, index: SkillIndex, query: Query) -> ArrayLike:  # noqa: ARG002
        """Return the mean keep probability of the tokens of each node, 0 without tokens.

        Longer texts than the model's window are read window by window.
        """
        torch = require_extra("torch", extra="st", purpose="The strategy llmlingua2")
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
