"""OpenProvence: nodes by the probability that a query-conditioned pruner keeps them.

The code that runs the model comes with the model and is run in this process. That happens only because the
user names the model: a project file cannot.

Reference: Chirkova et al. 2025, Provence; Tateno 2025, open_provence (`process` of its models).
"""

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from skillpager.errors import require_extra
from skillpager.remote.endpoint import sendable
from skillpager.sections import sections_of
from skillpager.strategies.baselines.hub_model import HubStrategy
from skillpager.types import Query, SkillIndex


@dataclass(frozen=True, slots=True)
class OpenProvence(HubStrategy):
    """Nodes by falling keep probability.

    The model reads the skill section by section, as it was trained on passages: the heading path, then
    each node as one sentence, so that a node is judged beside its neighbours.

    Attributes:
        model: Name on the Hugging Face hub, such as `hotchpotch/open-provence-reranker-xsmall-v1`, or the
            path of a folder.
        name: `openprovence`.
    """

    name: str = "openprovence"

    def load(self) -> Any:
        """Return the model."""
        package = require_extra("transformers", extra="st", purpose="The strategy openprovence")
        model = package.AutoModel.from_pretrained(self.model, trust_remote_code=True)
        if not hasattr(model, "process"):
            raise ValueError("it is no OpenProvence model: it has no method process")
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
