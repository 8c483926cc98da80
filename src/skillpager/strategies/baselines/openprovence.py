"""OpenProvence: nodes by the probability that a query-conditioned pruner keeps them.

The code that runs the model comes with the model and is run in this process. That happens only because the
user names the model: a project file cannot.

Reference: Chirkova et al. 2025, Provence; Tateno 2025, open_provence (`process` of its models).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from skillpager.errors import require_extra
from skillpager.remote.endpoint import sendable
from skillpager.sections import sections_of
from skillpager.strategies.baselines.loading import LoadedModel
from skillpager.strategies.scoring import select_by_score
from skillpager.types import Budget, Query, Selection, SkillIndex, TokenMeter


@dataclass(frozen=True, slots=True)
class OpenProvence:
    """Nodes by falling keep probability.

    The model reads the skill section by section, as it was trained on passages: the heading path, then
    each node as one sentence, so that a node is judged beside its neighbours.

    Attributes:
        model: Name on the Hugging Face hub, such as `hotchpotch/open-provence-reranker-xsmall-v1`, or the
            path of a folder.
        name: `openprovence`.
        loaded: The model, loaded at first use.
    """

    model: str
    name: str = "openprovence"
    loaded: LoadedModel[Any] = field(default_factory=LoadedModel, repr=False, compare=False)

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks, the highest keep probability first.

        Raises:
            StrategyError: The model cannot be loaded or run, or does not work as OpenProvence's do.
            MissingExtraError: The `transformers` package is not installed.
        """
        scores = self.loaded.scores(
            f"{self.name}:{self.model}",
            len(index.nodes),
            load=self._load,
            score=lambda model: keep_probabilities(model, index, query.text),
        )
        return select_by_score(self.name, index, query, scores, budget=budget, meter=meter)

    def _load(self) -> Any:
        package = require_extra("transformers", extra="st", purpose="The strategy openprovence")
        model = package.AutoModel.from_pretrained(self.model, trust_remote_code=True)
        if not hasattr(model, "process"):
            raise ValueError("it is no OpenProvence model: it has no method process")
        return model.eval()


def keep_probabilities(model: Any, index: SkillIndex, question: str) -> list[float]:
    """Return the keep probability of each node, in document order.

    Raises:
        ValueError: The model does not give one probability for each sentence.
    """
    if not index.nodes:
        return []
    documents = [_sentences(index, section) for section in sections_of(index)]
    answer = model.process(
        question=sendable(question),
        context=documents,
        title=None,
        return_sentence_metrics=True,
        show_progress=False,
    )
    found = answer.get("sentence_probabilities")
    if found is None or [len(group) for group in found] != [len(document) for document in documents]:
        raise ValueError("it does not give one probability for each sentence")
    return [probability for group in found for probability in group[1:]]


def _sentences(index: SkillIndex, section: Sequence[int]) -> list[str]:
    """Return the heading path of a section and its nodes, each on one line.

    The model's code would cut a sentence of several lines into several, and drop an empty one.
    """
    path = index.nodes[section[0]].heading_path
    texts = [" > ".join(path), *(index.nodes[ordinal].text for ordinal in section)]
    return [f"{' '.join(sendable(text).split()) or '-'}\n" for text in texts]
