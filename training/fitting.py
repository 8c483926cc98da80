"""Training of the small networks of `sequence_net`, with the losses of their two tasks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sequence_net import Batch, Example, Net, Shape

# a document's nodes weigh less the more there are, or long documents would decide
LENGTH_EXPONENT = 0.7
MAX_LOGIT = 15.0
# targets of helping nodes in the cross-entropy: they are needed now and then
SUPPORTING_CHANCE = 0.15
LISTWISE_WEIGHT = 0.3
# deviations below this are a constant feature's
LEAST_DEVIATION = 1e-3


@dataclass(frozen=True)
class Fit:
    """How networks are trained.

    Attributes:
        epochs: Passes over the examples.
        rate: Largest learning rate; it rises over the first 15 % of the steps, then falls.
        batch: Examples of a step.
        seeds: Networks, whose logits are averaged.
        loss: `types` or `needs`.
        decay: Weight decay.
    """

    epochs: int
    rate: float
    batch: int
    seeds: int
    loss: str
    decay: float = 0.05


def fit_nets(examples: Sequence[Example], shape: Shape, fit: Fit) -> list[Net]:
    """Return trained networks, one for each seed; the same on any number of processors."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums in one order; networks this small are no slower
    try:
        return _fit_all(examples, shape, fit)
    finally:
        torch.set_num_threads(threads)


def _fit_all(examples: Sequence[Example], shape: Shape, fit: Fit) -> list[Net]:
    features = np.concatenate([example.features for example in examples])
    mean = features.mean(0)
    deviation = features.std(0)
    deviation = np.where(deviation < LEAST_DEVIATION, 1, deviation).astype(np.float32)
    return [_fit(examples, shape, fit, mean, deviation, seed) for seed in range(fit.seeds)]


def _fit(
    examples: Sequence[Example], shape: Shape, fit: Fit, mean: np.ndarray, deviation: np.ndarray, seed: int
) -> Net:
    torch.manual_seed(seed)
    draw = np.random.default_rng(seed)
    net = Net(shape, mean, deviation)
    loss = LOSSES[fit.loss]
    optimiser = torch.optim.AdamW(net.parameters(), lr=fit.rate, weight_decay=fit.decay)
    steps = fit.epochs * (len(examples) // fit.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, fit.rate, total_steps=steps + 1, pct_start=0.15)
    net.train()
    for _ in range(fit.epochs):
        order = draw.permutation(len(examples))
        for start in range(0, len(order) - fit.batch + 1, fit.batch):
            batch = Batch.of([examples[place] for place in order[start : start + fit.batch]])
            optimiser.zero_grad()
            loss(net(batch), batch).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
            schedule.step()
    return net.eval()


def types_loss(logits: Tensor, batch: Batch) -> Tensor:
    """Return the mean cross-entropy of the labelled nodes."""
    losses = -(functional.log_softmax(logits, -1) * batch.target).sum(1)
    labelled = batch.target.sum(1) > 0
    return losses[labelled].sum() / labelled.sum().clamp(min=1)


def needs_loss(logits: Tensor, batch: Batch) -> Tensor:
    """Return cross-entropy of need, plus, listwise, that of every needed node against the others."""
    logits, needs, owner = logits[:, 0], batch.target[:, 0], batch.owner
    needed, other = (needs == 1).float(), (needs == 0).float()
    chance = needed + (1 - needed - other) * SUPPORTING_CHANCE
    weight = torch.bincount(owner).float()[owner] ** -LENGTH_EXPONENT
    losses = functional.binary_cross_entropy_with_logits(logits, chance, reduction="none")
    binary = (losses * weight / weight.mean()).mean()
    per_example = torch.zeros(batch.count)
    rest = per_example.index_add(0, owner, torch.exp(logits.clamp(-MAX_LOGIT, MAX_LOGIT)) * other)
    ranked = functional.softplus(torch.log(rest + 1e-6)[owner] - logits)
    count = per_example.index_add(0, owner, needed).clamp(min=1)[owner]
    return binary + LISTWISE_WEIGHT * (ranked * needed / count).sum() / batch.count


LOSSES: dict[str, Callable[[Tensor, Batch], Tensor]] = {"types": types_loss, "needs": needs_loss}
