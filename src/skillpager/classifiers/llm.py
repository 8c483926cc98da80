"""A classifier that asks a chat model at any OpenAI-compatible endpoint.

Fragments are sent in batches, in document order. Every finished batch is saved in a file, so that an
interrupted or failed run resumes where it stopped and no batch is paid for twice.

Reference: paper §3.1, Node Classification (there with batches of 20).
"""

import hashlib
import json
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.resources import files
from pathlib import Path

from skillpager.errors import ClassifierError
from skillpager.files import make_private_folder, write_file
from skillpager.remote.chat import Message, chat_json, object_schema
from skillpager.remote.endpoint import Endpoint, EndpointError, quoted, shortened
from skillpager.settings import LLM_BATCH_SIZE, LLM_CONCURRENCY
from skillpager.types import Classification, FloatArray, Fragment, NodeType

logger = logging.getLogger(__name__)

MAX_RETRIES = 5

# beginning and end show the role of a long code block; limits a batch to about 10k tokens
MAX_TEXT_CHARS = 2000
MAX_LEAD_IN_CHARS = 300
# raise when the text of `batch_message` changes, so that indexes made with the old text are built again
RENDERING = 1

SYSTEM_PROMPT = files(__package__).joinpath("prompt.txt").read_text(encoding="utf-8").rstrip("\n")
_ANSWER = object_schema(
    index={"type": "integer"},
    type={"type": "string", "enum": [name.value for name in NodeType]},
    confidence={"type": "number"},
)
ANSWER_SCHEMA = object_schema(answers={"type": "array", "items": _ANSWER})
_PROMPT = json.dumps([SYSTEM_PROMPT, ANSWER_SCHEMA, RENDERING])
PROMPT_VERSION = hashlib.sha256(_PROMPT.encode()).hexdigest()[:12]


class LLMClassifier:
    """A chat model as classifier, which reads no rows. Thread-safe.

    Finished batches are saved in `cache_dir`, which is made if needed; None saves none.

    Raises:
        ValueError: `batch_size`, in fragments, or `concurrency`, in requests, is below 1.
    """

    embedding: str | None = None

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        batch_size: int = LLM_BATCH_SIZE,
        concurrency: int = LLM_CONCURRENCY,
        cache_dir: Path | None = None,
    ) -> None:
        if batch_size < 1 or concurrency < 1:
            raise ValueError(f"batch_size and concurrency must be at least 1: {batch_size}, {concurrency}")
        self._endpoint = endpoint
        self.id = f"llm:{endpoint.id}#{PROMPT_VERSION}"
        self._batch_size = batch_size
        self._concurrency = concurrency
        self._cache_dir = cache_dir

    def classify(
        self,
        fragments: Sequence[Fragment],
        rows: FloatArray | None = None,  # noqa: ARG002 - the Protocol has it, for classifiers that read rows
    ) -> list[Classification]:
        """Return one verdict per fragment, in order; `rows` are not read.

        Raises:
            ClassifierError: A batch failed after all repetitions. Requests that are running are awaited and
                saved first.
            MissingExtraError: The `openai` package is not installed.
        """
        starts = range(0, len(fragments), self._batch_size)
        batches = [fragments[start : start + self._batch_size] for start in starts]
        messages = [batch_message(fragments, start, start + self._batch_size) for start in starts]
        found = [self._saved(message, len(batch)) for batch, message in zip(batches, messages, strict=True)]
        missing = [number for number, verdicts in enumerate(found) if verdicts is None]
        with ThreadPoolExecutor(self._concurrency, "skillpager-llm") as pool:
            pending = {
                pool.submit(self._ask, batches[number], messages[number]): number for number in missing
            }
            try:
                for future in as_completed(pending):
                    found[pending[future]] = future.result()
            except BaseException:
                # a failure or Ctrl-C: requests under way are paid for, so they are awaited and saved
                pool.shutdown(cancel_futures=True)
                raise
        return [verdict for verdicts in found for verdict in verdicts or ()]

    def _ask(self, batch: Sequence[Fragment], message: str) -> list[Classification]:
        """Return and save the verdicts on a batch."""
        try:
            verdicts = chat_json(
                self._endpoint,
                [Message("system", SYSTEM_PROMPT), Message("user", message)],
                schema=ANSWER_SCHEMA,
                schema_name="node_types",
                read=lambda data: read_verdicts(data, len(batch)),
            )
        except EndpointError as error:
            first, last = batch[0].span, batch[-1].span
            kept = f"are saved in {self._cache_dir}" if self._cache_dir else "are lost without a cache folder"
            raise ClassifierError(
                f"The nodes from {first.file}:{first.start_line} to {last.file}:{last.end_line} could not be "
                f'typed by the model "{self._endpoint.model}": {error}. Finished batches {kept}: correct '
                "the cause (if answers are cut off, by a smaller SKILLPAGER_LLM_BATCH_SIZE) and repeat the "
                "command."
            ) from None
        self._save(message, verdicts)
        return verdicts

    def _file(self, message: str, folder: Path) -> Path:
        content = [self._endpoint.model, self._endpoint.address, PROMPT_VERSION, message]
        return folder / f"{hashlib.sha256(json.dumps(content).encode()).hexdigest()}.json"

    def _saved(self, message: str, count: int) -> list[Classification] | None:
        """Return the verdicts of an earlier run; None if there are none, or they cannot be read."""
        if self._cache_dir is None:
            return None
        path = self._file(message, self._cache_dir)
        try:
            return read_verdicts(json.loads(path.read_bytes()), count)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, RecursionError) as error:
            logger.warning("the saved answer %s is damaged (%s) and asked again", path, quoted(str(error)))
            return None

    def _save(self, message: str, verdicts: Sequence[Classification]) -> None:
        if self._cache_dir is None:
            return
        answers = [
            {"index": index, "type": str(verdict.type), "confidence": verdict.confidence}
            for index, verdict in enumerate(verdicts)
        ]
        try:
            make_private_folder(self._cache_dir)
            write_file(self._file(message, self._cache_dir), json.dumps({"answers": answers}))
        except OSError as error:
            # the answer is in memory: a full disk must not stop a run that may still succeed
            logger.warning("an answer cannot be saved in %s: %s", self._cache_dir, error)


