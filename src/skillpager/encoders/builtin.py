"""The default encoder: all-MiniLM-L6-v2, tuned on skills, 8-bit; no network, no torch.

The row of a node is the mean over its own word pieces, read under its headings; that of a clause is the mean
over its pieces in the query, which is read once.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from skillpager.errors import EncoderError, raise_fault, reinstall_command
from skillpager.types import FloatArray, Fragment

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Encoding, Tokenizer

MODEL_FOLDER = Path(__file__).parents[1] / "models" / "encoder"
FILES = MODEL, TOKENIZER = "model.onnx", "tokenizer.json"
ENCODER_ID = "builtin:skills-MiniLM-L6-int8-3"
DIM = 384
MAX_PIECES = 384  # word pieces that are read together, with [CLS] and [SEP]
# of a fragment, so that a listing takes no longer than a page of prose; of each heading above it; and of the
# sentence that introduces its list
MAX_TEXT_PIECES, MAX_TITLE_PIECES, MAX_LEAD_IN_PIECES = 160, 24, 48
# a bound on tokenising; 384 word pieces of prose are about 1,700 characters, of an indented table 4,500
MAX_CHARACTERS = 8192
PIECES_PER_RUN = 256  # word pieces that run together: the activations then fit a core's cache

Span = tuple[int, int]  # of word pieces: the first, and the end


class BuiltinEncoder:
    """The shipped model, or another in a folder. Thread-safe; the weights are loaded at the first text.

    A row depends on its text alone: not on the texts beside it, their order or the number of threads. A text
    counts up to its `MAX_PIECES`th word piece and `MAX_CHARACTERS`th character. Encoding raises
    `EncoderError` if the model's files are missing or damaged. `id` is made of a hash of another folder's
    files.

    Raises:
        EncoderError: Another folder than that of the shipped model lacks a file.
    """

    dim = DIM

    def __init__(self, *, folder: Path = MODEL_FOLDER, id: str | None = None) -> None:
        is_shipped = folder == MODEL_FOLDER
        remedy = "" if is_shipped else f"training/train.py makes one, of {MODEL} and {TOKENIZER}"
        self.id = id or ENCODER_ID
        if not id and not is_shipped:
            try:
                self.id = f"builtin:{content_digest((folder / name).read_bytes() for name in FILES)}"
            except OSError as error:
                raise EncoderError(f"{folder} holds no encoder ({error}): {remedy}.") from error
        self._model = Model(folder, max_pieces=MAX_PIECES, remedy=remedy)

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        """Return `(len(texts), 384)` float32, rows unit length, in the order of `texts`."""
        if not texts:
            return np.empty((0, DIM), np.float32)
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        pieces = [encoding.ids for encoding in self._model.tokenize(places)]
        rows = self._pooled(pieces, [[(0, len(ids))] for ids in pieces])
        return rows[[places[text] for text in texts]]

    def encode_query(self, text: str) -> FloatArray:
        """Return `(384,)` float32, unit length: the row that `encode_documents` gives."""
        return self.encode_documents([text]).ravel()

    def encode_query_parts(self, text: str, parts: Sequence[str]) -> FloatArray:
        """Return `(1 + len(parts), 384)`: the rows of a query and, within it, of slices in order."""
        (encoding,) = self._model.tokenize([text])
        return self._pooled([encoding.ids], [part_spans(encoding, text, parts)])

    def encode_in_context(self, fragments: Sequence[Fragment]) -> FloatArray:
        """Return `(len(fragments), 384)` unit rows: each fragment is read under its headings and lead-in.

        The row is the mean over the fragment's own word pieces, so that headings, which many share, do not
        bring the rows of a section together.
        """
        if not fragments:
            return np.empty((0, DIM), np.float32)
        tokenizer, _ = self._model.loaded
        try:
            first, last = tokenizer.encode("").ids
            found = pieces_in_context(tokenizer, fragments)
        except BaseException as fault:
            raise_fault(fault, EncoderError, "tokenizers")
        return self._pooled(
            [[first, *pieces, last] for pieces, _ in found],
            [[(1 + before, 1 + max(len(pieces), before + 1))] for pieces, before in found],
        )

    def _pooled(self, texts: Sequence[Sequence[int]], spans: Sequence[Sequence[Span]]) -> FloatArray:
        """Return a unit row for each span of the word pieces of each text, one text behind the other."""
        _, session = self._model.loaded
        starts = np.cumsum([0, *map(len, spans)])
        rows = np.empty((starts[-1], DIM), np.float32)

        def run(places: list[int]) -> None:
            together = np.array([texts[place] for place in places], np.int64)
            states: FloatArray = session.run(None, {"input_ids": together})[0]
            for place, of_text in zip(places, states, strict=True):
                for number, (first, end) in enumerate(spans[place], starts[place]):
                    # that it is a sum and no mean is undone by the scaling to unit length
                    of_text[first:end].sum(0, out=rows[number])

        batches = _runs(texts)
        with ThreadPoolExecutor(usable_processors()) as pool:
            list(pool.map(run, batches))
        rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
        return rows


def _runs(pieces: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return batches, as positions of texts of one length: the model has no padding."""
    groups: dict[int, list[int]] = {}
    for place, ids in enumerate(pieces):
        groups.setdefault(len(ids), []).append(place)
    found: list[list[int]] = []
    # long runs first, so that no thread begins one at the end
    for length in sorted(groups, reverse=True):
        size = max(1, PIECES_PER_RUN // length)
        found += [groups[length][start : start + size] for start in range(0, len(groups[length]), size)]
    return found


def open_session(model: str | bytes, *, optimize: bool = False) -> "InferenceSession":
    """Return a session that runs `model`, the path or the bytes of an ONNX file, in one thread.

    `optimize` is for graphs that are not optimised as they are stored; the shipped ones are. Nothing else may
    import onnxruntime: here its telemetry is switched off first.
    """
    # From 1.31 on it records its use in ~/.cache/Microsoft and reports to Microsoft, unless this is set when
    # it is first imported; its own `disable_telemetry_events` comes too late.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # the runs have threads of their own: faster than dividing each run, and nothing spins
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_mem_reuse = options.enable_mem_pattern = False
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class Model:
    """The tokenizer and the network in a folder, loaded at the first text.

    At most `max_pieces` word pieces of a text count, with [CLS] and [SEP]; the tokenizer may say less.
    `remedy` says what to do about damaged files, by default to install the package again; `optimize` is that
    of `open_session`.
    """

    def __init__(self, folder: Path, *, max_pieces: int, remedy: str = "", optimize: bool = False) -> None:
        self._folder, self._most, self._remedy, self._optimize = folder, max_pieces, remedy, optimize

    @cached_property
    def loaded(self) -> "tuple[Tokenizer, InferenceSession]":
        """Both; an `EncoderError` if a file is missing or damaged."""
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(self._folder / TOKENIZER))
            tokenizer.no_padding()
            known = tokenizer.truncation or {}
            tokenizer.enable_truncation(min(known.get("max_length", self._most), self._most))
            return tokenizer, open_session(str(self._folder / MODEL), optimize=self._optimize)
        except Exception as error:  # both packages raise Exception itself
            remedy = self._remedy or f"the installation is damaged, so run `{reinstall_command()}`"
            raise EncoderError(
                f"The encoder cannot be loaded from {self._folder} ({error}): {remedy}."
            ) from error

    def tokenize(self, texts: Iterable[str]) -> "list[Encoding]":
        """Return the word pieces of texts; raises as `loaded` does, or if the tokenizer fails."""
        tokenizer, _ = self.loaded
        try:
            return [tokenizer.encode(clean(text)) for text in texts]
        except BaseException as fault:
            raise_fault(fault, EncoderError, "tokenizers")


