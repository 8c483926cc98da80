"""Builder of an ONNX graph of BERT, in floats or in 8-bit integers.

The graph is written operator by operator, not exported and quantised with stock tools, for three properties:

- A row depends only on its own text. Activations are quantised token by token, not with one scale for
  everything in a run, and nothing is padded: all texts of a run have the same length.
- Every processor computes the same integer products. Kernels without VNNI add two neighbouring products in
  16 bits and clip; the weights are scaled so that no such pair can leave that range.
- Little precision is lost. Channels that are far larger than the rest are first evened out against the
  weights.

References:
    Devlin et al. 2018, BERT, arXiv:1810.04805.
    Xiao et al. 2022, SmoothQuant, arXiv:2211.10438, eq. 4 (evening out channels).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from skillpager.encoders.builtin import MAX_PIECES

Floats = NDArray[np.float32]
Weights = Mapping[str, Floats]

LAYERS, HEADS, WIDTH = 6, 12, 384
EPSILON = 1e-12
# what onnxruntime 1.20, the oldest that is accepted, can read; and its own fused operators
OPSET, IR_VERSION = 18, 9
FUSED = "com.microsoft"
# SmoothQuant's alpha: half of an outlier moves from the activation to the weight
SMOOTHING = 0.5
INT8_MAX = 127
# an 8-bit activation times two weights of this sum fits into 16 bits: 255 * 128 <= 32767
PAIR_MAX = 128
# activations are unsigned, because that is what the fast kernels multiply with signed weights
ZERO = 128


@dataclass(slots=True)
class Graph:
    """An ONNX graph under construction; its values go by their names."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)

    def constant(self, name: str, array: NDArray[Any]) -> str:
        """Add a constant unless it is there; return its name."""
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def integers(self, *values: int) -> str:
        """Add a constant list of 64-bit integers; return its name."""
        return self.constant(f"integers{values}", np.array(values, np.int64))

    def split(self, operator: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        """Add a node with several outputs; return their names."""
        names = [f"{operator}_{len(self.nodes)}_{place}" for place in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names

    def node(self, operator: str, *inputs: str, domain: str = "", output: str = "", **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        output = output or f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output


# graph, input (tokens, channels), weight (channels, outputs), name -> output (tokens, outputs)
Linear = Callable[[Graph, str, Floats, str], str]


def linear_float(graph: Graph, x: str, weight: Floats, name: str) -> str:
    """Add `x @ weight` in 32-bit floats; `x` can be asked for as `{name}.input`."""
    return graph.node(
        "MatMul", graph.node("Identity", x, output=f"{name}.input"), graph.constant(name, weight)
    )


def linear_int8(graph: Graph, x: str, weight: Floats, name: str, *, peaks: Weights) -> str:
    """Add `x @ weight` in 8-bit integers, one scale per token and one per output.

    `peaks` holds the largest absolute input of every channel for the products to be smoothed.
    """
    if name in peaks:
        factors = smoothing_factors(peaks[name], weight)
        x = graph.node("Mul", x, graph.constant(f"{name}.smoothing", 1 / factors))
        weight = weight * factors[:, None]
    peak = graph.node("ReduceMax", graph.node("Abs", x), graph.integers(-1), keepdims=1)
    step = graph.node("Mul", peak, graph.constant("step", np.array(1 / INT8_MAX, np.float32)))
    steps = graph.node("Reshape", step, graph.integers(-1))
    integers = graph.node("QuantizeLinear", x, steps, "zeros", axis=0)
    return graph.node("Mul", _integer_product(graph, integers, weight, name), step)


def _repeat_zero(graph: Graph, x: str) -> None:
    # beside one scale per token QuantizeLinear wants one zero point per token
    count = graph.node("Shape", x, start=0, end=1)
    graph.node("Expand", graph.constant("zero", np.array(ZERO, np.uint8)), count, output="zeros")


def _integer_product(graph: Graph, x: str, weight: Floats, name: str) -> str:
    integers, scales = quantise_weight(weight)
    return graph.node(
        "MatMulIntegerToFloat",
        x,
        graph.constant(name, integers),
        graph.constant("one", np.array(1, np.float32)),
        graph.constant(f"{name}.scale", scales),
        graph.constant("zero", np.array(ZERO, np.uint8)),
        domain=FUSED,
    )


def smoothing_factors(peaks: Floats, weight: Floats) -> Floats:
    """Return `(channels,)` factors that move outliers of the activations into the weight.

    They are powers of two, so that multiplying is exact and the exported bytes do not hang on the last
    digits of a calibration run.
    """
    factors = peaks**SMOOTHING / np.abs(weight).max(1) ** (1 - SMOOTHING)
    exponents = np.log2(factors)
    rounded: Floats = np.exp2(np.rint(exponents - exponents.mean())).astype(np.float32)
    return rounded


def quantise_weight(weight: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Return `(channels, outputs)` integers and `(outputs,)` scales whose product is about `weight`.

    In each column the integers of rows 2i and 2i + 1 never add up to more than `PAIR_MAX` on either side
    of zero.
    """
    largest = np.maximum(np.abs(weight).max(0), pair_peaks(weight))
    scales = (largest / INT8_MAX).astype(np.float32)
    integers = np.rint(weight / scales).clip(-INT8_MAX, INT8_MAX).astype(np.int8)
    if pair_peaks(integers).max() > PAIR_MAX:
        raise ValueError(f"a pair of weights adds up to more than {PAIR_MAX}")
    return integers, scales


def pair_peaks(weight: NDArray[Any]) -> NDArray[np.float64]:
    """Return `(outputs,)` largest sums of rows 2i and 2i + 1, positive and negative parts by themselves."""
    pairs = weight.astype(np.float64).reshape(-1, 2, weight.shape[1])
    parts = (np.maximum(pairs, 0), np.maximum(-pairs, 0))
    peaks: NDArray[np.float64] = np.max([part.sum(1).max(0) for part in parts], axis=0)
    return peaks


def build_model(weights: Weights, linear: Linear) -> onnx.ModelProto:
    """Return the model: `input_ids` (batch, sequence) int64 to `states` (batch, sequence, 384)."""
    graph = Graph()
    x = _embed(graph, weights)
    _repeat_zero(graph, x)
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        x = _attend(graph, weights, linear, x, layer)
        x = _feed_forward(graph, weights, linear, x, layer)
    graph.node("Identity", _batched(graph, x, WIDTH), output="states")
    return _finish(graph)


def _embed(graph: Graph, weights: Weights) -> str:
    words = weights["embeddings.word_embeddings.weight"]
    # the padding word is all zeros and never used
    scales = (np.maximum(np.abs(words).max(1, keepdims=True), EPSILON) / INT8_MAX).astype(np.float32)
    integers = graph.constant("words", np.rint(words / scales).astype(np.int8))
    rows = graph.node("Cast", graph.node("Gather", integers, "input_ids"), to=TensorProto.FLOAT)
    rows = graph.node("Mul", rows, graph.node("Gather", graph.constant("words.scale", scales), "input_ids"))
    # of the two token types a single text has the first
    types = weights["embeddings.token_type_embeddings.weight"]
    places = weights["embeddings.position_embeddings.weight"][:MAX_PIECES] + types[0]
    length = graph.node("Shape", "input_ids", start=1, end=2)
    places = graph.node(
        "Slice", graph.constant("places", places), graph.integers(0), length, graph.integers(0)
    )
    return _flat(graph, _normalise(graph, weights, graph.node("Add", rows, places), "embeddings.LayerNorm"))


def _attend(graph: Graph, weights: Weights, linear: Linear, x: str, layer: str) -> str:
    name = f"{layer}.attention.self"
    parts = [f"{name}.{part}" for part in ("query", "key", "value")]
    weight = np.concatenate([weights[f"{part}.weight"].T for part in parts], axis=1)
    bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
    joint = _batched(graph, linear(graph, x, weight, name), 3 * WIDTH)
    heads = graph.split("Split", joint, outputs=3, axis=-1, num_outputs=3)
    bias_name = graph.constant(f"{name}.bias", bias)
    mixed = graph.node("MultiHeadAttention", *heads, bias_name, domain=FUSED, num_heads=HEADS)
    return _add_back(graph, weights, linear, x, _flat(graph, mixed), f"{layer}.attention.output")


def _feed_forward(graph: Graph, weights: Weights, linear: Linear, x: str, layer: str) -> str:
    name = f"{layer}.intermediate.dense"
    bias = graph.constant(f"{name}.bias", weights[f"{name}.bias"])
    wide = linear(graph, x, weights[f"{name}.weight"].T, name)
    wide = graph.node("BiasGelu", wide, bias, domain=FUSED)
    return _add_back(graph, weights, linear, x, wide, f"{layer}.output")


def _add_back(graph: Graph, weights: Weights, linear: Linear, x: str, inner: str, name: str) -> str:
    bias = graph.constant(f"{name}.dense.bias", weights[f"{name}.dense.bias"])
    change = graph.node("Add", linear(graph, inner, weights[f"{name}.dense.weight"].T, f"{name}.dense"), bias)
    # the fused SkipLayerNormalization takes four times as long on a processor
    return _normalise(graph, weights, graph.node("Add", change, x), f"{name}.LayerNorm")


def _normalise(graph: Graph, weights: Weights, x: str, name: str) -> str:
    parts = [graph.constant(part, weights[part]) for part in (f"{name}.weight", f"{name}.bias")]
    return graph.node("LayerNormalization", x, *parts, axis=-1, epsilon=EPSILON)


def _flat(graph: Graph, x: str) -> str:
    return graph.node("Reshape", x, graph.integers(-1, WIDTH))


def _batched(graph: Graph, x: str, width: int) -> str:
    shape = graph.node("Concat", graph.node("Shape", "input_ids"), graph.integers(width), axis=0)
    return graph.node("Reshape", x, shape)


def _finish(graph: Graph) -> onnx.ModelProto:
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "sequence"])
    rows = helper.make_tensor_value_info("states", TensorProto.FLOAT, ["batch", "sequence", WIDTH])
    constants = list(graph.constants.values())
    return helper.make_model(
        helper.make_graph(graph.nodes, "all-MiniLM-L6-v2", [ids], [rows], constants),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(FUSED, 1)],
        ir_version=IR_VERSION,
    )
