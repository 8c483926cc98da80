"""Fine-tune the encoder on annotated documents: to find the nodes a query needs, and to separate node types.

A step takes one skill, each of its nodes read as the shipped encoder reads it, and some of its requests:
its queries, what readers wrote that its nodes are asked for, and requests that it does not answer. Four
losses are added:

- needs: for every needed node, the cross-entropy of picking it among the nodes that are not needed, and
  among nodes of other documents, from cosines divided by a temperature (listwise); nodes that only help get
  a small weight.
- clauses: the same, from the largest cosine of a node with the request or one of its clauses.
- requests: the other way round, for every needed node the cross-entropy of picking a request that needs it
  among those that do not.
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
from skillpager.encoders.builtin import clean, part_spans
from skillpager.strategies.navigator.lexical import clauses_of
from windows import windows_of

logger = logging.getLogger(__name__)

Span = tuple[int, int]


@dataclass(frozen=True)
class EncoderSettings:
    """How the encoder is trained.

    Attributes:
        epochs: Passes over the documents.
        rate: Largest learning rate of the layers; it rises over the first tenth, then falls to zero.
        head_rate: That of the type head.
        frozen: Lower layers that stay as they are.
        temperature: Divisor of the cosines.
        clauses_weight: Weight of the loss over clauses.
        requests_weight: Weight of the loss over requests.
        asks_weight: Weight of what nodes are asked for, beside queries.
        types_weight: Weight of the loss over types.
        window: Word pieces of a window (`windows`); 0 for each node by itself, under its headings.
        max_step_pieces: Word pieces of one step; of longer documents the windows are sampled.
        max_step_queries: Queries of one step.
        max_step_asks: Requests of one step that readers wrote for nodes.
        others: Windows of other documents whose nodes a needed node is compared with, too.
        decay: Weight decay.
        seed: Of the order and the sampling.
    """

    epochs: int = 2
    rate: float = 1e-4
    head_rate: float = 1e-3
    frozen: int = 2
    temperature: float = 0.05
    clauses_weight: float = 0.5
    requests_weight: float = 0.25
    asks_weight: float = 0.5
    types_weight: float = 1.0
    window: int = 0
    max_step_pieces: int = 4000
    max_step_queries: int = 30
    max_step_asks: int = 40
    others: int = 2
    decay: float = 0.01
    seed: int = 0


@dataclass(frozen=True)
class States:
    """What the lower layers make of one skill: of its windows and of its requests.

    Attributes:
        windows: `(pieces, 384)` of each window.
        spans: Where the nodes of each window are; one behind the other they are all nodes, in order.
        queries: How many of the requests are queries; they come first.
        asks: How many are what nodes are asked for; they follow, and before those that nothing answers.
        requests: `(pieces, 384)` of each request.
        parts: Of each request: where it is, and where its clauses are.
        needs: `(requests, nodes)`.
        types: `(nodes, 6)`.
    """

    windows: list[Tensor]
    spans: list[list[Span]]
    queries: int
    asks: int
    requests: list[Tensor]
    parts: list[list[Span]]
    needs: Tensor
    types: Tensor


def lower_states(lower: Lower, tokenizer: Tokenizer, example: Example, window: int) -> States:
    """Return the lower layers' states of a document."""
    first, last = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    windows = windows_of(tokenizer, example.fragments, most=window)
    answered = [*example.asked, *example.asks]
    texts = [*(asked.query.query for asked in answered), *example.unanswered]
    encoded = [tokenizer.encode(clean(text)) for text in texts]
    needs = np.zeros((len(texts), len(example.fragments)), np.float32)
    for place, asked in enumerate(answered):
        needs[place] = asked.needs
    return States(
        lower.states([[first, *each.pieces, last] for each in windows]),
        # a node without pieces has the row of the piece behind it, as in the encoder that ships
        [[(start + 1, max(end, start + 1) + 1) for _, start, end in each.spans] for each in windows],
        len(example.asked),
        len(example.asks),
        lower.states([of.ids for of in encoded]),
        [part_spans(of, text, clauses_of(text)) for of, text in zip(encoded, texts, strict=True)],
        torch.from_numpy(needs),
        torch.from_numpy(example.types),
    )


