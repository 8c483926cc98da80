"""Fine-tune the encoder on annotated documents: to find the nodes a query needs, and to separate node types.

A step takes one document with all its nodes and queries. Two losses are added:

- needs: for every needed node, the cross-entropy of picking it among the nodes that are not needed, from
  cosines divided by a temperature (listwise, within the document); nodes that only help get a small weight.
- types: the cross-entropy of a linear head on the embedding.

Lower layers and word embeddings are frozen: queries and nodes need no new words here, training takes a third
less time, and fewer weights can overfit. `train.py` calls this and logs settings and scores.
"""

import logging
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from bert import Lower, Upper, read_base, tuned_weights
from data import Example
from skillpager.classifiers.local import TYPES

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class EncoderSettings:
    """How the encoder is trained.

    Attributes:
        epochs: Passes over the documents.
        rate: Largest learning rate of the layers; it rises over the first tenth, then falls to zero.
        head_rate: That of the type head.
        frozen: Lower layers that stay as they are.
        temperature: Divisor of the cosines.
        types_weight: Weight of the loss over types.
        max_pieces: Word pieces of a text that count in training.
        max_step_pieces: Word pieces of one step; of longer documents the unneeded nodes are sampled.
        max_step_queries: Queries of one step.
        decay: Weight decay.
        seed: Of the order and the sampling.
    """

    epochs: int = 3
    rate: float = 1e-4
    head_rate: float = 1e-3
    frozen: int = 3
    temperature: float = 0.05
    types_weight: float = 1.0
    max_pieces: int = 160
    max_step_pieces: int = 5000
    max_step_queries: int = 16
    decay: float = 0.01
    seed: int = 0


@dataclass(frozen=True)
class States:
    """What the lower layers make of one document: of its nodes and of its queries."""

    nodes: list[Tensor]
    queries: list[Tensor]
    needs: Tensor
    types: Tensor


def lower_states(lower: Lower, tokenizer: Tokenizer, example: Example, max_pieces: int) -> States:
    """Return the lower layers' states of a document."""

    def pieces(texts: Sequence[str]) -> list[list[int]]:
        encoded = [tokenizer.encode(text).ids for text in texts]
        return [ids if len(ids) <= max_pieces else [*ids[: max_pieces - 1], ids[-1]] for ids in encoded]

    return States(
        lower.states(pieces(example.texts)),
        lower.states(pieces([asked.query.query for asked in example.asked])),
        torch.from_numpy(
            np.array([asked.needs for asked in example.asked], np.float32).reshape(-1, len(example.texts))
        ),
        torch.from_numpy(example.types),
    )


def listwise_loss(logits: Tensor, needs: Tensor) -> Tensor:
    """Return the mean loss of the queries.

    Args:
        logits: `(queries, nodes)` cosines over the temperature.
        needs: `(queries, nodes)` 1 for needed, less for helping, 0 for other nodes.
    """
    others = torch.logsumexp(logits.masked_fill(needs > 0, -1e9), 1, keepdim=True)
    losses = torch.logaddexp(logits, others) - logits
    shares = needs / needs.sum(1, keepdim=True).clamp(min=1e-6)
    asked = (needs == 1).any(1)
    return (losses * shares).sum(1)[asked].sum() / asked.sum().clamp(min=1)


def type_loss(logits: Tensor, shares: Tensor) -> Tensor:
    """Return the mean cross-entropy of the labelled nodes; `shares` is `(nodes, types)`."""
    losses = -(functional.log_softmax(logits, -1) * shares).sum(1)
    labelled = shares.sum(1) > 0
    return losses[labelled].sum() / labelled.sum().clamp(min=1)


def sample(states: States, settings: EncoderSettings, draw: random.Random) -> tuple[list[int], list[int]]:
    """Return the nodes and queries of one step."""
    queries = list(range(len(states.queries)))
    if len(queries) > settings.max_step_queries:
        queries = draw.sample(queries, settings.max_step_queries)
    lengths = [len(node) for node in states.nodes]
    if sum(lengths) <= settings.max_step_pieces:
        return list(range(len(lengths))), queries
    needed = (states.needs[queries] > 0).any(0).tolist()
    order = sorted(range(len(lengths)), key=lambda node: (not needed[node], draw.random()))
    kept, pieces = [], 0
    for node in order:
        if pieces > settings.max_step_pieces:
            break
        kept.append(node)
        pieces += lengths[node]
    return sorted(kept), queries


