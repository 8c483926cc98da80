"""The network of `skillpager.sequence_net` in torch: the same computation, with gradients."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from skillpager.sequence_net import CLIP, MAX_EXPONENT, NEIGHBOURS
from skillpager.types import FloatArray


@dataclass(frozen=True)
class Shape:
    """Sizes and regularisation of a network.

    Attributes:
        outputs: Numbers per node.
        width: Of the hidden layers.
        blocks: How many times neighbours are mixed; 0 for a node by itself.
        dropout: Share of hidden values that a training step drops.
    """

    outputs: int
    width: int = 48
    blocks: int = 2
    dropout: float = 0.2


@dataclass(frozen=True)
class Example:
    """The nodes of a document.

    Attributes:
        features: `(n, f)`.
        sections: `(n,)` numbers of the sections, rising from 0.
        target: `(n, outputs)`.
    """

    features: FloatArray
    sections: np.ndarray
    target: FloatArray


@dataclass(frozen=True)
class Batch:
    """Several examples, one behind the other; `owner[i]` is the example of node i."""

    features: Tensor
    sections: Tensor
    target: Tensor
    owner: Tensor
    count: int

    @classmethod
    def of(cls, examples: Sequence[Example]) -> "Batch":
        """Return the batch of some examples."""
        sections, start = [], 0
        for example in examples:
            sections.append(example.sections + start)
            start += int(example.sections.max()) + 1
        return cls(
            torch.from_numpy(np.concatenate([example.features for example in examples])),
            torch.from_numpy(np.concatenate(sections)),
            torch.from_numpy(np.concatenate([example.target for example in examples])),
            torch.from_numpy(
                np.repeat(np.arange(len(examples)), [len(example.target) for example in examples])
            ),
            len(examples),
        )


class Block(nn.Module):
    """One exchange with the neighbours, the section and the document."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.first = nn.Linear((3 + len(NEIGHBOURS)) * shape.width, shape.width)
        self.second = nn.Linear(shape.width, shape.width)
        self.pool = nn.Linear(shape.width, 1)
        self.norm = nn.LayerNorm(shape.width)
        self.dropout = shape.dropout

    def forward(self, h: Tensor, batch: Batch) -> Tensor:
        """Return `(n, width)`."""
        count = int(batch.sections.max()) + 1
        sizes = torch.bincount(batch.sections, minlength=count).to(h.dtype)
        section = torch.zeros(count, h.shape[1]).index_add(0, batch.sections, h) / sizes[:, None]
        weight = torch.exp(self.pool(h).clamp(-MAX_EXPONENT, MAX_EXPONENT))
        document = torch.zeros(batch.count, h.shape[1]).index_add(0, batch.owner, h * weight)
        document = document / torch.zeros(batch.count, 1).index_add(0, batch.owner, weight)
        parts = [h, *(_shifted(h, batch.owner, by) for by in NEIGHBOURS)]
        mixed = self.first(torch.cat([*parts, section[batch.sections], document[batch.owner]], 1))
        mixed = functional.dropout(functional.relu(mixed), self.dropout, self.training)
        result: Tensor = self.norm(h + self.second(mixed))
        return result


class Net(nn.Module):
    """One network.

    Args:
        shape: Its sizes.
        mean: `(f,)` mean of the features.
        deviation: `(f,)` standard deviation of the features.
    """

    def __init__(self, shape: Shape, mean: FloatArray, deviation: FloatArray) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("mean", torch.from_numpy(mean))
        self.register_buffer("deviation", torch.from_numpy(deviation))
        self.features = nn.Linear(len(mean), shape.width)
        self.direct = nn.Linear(len(mean), shape.outputs)
        nn.init.zeros_(self.direct.weight)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.blocks))
        self.out = nn.Linear(shape.width, shape.outputs)

    def forward(self, batch: Batch) -> Tensor:
        """Return `(n, outputs)` logits."""
        x = ((batch.features - self.mean) / self.deviation).clamp(-CLIP, CLIP)
        x = functional.dropout(x, self.shape.dropout / 2, self.training)
        h = functional.relu(self.features(x))
        for block in self.blocks:
            h = block(h, batch)
        result: Tensor = self.out(h) + self.direct(x)
        return result


def _shifted(h: Tensor, owner: Tensor, by: int) -> Tensor:
    """Return each row's neighbour in its own document, zeros beyond its ends."""
    moved = torch.roll(h, by, 0)
    inside = torch.roll(owner, by) == owner
    edge = torch.arange(len(h))
    inside &= edge >= by if by > 0 else edge < len(h) + by
    return moved * inside[:, None]


def arrays_of(nets: Sequence[Net]) -> dict[str, FloatArray]:
    """Return the weights as `skillpager.sequence_net.SequenceNet` reads them: products from the left."""
    arrays = {}
    for seed, net in enumerate(nets):
        for name, tensor in net.state_dict().items():
            array = tensor.numpy().astype(np.float32)
            arrays[f"{seed}.{name}"] = np.ascontiguousarray(array.T if array.ndim == 2 else array)
    return arrays