def listwise_loss(logits: Tensor, needs: Tensor, strangers: Tensor | None = None) -> Tensor:
    """Return the mean loss of the queries.

    Args:
        logits: `(queries, nodes)` cosines over the temperature.
        needs: `(queries, nodes)` 1 for needed, less for helping, 0 for other nodes.
        strangers: `(queries, others)` those of nodes of other documents.
    """
    wrong = logits.masked_fill(needs > 0, -1e9)
    if strangers is not None:
        wrong = torch.cat([wrong, strangers], 1)
    others = torch.logsumexp(wrong, 1, keepdim=True)
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
    """Return the windows and requests of one step."""

    def some(start: int, count: int, most: int) -> list[int]:
        return draw.sample(range(start, start + count), min(count, most))

    answered = states.queries + states.asks
    queries = some(0, states.queries, settings.max_step_queries)
    requests = [
        *queries,
        *some(states.queries, states.asks, settings.max_step_asks),
        *range(answered, len(states.requests)),
    ]
    lengths = [len(window) for window in states.windows]
    if sum(lengths) <= settings.max_step_pieces:
        return list(range(len(lengths))), requests
    needed = (states.needs[queries] == 1).any(0)
    holds, start = [], 0
    for spans in states.spans:
        holds.append(bool(needed[start : start + len(spans)].any()))
        start += len(spans)
    order = sorted(range(len(lengths)), key=lambda window: (not holds[window], draw.random()))
    taken, pieces = [], 0
    for window in order:
        if pieces > settings.max_step_pieces:
            break
        taken.append(window)
        pieces += lengths[window]
    return sorted(taken), requests


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
    weights = (1.0, settings.clauses_weight, settings.requests_weight, settings.types_weight)
    epochs = []
    for epoch in range(settings.epochs):
        started, sums = time.monotonic(), np.zeros(4)
        for place in draw.sample(range(len(documents)), len(documents)):
            strangers = [draw.choice(documents) for _ in range(settings.others)]
            losses = _losses(documents[place], strangers, upper, settings, draw)
            optimiser.zero_grad(set_to_none=True)
            sum(weight * loss for weight, loss in zip(weights, losses, strict=True)).backward()
            nn.utils.clip_grad_norm_(upper.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            sums += [float(loss.detach()) for loss in losses]
        names = ("needs", "clauses", "requests", "types")
        means = dict(zip(names, (sums / len(documents)).round(4).tolist(), strict=True))
        epochs.append({**means, "seconds": round(time.monotonic() - started)})
        logger.info("epoch %d of %d: %s", epoch + 1, settings.epochs, epochs[-1])
    return epochs


def _losses(
    states: States, strangers: Sequence[States], upper: Upper, settings: EncoderSettings, draw: random.Random
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the losses over needs, clauses, requests and types, with a window each of other skills."""
    windows, requests = sample(states, settings, draw)
    starts = np.cumsum([0, *map(len, states.spans)]).tolist()
    nodes = [node for window in windows for node in range(starts[window], starts[window + 1])]
    others = [(of, draw.randrange(len(of.windows))) for of in strangers if of is not states]
    rows = upper(
        [states.windows[window] for window in windows]
        + [states.requests[request] for request in requests]
        + [of.windows[window] for of, window in others],
        [states.spans[window] for window in windows]
        + [states.parts[request] for request in requests]
        + [of.spans[window] for of, window in others],
    )
    counts = [len(states.parts[request]) for request in requests]
    of_nodes, of_parts, of_others = rows.split(
        [len(nodes), sum(counts), len(rows) - len(nodes) - sum(counts)]
    )
    first = torch.tensor([0, *counts[:-1]]).cumsum(0)
    owner = torch.arange(len(requests)).repeat_interleave(torch.tensor(counts))
    own, foreign = (of_parts @ of.T / settings.temperature for of in (of_nodes, of_others))
    needs = states.needs[requests][:, nodes]
    queries = sum(request < states.queries for request in requests)

    def over_nodes(own: Tensor, foreign: Tensor) -> Tensor:
        of_queries, of_asks = (
            listwise_loss(own[part], needs[part], foreign[part])
            for part in (slice(queries), slice(queries, None))
        )
        return of_queries + settings.asks_weight * of_asks

    # a request of one clause is its own
    best_own, best_foreign = (_largest(part, owner, len(requests)) for part in (own, foreign))
    types = upper.types(of_nodes * TYPE_SCALE)
    return (
        over_nodes(own[first], foreign[first]),
        over_nodes(best_own, best_foreign),
        listwise_loss(best_own.T, needs.T),
        type_loss(types, states.types[nodes]),
    )


def _largest(values: Tensor, owner: Tensor, count: int) -> Tensor:
    """Return `(count, columns)`: the largest value of the rows of each owner."""
    index = owner[:, None].expand_as(values)
    return values.new_full((count, values.shape[1]), -1e9).scatter_reduce(0, index, values, "amax")


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
        self.states = [lower_states(lower, tokenizer, example, settings.window) for example in examples]
        logger.info("lower layers of %d documents: %.0f s", len(examples), time.monotonic() - started)

    def train(self, places: Sequence[int], target: Path) -> dict[str, object]:
        """Train on the documents at `places`, write the weights to `target`, return the log."""
        torch.manual_seed(self._settings.seed)
        _, upper, base = read_base(self._base, frozen=self._settings.frozen, outputs=len(TYPES))
        # a document without a query teaches nothing here
        documents = [self.states[place] for place in places if self.states[place].queries]
        epochs = train(documents, upper, self._settings)
        weights = tuned_weights(base, upper)
        head = {name: tensor.numpy() for name, tensor in upper.types.state_dict().items()}
        weights["types.weight"] = np.ascontiguousarray(head["weight"].T * np.float32(TYPE_SCALE))
        weights["types.bias"] = head["bias"]
        save_file({name: np.ascontiguousarray(array) for name, array in weights.items()}, target)
        return {"settings": asdict(self._settings), "documents": len(documents), "epochs": epochs}