def read_verdicts(data: object, count: int) -> list[Classification]:
    """Return the verdicts on `count` fragments, in order, of `{"answers": [{"index", …}]}` or the bare list.

    A `ValueError` says which item is missing, repeated, of unknown type or out of range.
    """
    items = data.get("answers") if isinstance(data, dict) else data
    if not isinstance(items, list):
        raise ValueError('no list of "answers"')
    verdicts: dict[int, Classification] = {}
    for item in items:
        match item:
            case {"index": int(index), "type": str(name), "confidence": int() | float() as confidence}:
                if name not in list(NodeType):
                    raise ValueError(f'fragment {index} has the unknown type "{quoted(name)}"')
                if not 0 <= confidence <= 1:
                    raise ValueError(
                        f"fragment {index} has the confidence {confidence}, which is not from 0 to 1"
                    )
                if index in verdicts or not 0 <= index < count:
                    raise ValueError(f"index {index} is repeated or is not one of the {count} fragments")
                verdicts[index] = Classification(NodeType(name), float(confidence))
            case _:
                raise ValueError(f"an item without index, type and confidence: {quoted(repr(item))}")
    if missing := [str(index) for index in range(count) if index not in verdicts]:
        raise ValueError(f"no answer for fragments {', '.join(missing)} of {count}")
    return [verdicts[index] for index in range(count)]


def batch_message(fragments: Sequence[Fragment], start: int, end: int) -> str:
    """Return the user message on `fragments[start:end]`.

    It has no line numbers or totals, so that a change elsewhere in the document does not change it.
    """
    described: list[dict[str, object]] = []
    before = fragments[start - 1] if start else None
    for index, fragment in enumerate(fragments[start:end]):
        if before is None or before.span.file != fragment.span.file:
            follows = "begins the file"
        elif before.heading_path != fragment.heading_path:
            follows = "begins the section"
        else:
            adjacent = fragment.span.start_line - before.span.end_line <= 1
            follows = "directly" if adjacent else "after a blank line"
        item: dict[str, object] = {
            "index": index,
            "kind": str(fragment.kind),
            "headings": [shortened(title, MAX_LEAD_IN_CHARS) for title in fragment.heading_path],
            "follows": follows,
        }
        if context := fragment.list_context:
            item["item"] = f"{context.position + 1} of {context.size}"
            if context.lead_in:
                item["lead_in"] = shortened(context.lead_in, MAX_LEAD_IN_CHARS)
        item["text"] = shortened(fragment.text, MAX_TEXT_CHARS)
        described.append(item)
        before = fragment
    content = {
        "before": shortened(fragments[start - 1].text, MAX_LEAD_IN_CHARS) if start else None,
        "fragments": described,
        "after": shortened(fragments[end].text, MAX_LEAD_IN_CHARS) if end < len(fragments) else None,
    }
    return json.dumps(content, ensure_ascii=False, indent=1)
