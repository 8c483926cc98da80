"""Node types from any OpenAI-compatible chat endpoint.

Fragments are asked about in batches of neighbours, in document order. Every finished batch is kept in a
file, so that an interrupted or failed run goes on where it stopped and nothing is paid for twice.

Reference: paper §3.1, Node Classification (there with batches of 20).
"""

import hashlib
import json
import logging
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from skillpager.atomic_write import write_file
from skillpager.classifiers.llm_prompt import (
    ANSWER_SCHEMA,
    PROMPT_VERSION,
    SYSTEM_PROMPT,
    batch_message,
    read_verdicts,
    verdicts_in,
)
from skillpager.errors import ClassifierError
from skillpager.remote.chat import Message, post_chat
from skillpager.remote.endpoint import Endpoint, EndpointError, quoted
from skillpager.types import Classification, FloatArray, Fragment

logger = logging.getLogger(__name__)

BATCH_SIZE = 20  # paper §3.1
CONCURRENCY = 4
TIMEOUT = 120.0
MAX_RETRIES = 5
KEY_VARIABLE = "SKILLPAGER_LLM_API_KEY"


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some neighbouring fragments; `number` counts from 1, `message` is the user message about them."""

    number: int
    total: int
    fragments: Sequence[Fragment]
    message: str


@dataclass(frozen=True, slots=True)
class _Signals:
    """`halt`: begin no further batch. `abandon`: nor repeat a failed call."""

    halt: threading.Event
    abandon: threading.Event


class LLMClassifier:
    """A chat model as classifier. Safe for many threads.

    Args:
        model: Name of the model, as the endpoint knows it.
        base_url: Where the API begins, such as `http://localhost:11434/v1`; None for OpenAI's own.
        api_key: The key; None where the endpoint wants none. No environment variable is read.
        batch_size: Fragments per request.
        concurrency: Most requests at a time.
        timeout: Seconds without an answer after which a request has failed.
        max_retries: Most repetitions of one request; the waits between double from 1 s to 30 s.
        cache_dir: Folder that finished batches are kept in, made if need be; None keeps none.
        progress: Called in the calling thread with finished batches and all batches, at the start
            and after each batch.
        sleep: Waits so many seconds before a repetition; None for a wait that an interruption cuts short.

    Attributes:
        embedding: None, because no rows are read.

    Raises:
        SettingsError: The model is empty, or `base_url` or `api_key` cannot be used.
    """

    embedding: str | None = None

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        batch_size: int = BATCH_SIZE,
        concurrency: int = CONCURRENCY,
        timeout: float = TIMEOUT,
        max_retries: int = MAX_RETRIES,
        cache_dir: Path | None = None,
        progress: Callable[[int, int], None] | None = None,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        if batch_size < 1 or concurrency < 1:
            raise ValueError(f"batch_size and concurrency must be at least 1: {batch_size}, {concurrency}")
        self._endpoint = Endpoint(
            model,
            base_url=base_url,
            api_key=api_key,
            key_variable=KEY_VARIABLE,
            purpose="The llm classifier",
            timeout=timeout,
            max_retries=max_retries,
            sleep=sleep,
        )
        self._batch_size = batch_size
        self._concurrency = concurrency
        self._cache_dir = cache_dir
        self._progress = progress

    @property
    def id(self) -> str:
        """Host, model and a digest of the prompt; the batch size is no part of it."""
        return f"llm:{self._endpoint.id}#{PROMPT_VERSION}"

    def classify(
        self,
        fragments: Sequence[Fragment],
        rows: FloatArray | None = None,  # noqa: ARG002 - the Protocol has it, for classifiers that read rows
    ) -> list[Classification]:
        """Return one verdict per fragment, in order; `rows` are not read.

        Raises:
            ClassifierError: A batch has failed for good, or `cache_dir` cannot be written. Batches under
                way are finished and kept first.
            MissingExtraError: The `httpx` package is not installed.

        Reference: paper §3.1, Node Classification.
        """
        batches = _batches(fragments, self._batch_size)
        finished = {batch.number: kept for batch in batches if (kept := self._kept(batch)) is not None}
        missing = [batch for batch in batches if batch.number not in finished]
        self._report(len(finished), len(batches))
        if missing:
            self._check_cache_dir()
            self._ask_all(missing, finished)
        return [verdict for batch in batches for verdict in finished[batch.number]]

    def _ask_all(self, missing: Sequence[_Batch], finished: dict[int, list[Classification]]) -> None:
        """Add the verdicts on `missing` to `finished`; raise for a failed batch once the others are saved."""
        signals = _Signals(threading.Event(), threading.Event())
        failures: dict[int, EndpointError] = {}
        with ThreadPoolExecutor(min(self._concurrency, len(missing)), "skillpager-llm") as pool:
            try:
                pending = {pool.submit(self._ask, batch, signals): batch for batch in missing}
                for future in as_completed(pending):
                    self._collect(future, pending[future], finished, failures)
            except BaseException:
                # Ctrl-C, or a mistake in `progress`: what is paid for is still awaited and saved
                signals.halt.set()
                signals.abandon.set()
                raise
        if failures:
            first = min(failures)
            batch = next(batch for batch in missing if batch.number == first)
            raise ClassifierError(self._failed(batch, failures[first], len(finished))) from None

    def _collect(
        self,
        future: Future[list[Classification] | None],
        batch: _Batch,
        finished: dict[int, list[Classification]],
        failures: dict[int, EndpointError],
    ) -> None:
        try:
            verdicts = future.result()
        except EndpointError as error:
            failures[batch.number] = error
            return
        if verdicts is not None:
            finished[batch.number] = verdicts
            self._report(len(finished), batch.total)

    def _ask(self, batch: _Batch, signals: _Signals) -> list[Classification] | None:
        """Return and save the verdicts on a batch; None when none are wanted any more."""
        if signals.halt.is_set():
            return None
        try:
            verdicts = self._endpoint.persist(lambda: self._attempt(batch), abandoned=signals.abandon)
        except BaseException:
            signals.halt.set()
            raise
        self._keep(batch, verdicts)
        return verdicts

    def _attempt(self, batch: _Batch) -> list[Classification]:
        messages = [Message("system", SYSTEM_PROMPT), Message("user", batch.message)]
        answer = post_chat(self._endpoint, messages, schema=ANSWER_SCHEMA, schema_name="node_types")
        try:
            return verdicts_in(answer, len(batch.fragments))
        except (ValueError, RecursionError) as error:
            raise self._endpoint.bad_answer(error) from None

    def _failed(self, batch: _Batch, cause: EndpointError, finished: int) -> str:
        first, last = _place(batch.fragments[0]), _place(batch.fragments[-1])
        kept = (
            f"Finished batches ({finished}) are kept in {self._cache_dir} and will not be asked again: "
            "mend the cause and repeat the command."
            if self._cache_dir
            else f"Finished batches ({finished}) are lost, because there is no cache folder to keep them in."
        )
        return (
            f"Batch {batch.number} of {batch.total} ({first} to {last}) could not be typed by the model "
            f'"{self._endpoint.model}": {cause}. {kept}'
        )

    def _report(self, done: int, total: int) -> None:
        if self._progress:
            self._progress(done, total)

    def _file(self, batch: _Batch, folder: Path) -> Path:
        content = [self._endpoint.model, self._endpoint.address, PROMPT_VERSION, batch.message]
        return folder / f"{hashlib.sha256(json.dumps(content).encode()).hexdigest()}.json"

    def _kept(self, batch: _Batch) -> list[Classification] | None:
        """Return the verdicts of an earlier run, None when there are none that can be read."""
        if self._cache_dir is None:
            return None
        path = self._file(batch, self._cache_dir)
        try:
            return read_verdicts(json.loads(path.read_bytes()), len(batch.fragments))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, RecursionError) as error:
            logger.warning("the kept answer %s is damaged (%s) and asked again", path, quoted(str(error)))
            return None

    def _keep(self, batch: _Batch, verdicts: Sequence[Classification]) -> None:
        if self._cache_dir is None:
            return
        answers = [
            {"index": index, "type": str(verdict.type), "confidence": verdict.confidence}
            for index, verdict in enumerate(verdicts)
        ]
        try:
            write_file(self._file(batch, self._cache_dir), json.dumps({"answers": answers}))
        except OSError as error:
            # the answer itself is in hand: a full disk must not lose a run that may yet succeed
            logger.warning("batch %d of %d cannot be kept: %s", batch.number, batch.total, error)

    def _check_cache_dir(self) -> None:
        """Fail before anything is paid for when nothing could be kept."""
        if self._cache_dir is None:
            return
        try:
            self._cache_dir.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._cache_dir):
                pass
        except OSError as error:
            raise ClassifierError(
                f"Answers of the model cannot be kept in {self._cache_dir} ({error.strerror or error}), and "
                "without that an interrupted run would be paid for twice: make the folder writable or set "
                "another cache folder."
            ) from None


def _batches(fragments: Sequence[Fragment], size: int) -> list[_Batch]:
    starts = range(0, len(fragments), size)
    return [
        _Batch(
            number,
            len(starts),
            fragments[start : start + size],
            batch_message(fragments, start, start + size),
        )
        for number, start in enumerate(starts, 1)
    ]


def _place(fragment: Fragment) -> str:
    span = fragment.span
    lines = f"{span.start_line}" if span.start_line == span.end_line else f"{span.start_line}-{span.end_line}"
    return f"{span.file}:{lines}"