def train(documents: Sequence[States], upper: Upper, settings: EncoderSettings) -> list[dict[str, float]]:
    """Train the upper layers in place; return the mean losses and seconds of every epoch."""
    draw = random.Random(settings.seed)
    torch.manual_seed(settings.seed)
    groups = [
        {"params": list(upper.layers.parameters()), "lr": settings.rate},
        {"params": list(upper.types.parameters()), "lr": settings.head_rate},
    ]
    optimiser = torch.optim.AdamW(groups, weight_decay=settings.decay)
    steps = settings.epochs * len(documents)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1.0, 10 * (step + 1) / steps) * (1 - step / steps)
    )
    epochs = []
    for epoch in range(settings.epochs):
        started, sums = time.monotonic(), np.zeros(2)
        for place in draw.sample(range(len(documents)), len(documents)):
            losses = _losses(documents[place], upper, settings, draw)
            optimiser.zero_grad(set_to_none=True)
            (losses[0] + settings.types_weight * losses[1]).backward()
            nn.utils.clip_grad_norm_(upper.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            sums += [float(loss.detach()) for loss in losses]
        needs, types = (sums / len(documents)).round(4).tolist()
        epochs.append({"needs": needs, "types": types, "seconds": round(time.monotonic() - started)})
        logger.info("epoch %d of %d: %s", epoch + 1, settings.epochs, epochs[-1])
    return epochs


def _losses(
    states: States, upper: Upper, settings: EncoderSettings, draw: random.Random
) -> tuple[Tensor, Tensor]:
    nodes, queries = sample(states, settings, draw)
    rows = upper([states.nodes[node] for node in nodes] + [states.queries[query] for query in queries])
    of_nodes, of_queries = rows[: len(nodes)], rows[len(nodes) :]
    needs = states.needs[queries][:, nodes]
    logits = of_queries @ of_nodes.T / settings.temperature
    types = upper.types(of_nodes * TYPE_SCALE)
    return listwise_loss(logits, needs), type_loss(types, states.types[nodes])


# the head reads unit rows, whose entries are about 0.05
TYPE_SCALE = 20.0


class EncoderTrainer:
    """Trains encoders on parts of the same documents.

    Attributes:
        states: What the lower layers make of each document, computed once.
    """

    def __init__(
        self, base: Path, tokenizer: Tokenizer, examples: Sequence[Example], settings: EncoderSettings
    ) -> None:
        self._base, self._settings = base, settings
        lower, _, _ = read_base(base, frozen=settings.frozen, outputs=len(TYPES))
        started = time.monotonic()
        self.states = [lower_states(lower, tokenizer, example, settings.max_pieces) for example in examples]
        logger.info("lower layers of %d documents: %.0f s", len(examples), time.monotonic() - started)

    def train(self, places: Sequence[int], target: Path) -> dict[str, object]:
        """Train on the documents at `places`, write the weights to `target`, return the log."""
        torch.manual_seed(self._settings.seed)
        _, upper, base = read_base(self._base, frozen=self._settings.frozen, outputs=len(TYPES))
        # a document without a query teaches nothing here
        documents = [self.states[place] for place in places if len(self.states[place].queries)]
        epochs = train(documents, upper, self._settings)
        weights = tuned_weights(base, upper)
        head = {name: tensor.numpy() for name, tensor in upper.types.state_dict().items()}
        weights["types.weight"] = np.ascontiguousarray(head["weight"].T * np.float32(TYPE_SCALE))
        weights["types.bias"] = head["bias"]
        save_file({name: np.ascontiguousarray(array) for name, array in weights.items()}, target)
        return {"settings": asdict(self._settings), "documents": len(documents), "epochs": epochs}
