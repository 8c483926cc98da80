"""The encoder in torch, in two parts: frozen lower layers, and upper layers, which are trained.

The output of the lower layers is computed once for each text and cached, so a training step runs only the
upper layers.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from encoder_graph import EPSILON, HEADS, WIDTH

# word pieces that run together: with more, the attention's logits leave the processor's cache, and a step
# takes up to eight times as long
PIECES_PER_BATCH = 800
LENGTH_STEP = 16
# without AVX-512 bfloat16 is emulated, and training takes twelve times as long as in single precision
HALF = torch.backends.cpu.get_cpu_capability().startswith("AVX512")
MASKED = -1e4

# this module's names of the parts of a layer, and theirs
PARTS = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mixed": "attention.output.dense",
    "mixed_norm": "attention.output.LayerNorm",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
    "narrow_norm": "output.LayerNorm",
}


class Layer(nn.Module):
    """One layer of BERT (Devlin et al. 2018), without dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.mixed = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.mixed_norm, self.narrow_norm = (nn.LayerNorm(WIDTH, EPSILON) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return `(batch, sequence, 384)`; `mask` is added to the attention's logits."""

        def heads(part: nn.Module) -> Tensor:
            split: Tensor = part(x).view(*x.shape[:2], HEADS, -1).transpose(1, 2)
            return split

        # on a processor and texts this short, plain products are twice as fast as the fused attention
        logits = heads(self.query) @ heads(self.key).transpose(-1, -2) * (WIDTH // HEADS) ** -0.5
        if mask is not None:
            logits = logits + mask
        seen = torch.softmax(logits, -1, dtype=logits.dtype) @ heads(self.value)
        x = self.mixed_norm(x + self.mixed(seen.transpose(1, 2).reshape(x.shape)))
        result: Tensor = self.narrow_norm(x + self.narrow(functional.gelu(self.wide(x))))
        return result


class Lower(nn.Module):
    """Word embeddings and the first layers; nothing in it learns."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.words = nn.Embedding(1, WIDTH)
        self.places = nn.Embedding(1, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))

    @torch.no_grad()
    def states(self, pieces: Sequence[Sequence[int]]) -> list[Tensor]:
        """Return `(pieces, 384)` bfloat16 for each text."""
        states: list[Tensor] = [torch.empty(0)] * len(pieces)
        for places in batches([len(text) for text in pieces]):
            ids, held = _padded([torch.tensor(pieces[place]) for place in places])
            with torch.autocast("cpu", torch.bfloat16, enabled=HALF):
                x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
                for layer in self.layers:
                    x = layer(x, _mask(held))
            for row, place in zip(x, places, strict=True):
                states[place] = row[: len(pieces[place])].bfloat16()
        return states


class Upper(nn.Module):
    """The last layers, mean pooling, and a head for the node types."""

    def __init__(self, layers: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.types = nn.Linear(WIDTH, outputs)

    def forward(self, states: Sequence[Tensor], spans: Sequence[Sequence[tuple[int, int]]]) -> Tensor:
        """Return `(spans, 384)` unit rows: the mean of each span of texts whose lower states are given.

        Args:
            states: `(pieces, 384)` of each text.
            spans: First piece and end of each span, by text.
        """
        rows: list[Tensor] = [torch.empty(0)] * len(states)
        for places in batches([len(text) for text in states]):
            x, held = _padded([states[place] if HALF else states[place].float() for place in places])
            with torch.autocast("cpu", torch.bfloat16, enabled=HALF):
                for layer in self.layers:
                    x = layer(x, _mask(held))
            # a span is a difference of running sums
            sums = functional.pad(x.float().cumsum(1), (0, 0, 1, 0))
            for row, place in zip(sums, places, strict=True):
                bounds = torch.tensor(spans[place])
                rows[place] = row[bounds[:, 1]] - row[bounds[:, 0]]
        return functional.normalize(torch.cat(rows), dim=-1)


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the places of texts that run together, of about one length."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: lengths[place]):
        if batch and lengths[place] * (len(batch) + 1) > PIECES_PER_BATCH:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _padded(rows: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    lengths = torch.tensor([len(row) for row in rows])
    # kernels are compiled for each new shape, so there are few
    longest = -(-int(lengths.max()) // LENGTH_STEP) * LENGTH_STEP
    padded = rows[0].new_zeros(len(rows), longest, *rows[0].shape[1:])
    for place, row in enumerate(rows):
        padded[place, : len(row)] = row
    return padded, torch.arange(longest) < lengths[:, None]


def _mask(held: Tensor) -> Tensor | None:
    if bool(held.all()):
        return None
    return torch.where(held, 0.0, MASKED)[:, None, None, :].bfloat16()


def read_base(path: Path, *, frozen: int, outputs: int) -> tuple[Lower, Upper, dict[str, Tensor]]:
    """Return both parts with the weights of a sentence-transformers BERT, and those weights."""
    weights = load_file(path)
    lower, upper = Lower(frozen), Upper(layers_of(weights) - frozen, outputs)
    lower.words = nn.Embedding.from_pretrained(weights["embeddings.word_embeddings.weight"])
    # of the two token types a single text has the first
    types = weights["embeddings.token_type_embeddings.weight"]
    lower.places = nn.Embedding.from_pretrained(weights["embeddings.position_embeddings.weight"] + types[0])
    for part in ("weight", "bias"):
        getattr(lower.norm, part).data.copy_(weights[f"embeddings.LayerNorm.{part}"])
    for number, layer in enumerate([*lower.layers, *upper.layers]):
        layer.load_state_dict(_layer(weights, number))
    for parameter in lower.parameters():
        parameter.requires_grad_(False)
    return lower, upper, weights


def layers_of(weights: Mapping[str, Tensor]) -> int:
    """Return the number of layers that some weights have."""
    return sum(name.endswith(PARTS["narrow"] + ".bias") and ".attention." not in name for name in weights)


def _layer(weights: Mapping[str, Tensor], number: int) -> dict[str, Tensor]:
    return {
        f"{ours}.{part}": weights[f"encoder.layer.{number}.{theirs}.{part}"]
        for ours, theirs in PARTS.items()
        for part in ("weight", "bias")
    }


def tuned_weights(base: Mapping[str, Tensor], upper: Upper) -> dict[str, np.ndarray]:
    """Return the base's weights with those of the upper layers in their places."""
    tuned = {name: tensor.numpy() for name, tensor in base.items() if tensor.is_floating_point()}
    first = layers_of(base) - len(upper.layers)
    for number, layer in enumerate(upper.layers, first):
        state = layer.state_dict()
        for ours, theirs in PARTS.items():
            for part in ("weight", "bias"):
                tuned[f"encoder.layer.{number}.{theirs}.{part}"] = state[f"{ours}.{part}"].numpy()
    return tuned