def content_digest(contents: Iterable[bytes]) -> str:
    """Return sixteen hexadecimal digits that differ between other contents of files."""
    digests = b"".join(hashlib.sha256(content).digest() for content in contents)
    return hashlib.sha256(digests).hexdigest()[:16]


def usable_processors() -> int:
    """Return how many processors this process may use, which a container or `taskset` may limit.

    `OMP_NUM_THREADS` limits them too, as for numpy and torch: schedulers set it for the processes they start.
    """
    # macOS and Windows have no such limits
    limited = hasattr(os, "sched_getaffinity")
    processors = len(os.sched_getaffinity(0)) if limited else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return min(int(wanted), processors) if wanted.isdecimal() and int(wanted) else processors


def clean(text: str) -> str:
    """Return what of a text is read; the tokenizer refuses half a character, as a command line can hold."""
    return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def pieces_in_context(tokenizer: "Tokenizer", fragments: Sequence[Fragment]) -> list[tuple[list[int], int]]:
    """Return for each fragment the word pieces that are read, and how many of them stand before its own.

    These are its headings, or only the innermost if they are too long, and the lead-in of its list.
    """
    known: dict[str, list[int]] = {}

    def pieces(text: str) -> list[int]:
        if text not in known:
            known[text] = tokenizer.encode(clean(text), add_special_tokens=False).ids
        return known[text]

    found = []
    for fragment in fragments:
        own = pieces(fragment.text)[:MAX_TEXT_PIECES]
        titles = [pieces(title)[:MAX_TITLE_PIECES] for title in fragment.heading_path]
        room = MAX_PIECES - 2 - len(own) - MAX_LEAD_IN_PIECES
        if sum(map(len, titles)) > room:
            titles = titles[-1:]
        lead_in = pieces(fragment.list_context.lead_in)[-MAX_LEAD_IN_PIECES:] if fragment.list_context else []
        before = [piece for part in (*titles, lead_in) for piece in part]
        found.append(([*before, *own], len(before)))
    return found


def part_spans(encoding: "Encoding", text: str, parts: Sequence[str]) -> list[Span]:
    """Return the first word piece and the end of a text and of its parts, which follow each other in it.

    A part behind the last word piece that counts gets the whole text.
    """
    whole = (0, len(encoding.ids))
    found, start = [whole], 0
    offsets = encoding.offsets
    inner = [piece for piece, (begin, end) in enumerate(offsets) if end > begin]
    for part in parts:
        start = text.index(part, start)
        end = start + len(part)
        mine = [piece for piece in inner if offsets[piece][0] < end and offsets[piece][1] > start]
        found.append((mine[0], mine[-1] + 1) if mine else whole)
        start = end
    return found
