"""Scores of nodes made comparable between queries."""

import math

import numpy as np

from skillpager.types import FloatArray


def shifted(values: FloatArray, by: int) -> FloatArray:
    """Return each row's neighbour: the row `by` rows before it (after it if negative), zeros beyond."""
    moved = np.zeros_like(values)
    if by > 0:
        moved[by:] = values[:-by]
    else:
        moved[:by] = values[-by:]
    return moved


def share(bm25: FloatArray) -> FloatArray:
    """Return BM25 scores as shares of the largest."""
    return bm25 / max(1e-6, float(bm25.max()))


def standard(values: FloatArray) -> FloatArray:
    """Return values, or each column of them, with mean 0 and standard deviation 1."""
    scaled: FloatArray = np.subtract(
        values, np.add.reduce(values) / np.float32(len(values)), dtype=np.float32
    )
    deviation = np.sqrt(np.add.reduce(np.square(scaled)) / np.float32(len(values)))
    scaled /= np.maximum(deviation, np.float32(1e-6))
    return scaled


def ranks(values: FloatArray) -> FloatArray:
    """Return 0 for the largest value, or that of each column, up to 1 for the smallest: logs of ranks."""
    if values.ndim > 1:
        return np.stack([ranks(column) for column in values.T], axis=1)
    steps = np.log1p(np.arange(len(values), dtype=np.float32))
    steps /= np.float32(math.log1p(max(1, len(values) - 1)))
    found = np.empty_like(steps)
    found[np.argsort(-values, kind="stable")] = steps
    return found


def unit(rows: FloatArray) -> FloatArray:
    """Return rows of length 1, or zeros."""
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.divide(rows, np.where(lengths == 0, 1, lengths), dtype=np.float32)
