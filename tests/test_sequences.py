"""The small network against a plain loop over nodes, and its bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillpager.sequence_net import CLIP, NEIGHBOURS, SequenceNet
from skillpager.types import FloatArray

FEATURES, WIDTH = 5, 4


def random_net(*, outputs: int = 2, blocks: int = 2, seeds: int = 2) -> SequenceNet:
    """Return a network of random weights."""
    draw = np.random.default_rng(7)

    def weights(*shape: int) -> FloatArray:
        return draw.standard_normal(shape).astype(np.float32)

    arrays: dict[str, FloatArray] = {}
    for seed in range(seeds):
        shapes = {
            "features.weight": (FEATURES, WIDTH),
            "features.bias": (WIDTH,),
            "direct.weight": (FEATURES, outputs),
            "direct.bias": (outputs,),
            "out.weight": (WIDTH, outputs),
            "out.bias": (outputs,),
        }
        for block in range(blocks):
            name = f"blocks.{block}"
            shapes |= {
                f"{name}.first.weight": ((3 + len(NEIGHBOURS)) * WIDTH, WIDTH),
                f"{name}.first.bias": (WIDTH,),
                f"{name}.second.weight": (WIDTH, WIDTH),
                f"{name}.second.bias": (WIDTH,),
                f"{name}.pool.weight": (WIDTH, 1),
                f"{name}.pool.bias": (1,),
                f"{name}.norm.weight": (WIDTH,),
                f"{name}.norm.bias": (WIDTH,),
            }
        arrays |= {f"{seed}.{name}": weights(*shape) for name, shape in shapes.items()}
        arrays[f"{seed}.mean"] = weights(FEATURES)
        arrays[f"{seed}.deviation"] = np.abs(weights(FEATURES)) + 0.5
    return SequenceNet(arrays)


def looped(net: SequenceNet, features: FloatArray, sections: np.ndarray) -> FloatArray:
    """Return what the module's docstring says, node by node."""
    results = []
    for seed in range(net.seeds):
        w = {
            name[2:]: array.astype(float) for name, array in net.arrays.items() if name.startswith(f"{seed}.")
        }
        x = np.clip((features - w["mean"]) / w["deviation"], -CLIP, CLIP)
        hidden = [np.maximum(values @ w["features.weight"] + w["features.bias"], 0) for values in x]
        block = 0
        while f"blocks.{block}.first.weight" in w:
            hidden = looped_block(w, f"blocks.{block}.", hidden, sections)
            block += 1
        results.append(
            [
                h @ w["out.weight"] + w["out.bias"] + x[node] @ w["direct.weight"] + w["direct.bias"]
                for node, h in enumerate(hidden)
            ]
        )
    return np.mean(results, axis=0)


def looped_block(w: dict[str, FloatArray], name: str, hidden: list[FloatArray], sections: np.ndarray) -> list:
    """Return the hidden values after one block."""
    nothing = np.zeros(WIDTH)
    weight = [np.exp(np.clip(h @ w[f"{name}pool.weight"] + w[f"{name}pool.bias"], -8, 8)) for h in hidden]
    document = sum(a * h for a, h in zip(weight, hidden, strict=True)) / sum(weight)
    after = []
    for node, h in enumerate(hidden):
        beside = [hidden[node - by] if 0 <= node - by < len(hidden) else nothing for by in NEIGHBOURS]
        section = np.mean([hidden[other] for other in np.flatnonzero(sections == sections[node])], axis=0)
        seen = np.concatenate([h, *beside, section, document])
        mixed = np.maximum(seen @ w[f"{name}first.weight"] + w[f"{name}first.bias"], 0)
        h = h + mixed @ w[f"{name}second.weight"] + w[f"{name}second.bias"]
        h = (h - h.mean()) / np.sqrt(h.var() + 1e-5)
        after.append(h * w[f"{name}norm.weight"] + w[f"{name}norm.bias"])
    return after


@pytest.mark.parametrize("blocks", [0, 1, 3])
@given(lengths=st.lists(st.integers(1, 4), min_size=1, max_size=5), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_it_is_the_loop_over_nodes(blocks: int, lengths: list[int], seed: int) -> None:
    draw = np.random.default_rng(seed)
    count = sum(lengths)
    features = draw.standard_normal((count, FEATURES)).astype(np.float32) * 3
    sections = np.repeat(np.arange(len(lengths)), lengths)
    net = random_net(blocks=blocks)
    found = net.logits(features, sections)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, looped(net, features, sections), rtol=2e-3, atol=2e-3)


def test_an_odd_feature_cannot_drive_it_out_of_its_range() -> None:
    net, sections = random_net(), np.zeros(3, int)
    large = net.logits(np.full((3, FEATURES), 1e9, np.float32), sections)
    larger = net.logits(np.full((3, FEATURES), 1e30, np.float32), sections)
    np.testing.assert_array_equal(large, larger)
    assert np.isfinite(large).all()
