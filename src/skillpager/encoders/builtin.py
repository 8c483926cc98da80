"""The default encoder: all-MiniLM-L6-v2, tuned on skills, 8-bit; no network, no torch."""

import hashlib
import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from skillpager.errors import EncoderError, panics_as, reinstall_command
from skillpager.types import FloatArray

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

MODEL_FOLDER = Path(__file__).parents[1] / "models" / "encoder"
FILES = ("model.onnx", "tokenizer.json")
ENCODER_ID = "builtin:skills-MiniLM-L6-int8-1"
DIM = 384
MAX_PIECES = 256  # word pieces of the longest text that the model was trained on
# a bound on tokenising; 256 word pieces of prose are about 1,100 characters, of an indented table 3,000
MAX_CHARACTERS = 8192
PIECES_PER_RUN = 256  # word pieces that run together: the activations then fit a core's cache


class BuiltinEncoder:
    """The shipped model. Thread-safe; the weights are loaded at the first text.

    A row depends on its text alone: not on the texts beside it, their order or the number of threads.
    A text counts up to its `MAX_PIECES`th word piece and `MAX_CHARACTERS`th character. Encoding raises
    `EncoderError` if the model's files are missing or damaged.

    Args:
        threads: Runs at the same time; None for one per processor that the process may use.
        folder: The folder of `model.onnx` and `tokenizer.json`.
        id: Name of the weights and their version; by default that of the shipped ones, or for another folder
            one made of a hash of its files.

    Raises:
        ValueError: `threads` is below 1.
        EncoderError: Another folder than that of the shipped model lacks a file.
    """

    def __init__(
        self, *, threads: int | None = None, folder: Path = MODEL_FOLDER, id: str | None = None
    ) -> None:
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1: {threads}")
        self._id = id or (ENCODER_ID if folder == MODEL_FOLDER else _content_id(folder))
        # a container or `taskset` may allow fewer processors than the machine has
        allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self._threads = threads or allowed or 1
        self._folder = folder
        self._lock = threading.Lock()
        self._model: tuple[Tokenizer, InferenceSession] | None = None

    @property
    def id(self) -> str:
        """Name of the weights and their version."""
        return self._id

    @property
    def dim(self) -> int:
        """Length of a row: 384."""
        return DIM

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        """Return `(len(texts), 384)` float32, rows unit length, in the order of `texts`."""
        if not texts:
            return np.empty((0, DIM), np.float32)
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        rows = self._encode(list(places))
        return rows if len(places) == len(texts) else rows[[places[text] for text in texts]]

    def encode_query(self, text: str) -> FloatArray:
        """Return `(384,)` float32, unit length: the row that `encode_documents` gives."""
        row: FloatArray = self._encode([text])[0]
        return row

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        """Return `(len(texts), 384)`: the rows that `encode_query` gives, computed together."""
        return self.encode_documents(texts)

    def _encode(self, texts: Sequence[str]) -> FloatArray:
        with self._lock:
            if self._model is None:
                self._model = _load(self._folder)
            tokenizer, session = self._model
        # the tokenizer refuses half a character, as a command line in another encoding can contain
        clean = (text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8") for text in texts)
        with panics_as(EncoderError, "tokenizers"):
            pieces: list[list[int]] = [tokenizer.encode(text).ids for text in clean]
        rows = np.empty((len(texts), DIM), np.float32)

        def run(places: list[int]) -> None:
            together = np.array([pieces[place] for place in places], np.int64)
            rows[places] = session.run(None, {"input_ids": together})[0]

        waiting = deque(_runs(pieces))

        def work() -> None:
            with suppress(IndexError):
                while True:
                    run(waiting.popleft())

        # this thread works too: a query and its clauses then start one thread on two processors
        helpers = min(self._threads, len(waiting)) - 1
        if helpers < 1:
            work()
        else:
            from concurrent.futures import ThreadPoolExecutor  # a query of one clause is one run

            with ThreadPoolExecutor(helpers) as pool:
                busy = [pool.submit(work) for _ in range(helpers)]
                work()
                for helper in busy:
                    helper.result()
        return rows


def _runs(pieces: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield batches, as positions of texts of one length: the model has no padding."""
    groups: dict[int, list[int]] = {}
    for place, ids in enumerate(pieces):
        groups.setdefault(len(ids), []).append(place)
    # long runs first, so that no thread begins one at the end
    for length in sorted(groups, reverse=True):
        size = max(1, PIECES_PER_RUN // length)
        for start in range(0, len(groups[length]), size):
            yield groups[length][start : start + size]


def _content_id(folder: Path) -> str:
    try:
        digests = [hashlib.sha256((folder / name).read_bytes()).digest() for name in FILES]
    except OSError as error:
        raise EncoderError(f"{folder} holds no encoder ({error}): {_remedy(folder)}.") from error
    return f"builtin:{hashlib.sha256(b''.join(digests)).hexdigest()[:16]}"


def open_session(model: str | bytes) -> "InferenceSession":
    """Return a session that runs `model`, the path or the bytes of an ONNX file, in one thread.

    Nothing else may import onnxruntime: here its telemetry is switched off first.
    """
    # From 1.31 on it records its use in ~/.cache/Microsoft and reports to Microsoft, unless this is set when
    # it is first imported; its own `disable_telemetry_events` comes too late.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # the runs have threads of their own: faster than dividing each run, and nothing spins
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # the graph is optimised as shipped; these make loading 20 ms shorter and runs no slower
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_mem_reuse = options.enable_mem_pattern = False
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _load(folder: Path) -> "tuple[Tokenizer, InferenceSession]":
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.enable_truncation(MAX_PIECES)
        return tokenizer, open_session(str(folder / "model.onnx"))
    # both packages raise Exception itself
    except Exception as error:
        raise EncoderError(
            f"The encoder cannot be loaded from {folder} ({error}): {_remedy(folder)}."
        ) from error


def _remedy(folder: Path) -> str:
    if folder == MODEL_FOLDER:
        return f"the installation is damaged, so run `{reinstall_command()}`"
    return "training/train.py makes one, of model.onnx and tokenizer.json"
